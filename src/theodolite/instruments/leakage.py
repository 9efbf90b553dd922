"""What an output sees that it should not: later places, other rows of the batch, earlier calls, changed weights.

Every question is asked by changing one thing and comparing outputs, in evaluation and in training, on fresh copies of
the net and with torch's random numbers set alike. A change counts above rounding, relative to how much the output
varies. That later places are seen is no fault of a net that reads both ways; the rest makes what is measured depend on
what else was measured.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.instruments.random_nets import call, checked, draw_tokens, features_of, random_net, trial_precision
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.load import Blueprint, blueprint, seeded

ROUNDING = 1e-9  # relative; in double precision
_ROUNDING_IN_SINGLE = 1e-4

Net = str | nn.Module | Callable[..., Any]


def leakage(net: Net, *, rows: int = 4, seed: int = 0, device: str | torch.device = "cpu", **shape: Any) -> Measurement:
    """How many of these leak in evaluation or training: other rows, an earlier call, weights that forward changes.

    In the diagnostics: `causal`, whether an output stays as it is when later tokens change (None where outputs have no
    places), and `ahead`, by how many tokens it looks forward; `says`, a sentence for each leak; `notes`, what is usual
    in training, as batch statistics are; and the changes as measured in `evaluation` and `training`.
    """
    started = time.perf_counter()
    device, plan = resolve_device(device), blueprint(net, **shape)
    precision = trial_precision(plan, seed, device)
    module = random_net(plan, seed, 0, device, precision.dtype)
    generator = torch.Generator().manual_seed(seed_of(["leakage", seed]))
    sites = int(plan.shape["tokens"]) if plan.kind == "sequence" else features_of(plan, module)
    draw = lambda: draw_tokens(plan, module, rows, sites, generator, device, precision.dtype)
    x = draw()
    other = draw() if plan.vocab is None else (x + 1 + draw() % max(plan.vocab - 1, 1)) % plan.vocab  # at every place
    rounding = ROUNDING if precision.note is None else _ROUNDING_IN_SINGLE
    modes = {
        name: _look(_Trial(plan, module.train(training), seed), x, other, rounding)
        for name, training in (("evaluation", False), ("training", True))
    }
    says, notes = _sentences(modes)
    return Measurement(
        quantity="leaks",
        value=len(says),
        exact=False,
        method="outputs compared on fresh copies, with later tokens, other rows or an earlier call changed",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        diagnostics={
            "causal": modes["evaluation"].causal,
            "ahead": modes["evaluation"].ahead,
            "says": says,
            "notes": notes,
            "precision": precision.note or "float64",
            **{name: vars(found) for name, found in modes.items()},
        },
    )


@dataclass(frozen=True)
class _Found:
    """Changes relative to the output's deviation; 0 below rounding. None: could not be asked."""

    random: bool  # two fresh copies with the same random numbers differ
    rows: float | None
    calls: float | None
    later: float | None
    ahead: int | None
    weights: tuple[str, ...]
    buffers: tuple[str, ...]

    @property
    def causal(self) -> bool | None:
        return None if self.later is None else self.later == 0


@dataclass(frozen=True)
class _Trial:
    plan: Blueprint
    module: nn.Module
    seed: int

    def __call__(self, *calls: Tensor) -> Tensor:
        """The output of the last of these calls on a fresh copy."""
        net, output = copy.deepcopy(self.module), torch.empty(0)
        for number, x in enumerate(calls, start=1 - len(calls)):
            with seeded(seed_of(["call", self.seed, number]), x.device), torch.no_grad():
                output = checked(self.plan, x, call(self.plan, net, x))
        return output

    def changed(self, x: Tensor) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of parameters and buffers that are not what they were after one call."""
        net = copy.deepcopy(self.module)
        with seeded(self.seed, x.device), torch.no_grad():
            call(self.plan, net, x)
        before, after = self.module.state_dict(), net.state_dict()
        names = [n for n in after if n not in before or not torch.equal(before[n], after[n])]
        parameters = {n for n, _ in net.named_parameters()}
        return tuple(n for n in names if n in parameters), tuple(n for n in names if n not in parameters)


def _look(run: _Trial, x: Tensor, other: Tensor, rounding: float) -> _Found:
    plain = run(x)
    scale = float((plain - plain.mean(dim=0)).norm()) or float(plain.norm()) or 1.0

    def change(found: Tensor, wanted: Tensor) -> float:
        moved = float((found - wanted).norm()) / scale
        return moved if moved > rounding else 0.0

    weights, buffers = run.changed(x)
    if change(run(x), plain):
        return _Found(True, None, None, None, None, weights, buffers)
    rows = torch.cat((x[:1], other[1:]))
    later, ahead = (None, None) if plain.dim() != 3 else _later(run, x, other, plain, change)
    return _Found(False, change(run(rows)[:1], plain[:1]), change(run(other, x), plain), later, ahead, weights, buffers)


def _later(
    run: _Trial, x: Tensor, other: Tensor, plain: Tensor, change: Callable[[Tensor, Tensor], float]
) -> tuple[float, int]:
    """By how much outputs of the first half move with the tokens of the second, and how far the last token is seen."""
    half = x.shape[1] // 2
    second = torch.cat((x[:, :half], other[:, half:]), dim=1)
    last = torch.cat((x[:, :-1], other[:, -1:]), dim=1)
    moved = run(last)
    seen = [place for place in range(x.shape[1] - 1) if change(moved[:, place], plain[:, place])]
    ahead = x.shape[1] - 1 - min(seen) if seen else 0
    return max(change(run(second)[:, :half], plain[:, :half]), change(moved[:, :-1], plain[:, :-1])), ahead


def _sentences(modes: Mapping[str, _Found]) -> tuple[list[str], list[str]]:
    evaluation, training = modes["evaluation"], modes["training"]
    says, notes = [], []
    if evaluation.random:
        says.append("it gives one input different outputs in evaluation, by random numbers that no seed of torch sets")
    if evaluation.rows:
        says.append(f"its answer to one input moves with the other rows of the batch (by {evaluation.rows:.2g})")
    elif training.rows:
        notes.append("in training an answer depends on the other rows of its batch, as batch norm's does")
    kept = max(evaluation.calls or 0.0, training.calls or 0.0)
    if kept:
        says.append(f"its answer moves with what an earlier call was given (by {kept:.2g}): it keeps a state")
    changed = tuple(dict.fromkeys((*evaluation.weights, *training.weights)))
    if changed:
        named = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        says.append(f"its forward changes its own weights ({named})")
    return says, notes


def measure_leakage(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape."""
    return leakage(config["net"], seed=seed, device=device, **config.get("shape", {})).to_json()
