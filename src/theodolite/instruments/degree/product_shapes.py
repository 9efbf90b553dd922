"""Networks of product blocks that cost the same: how deep and wide a degree may be for a budget of square matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.contract import nets
from theodolite.nets.product_net import ProductBlock, ProductNet
from theodolite.nets.size import count_parameters

NET = "product-net"
_CLOSE = 0.02  # of the parameters: what counts as equal
_WIDER = 0.2  # of the width: what it may be moved by to make parameters equal
_NAMES = {"e": math.e}

Degree = int | float | str | Sequence[int]


@dataclass(frozen=True)
class Blocks:
    """What the blocks of a built network really have: whole units make of e at width 8 a degree of 2.75. `total` is the
    degree of their composition, that of each block being its highest unit's; `matrices` counts squares of the width."""

    degrees: tuple[float, ...]
    total: int
    matrices: float

    @classmethod
    def of(cls, net: ProductNet) -> Blocks:
        highest = [math.ceil(degree) for degree in net.block_degrees()]
        weights = sum(block.factors.weight.numel() for block in net.blocks if isinstance(block, ProductBlock))
        return cls(tuple(net.block_degrees()), math.prod(highest), weights / net.width**2)


@dataclass(frozen=True)
class Shape:
    """One network: its block degrees, its measured parameters, and how far those are off the budget's."""

    degree: str
    degrees: tuple[float, ...]
    width: int
    power: str
    parameters: int
    off: float = 0.0  # the share of parameters above the budget's, or below where negative

    @property
    def depth(self) -> int:
        return len(self.degrees)

    @property
    def note(self) -> str:
        if abs(self.off) <= _CLOSE:
            return ""
        return f"{abs(self.off):.1%} {'more' if self.off > 0 else 'fewer'} parameters than the budget's"

    def blocks(self) -> Blocks:
        return Blocks.of(cast("ProductNet", _on_meta(1, 1, self.degrees, self.width, self.power)))

    def build(self, features: int, outputs: int) -> nn.Module:
        return _build(features, outputs, self.degrees, self.width, self.power)


def shape_of(degree: Degree, budget: int, width: int, features: int, outputs: int) -> Shape:
    """The network of blocks of this degree for `budget` matrices of width × width.

    A whole degree that divides the budget has budget/degree blocks of that width. Others (5, 2.5, "e") get the depth
    and width whose measured parameters come nearest to those. "3,2" mixes two degrees evenly so that they sum to the
    budget; a full list is taken as it is. "learnt" blocks have three factors whose exponents are trained.
    """
    _check(budget, width)
    goal = _measured(features, outputs, _reference(budget), width, "share")
    name, blocks, power = _read(degree)
    if len(blocks) != 1:
        chosen = _mixed(blocks, budget)
        return _described(name, chosen, width, power, goal, features, outputs)
    (each,) = blocks
    cost = 3 if power == "learnt" else each
    deepest = budget / cost
    if deepest < 1:
        raise BadInput(f"a budget of {budget} matrices is smaller than one block of degree {name}: raise the budget")
    if deepest == int(deepest):
        return _described(name, (each,) * int(deepest), width, power, goal, features, outputs)
    candidates = [
        _described(name, (each,) * depth, wide, power, goal, features, outputs)
        for depth in (math.floor(deepest), math.ceil(deepest))
        for wide in range(max(1, math.floor(width * (1 - _WIDER))), math.ceil(width * (1 + _WIDER)) + 1)
    ]
    close = [c for c in candidates if abs(c.parameters / goal - 1) <= _CLOSE]
    if close:  # the depth and width nearest to the plain ones
        return min(close, key=lambda c: (abs(math.log(c.depth / deepest)) + abs(math.log(c.width / width)), c.depth))
    return min(candidates, key=lambda c: (abs(c.parameters - goal), c.depth))


def _described(
    name: str, degrees: tuple[float, ...], width: int, power: str, goal: int, features: int, outputs: int
) -> Shape:
    parameters = _measured(features, outputs, degrees, width, power)
    return Shape(name, degrees, width, power, parameters, parameters / goal - 1)


def _read(degree: Degree) -> tuple[str, tuple[float, ...], str]:
    """The name, the degrees of its blocks and the way real ones are made."""
    if degree == "learnt":
        return "learnt", (3.0,), "learnt"
    if isinstance(degree, str):
        parts = [_NAMES.get(part.strip(), part) for part in degree.split(",")]
    else:
        parts = list(degree) if isinstance(degree, Sequence) else [degree]
    try:
        values = tuple(float(part) for part in parts)
    except ValueError:
        raise BadInput(f"'{degree}' is no degree: give a number, e, learnt, or whole numbers such as 3,2") from None
    for value in values:
        if not 1 < value < math.inf:
            raise BadInput(f"a block of degree {value:g} cannot be trained here: give a degree above 1")
    if not values or (len(values) > 1 and any(v != int(v) for v in values)):
        raise BadInput(f"'{degree}' mixes degrees that are not whole: give whole numbers such as 3,2")
    name = degree if isinstance(degree, str) else ",".join(f"{v:g}" for v in values)
    return name, values, "share"


def _mixed(blocks: tuple[float, ...], budget: int) -> tuple[float, ...]:
    """As given where that is the budget; else as many of both as sum to it, most nearly equally many, evenly spread."""
    if sum(blocks) == budget:
        return blocks
    kinds = tuple(dict.fromkeys(int(b) for b in blocks))
    if len(kinds) == 2:
        first, second = kinds
        counts = [
            (n, (budget - n * first) // second)
            for n in range(1, budget // first + 1)
            if budget > n * first and (budget - n * first) % second == 0
        ]
        if counts:
            a, b = min(counts, key=lambda pair: abs(pair[0] - pair[1]))
            places = sorted([((i + 0.5) / a, 0) for i in range(a)] + [((i + 0.5) / b, 1) for i in range(b)])
            return tuple(float(kinds[which]) for _, which in places)
    raise BadInput(
        f"blocks of degrees {', '.join(f'{b:g}' for b in blocks)} do not sum to the budget of {budget} matrices: "
        "give two degrees to mix, or a list that does"
    )


def _check(budget: int, width: int) -> None:
    for name, value in (("budget", budget), ("width", width)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 2:
            raise BadInput(f"the {name} must be a whole number of at least 2, not {value!r}")


def _reference(budget: int) -> tuple[float, ...]:
    """Blocks whose measured parameters are what the budget stands for."""
    for degree in (3, 2):
        if budget % degree == 0:
            return (float(degree),) * (budget // degree)
    return (*((3.0,) * (budget // 3 - 1)), float(3 + budget % 3))


@cache
def _measured(features: int, outputs: int, degrees: tuple[float, ...], width: int, power: str) -> int:
    return count_parameters(_on_meta(features, outputs, degrees, width, power))


def _on_meta(features: int, outputs: int, degrees: tuple[float, ...], width: int, power: str) -> nn.Module:
    with torch.device("meta"):
        return _build(features, outputs, degrees, width, power)


def _build(features: int, outputs: int, degrees: tuple[float, ...], width: int, power: str) -> nn.Module:
    shape: dict[str, Any] = {"features": features, "outputs": outputs, "degrees": list(degrees), "width": width}
    return nets[NET].build(**shape, power=power)
