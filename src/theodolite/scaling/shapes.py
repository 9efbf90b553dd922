"""Shapes of equal size at different depths. Size counts parameters without what reads or writes symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from theodolite.errors import BadInput
from theodolite.nets.load import blueprint
from theodolite.nets.size import measured_parameters, own_name, widths_around

Net = str | Callable[..., Any]
WITHIN = 0.01  # of the size
_HEAD = 16  # numbers a head, about
_NARROWEST = 8
_GRAIN = 8  # of widths, for products of matrices
_UNEVEN = 0.3  # as bad as a perceptron of 4.3 widths
_NEAR = 0.25  # a shape that is farther off is not named as the nearest


@dataclass(frozen=True)
class SizedShape:
    """`size` is what was asked for, `parameters` what there are, without embedding and readout."""

    size: int
    depth: int
    width: int
    arguments: Mapping[str, Any]
    parameters: int

    @property
    def off(self) -> float:
        return self.parameters / self.size - 1


def inner_parameters(net: Net, **shape: Any) -> int:
    """Those that do not grow with the number of symbols: embedding and readout do, in proportion."""
    few, many = (measured_parameters(blueprint(net, features=n, outputs=n, **shape)) for n in (4, 5))
    return few - 4 * (many - few)


def shapes_of(
    net: Net, size: int, depths: Sequence[int], given: Mapping[str, Any] | None = None, within: float = WITHIN
) -> tuple[list[SizedShape], list[str]]:
    """For every depth the width that comes nearest, and why a depth has none whose size is so near.

    A `decoder` has an even width, heads of about 16 numbers, and a perceptron about four times as wide, whose exact
    width makes up for the rest, both multiples of 8 where there is room; other nets have their width alone to come
    near by.
    """
    find = _decoder if net == "decoder" else _by_width
    found, reasons = [], []
    for depth in depths:
        shape = find(net, size, depth, dict(given or {}))
        if isinstance(shape, str):
            reasons.append(f"depth {depth} {shape}")
        elif abs(shape.off) > within:
            reasons.append(
                f"depth {depth} has no shape of {size:,} parameters: the nearest, width {shape.width}, has "
                f"{shape.parameters:,} ({100 * shape.off:+.1f} %), which --within {_allowing(shape.off):g} allows"
            )
        else:
            found.append(shape)
    if not found:
        raise BadInput(f"no depth fits a size of {size:,}: {reasons[0]}; allow more with --within, or change the size")
    return found, reasons


def _allowing(off: float) -> float:
    """The least share, in whole per cent, within which a shape so far off is of the size."""
    return math.ceil(100 * abs(off)) / 100


def _decoder(net: Net, size: int, depth: int, given: dict[str, Any]) -> SizedShape | str:
    """12 L d² is the size about; the perceptron's width takes what is over or missing. Of the even widths near it the
    one is taken that leaves heads nearest to 16 numbers and a perceptron nearest to 4 widths. Products of matrices are
    fast where both widths are multiples of 8. Where `head_width` is given, there are as many heads as otherwise, and
    attention is that much wider or narrower than the network."""
    head_width = given.get("head_width")
    ideal = _ideal_width(size / depth, given.get("heads"), head_width)
    made = []
    for width in range(2 * round(0.94 * ideal / 2), 2 * round(1.06 * ideal / 2) + 1, 2):
        if width < _NARROWEST:
            continue
        heads = given.get("heads") or _heads(width)
        if head_width is None and width % heads:
            continue
        shape = {"depth": depth, "width": width, **given, "heads": heads}
        hidden = 4 * width
        over = inner_parameters(net, **shape, hidden=hidden) - size
        per_unit = depth * (2 * width + 1)
        grain = next((g for g in (_GRAIN, _GRAIN // 2, 2) if g * per_unit <= 1.6 * WITHIN * size), 1)
        hidden = max(1, grain * round((hidden - over / per_unit) / grain))
        unlike = abs(math.log2(width / heads / _HEAD)) + abs(hidden / width - 4) + _UNEVEN * (width % _GRAIN > 0)
        made.append((unlike, width, {**shape, "hidden": hidden}))
    if not made and ideal < _NARROWEST:
        return _too_deep(size)
    if not made:
        return f"has no shape of {size:,} parameters: {given['heads']} heads divide no even width near {ideal:.0f}"
    _, width, arguments = min(made, key=lambda each: each[:2])
    return SizedShape(size, depth, width, arguments, inner_parameters(net, **arguments))


def _ideal_width(of_layer: float, heads: Any, head_width: Any) -> float:
    """Of a layer of so many parameters: 4 d·(width of attention) + 8 d²; what no network takes is refused by it."""
    if not isinstance(head_width, int) or head_width < 1:
        return (of_layer / 12) ** 0.5
    if not isinstance(heads, int) or heads < 1:
        return (of_layer / (4 * head_width / _HEAD + 8)) ** 0.5
    attended = heads * head_width
    return (math.sqrt(attended**2 + 2 * of_layer) - attended) / 4


def _too_deep(size: int) -> str:
    return f"is too deep for {size:,} parameters: it would be narrower than {_NARROWEST}"


def _heads(width: int) -> int:
    """A divisor of the width that leaves heads of an even width, as near to 16 as there is."""
    fitting = [heads for heads in range(1, width // 2 + 1) if width % (2 * heads) == 0]
    return min(fitting, key=lambda heads: (abs(math.log2(width / heads / _HEAD)), heads))


def _by_width(net: Net, size: int, depth: int, given: dict[str, Any]) -> SizedShape | str:
    known = blueprint(net).known
    deep, wide, heads = (own_name(name, known) for name in ("depth", "width", "heads"))
    if deep is None or wide is None:
        raise BadInput("depth against width needs a net that has both as arguments: give another --net")
    step = given.get(heads, known[heads]) if heads else 1
    step = step if isinstance(step, int) else 1

    @cache
    def count(width: int) -> int:
        return inner_parameters(net, **{**given, deep: depth, wide: width})

    narrowest = step * -(-_NARROWEST // step)
    if count(narrowest) > size * (1 + _NEAR):
        return _too_deep(size)
    around = widths_around(count, size, narrowest, step)
    if around is None:
        raise BadInput(f"the parameters of '{net}' do not grow with its width to {size:,} at depth {depth}")
    width = min(around, key=lambda w: (abs(count(w) - size), w))
    return SizedShape(size, depth, width, {**given, deep: depth, wide: width}, count(width))
