"""State size, measured: how many numbers of the past reach the future.

Hold a past of T tokens fixed and let many futures follow it. Whatever the futures are, all they know of the past went
over the cut, so the derivatives of all their outputs by the past have at most the rank of what a net carries over: the
rank of that matrix is the state size at this length. A recurrent net's stays the same for longer pasts; attention's
grows; a convolution's stops growing at the length of its window.

The rank is that of almost all nets of the architecture, so it is taken on a copy whose inputs and outputs are wide
and whose weights are drawn: then few tokens fill the state, and forgetting hides nothing. Every rank found is a lower
bound: a singular value counts only above the rounding of this computation, which the same one in single precision
shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.errors import BadInput
from theodolite.measurement import Measurement, Provenance
from theodolite.nets.contract import ALIASES
from theodolite.nets.load import Blueprint, blueprint, seeded

TOLERANCE = 2e-14  # of the largest singular value, at least; rounding leaves a few 1e-16 where nothing amplifies it
_FINER = (
    torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
)  # rounding in double, as part of that in single
_MARGIN = 4.0  # between rounding as estimated and a value that counts
_STRONG = 1e-7  # a last singular value above this has nothing hidden below the tolerance
_CLEAR = 500.0  # times what counts: above, two draws that agree are believed; below, values fade into rounding
_GAINS = (1.0, 2.0, 3.0, 4.0)  # of the weights: deep stacks of gates hand on more with larger ones
_SURPLUS = 8  # rows beyond the rank, which a larger rank would have filled
_FIRST_ROWS = 64
_FAR = 32  # tokens over which a state must grow before it is said to grow for ever
_OLDEST = 256  # tokens of the past among which the window's end is looked for
_WIDEST = 512
# Activations whose derivative is exactly 0 over a range; a clamp is left out, which mostly guards a division.
_FLAT = frozenset({"relu", "threshold", "hardtanh", "hardsigmoid", "hardshrink", "softshrink"})


def state_size(
    net: str | nn.Module | Callable[..., Any], seed: int = 0, most: int = 1024, seconds: float = 8.0, **shape: Any
) -> Measurement:
    """Numbers a sequence net carries from the past into the future; None where it grows with the past.

    `most` bounds the rank that is resolved; about `seconds` are spent, and a net that would need more is given up with
    what is known by then. In the diagnostics, `sizes` are the ranks by length of the past, `growth_per_token`
    is how the last of them grew, `at_least` and `at_most` enclose the value and meet where it is `resolved` (None: no
    bound from above), and `reason` says why there is no value.
    """
    if most < 2 * _SURPLUS:
        raise BadInput(f"a state size resolved up to {most} numbers says nothing: use at least {2 * _SURPLUS}")
    started = time.perf_counter()
    plan = blueprint(net, **shape)
    try:
        with seeded(seed):
            value, found = _measure(plan, seed, most, seconds)
    except _NotMeasured as reason:
        value, found = None, {"reason": str(reason)}
    return Measurement(
        quantity="state size",
        value=value,
        exact=False,
        method="rank of the derivatives of many futures' outputs by the past they share",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, "cpu"),
        diagnostics={"tolerance": TOLERANCE, **found},
    )


class _NotMeasured(Exception):
    """Why this net has no state size here."""


class _NotFinite(_NotMeasured):
    """These weights, or this precision, overflow."""


class _TooSlow(_NotMeasured):
    """The next evaluation would take longer than there is time for."""


@dataclass(frozen=True)
class _Rank:
    rank: int
    weakest: float = 1.0  # the last singular value that counts, relative to the largest
    least: float = TOLERANCE  # what it must exceed to count
    local: bool = False  # where some units may be flat: other pasts may show more
    agreed: bool = False  # other weights gave the same rank and none a larger one
    filled: bool = False  # as many as there are numbers in the past: more tokens or features may show more
    capped: bool = False  # as many as there are rows

    @property
    def strong(self) -> bool:
        return self.weakest > _STRONG and not self.capped and not self.local

    @property
    def clear(self) -> bool:
        return self.weakest > _CLEAR * self.least

    @property
    def resolved(self) -> bool:
        return self.strong or self.agreed


def _measure(plan: Blueprint, seed: int, most: int, seconds: float) -> tuple[int | None, dict[str, Any]]:
    if plan.kind != "sequence":
        raise _NotMeasured("the net reads a vector, which has no past")
    if plan.vocab is not None:
        raise _NotMeasured("the net reads ids, which have no derivatives")
    past, depth = _Past(plan, seed, seconds), _argument(plan, "depth")
    shortest = max(depth or 4, 2)  # every layer takes a token to fill its part of the state
    features = past.widened(shortest, most)
    past.wide = features is not None
    features = features or past.features
    window = past.window(features)
    if window < _OLDEST:
        value, found = _of_window(past, window, features, most)
    else:
        value, found = _of_lengths(past, shortest if past.wide else 2 * shortest, features, most, depth is not None)
    return value, {**found, "net": "a wide copy" if past.wide else "as it is"}


def _of_window(past: _Past, window: int, features: int, most: int) -> tuple[int, dict[str, Any]]:
    """A past that ends. Its size is at most its tokens' together; the rank says whether it is that."""
    bound = past.bound(window, features) if window else 0
    rows = bound + _SURPLUS if bound + _SURPLUS <= most else min(most, _FIRST_ROWS)
    found = past.rank(window, features, rows, rows) if bound else _Rank(0)
    certain = found.rank == bound or (past.wide and (found.strong or (found.local and found.agreed)))
    return found.rank if certain else bound, {
        "sizes": {window: found.rank},
        "growth_per_token": 0.0,
        "window": window,
        "resolved": certain,
        "at_least": found.rank,
        "at_most": found.rank if certain else bound,
    }


