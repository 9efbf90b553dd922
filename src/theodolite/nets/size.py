"""How many parameters a net has, measured, and the width that comes nearest to a budget of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.nets.contract import ALIASES, nets
from theodolite.nets.load import Blueprint, blueprint, seeded
from theodolite.theory.domain import parse_budget as parse_budget

_WIDEST = 1 << 20
_CLOSE = 1.5  # the nearest net may have this many times the budget's parameters, or the budget this many times its own


def count_parameters(module: nn.Module) -> int:
    """Numbers that training changes; a tensor that is used twice counts once."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def fit_budget(net: str | Callable[..., Any], budget: int, **given: Any) -> dict[str, Any]:
    """The given arguments with the width whose measured parameter count is nearest to the budget, ready for `load`.

    Everything else stays as given or at its default; the width is a multiple of the number of heads. The width goes
    by the name the net has for it. Equal distances go to the smaller net.
    """
    plan = blueprint(net, **given)
    wide, heads = own_name("width", plan.known), own_name("heads", plan.known)
    if wide is None:
        raise BadInput(f"--params needs a 'width' argument and '{plan.name}' has none: give its shape by --arg instead")
    if any(ALIASES.get(name, name) == "width" for name, value in given.items() if value is not None):
        raise BadInput("a budget of parameters chooses the width: give --params or the width, not both")
    step = plan.arguments.get(heads, plan.known[heads]) if heads else 1
    step = step if isinstance(step, int) else 1

    @cache
    def count(width: int) -> int:
        return measured_parameters(plan, **{wide: width})

    around = widths_around(count, budget, _narrowest(count, step), step)
    if around is None:
        raise BadInput(f"the parameters of '{plan.name}' do not grow with '{wide}' to {budget}: give its shape")
    width = min(around, key=lambda w: (abs(count(w) - budget), w))
    if not budget / _CLOSE <= count(width) <= budget * _CLOSE:
        raise BadInput(_too_far(plan.name, budget, {w: count(w) for w in sorted(set(around))}))
    return {**{name: value for name, value in given.items() if value is not None}, wide: width}


def widths_around(count: Callable[[int], int], budget: int, narrowest: int, step: int) -> tuple[int, int] | None:
    """Neighbouring widths with the budget between their counts, or twice the narrowest where that has more; None where
    counts do not grow so far."""
    low = high = narrowest
    while count(high) < budget:
        low, high = high, 2 * high
        if high > _WIDEST or count(high) <= count(low):
            return None
    while high - low > step:
        middle = (low + high) // (2 * step) * step
        low, high = (middle, high) if count(middle) < budget else (low, middle)
    return low, high


def own_name(argument: str, known: Mapping[str, Any]) -> str | None:
    """What a net calls this argument: by its name, or by one that other libraries use."""
    return next((n for n in known if n == argument), next((n for n in known if ALIASES.get(n) == argument), None))


def measured_parameters(plan: Blueprint, **changed: Any) -> int:
    """The count of a net built without memory, or in memory where its constructor computes with its weights."""
    with seeded(0):
        try:
            with torch.device("meta"):
                return count_parameters(plan.build(**changed))
        except TheodoliteError:
            if plan.registered:
                raise
            return count_parameters(plan.build(**changed))


def _narrowest(count: Callable[[int], int], step: int) -> int:
    """The first width the net accepts: a net may ask for more than one number per head."""
    for width in (step, 2 * step, 4 * step):
        try:
            count(width)
        except BadInput:
            continue
        return width
    count(step)  # no small width can be built: the net's own sentence says why
    return step


def _too_far(name: str, budget: int, counts: Mapping[int, int]) -> str:
    listed = " and ".join(f"{count} parameters at width {width}" for width, count in counts.items())
    if min(counts.values()) > budget:
        return (
            f"a budget of {budget} parameters is too small for '{name}', which has at least {listed}: "
            f"raise the budget{_smaller(name)}"
        )
    return f"no width gives '{name}' about {budget} parameters, the nearest being {listed}: choose one of these"


def _smaller(name: str) -> str:
    """What else makes a registered net smaller than its width does."""
    known = nets[name].arguments if name in nets else {}
    smaller = [argument for argument in ("depth", "expansion", "write_layers") if argument in known]
    if "expansion" in known:
        smaller.append("longest input (--unseen: it is built for so many tokens)")
    return f", or choose a smaller {' or '.join(smaller)}" if smaller else ""
