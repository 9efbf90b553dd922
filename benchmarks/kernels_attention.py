"""Fused attention and linear recurrences beside what torch does: milliseconds of a forward and backward pass, captured
in a CUDA graph, and relative errors against float64.

    PYTHONPATH=src python benchmarks/kernels_attention.py [--seconds 80]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from kernel_timing import Passes, Run, begin, captured_ms, errors, options, passes, row
from theodolite.kernels import attention, launch, scan
from theodolite.kernels.launch import fusing
from theodolite.nets import transformer
from theodolite.nets.parts import scan as chunked

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
REPLAYS = 20
DEVICE = torch.device("cuda")

Forms = dict[str, Passes]


class Case(NamedTuple):
    label: str
    true: tuple[Tensor, ...]
    forms: Forms
    candidates: Forms  # the fused form with other settings


def report(label: str, forms: Forms, true: tuple[Tensor, ...], until: float) -> None:
    """A row for every form, whether or not it can be run: forward alone, forward and backward, error."""
    print(f"\n{label}")
    for name, (forward, both) in forms.items():

        def measured(forward: Run = forward, both: Run = both) -> str:
            if time.monotonic() > until:
                return " no time left"
            error = max(errors(both(), true))
            with torch.no_grad():
                alone = captured_ms(forward, REPLAYS)
            return f" {alone:8.3f} {captured_ms(both, REPLAYS):8.3f}  {error:.1e}"

        row(f"  {name:28}", measured)


def with_one(module: Any, name: str, other: Any, form: Passes) -> Passes:
    """The same with another value of one name of the module."""

    def changed(run: Run) -> Run:
        return mock.patch.object(module, name, other)(run)

    return Passes(*map(changed, form))


def without_kernels(mix: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def plain(*args: Tensor) -> Tensor:
        with mock.patch.object(launch, "usable", return_value=False):
            return mix(*args)

    return plain


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
    true = passes([truth], of(written_out), toward[:rows].double()).both()
    projected.requires_grad_()
    fused = passes([projected], of(attention.attend), toward)
    forms = {
        "fused, as chosen": fused,
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

        candidates[kind] = with_one(attention, "settings", always, fused)
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
    true = passes(held, in_chunks, toward[:rows].double()).both()
    entering = [each.detach().requires_grad_() for each in entering]

    def recur(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor) -> Tensor:
        return scan.recur(query, key, value, rest[0] if delta else None, rest[-1])

    fused = passes(entering, recur, toward)
    forms = {"in chunks": passes(entering, in_chunks, toward), "fused, as chosen": fused}
    candidates: Forms = {}
    for chosen in OF_RECURRENCE:
        kind = f"warps {chosen.warps}, vectors {chosen.vectors}, stages {chosen.stages}"
        candidates[kind] = with_one(scan, "SETTINGS", chosen, fused)
    kind = "delta rule" if delta else "decaying sum"
    return Case(f"{kind}: {members}×{rows}×{heads} heads, {tokens} tokens, width {width}", true, forms, candidates)


def systems(members: int, rows: int, tokens: int, channels: int, states: int) -> Case:
    x, toward = (torch.randn(members, rows, tokens, channels, device=DEVICE) for _ in range(2))
    modes = [torch.randn(members, channels, states, device=DEVICE) for _ in range(4)]
    modes[0] = -0.1 * modes[0].abs()
    of_all = torch.vmap(chunked.diagonal_system)
    in_chunks = without_kernels(of_all)
    held = [each[:1].double().requires_grad_() for each in (x, *modes)]
    true = passes(held, in_chunks, toward[:1].double()).both()
    entering = [each.requires_grad_() for each in (x, *modes)]
    forms = {"in chunks": passes(entering, in_chunks, toward), "fused": passes(entering, of_all, toward)}
    return Case(f"diagonal system: {members}×{rows}, {tokens} tokens, {channels}×{states} modes", true, forms, {})


def main() -> None:
    begun = time.perf_counter()
    given = begin(options(__doc__ or ""))
    torch.manual_seed(0)
    print("milliseconds of a forward pass alone, of forward and backward, and the worst relative error")
    cases = [attentions(*shape) for shape in ATTENTION]
    cases += [recurrences(*shape, delta) for shape in RECURRENCE for delta in (True, False)]
    cases += [systems(*shape) for shape in SYSTEM]
    for case in cases:
        report(case.label, case.forms, case.true, given.until)
    for case in cases:
        if case.candidates:
            report(f"other settings, {case.label}", case.candidates, case.true, given.until)
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    with fusing():
        main()
