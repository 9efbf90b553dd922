"""Fused attention and linear recurrences beside what torch does: milliseconds of a forward and backward pass, captured
in a CUDA graph, and relative errors against float64.

    PYTHONPATH=src python benchmarks/kernels_attention.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from theodolite.kernels import attention, launch, scan
from theodolite.kernels.launch import fusing
from theodolite.nets import transformer
from theodolite.nets.parts import scan as chunked
from timing import hardware

ATTENTION = [(512, 32, 4, 20, 4), (512, 32, 4, 20, 13), (30, 128, 8, 40, 8), (30, 128, 8, 80, 8), (30, 64, 4, 40, 32)]
RECURRENCE = [(30, 64, 4, 40, 16), (512, 32, 4, 20, 8)]  # members, rows, heads, tokens, width
SYSTEM = [(30, 64, 40, 64, 16), (512, 32, 20, 32, 16)]  # members, rows, tokens, channels, states
OF_ATTENTION = [
    *(attention.Settings(False, warps, vectors) for warps, vectors in ((4, 1), (4, 2), (8, 1), (2, 1))),
    *(attention.Settings(True, warps) for warps in (1, 2, 4)),
]
OF_RECURRENCE = [
    scan.Settings(warps, vectors, stages)
    for warps, vectors, stages in ((1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 2, 3), (2, 1, 3), (4, 1, 3))
]
SECONDS = 80
REPEATS = 20
DEVICE = torch.device("cuda")

Run = Callable[[], tuple[Tensor, ...]]
Forms = dict[str, tuple[Run, Run]]  # by name: forward and backward, and forward alone


class Case(NamedTuple):
    label: str
    true: tuple[Tensor, ...]
    forms: Forms
    candidates: Forms  # the fused form with other settings


def milliseconds(run: Run) -> float:
    """Of one replay of the graph, the least of three rounds."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    rounds = []
    for _ in range(3):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(REPEATS):
            graph.replay()
        last.record()
        torch.cuda.synchronize()
        rounds.append(first.elapsed_time(last) / REPEATS)
    return min(rounds)


def error(found: tuple[Tensor, ...], true: tuple[Tensor, ...]) -> float:
    """The worst of the results, on the rows that were computed in float64."""
    pairs = [(a[: len(b)].double(), b) for a, b in zip(found, true, strict=True)]
    return max(((a - b).norm() / b.norm()).item() for a, b in pairs)


def report(label: str, forms: Forms, true: tuple[Tensor, ...], begun: float) -> None:
    """A row for every form, whether or not it can be run: forward alone, forward and backward, error."""
    print(f"\n{label}")
    for name, (both, forward) in forms.items():
        if time.perf_counter() - begun > SECONDS:
            print(f"  {name:28} no time left")
            continue
        try:
            found = both()
            with torch.no_grad():
                alone = milliseconds(forward)
            print(f"  {name:28} {alone:8.3f} {milliseconds(both):8.3f}  {error(found, true):.1e}", flush=True)
        except Exception as failure:
            print(f"  {name:28} failed: {type(failure).__name__}: {str(failure)[:200]}", flush=True)
        torch.cuda.empty_cache()


def with_one(module: Any, name: str, other: Any, run: Run) -> Run:
    """The same with another value of one name of the module."""

    def set_and_run() -> tuple[Tensor, ...]:
        before = getattr(module, name)
        setattr(module, name, other)
        try:
            return run()
        finally:
            setattr(module, name, before)

    return set_and_run


