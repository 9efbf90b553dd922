"""A past that many futures share, and the rank of their outputs' derivatives by it: what `state_size` is read from."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.instruments.precision import single_precision
from theodolite.instruments.random_nets import features_of
from theodolite.nets.contract import ALIASES
from theodolite.nets.load import Blueprint

TOLERANCE = 2e-14  # of the largest singular value, at least; rounding leaves a few 1e-16 where nothing amplifies it
_FINER = (
    torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
)  # rounding in double, as part of that in single
_NOISE = 1e3  # a column must be so much longer than its rounding
_MARGIN = 4.0  # between rounding as estimated and a value that counts
_SINGLE = 1e-5  # what counts where a net computes in single precision inside, whatever it is given
_STRONG = 1e-7  # a last singular value above this has nothing hidden below the tolerance
_CLEAR = 500.0  # times what counts: above, two draws that agree are believed; below, values fade into rounding
_GAINS = (1.0, 2.0, 3.0, 4.0)  # of the weights: deep stacks of gates hand on more with larger ones
SURPLUS = 8  # rows beyond the rank, which a larger rank would have filled
FIRST_ROWS = 64
_FUTURE = 32  # tokens of a future
_WIDEST = 512
# Activations whose derivative is exactly 0 over a range; a clamp is left out, which mostly guards a division.
_FLAT = frozenset({"relu", "threshold", "hardtanh", "hardsigmoid", "hardshrink", "softshrink"})


class NotMeasured(Exception):
    """Why this net has no state size here."""


class NotFinite(NotMeasured):
    """These weights, or this precision, overflow."""


class TooSlow(NotMeasured):
    """The next evaluation would take longer than there is time for."""


@dataclass(frozen=True)
class Rank:
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


class Past:
    """The architecture with a past to differentiate by; nets, pasts and futures come from one seed."""

    def __init__(self, plan: Blueprint, seed: int, seconds: float) -> None:
        self.plan, self.seed, self.wide = plan, seed, False
        self.seconds, self.started, self.pace = seconds, _clock(), 0.0  # pace: seconds for a row's token
        self.features = features_of(plan, self._build(None, None, 1.0, seed))
        self.seen = _Seen()
        self.fine = torch.float64
        try:
            self._rows(1, self.features, 1, watch=self.seen)
        except NotMeasured as in_double:
            self.fine, self.seen = torch.float32, _Seen()
            try:
                self._rows(1, self.features, 1, dtype=torch.float32, watch=self.seen)
            except NotMeasured:
                raise in_double from None
        self.pace = 0.0  # the first pass warms up and says nothing of the pace

    @property
    def held(self) -> int:
        """Numbers that a state of one size may well hold: as many as there are weights, or in the largest tensor.

        Tables of words and places are looked up in and compute nothing: they are left out.
        """
        net = self._build(None, None, 1.0, self.seed)
        tables = {id(each.weight) for each in net.modules() if isinstance(each, nn.Embedding)}
        weights = sum(each.numel() for each in net.parameters() if id(each) not in tables)
        return max(weights, self.seen.largest)

    def widened(self, tokens: int, most: int) -> int | None:
        """Features beyond what the net takes in per token; None if it has no such limit, or cannot be widened.

        A net whose state grows with its features would be measured as another net.
        """
        if self.plan.built or "features" not in self.plan.known:
            return None
        features = 2 * (argument(self.plan, "width") or 12) + SURPLUS
        while (found := self.rank(tokens, features, most)).filled:
            features *= 2
            if features > _WIDEST:
                return None
        other = self.rank(tokens, features + features // 2, most, found.rank + 2 * SURPLUS)
        return features if other.rank <= 1.2 * found.rank or found.capped else None

    def window(self, features: int, oldest: int, rows: int = 4) -> int:
        """How many of so many tokens back the future depends on the past: by derivatives that are exactly zero."""
        reached = (self._rows(oldest, features, rows).unflatten(1, (oldest, -1)) != 0).any(dim=2).any(dim=0)
        return oldest - int(reached.int().argmax()) if bool(reached.any()) else 0

    @property
    def left(self) -> float:
        """Seconds for what is asked next, half of all at least."""
        return max(self.seconds / 2, self.seconds - (_clock() - self.started))

    def used(self, tokens: int, faint: float) -> int:
        """Directions of the past that reach the future by more than this part of the strongest, at these weights."""
        values = torch.linalg.svdvals(self._rows(tokens, self.features, FIRST_ROWS))
        return int((values > faint * values[0]).sum()) if float(values[0]) > 0 else 0

    def bound(self, tokens: int, features: int) -> int:
        """Tokens that are reached, times the largest rank of one: blocks of columns have no more together."""
        rows = self._rows(tokens, features, features + SURPLUS).unflatten(1, (tokens, features))
        reached = (rows != 0).any(dim=2).any(dim=0)
        return int(reached.sum()) * max(_count(rows[:, token])[0] for token in range(tokens))

    def rank(self, tokens: int, features: int, most: int, rows: int = FIRST_ROWS) -> Rank:
        """The largest of several draws of the weights, each of which is a lower bound.

        One draw is enough where its last singular value is strong, two where they agree on the largest. Units that are
        flat at one past, as half of all ReLUs are, may carry something at another: all draws must then agree.
        """
        rows = min(max(rows, FIRST_ROWS), most)
        best = self._rank(tokens, features, most, rows, _GAINS[0], self.seed)
        ranks = [best]
        for attempt, gain in enumerate(_GAINS[1:] if self.seen.flat or not self.plan.built else (), start=1):
            if best.strong or best.capped or best.agreed:
                break
            try:
                other = self._rank(tokens, features, most, rows, gain, self.seed + attempt)
            except NotFinite:
                continue
            ranks.append(other)
            if not self.seen.flat and other.rank == best.rank and other.clear and best.clear:
                best = replace(best, agreed=True)
            best = max(best, other, key=lambda each: each.rank)
        if best.local and all(each.rank == best.rank and each.clear for each in ranks):
            best = replace(best, agreed=True)
        return best

    def largest_rank(self, tokens: int, features: int, rows: int, enough: int) -> int:
        """The largest of several draws, large weights first, which bring far tokens out; the first that is enough."""
        found = 0
        for attempt, gain in enumerate(reversed(_GAINS)):
            try:
                found = max(found, self._rank(tokens, features, rows, rows, gain, self.seed + attempt).rank)
            except NotFinite:
                continue
            if found >= enough or self.plan.built:
                break
        return found

    def _rank(self, tokens: int, features: int, most: int, rows: int, gain: float, seed: int) -> Rank:
        drawn: dict[torch.dtype, list[Tensor]] = {torch.float64: [], torch.float32: []}
        sizes: list[int] = []  # both precisions are drawn in the same pieces, so that their rows are the same
        while True:
            sizes.append(rows - sum(sizes))
            fine = self._drawn(drawn, sizes, tokens, features, gain, seed, self.fine)
            floor = _SINGLE if self.seen.single else TOLERANCE
            rank, weakest, least = _count(fine, least=floor)
            if self.fine is torch.float64 and (weakest <= _STRONG or self.seen.transformed):
                try:
                    rough = self._drawn(drawn, sizes, tokens, features, gain, seed, torch.float32)
                    rank, weakest, least = _count(fine, (rough - fine) * _FINER, floor)
                except NotFinite:
                    rank, weakest, least = _count(fine, least=max(floor, _STRONG))
            filled = rank == fine.shape[1]
            capped = rank > rows - SURPLUS and not filled
            if not capped or rows == most:
                local = self.seen.flat and not filled
                return Rank(rank, 1.0 if filled else weakest, least, local, filled=filled, capped=capped)
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
        dtype: torch.dtype | None = None,
        watch: _Seen | None = None,
    ) -> Tensor:
        """Products of random vectors with the derivatives of `count` futures' outputs by the one past."""
        seed, dtype = self.seed if seed is None else seed, dtype or self.fine
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *size: torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        future = max(4, min(tokens, _FUTURE))
        begun, work = _clock(), count * (tokens + future)
        if begun - self.started + self.pace * work > self.seconds:
            raise TooSlow(f"{tokens} tokens of the past are too slow to probe in {self.seconds:g} s")
        past = draw(1, tokens, features).expand(count, -1, -1).clone().requires_grad_()
        generator.manual_seed(seed + 1 + drawn)  # the past stays, the futures are new
        net = self._build(features, tokens + future, gain, seed).to(dtype)
        try:
            tokens_of_all = torch.cat((past, draw(count, future, features)), dim=1)
            with watch or nullcontext():
                output = net(tokens_of_all)
            outputs = output[:, tokens:] if output.dim() == 3 and output.shape[1] == tokens + future else output
            weighed = (outputs * draw(*outputs.shape)).sum()
            (rows,) = torch.autograd.grad(weighed + 0 * past.sum(), past)
        except Exception as error:  # whatever a user's net raises
            raise NotMeasured(f"the net fails on {tokens + future} tokens: {_first_line(error)}") from error
        if not bool(torch.isfinite(rows).all()):
            raise NotFinite(f"the derivatives by {tokens} tokens are not finite")
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
            raise NotMeasured(f"the net cannot be built for {tokens} tokens: {_first_line(error)}") from error
        if not self.plan.built:  # weights that start at zero or at one are drawn too
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in net.parameters():
                    noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                    parameter.mul_(_factor(parameter, gain)).add_(noise, alpha=0.02)
        return net.requires_grad_(False)


