"""Equivariance error: how far a net is from commuting with a group that acts on its tokens (claim G13).

error = ‖f(g x) − g f(x)‖ / ‖f(x) − its mean‖, over several inputs x, for several group elements g and weight draws,
in float64. An exact symmetry leaves rounding only; a net that computes in float32 inside leaves more, and is judged by
that. `g` moves the output's tokens as it moved the input's; an output
without tokens (pooled, or of a vector net) has to stay as it is.

- `translation`: x rolled around by s tokens (or entries of a vector).
- `permutation`: tokens (or entries) in another order.
- `time-shift`: s zero tokens before x; the outputs at x must be those without them. A signal that is zero before it
  begins finds a zero state only where zero tokens leave that state at rest, so biases are set to 0 for this group:
  what is asked is whether the same step is taken at every token. The error with biases is in the diagnostics.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.random_nets import draw_tokens, features_of, output_of, random_net, trial_precision
from theodolite.instruments.through_embedding import through_embedding
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.contract import Symmetrical, Symmetry
from theodolite.nets.load import Blueprint, blueprint
from theodolite.registry import unknown

GROUPS = ("translation", "permutation", "time-shift")
HOLDS = 1e-9  # rounding of float64 stays far below
HOLDS_IN_SINGLE = 1e-5  # and that of float32 below this
BROKEN = 1e-3  # between the two, nothing is said

Net = str | nn.Module | Callable[..., Any]


def equivariance(
    net: Net,
    group: str = "permutation",
    *,
    draws: int = 3,
    inputs: int = 8,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> Measurement:
    """The largest relative error over weight draws and group elements.

    In the diagnostics, `holds` is true up to 1e-9 (1e-5 where `precision` says that the net computes in float32), false
    from 1e-3 on and None between; `by_element` is the largest
    error for each group element, `median` the median of all; `predicted` and `reason` are what theory says of a
    built-in net (None of any other), `agrees` whether the two meet.
    """
    started = time.perf_counter()
    if group not in GROUPS:
        raise BadInput(unknown("group", group, GROUPS))
    if draws < 1 or inputs < 2:
        raise BadInput(f"{draws} draws of {inputs} inputs measure nothing: use at least 1 draw and 2 inputs")
    device, plan = resolve_device(device), blueprint(net, **shape)
    draws = 1 if plan.built else draws
    errors: list[dict[str, float]] = []
    as_built: list[float] = []
    if group == "time-shift":
        plan = through_embedding(plan)
    module = nn.Module()
    precision = trial_precision(plan, seed, device)
    for draw in range(draws):
        module = random_net(plan, seed, draw, device, precision.dtype)
        generator = torch.Generator().manual_seed(seed_of(["symmetry", seed, draw]))
        x = draw_tokens(plan, module, inputs, _sites(plan, module), generator, device, precision.dtype)
        if group == "time-shift":
            errors.append(_shifted(plan, _without_biases(module), x))
            as_built.append(max(_shifted(plan, module, x).values()))
        else:
            errors.append(_reordered(plan, module, x, _orders(group, x.shape[1], generator)))
    value = max(max(each.values()) for each in errors)
    exact = HOLDS if precision.note is None else HOLDS_IN_SINGLE
    holds = True if value <= exact else False if value > BROKEN else None
    theory = predicted_symmetry(module, group)
    return Measurement(
        quantity=f"equivariance error under {group}",
        value=value,
        exact=False,
        method="‖f(g x) − g f(x)‖ relative to the deviation of f(x), largest over draws and group elements",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        diagnostics={
            "group": group,
            "holds": holds,
            "thresholds": {"holds": exact, "broken": BROKEN},
            "precision": precision.note or "float64",
            "by_element": {name: max(each[name] for each in errors) for name in errors[0]},
            "median": statistics.median(e for each in errors for e in each.values()),
            "by_draw": [max(each.values()) for each in errors],
            "draws": draws,
            "inputs": inputs,
            "sites": _sites(plan, module),
            "as_built": max(as_built) if as_built else None,
            "predicted": theory.holds if theory else None,
            "reason": theory.reason if theory else "theory says nothing of this net",
            "agrees": None if theory is None or holds is None else theory.holds == holds,
            "no_interval": "the largest error found is a lower bound of the largest there is",
        },
    )


def symmetries(net: Net, **options: Any) -> dict[str, Measurement | NotApplicable]:
    """Every group in turn; where one cannot act on the net, the reason stands in its place."""
    found: dict[str, Measurement | NotApplicable] = {}
    for group in GROUPS:
        try:
            found[group] = equivariance(net, group, **options)
        except NotApplicable as reason:
            found[group] = reason
    return found


def predicted_symmetry(module: nn.Module, group: str) -> Symmetry | None:
    """What a net declares of this group; None where it declares nothing."""
    return module.symmetries().get(group) if isinstance(module, Symmetrical) else None


def _sites(plan: Blueprint, module: nn.Module) -> int:
    sites = int(plan.shape["tokens"]) if plan.kind == "sequence" else features_of(plan, module)
    if sites < 2:
        raise NotApplicable(f"nothing can be exchanged in '{plan.name}' with {sites} token or entry: give it 2 or more")
    return sites


def _orders(group: str, sites: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Group elements, as the place from which every site's content comes."""
    place = torch.arange(sites)
    if group == "translation":
        return {f"by {s}": place.roll(s) for s in sorted({1, 2, sites // 2, sites - 1} - {0, sites})}
    swap = place.clone()
    swap[:2] = place[:2].flip(0)
    drawn_orders = {f"random {k}": torch.randperm(sites, generator=generator) for k in (1, 2)}
    return {"swap of the first two": swap, "reversal": place.flip(0), **drawn_orders}


def _reordered(plan: Blueprint, module: nn.Module, x: Tensor, orders: Mapping[str, Tensor]) -> dict[str, float]:
    plain = output_of(plan, module, x)
    _require_repeatable(plan, module, x, plain)
    scale = _deviation(plain)
    # A vector net's entries are its sites, and so are its outputs' where there are as many.
    moves = plain.dim() == 3 or (plan.kind == "vector" and plain.shape[1] == x.shape[1])
    errors = {}
    for name, order in orders.items():
        order = order.to(x.device)
        moved = output_of(plan, module, x[:, order])
        errors[name] = _relative(moved - (plain[:, order] if moves else plain), scale)
    return errors


def _shifted(plan: Blueprint, module: nn.Module, x: Tensor) -> dict[str, float]:
    if plan.kind != "sequence":
        raise NotApplicable(f"'{plan.name}' reads a vector, which has no time to shift")
    plain = output_of(plan, module, x)
    if plain.dim() != 3:
        raise NotApplicable(f"'{plan.name}' pools its tokens, so that no output can be shifted with them")
    _require_repeatable(plan, module, x, plain)
    scale, errors = _deviation(plain), {}
    for steps in sorted({1, 2, x.shape[1]}):
        late = torch.cat((x.new_zeros(x.shape[0], steps, x.shape[2]), x), dim=1)
        try:
            moved = output_of(plan, module, late)
        except BadInput as error:
            raise NotApplicable(f"'{plan.name}' takes {x.shape[1]} tokens and not {late.shape[1]}: {error}") from error
        errors[f"by {steps}"] = _relative(moved[:, steps:] - plain, scale)
    return errors


def _without_biases(module: nn.Module) -> nn.Module:
    """A copy whose parameters named bias, bias_ih_l0 … are 0."""
    copied = copy.deepcopy(module)
    with torch.no_grad():
        for name, parameter in copied.named_parameters():
            if name.rpartition(".")[2].startswith("bias"):
                parameter.zero_()
    return copied


def _deviation(output: Tensor) -> float:
    """How far outputs are from their mean over inputs and tokens; of a constant output, its own size, or 1."""
    centred = output - output.mean(dim=tuple(range(output.dim() - 1)), keepdim=True)
    spread, size = float(centred.norm()), float(output.norm())
    return spread if spread > 1e-12 * size else size or 1.0


def _relative(difference: Tensor, scale: float) -> float:
    return float(difference.norm()) / scale


def _require_repeatable(plan: Blueprint, module: nn.Module, x: Tensor, output: Tensor) -> None:
    if not torch.equal(output_of(plan, module, x), output):
        raise BadInput(
            f"'{plan.name}' gives one input different outputs: remove random draws and kept states from its forward"
        )


def measure_symmetry(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, group (all of them if it is not there), and any option of `equivariance`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape", "group")}
    options = {**options, "seed": seed, "device": device, **config.get("shape", {})}
    if "group" in config:
        return equivariance(config["net"], config["group"], **options).to_json()
    found = symmetries(config["net"], **options)
    return {
        group: each.to_json() if isinstance(each, Measurement) else {"not_applicable": str(each)}
        for group, each in found.items()
    }