def without_kernels(mix: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def plain(*args: Tensor) -> Tensor:
        before = launch.usable
        launch.usable = lambda *_: False
        try:
            return mix(*args)
        finally:
            launch.usable = before

    return plain


def passes(entering: list[Tensor], mix: Callable[..., Tensor], toward: Tensor) -> tuple[Run, Run]:
    """Forward and backward, and forward alone."""

    def both() -> tuple[Tensor, ...]:
        y = mix(*entering)
        return y.detach(), *torch.autograd.grad(y, entering, toward)

    return both, lambda: (mix(*entering),)


def written_out(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(transformer.logits(query, key) + bias, dim=-1) @ value


def attentions(members: int, rows: int, heads: int, tokens: int, width: int) -> Case:
    projected, toward = (torch.randn(members * rows, tokens, n * heads * width, device=DEVICE) for n in (3, 1))
    place = torch.arange(tokens, device=DEVICE)
    hidden = torch.zeros(tokens, tokens, device=DEVICE).masked_fill(place[:, None] < place, -torch.inf)

    def of(attend: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
        def mix(x: Tensor) -> Tensor:
            parts = (part.transpose(1, 2) for part in x.unflatten(-1, (3 * heads, -1)).chunk(3, dim=2))
            return attend(*parts, hidden.to(x.dtype)).transpose(1, 2).flatten(-2)

        return mix

    truth = projected[:rows].double().requires_grad_()
    true = passes([truth], of(written_out), toward[:rows].double())[0]()
    projected.requires_grad_()
    both, forward = passes([projected], of(attention.attend), toward)
    forms = {
        "fused, as chosen": (both, forward),
        "written out": passes([projected], of(written_out), toward),
        "scaled_dot_product_attention": passes([projected], of(scaled_dot_product_attention), toward),
    }
    candidates: Forms = {}
    for chosen in OF_ATTENTION:
        kind = (
            f"tiles, warps {chosen.warps}" if chosen.tiles else f"rows, warps {chosen.warps}, vectors {chosen.vectors}"
        )

        def always(*_: Tensor, chosen: attention.Settings = chosen) -> attention.Settings:
            return chosen

        candidates[kind] = (
            with_one(attention, "settings", always, both),
            with_one(attention, "settings", always, forward),
        )
    label = f"attention, causal: {members}×{rows}×{heads} heads, {tokens} tokens, width {width}"
    return Case(label, true, forms, candidates)


def recurrences(members: int, rows: int, heads: int, tokens: int, width: int, delta: bool) -> Case:
    shape = (members * rows, tokens, heads)
    entering = [torch.randn(*shape, width, device=DEVICE) for _ in range(3)]
    entering[:2] = [normalize(each, dim=-1) for each in entering[:2]]
    entering += [torch.rand(shape, device=DEVICE)] if delta else []
    entering += [-0.1 * torch.rand(shape, device=DEVICE)]
    toward = torch.randn(*shape, width, device=DEVICE).transpose(1, 2)
    entering = [each.transpose(1, 2) for each in entering]
    in_chunks = without_kernels(chunked.delta_rule if delta else chunked.decaying_sum)
    held = [each[:rows].double().requires_grad_() for each in entering]
    true = passes(held, in_chunks, toward[:rows].double())[0]()
    entering = [each.detach().requires_grad_() for each in entering]

    def fused(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor) -> Tensor:
        return scan.recur(query, key, value, rest[0] if delta else None, rest[-1])

    both, forward = passes(entering, fused, toward)
    forms = {"in chunks": passes(entering, in_chunks, toward), "fused, as chosen": (both, forward)}
    candidates: Forms = {}
    for chosen in OF_RECURRENCE:
        runs = (with_one(scan, "SETTINGS", chosen, run) for run in (both, forward))
        candidates[f"warps {chosen.warps}, vectors {chosen.vectors}, stages {chosen.stages}"] = next(runs), next(runs)
    kind = "delta rule" if delta else "decaying sum"
    return Case(f"{kind}: {members}×{rows}×{heads} heads, {tokens} tokens, width {width}", true, forms, candidates)


def systems(members: int, rows: int, tokens: int, channels: int, states: int) -> Case:
    x, toward = (torch.randn(members, rows, tokens, channels, device=DEVICE) for _ in range(2))
    modes = [torch.randn(members, channels, states, device=DEVICE) for _ in range(4)]
    modes[0] = -0.1 * modes[0].abs()
    of_all = torch.vmap(chunked.diagonal_system)
    in_chunks = without_kernels(of_all)
    held = [each[:1].double().requires_grad_() for each in (x, *modes)]
    true = passes(held, in_chunks, toward[:1].double())[0]()
    entering = [each.requires_grad_() for each in (x, *modes)]
    forms = {"in chunks": passes(entering, in_chunks, toward), "fused": passes(entering, of_all, toward)}
    return Case(f"diagonal system: {members}×{rows}, {tokens} tokens, {channels}×{states} modes", true, forms, {})


def main() -> None:
    begun = time.perf_counter()
    torch.manual_seed(0)
    print(hardware(DEVICE))
    print("milliseconds of a forward pass alone, of forward and backward, and the worst relative error")
    cases = [attentions(*shape) for shape in ATTENTION]
    cases += [recurrences(*shape, delta) for shape in RECURRENCE for delta in (True, False)]
    cases += [systems(*shape) for shape in SYSTEM]
    for case in cases:
        report(case.label, case.forms, case.true, begun)
    for case in cases:
        if case.candidates:
            report(f"other settings, {case.label}", case.candidates, case.true, begun)
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    with fusing():
        main()
