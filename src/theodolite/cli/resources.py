"""Options of a training budget and of the GPUs it runs on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from theodolite.cli.options import panel

if TYPE_CHECKING:
    from theodolite.advice.budget.resources import Resources

_budget, _memory = panel("Budget of a training run"), panel("Memory on a GPU")


@dataclass(frozen=True)
class ResourceOptions:
    tokens: Annotated[str | None, _budget(help="Tokens to train on: 300B, 2T.")] = None
    flops: Annotated[str | None, _budget(help="FLOPs to train with: 1e24.")] = None
    gpu_hours: Annotated[str | None, _budget("--gpu-hours", help="Hours of one GPU to train with: 100k.")] = None
    gpu: Annotated[str | None, _budget(help="Kind of GPU: a100, h100, h200, b200, mi300x, l40s, ...")] = None
    mfu: Annotated[float | None, _budget(help="Share of the GPU's peak that training reaches; 0.4.")] = None
    gpus: Annotated[int | None, _budget(help="How many GPUs; 1.")] = None
    batch: Annotated[int | None, _memory(help="Sequences that one replica works on at once; 1.")] = None
    sequence: Annotated[int | None, _memory(help="Tokens in a sequence; the context.")] = None
    recompute: Annotated[
        str | None, _memory(help="What backward computes again: none, selective (all but products) or full.")
    ] = None
    zero: Annotated[int | None, _memory(help="ZeRO stage, 0 to 3.")] = None
    optimiser: Annotated[str | None, _memory(help="adam, adam-8bit, adam-bf16 or momentum.")] = None
    gradients: Annotated[str | None, _memory(help="Kept in bf16 or fp32.")] = None
    kernels: Annotated[
        str | None, _memory(help="eager, as transformers runs in torch, or fused norms, activations and loss.")
    ] = None
    bits: Annotated[int | None, _memory(help="Of a weight at inference: 4, 8 or 16; as stored otherwise.")] = None

    def by_option(self) -> dict[str, Any]:
        return {f"--{one.name.replace('_', '-')}": getattr(self, one.name) for one in fields(self)}

    def resources(self) -> Resources:
        from theodolite.advice.budget.resources import Resources

        return Resources(**{one.name: getattr(self, one.name) for one in fields(self)})
