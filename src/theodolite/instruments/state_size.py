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
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.instruments.state_growth import OLDEST, shown_growth
from theodolite.instruments.state_past import (
    FIRST_ROWS,
    SURPLUS,
    TOLERANCE,
    NotFinite,
    NotMeasured,
    Past,
    Rank,
    TooSlow,
    argument,
)
from theodolite.instruments.through_embedding import through_embedding
from theodolite.measurement import Measurement, Provenance
from theodolite.nets.load import Blueprint, blueprint, seeded

_FAR = 32  # tokens over which a state grows steadily before it is asked whether it ends
_OUTPUTS = 48  # of a net that reads ids
_NEAR = 256  # tokens of the past among which the window's end is looked for first


def state_size(
    net: str | nn.Module | Callable[..., Any], seed: int = 0, most: int = 1024, seconds: float = 8.0, **shape: Any
) -> Measurement:
    """Numbers a sequence net carries from the past into the future; None where it grows with the past.

    `most` bounds the rank that is resolved; about `seconds` are spent, and a net that would need more is given up with
    what is known by then. A net that reads ids is measured through its embedding. In the diagnostics, `sizes` are the
    ranks by length of the past, `growth_per_token` is how the last of them grew where growth is shown (see
    `state_growth`), 0 where the size stays and None where neither is known; `at_least` and `at_most` enclose the value
    and meet where it is `resolved` (None: no bound from above), and `reason` says why there is no value.
    """
    if most < 2 * SURPLUS:
        raise BadInput(f"a state size resolved up to {most} numbers says nothing: use at least {2 * SURPLUS}")
    started = time.perf_counter()
    plan = _many_outputs(net, shape)
    try:
        with seeded(seed):
            value, found = _measure(plan, seed, most, seconds)
    except NotMeasured as reason:
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


def _many_outputs(net: str | nn.Module | Callable[..., Any], shape: Mapping[str, Any]) -> Blueprint:
    """A net of ids keeps its inputs; with many outputs, if it can have them, none of its state hides behind one."""
    plan = blueprint(net, **shape)
    if plan.vocab is None or plan.built:
        return plan
    try:
        wide = blueprint(net, **{**shape, "outputs": _OUTPUTS})
        with seeded(0):
            wide.build()
    except TheodoliteError:
        return plan
    return wide


def _measure(plan: Blueprint, seed: int, most: int, seconds: float) -> tuple[int | None, dict[str, Any]]:
    if plan.kind != "sequence":
        raise NotMeasured("the net reads a vector, which has no past")
    try:
        plan = through_embedding(plan)
    except NotApplicable as reason:
        raise NotMeasured(str(reason)) from reason
    past, depth = Past(plan, seed, seconds), argument(plan, "depth")
    shortest = max(depth or 4, 2)  # every layer takes a token to fill its part of the state
    features = past.widened(shortest, most)
    past.wide = features is not None
    features = features or past.features
    longest, window = _first_window(past, features)
    if window < longest:
        value, found = _of_window(past, window, features, most)
    else:
        lengths = _Lengths(past, shortest if past.wide else 2 * shortest, features, most, depth is not None, longest)
        value, found = lengths.measure()
    if past.seen.single:
        found["precision"] = "float32: the net makes tensors of single precision inside"
    return value, {**found, "net": "a wide copy" if past.wide else "as it is"}


def _first_window(past: Past, features: int) -> tuple[int, int]:
    """Tokens the net was tried with, fewer where its positions end before, and how many of them it looks back."""
    for longest in (_NEAR, 128, 64, 32):
        try:
            return longest, past.window(features, longest)
        except (TooSlow, NotFinite):
            raise
        except NotMeasured:
            continue
    return 16, past.window(features, 16)