def _of_lengths(
    past: _Past, shortest: int, features: int, most: int, known_depth: bool
) -> tuple[int | None, dict[str, Any]]:
    """A past without an end: its size at doubled lengths, until it stays or grows as it did before."""
    ranks: list[tuple[int, _Rank]] = [(0, _Rank(0))]
    slopes: list[float] = []
    slow: _TooSlow | None = None
    for length in [shortest << k for k in range(6 if past.wide else 4)]:
        earlier, before = ranks[-1]
        try:
            now = past.rank(length, features, most, before.rank + 2 * _SURPLUS)
        except _TooSlow as reason:
            if not slopes:
                raise
            slow = reason
            break
        ranks.append((length, now))
        slopes.append((now.rank - before.rank) / (length - earlier))
        # A state that fills slows down first; where the depth is not known, one more length is asked for. One that is
        # much larger than what a token brings (linear attention's matrices) fills late: as far as `most` lets us see.
        full_view = length >= _FAR or 2 * now.rank > most - _SURPLUS
        steady = full_view and len(slopes) > (1 if known_depth else 2) and slopes[-1] > 0.95 * slopes[-2]
        if slopes[-1] <= 0 or now.capped or (steady and not (now.filled and not past.wide)):
            break
    (length, last), largest = ranks[-1], max(rank.rank for _, rank in ranks)
    known = {"sizes": {tokens: rank.rank for tokens, rank in ranks[1:]}, "window": None, "at_least": largest}
    if slow is not None:
        reason = f"{slow}; it is at least {largest} numbers"
        return None, {**known, "growth_per_token": None, "resolved": False, "at_most": None, "reason": reason}
    # A past that is longer can carry no less: what became less is hidden, by rounding or by units that are flat here.
    resolved = last.resolved and last.rank == largest
    grows = slopes[-1] > 0 and len(slopes) > 1 and (resolved or last.capped)
    found = {
        **known,
        "growth_per_token": slopes[-1] if grows else 0.0,
        "resolved": resolved,
        "at_most": largest if resolved and slopes[-1] <= 0 else None,
    }
    if grows and last.filled:
        return None, {**found, "reason": f"it is at least {largest} numbers, all that {length} tokens hold"}
    if grows:
        return None, {**found, "reason": "it grows with the past"}
    if last.capped:
        return None, {**found, "growth_per_token": None, "reason": f"it is more than {most - _SURPLUS} numbers"}
    if slopes[-1] > 0:
        reason = f"it is at least {largest} numbers, and not resolved: more showed up to a past of {length} tokens"
        return None, {**found, "growth_per_token": None, "resolved": False, "reason": reason}
    return largest, found