class _Seen(TorchDispatchMode):
    """What one pass in double precision shows: `flat`, an activation whose derivative is exactly 0 over a range of its
    input; `single`, a tensor of single precision that the net made; `transformed`, a Fourier transform, which spreads
    the rounding of large numbers over small ones; `largest`, the numbers in the largest tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.flat = self.single = self.transformed = False
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        self.flat = self.flat or name in _FLAT
        self.transformed = self.transformed or "fft" in name
        for each in found if isinstance(found, tuple | list) else (found,):
            if isinstance(each, Tensor):
                self.single = self.single or single_precision(each)
                self.largest = max(self.largest, each.numel())
        return found


def _factor(parameter: Tensor, gain: float) -> float:
    """The gain of matrices; one that starts far smaller than is usual, as at 0.02, is brought there too."""
    if parameter.dim() < 2 or gain == 1.0:
        return 1.0
    size = float(parameter.std(correction=0))
    return gain * max(1.0, parameter.shape[-1] ** -0.5 / size) if size > 0 else gain


def _clock() -> float:
    """Of this thread's own work: what else the machine does must not change what is found."""
    return time.thread_time()


def _count(matrix: Tensor, rounding: Tensor | None = None, least: float = TOLERANCE) -> tuple[int, float, float]:
    """Singular values that count; the last of them, and what they exceed, relative to the first.

    An error of the matrix moves no singular value by more than the error's largest (Weyl), so that those above it are
    not its doing. Columns and rows are brought to about one length first: the rank is the same, and old tokens no
    longer look like rounding; columns that are little else are left out. A random mixture of many columns has their
    rank too.
    """
    rows, columns = matrix.shape
    both = matrix.unsqueeze(0) if rounding is None else torch.stack((matrix, rounding))
    if rounding is not None:
        both = both * (matrix.norm(dim=0) > _NOISE * rounding.norm(dim=0))
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


def argument(plan: Blueprint, name: str) -> int | None:
    """A size by the name the net has for it."""
    for own, default in plan.known.items():
        if own == name or ALIASES.get(own) == name:
            value = plan.arguments.get(own, default)
            return value if isinstance(value, int) else None
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
