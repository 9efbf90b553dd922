"""What a team has and how it would train: the options of a budget, checked."""

from __future__ import annotations

from dataclasses import dataclass, fields

from theodolite.advice.budget.activations import recompute_named
from theodolite.advice.budget.amounts import amount
from theodolite.advice.budget.gpus import gpu
from theodolite.advice.budget.kernels import kernels_named
from theodolite.advice.budget.scaling_laws import LAWS
from theodolite.advice.budget.spending import MFU, Rate
from theodolite.advice.budget.training_memory import Setting
from theodolite.errors import BadInput

_BUDGETS = {"tokens": "2T", "flops": "1e24", "gpu_hours": "100k"}
_GRADIENTS = {"bf16": 2, "fp32": 4}


@dataclass(frozen=True)
class Resources:
    """A budget (one of `tokens`, `flops`, `gpu_hours`), GPUs, and how a pass is laid out; what is None was not said.

    Parameters:
        tokens: to train on, as 2T
        flops: of training, as 1e24
        gpu_hours: of training, as 100k; needs `gpu`
        gpu: its name, as h100
        mfu: share of its peak that training makes use of; 0.4
        gpus: how many; 1
        batch: sequences that one replica works on at once; 1
        sequence: tokens in each; the context of the advice
        recompute: none, selective or full
        zero: stage 0 to 3
        optimiser: adam, adam-8bit, adam-bf16 or momentum
        gradients: bf16 or fp32
        kernels: eager or fused
        bits: of a weight at inference, 4, 8 or 16

    Examples:
        >>> Resources(gpu_hours="100k", gpu="h100").flops_given()
        1.42416e+23
    """

    tokens: str | float | None = None
    flops: str | float | None = None
    gpu_hours: str | float | None = None
    gpu: str | None = None
    mfu: float | None = None
    gpus: int | None = None
    batch: int | None = None
    sequence: int | None = None
    recompute: str | None = None
    zero: int | None = None
    optimiser: str | None = None
    gradients: str | None = None
    kernels: str | None = None
    bits: int | None = None

    def __post_init__(self) -> None:
        given = [f"--{name.replace('_', '-')}" for name in _BUDGETS if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadInput(f"{' and '.join(given)} are given, but each follows from the other: give one of them")
        if self.mfu is not None and self.gpu is None:
            raise BadInput("--mfu is a share of a GPU's peak: add for example --gpu h100")
        if self.gpu_hours is not None and self.gpu is None:
            raise BadInput("--gpu-hours needs the kind of GPU: add for example --gpu h100")
        if self.zero and (self.gpus or 1) == 1:
            raise BadInput(f"--zero {self.zero} divides among GPUs and there is one: add for example --gpus 8")
        self.setting(1)
        self.rate()
        self.budget()

    @property
    def said(self) -> bool:
        """Whether anything was."""
        return any(getattr(self, one.name) is not None for one in fields(self))

    def budget(self) -> dict[str, float]:
        """The one that was given, as a number; empty where none was."""
        return {
            name: amount(f"--{name.replace('_', '-')}", value, example)
            for name, example in _BUDGETS.items()
            if (value := getattr(self, name)) is not None
        }

    def rate(self, replica: int = 1) -> Rate | None:
        """Of all GPUs, or of the `replica` that one copy of the model takes where their number was not given."""
        if self.gpu is None:
            return None
        return Rate(gpu(self.gpu), MFU if self.mfu is None else self.mfu, replica if self.gpus is None else self.gpus)

    def flops_given(self) -> float | None:
        """Known without a shape: from FLOPs, or GPU-hours at their rate."""
        found, rate = self.budget(), self.rate()
        if "gpu_hours" in found and rate is not None:
            return rate.flops(found["gpu_hours"])
        return found.get("flops")

    def best_size(self, modality: str = "language") -> int | None:
        """Parameters that the budget is best spent on, by the first of the fits; None without a budget."""
        found, flops = self.budget(), self.flops_given()
        if found and modality != "language":
            raise BadInput(f"the fits that choose a size for a budget are of language, not of {modality}: add --params")
        if flops is not None:
            return round(LAWS[0].best_size(flops))
        return round(LAWS[0].size_for_tokens(found["tokens"])) if "tokens" in found else None

    def setting(self, context: int, tensor: int = 1, pipeline: int = 1) -> Setting:
        """How a pass is laid out, at `context` tokens a sequence unless another number was given."""
        if self.gradients is not None and self.gradients not in _GRADIENTS:
            raise BadInput(f"--gradients '{self.gradients}' is neither of bf16 and fp32: write one of them")
        gpus = tensor * pipeline if self.gpus is None else self.gpus
        return Setting(
            batch=1 if self.batch is None else self.batch,
            sequence=context if self.sequence is None else self.sequence,
            recompute=recompute_named(self.recompute or "none"),
            zero=self.zero or 0,
            gpus=gpus,
            tensor=tensor,
            pipeline=pipeline,
            optimiser=self.optimiser or "adam",
            gradient_bytes=_GRADIENTS[self.gradients or "bf16"],
            kernels=kernels_named(self.kernels or "eager"),
        )