class _Past:
    """The architecture with a past to differentiate by; nets, pasts and futures come from one seed."""

    def __init__(self, plan: Blueprint, seed: int, seconds: float) -> None:
        self.plan, self.seed, self.wide = plan, seed, False
        self.seconds, self.started, self.pace = seconds, _clock(), 0.0  # pace: seconds for a row's token
        own = getattr(self._build(None, None, 1.0, seed), "features", None) if plan.registered else None
        self.features = int(own or plan.shape.get("features", 1))
        with _Flat() as seen:
            self._rows(1, self.features, 1)
        self.flat, self.pace = seen.found, 0.0  # the first pass warms up and says nothing of the pace

    def widened(self, tokens: int, most: int) -> int | None:
        """Features beyond what the net takes in per token; None if it has no such limit, or cannot be widened.

        A net whose state grows with its features would be measured as another net.
        """
        if self.plan.built or "features" not in self.plan.known:
            return None
        features = 2 * (_argument(self.plan, "width") or 12) + _SURPLUS
        while (found := self.rank(tokens, features, most)).filled:
            features *= 2
            if features > _WIDEST:
                return None
        other = self.rank(tokens, features + features // 2, most, found.rank + 2 * _SURPLUS)
        return features if other.rank <= 1.2 * found.rank or found.capped else None

    def window(self, features: int) -> int:
        """How many tokens back the future still depends on the past: by derivatives that are exactly zero."""
        reached = (self._rows(_OLDEST, features, 4).unflatten(1, (_OLDEST, -1)) != 0).any(dim=2).any(dim=0)
        return _OLDEST - int(reached.int().argmax()) if bool(reached.any()) else 0

    def bound(self, tokens: int, features: int) -> int:
        """Tokens that are reached, times the largest rank of one: blocks of columns have no more together."""
        rows = self._rows(tokens, features, features + _SURPLUS).unflatten(1, (tokens, features))
        reached = (rows != 0).any(dim=2).any(dim=0)
        return int(reached.sum()) * max(_count(rows[:, token])[0] for token in range(tokens))

    def rank(self, tokens: int, features: int, most: int, rows: int = _FIRST_ROWS) -> _Rank:
        """The largest of several draws of the weights, each of which is a lower bound.

        One draw is enough where its last singular value is strong, two where they agree on the largest. Units that are
        flat at one past, as half of all ReLUs are, may carry something at another: all draws must then agree.
        """
        rows = min(max(rows, _FIRST_ROWS), most)
        best = self._rank(tokens, features, most, rows, _GAINS[0], self.seed)
        ranks = [best]
        for attempt, gain in enumerate(_GAINS[1:] if self.flat or not self.plan.built else (), start=1):
            if best.strong or best.capped or best.agreed:
                break
            try:
                other = self._rank(tokens, features, most, rows, gain, self.seed + attempt)
            except _NotFinite:
                continue
            ranks.append(other)
            if not self.flat and other.rank == best.rank and (other.clear or best.clear):
                best = replace(best, agreed=True)
            best = max(best, other, key=lambda each: each.rank)
        if best.local and all(each.rank == best.rank and each.clear for each in ranks):
            best = replace(best, agreed=True)
        return best

    def _rank(self, tokens: int, features: int, most: int, rows: int, gain: float, seed: int) -> _Rank:
        drawn: dict[torch.dtype, list[Tensor]] = {torch.float64: [], torch.float32: []}
        sizes: list[int] = []  # both precisions are drawn in the same pieces, so that their rows are the same
        while True:
            sizes.append(rows - sum(sizes))
            fine = self._drawn(drawn, sizes, tokens, features, gain, seed, torch.float64)
            rank, weakest, least = _count(fine)
            if weakest <= _STRONG:
                try:
                    rough = self._drawn(drawn, sizes, tokens, features, gain, seed, torch.float32)
                    rank, weakest, least = _count(fine, (rough - fine) * _FINER)
                except _NotFinite:
                    rank, weakest, least = _count(fine, least=_STRONG)
            filled = rank == fine.shape[1]
            capped = rank > rows - _SURPLUS and not filled
            if not capped or rows == most:
                local = self.flat and not filled
                return _Rank(rank, 1.0 if filled else weakest, least, local, filled=filled, capped=capped)
            rows = min(2 * rows, most)

    def _drawn(
        self,
        drawn: dict[torch.dtype, list[Tensor]],
        sizes: list[int],
        tokens: int,
        features: int,
        gain: float,
        seed: int,
        dtype: torch.dtype,
    ) -> Tensor:
        """All rows of one precision; the pieces that are still missing are drawn."""
        pieces = drawn[dtype]
        for at in range(len(pieces), len(sizes)):
            pieces.append(self._rows(tokens, features, sizes[at], gain, seed, sum(sizes[:at]), dtype))
        return torch.cat(pieces)

    def _rows(
        self,
        tokens: int,
        features: int,
        count: int,
        gain: float = 1.0,
        seed: int | None = None,
        drawn: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> Tensor:
        """Products of random vectors with the derivatives of `count` futures' outputs by the one past."""
        seed = self.seed if seed is None else seed
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *size: torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        future = max(4, min(tokens, _FIRST_ROWS))
        begun, work = _clock(), count * (tokens + future)
        if begun - self.started + self.pace * work > self.seconds:
            raise _TooSlow(f"{tokens} tokens of the past are too slow to probe in {self.seconds:g} s")
        past = draw(1, tokens, features).expand(count, -1, -1).clone().requires_grad_()
        generator.manual_seed(seed + 1 + drawn)  # the past stays, the futures are new
        net = self._build(features, tokens + future, gain, seed).to(dtype)
        try:
            output = net(torch.cat((past, draw(count, future, features)), dim=1))
            outputs = output[:, tokens:] if output.dim() == 3 and output.shape[1] == tokens + future else output
            weighed = (outputs * draw(*outputs.shape)).sum()
            (rows,) = torch.autograd.grad(weighed + 0 * past.sum(), past)
        except Exception as error:  # whatever a user's net raises
            raise _NotMeasured(f"the net fails on {tokens + future} tokens: {_first_line(error)}") from error
        if not bool(torch.isfinite(rows).all()):
            raise _NotFinite(f"the derivatives by {tokens} tokens are not finite")
        self.pace = (_clock() - begun) / work
        return rows.flatten(1).double()

    def _build(self, features: int | None, tokens: int | None, gain: float, seed: int) -> nn.Module:
        widened = features if features != getattr(self, "features", None) else None
        wanted = {"tokens": tokens, "features": widened, "outputs": widened}
        changed = {name: size for name, size in wanted.items() if name in self.plan.known and size is not None}
        try:
            torch.default_generator.manual_seed(seed)  # inside `seeded`, which puts the generator back
            net = self.plan.build(**changed).double().eval()
        except Exception as error:
            raise _NotMeasured(f"the net cannot be built for {tokens} tokens: {_first_line(error)}") from error
        if not self.plan.built:  # weights that start at zero or at one are drawn too
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in net.parameters():
                    noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                    parameter.mul_(gain if parameter.dim() > 1 else 1.0).add_(noise, alpha=0.02)
        return net.requires_grad_(False)


class _Flat(TorchDispatchMode):
    """Whether an activation is used whose derivative is exactly 0 over a whole range of its input."""

    found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found = self.found or func.__name__.split(".")[0] in _FLAT
        return func(*args, **(kwargs or {}))


def _clock() -> float:
    """Of this thread's own work: what else the machine does must not change what is found."""
    return time.thread_time()


def _count(matrix: Tensor, rounding: Tensor | None = None, least: float = TOLERANCE) -> tuple[int, float, float]:
    """Singular values that count; the last of them, and what they exceed, relative to the first.

    An error of the matrix moves no singular value by more than the error's largest (Weyl), so that those above it are
    not its doing. Columns and rows are brought to about one length first: the rank is the same, and old tokens no
    longer look like rounding. A random mixture of many columns has their rank too.
    """
    rows, columns = matrix.shape
    both = matrix.unsqueeze(0) if rounding is None else torch.stack((matrix, rounding))
    for dim in (0, 1, 0, 1):
        length = both[0].norm(dim=dim, keepdim=True)
        both = both / torch.where(length > 0, length, 1.0)
    if columns > 4 * rows:
        generator = torch.Generator().manual_seed(0)
        both = both @ torch.randn(columns, 2 * rows, generator=generator, dtype=torch.float64)
    values, *errors = torch.linalg.svdvals(both)
    if not float(values[0]) > 0:
        return 0, 1.0, least
    least = max([least, *(_MARGIN * float(error[0] / values[0]) for error in errors)])
    rank = int((values > least * values[0]).sum())
    return rank, float(values[rank - 1] / values[0]) if rank else 1.0, least


def _argument(plan: Blueprint, name: str) -> int | None:
    """A size by the name the net has for it."""
    for own, default in plan.known.items():
        if own == name or ALIASES.get(own) == name:
            value = plan.arguments.get(own, default)
            return value if isinstance(value, int) else None
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
