"""How exactly a network equals the weight-tied layer and the equilibrium that are made from it (claims G17, G18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.nets.load import load, seeded
from theodolite.registry import unknown
from theodolite.theory.fixed_points import equilibrium_steps, tied_size
from theodolite.witness.converters import Equilibrium, TiedChain, weight_tied

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "silu": nn.SiLU}


def tied_error(module: nn.Module, example: Tensor, seed: int = 0) -> dict[str, Any]:
    """Relative errors of both forms, in the module's precision; the size of z; the steps to the equilibrium from two
    drawn starts, which must agree to the last bit; for a chain, whether W_z to the power of its depth is exactly 0."""
    module = module.eval()
    with torch.no_grad():
        truth = module(example)
        tied = weight_tied(module, example)
        equal = Equilibrium(tied)
        steps, ends = [], []
        for start in range(2):
            generator = torch.Generator().manual_seed(seed_of(["tied", seed, start]))
            z = torch.randn(len(example), tied.size, generator=generator, dtype=torch.float64).to(example)
            end, taken = equal.solve(example, z)
            steps.append(taken)
            ends.append(end)
        answer = tied(example)
        found: dict[str, Any] = {
            "weight_tied": _relative(answer, truth),
            "equilibrium": max(_relative(tied.read(end), truth) for end in ends),
            "ends_agree": torch.equal(*ends),
            "size": tied.size,
            "widths": sum(tied.widths),
            "depth": tied.steps,
            "steps": max(steps),
            "predicted_steps": equilibrium_steps(tied.steps),
            "chain": isinstance(tied, TiedChain),
        }
        if isinstance(tied, TiedChain):
            found["predicted_size"] = tied_size(_outputs(module))
            found["nilpotent"] = not bool(torch.linalg.matrix_power(tied.weight_z, tied.steps).any())
    return found


def _outputs(module: nn.Module) -> list[int]:
    return [part.out_features for part in module.modules() if isinstance(part, nn.Linear)]


def chain(widths: Sequence[int], activation: str, seed: int) -> nn.Sequential:
    """A perceptron of these widths, the first that of the input, in float64; the last layer is linear."""
    if activation not in _ACTIVATIONS:
        raise BadInput(unknown("activation", activation, list(_ACTIVATIONS)))
    if len(widths) < 2:
        raise BadInput(f"a perceptron has an input and at least one layer, not the widths {list(widths)}")
    with seeded(seed_of(["chain", seed])):
        parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), _ACTIVATIONS[activation]())]
    return nn.Sequential(*parts[:-1]).double()


def _relative(found: Tensor, truth: Tensor) -> float:
    return float((found - truth).norm() / truth.norm())


def measure_weight_tied(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: widths and activation of a perceptron, or net and shape of a registered one; batch."""
    device = resolve_device(device)
    generator = torch.Generator().manual_seed(seed)
    if "widths" in config:
        module, shape = chain(config["widths"], config["activation"], seed), (config["widths"][0],)
    else:
        subject = load(config["net"], seed=seed, **config.get("shape", {}))
        module = subject.module.double()
        shape = (subject.sites, subject.features) if subject.kind == "sequence" else (subject.sites,)
    x = torch.randn(config.get("batch", 4), *shape, generator=generator, dtype=torch.float64)
    return tied_error(module.to(device), x.to(device), seed)
