"""Fixed points and implicit gradients against torchdeq, a part of `benchmarks/zoo.py`.

Cases: tanh(W z + x) with ‖W‖ = 0.9, `size` numbers and `rows` rows, and the block of `equilibrium` (16 sequences of 32
tokens, width 64, a sequence being one row), in float64 to 1e-8 and in float32 to 1e-5. Both sides start at 0, use the
same map, the same solver for both fixed points, and at most 200 steps. torchdeq stops at ‖f(z) − z‖ ≤ tolerance·‖f(z)‖
for all rows; ours, whose tolerance is relative to 1 + ‖z‖, is given half of it, which is no looser where ‖z‖ ≥ 1.
`residual` is ‖f(z) − z‖ / ‖z‖ of what each side returned, the largest of all rows; `difference` that of the gradients,
relative to their length. Medians, both sides in turns, after a warm-up.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from theodolite.nets.load import load
from theodolite.nets.parts.implicit import Solving, implicit
from theodolite.nets.parts.solvers import solve
from timing import synchronise

try:
    import torchdeq
except ImportError:  # the rows then have our side only, and say so
    torchdeq = None

THEIRS = {"picard": "fixed_point_iter", "anderson": "anderson", "broyden": "broyden"}
TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-5}
SHAPES = ((64, 32), (64, 256), (256, 64), (512, 32), (512, 256))
STEPS, REPEATS = 200, 7

Problem = tuple[Callable[..., Tensor], Tensor, list[Tensor], list[Tensor]]  # map, start, inputs, constants


def tanh_map(size: int, rows: int, dtype: torch.dtype, device: torch.device) -> Problem:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(size, size, generator=generator, dtype=torch.float64)
    weight = weight * 0.9 / torch.linalg.matrix_norm(weight, 2)
    x = torch.randn(rows, size, generator=generator, dtype=torch.float64)
    inputs = [each.to(device, dtype).requires_grad_() for each in (weight, x)]
    return lambda z, weight, x: torch.tanh(torch.addmm(x, z, weight.T)), torch.zeros_like(inputs[1]), inputs, []


def block_map(dtype: torch.dtype, device: torch.device) -> Problem:
    net = load("equilibrium", width=64).module.to(device, dtype)
    x = torch.randn(16, 32, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device, dtype)
    f, start, inputs, constants = net.problem(x, None)  # pyright: ignore[reportCallIssue]
    return f, torch.zeros_like(start), [each.detach().requires_grad_() for each in inputs], constants


def compare(case: str, problem: Problem, solver: str, tolerance: float, device: torch.device) -> dict[str, Any]:
    f, start, inputs, constants = problem
    start = start.detach()
    form = torch.ones_like(start)
    solving = Solving(solver, tolerance / 2, STEPS)

    def bound(z: Tensor) -> Tensor:
        return f(z, *inputs, *constants)

    @torch.no_grad()
    def forward() -> Tensor:
        return solving.of(bound, start).z

    def both() -> tuple[Tensor, ...]:
        z = implicit(f, start, *inputs, constants=constants, solving=solving)
        return torch.autograd.grad(z, inputs, form)

    runs: dict[str, Callable[[], Any]] = {"forward": forward, "both": both}
    deq = None
    if torchdeq is not None:
        options = {"f_max_iter": STEPS, "b_max_iter": STEPS, "f_tol": tolerance, "b_tol": tolerance}
        modes = {"f_stop_mode": "rel", "b_stop_mode": "rel", "f_solver": THEIRS[solver], "b_solver": THEIRS[solver]}
        deq = torchdeq.get_deq(ift=True, **options, **modes)
        runs["their_forward"] = torch.no_grad()(lambda: deq(bound, start))
        runs["their_both"] = lambda: torch.autograd.grad(deq(bound, start)[0][-1], inputs, form)
    seconds = in_turns(runs, device)
    with torch.no_grad():
        found = solve(bound, start, solver, tolerance / 2, STEPS)
    row: dict[str, Any] = {
        "case": case,
        "solver": solver,
        "dtype": str(start.dtype).removeprefix("torch."),
        "tolerance": tolerance,
        "device": device.type,
        "forward_seconds": seconds["forward"],
        "both_seconds": seconds["both"],
        "steps": int(found.steps.max()),
        "residual": residual(bound, found.z),
    }
    if deq is None:
        return {**row, "torchdeq": "not installed"}
    zs, info = runs["their_forward"]()
    ours, theirs = (torch.cat([g.flatten() for g in run()]) for run in (both, runs["their_both"]))
    return {
        **row,
        "torchdeq_forward_seconds": seconds["their_forward"],
        "torchdeq_both_seconds": seconds["their_both"],
        "forward_ratio": seconds["their_forward"] / seconds["forward"],
        "both_ratio": seconds["their_both"] / seconds["both"],
        "torchdeq_steps": int(info["nstep"].max()),
        "torchdeq_residual": residual(bound, zs[-1]),
        "difference": float((ours - theirs).norm() / theirs.norm()),
    }


@torch.no_grad()
def residual(bound: Callable[[Tensor], Tensor], z: Tensor) -> float:
    return float(((bound(z) - z).norm(dim=-1) / z.norm(dim=-1)).max())


def in_turns(runs: dict[str, Callable[[], Any]], device: torch.device) -> dict[str, float]:
    """A busy machine then slows everyone alike."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(REPEATS + 1):
        for name, run in runs.items():
            synchronise(device)
            started = time.perf_counter()
            run()
            synchronise(device)
            if turn:
                found[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in found.items()}


def measure(device: str | torch.device) -> list[dict[str, Any]]:
    device, rows = torch.device(device), []
    for dtype, tolerance in TOLERANCES.items():
        problems = {f"tanh, size {s}, {r} rows": tanh_map(s, r, dtype, device) for s, r in SHAPES}
        problems["equilibrium block, 16 × 32 tokens, width 64"] = block_map(dtype, device)
        for case, problem in problems.items():
            rows += [compare(case, problem, solver, tolerance, device) for solver in THEIRS]
    return rows
