"""How exact the implicit gradient of a fixed point is: against a long unroll, beside gradients that cut it short (G18).

The operation itself is `theodolite.nets.parts.implicit`, where networks can use it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import Measurement, Provenance, seed_of
from theodolite.nets.parts.implicit import Solving, implicit
from theodolite.nets.parts.solvers import SOLVERS, solve

__all__ = ["Solving", "implicit", "implicit_gradient_error"]


def implicit_gradient_error(
    *,
    size: int = 64,
    norm: float = 0.9,
    unroll: int = 600,
    phantom: Sequence[int] = (1, 5),
    tolerance: float = 1e-9,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Measurement:
    """tanh(W z + x) with ‖W‖₂ = norm: the largest relative error of the implicit gradient by (W, x), over the solvers.

    In the diagnostics: the error of each solver, of `phantom` gradients (the last steps only, from the fixed point
    on), and how many evaluations each solver took to the tolerance from z = 0. W and x are drawn standard normal,
    W then scaled; the loss is a drawn linear form of z*.
    """
    started = time.perf_counter()
    if size < 1 or unroll < 1 or not 0 < norm < 1:
        raise BadInput(
            f"a size of {size}, {unroll} steps and a norm of {norm:g} make no contraction: use at least 1, 1 and a "
            "norm between 0 and 1"
        )
    device = resolve_device(device)
    generator = torch.Generator().manual_seed(seed_of(["implicit", seed]))
    weight, x, form = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(device)
        for shape in ((size, size), (size,), (size,))
    )
    weight = weight * norm / torch.linalg.matrix_norm(weight, 2)
    start = torch.zeros_like(x)
    truth, fixed = _gradient(lambda w, x: _applied(start, w, x, unroll), form, weight, x)
    errors, steps = {}, {}
    for name in SOLVERS:
        found, _ = _gradient(
            lambda w, x, name=name: implicit(_step, start, w, x, solving=Solving(name)), form, weight, x
        )
        errors[name] = _relative(found, truth)
        solution = solve(lambda z: _step(z, weight, x), start, name, tolerance)
        steps[name] = int(solution.steps) if bool(solution.reached) else None
    cut = {
        str(k): _relative(_gradient(lambda w, x, k=k: _applied(fixed, w, x, k), form, weight, x)[0], truth)
        for k in phantom
    }
    return Measurement(
        quantity="relative error of the implicit gradient",
        value=max(errors.values()),
        exact=False,
        method=f"against the gradient through {unroll} steps, float64; the largest over solvers",
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        diagnostics={
            "by_solver": errors,
            "phantom": cut,
            "steps": steps,
            "tolerance": tolerance,
            "size": size,
            "norm": norm,
            "unroll": unroll,
            "no_interval": "one drawn map; other draws differ",
        },
    )


def _step(z: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(z @ weight.T + x)


def _applied(z: Tensor, weight: Tensor, x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        z = _step(z, weight, x)
    return z


def _gradient(compute: Any, form: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor]:
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    z = compute(*leaves)
    return torch.cat([g.flatten() for g in torch.autograd.grad((z * form).sum(), leaves)]), z.detach()


def _relative(found: Tensor, truth: Tensor) -> float:
    return float((found - truth).norm() / truth.norm())


def measure_implicit_gradient(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: any option of `implicit_gradient_error`; `draw` makes another draw of the map."""
    options = {k: v for k, v in config.items() if k != "draw"}
    return implicit_gradient_error(seed=seed, device=device, **options).to_json()