def _of_window(past: Past, window: int, features: int, most: int) -> tuple[int, dict[str, Any]]:
    """A past that ends. Its size is at most its tokens' together; the rank says whether it is that."""
    bound = past.bound(window, features) if window else 0
    rows = bound + SURPLUS if bound + SURPLUS <= most else min(most, FIRST_ROWS)
    found = past.rank(window, features, rows, rows) if bound else Rank(0)
    certain = found.rank == bound or (past.wide and (found.strong or (found.local and found.agreed)))
    return found.rank if certain else bound, {
        "sizes": {window: found.rank},
        "growth_per_token": 0.0,
        "window": window,
        "resolved": certain,
        "at_least": found.rank,
        "at_most": found.rank if certain else bound,
    }


class _Lengths:
    """A past without an end: its size at doubled lengths, until it stays or is shown to grow."""

    def __init__(self, past: Past, shortest: int, features: int, most: int, known_depth: bool, longest: int) -> None:
        self.past, self.features, self.most, self.known_depth, self.longest = past, features, most, known_depth, longest
        doubled = [shortest << k for k in range(6 if past.wide else 4)]
        self.lengths = doubled if longest == _NEAR else [n for n in doubled if 2 * n <= longest]
        self.ranks: list[tuple[int, Rank]] = [(0, Rank(0))]
        self.slopes: list[float] = []

    def measure(self) -> tuple[int | None, dict[str, Any]]:
        slow: TooSlow | None = None
        growth, asked = None, False
        for length in self.lengths:
            try:
                self._add(length)
            except TooSlow as reason:
                if not self.slopes:
                    raise
                slow = reason
                break
            if self.slopes[-1] <= 0 or self._last.capped:
                break
            if not asked and self._steady(length):
                if (window := self._far_window()) < OLDEST:
                    return _of_window(self.past, window, self.features, self.most)
                asked, growth = True, shown_growth(self.past.plan, self.past.seed, self.most, self.past.left)
                if growth is not None:
                    break
        largest = max(rank.rank for _, rank in self.ranks)
        known = {
            "sizes": {tokens: rank.rank for tokens, rank in self.ranks[1:]},
            "window": None,
            "at_least": largest,
            "at_most": None,
            "growth_per_token": None,
            "resolved": False,
        }
        if growth is not None:
            reason = f"it grows with the past: {growth}"
            return None, {**known, "growth_per_token": self.slopes[-1], "resolved": True, "reason": reason}
        # A past that is longer can carry no less: what became less is hidden, by rounding or by units flat here.
        if self.slopes[-1] <= 0:
            resolved = self._last.resolved and self._last.rank == largest
            at_most = largest if resolved else None
            return largest, {**known, "growth_per_token": 0.0, "resolved": resolved, "at_most": at_most}
        return None, {**known, "reason": self._open(largest, slow)}

    def _add(self, length: int) -> None:
        earlier, before = self.ranks[-1]
        now = self.past.rank(length, self.features, self.most, before.rank + 2 * SURPLUS)
        self.ranks.append((length, now))
        self.slopes.append((now.rank - before.rank) / (length - earlier))

    @property
    def _last(self) -> Rank:
        return self.ranks[-1][1]

    @property
    def _even(self) -> bool:
        """As many numbers a token as before: a state that fills slows down first, where the depth is not known by one
        length later."""
        return len(self.slopes) > (1 if self.known_depth else 2) and self.slopes[-1] > 0.95 * self.slopes[-2]

    def _steady(self, length: int) -> bool:
        return self._even and (length >= _FAR or 2 * self._last.rank > self.most - SURPLUS)

    def _far_window(self) -> int:
        try:
            return OLDEST if self.longest < _NEAR else self.past.window(self.features, OLDEST, rows=1)
        except NotMeasured:
            return OLDEST

    def _open(self, largest: int, slow: TooSlow | None) -> str:
        """Why there is no number."""
        length = self.ranks[-1][0]
        if slow is not None:
            return f"{slow}; it is at least {largest} numbers"
        if self._last.capped:
            return f"it is more than {self.most - SURPLUS} numbers, and whether it ends is not resolved"
        if self.longest < _NEAR:
            return f"it is at least {largest} numbers: the net takes no more than {self.longest} tokens at once"
        filled = f", all that {length} tokens hold" if self._last.filled else ""
        return (
            f"it is at least {largest} numbers{filled}, and not resolved: more showed up to a past of {length} tokens"
        )
