"""One budget in three coins: tokens, FLOPs and GPU-hours of a shape, each from either of the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from theodolite.advice.budget.gpus import Gpu
from theodolite.advice.budget.published_runs import nearest_runs
from theodolite.advice.budget.scaling_laws import CHINCHILLA
from theodolite.advice.cost import cost
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

MFU = 0.4
"""Share of a GPU's peak that training makes use of, where none is given: large dense runs report 0.35 to 0.5."""


@dataclass(frozen=True)
class Rate:
    """FLOPs a second of `gpus` of one kind at this share of their peak (MFU: the model's own FLOPs, none twice)."""

    gpu: Gpu
    mfu: float = MFU
    gpus: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.mfu <= 1:
            raise BadInput(f"--mfu {self.mfu} is not a share of the peak: pass a number above 0 and at most 1, as 0.4")

    def gpu_hours(self, flops: float) -> float:
        return flops / (self.gpu.flops * self.mfu * 3600)

    def flops(self, gpu_hours: float) -> float:
        return gpu_hours * self.gpu.flops * self.mfu * 3600

    def days(self, flops: float) -> float:
        return self.gpu_hours(flops) / self.gpus / 24


@dataclass(frozen=True)
class Spending:
    """What training one shape takes; `gpu_hours` and `days` are None without a GPU."""

    params: int  # as the fits count them
    flops_per_token: float
    tokens: float
    flops: float
    gpu_hours: float | None
    days: float | None

    @property
    def tokens_per_parameter(self) -> float:
        return self.tokens / self.params

    @property
    def times_chinchilla(self) -> float:
        return self.tokens_per_parameter / CHINCHILLA

    def to_json(self) -> dict[str, Any]:
        near = [
            {"model": run.model, "tokens_per_parameter": run.tokens_per_parameter, "source": run.source}
            for run in nearest_runs(self.tokens_per_parameter)
        ]
        ratios = {"tokens_per_parameter": self.tokens_per_parameter, "times_chinchilla": self.times_chinchilla}
        return {**asdict(self), **ratios, "chinchilla_tokens": CHINCHILLA * self.params, "published": near}


def spend(
    shape: ModelShape,
    sequence: int,
    *,
    tokens: float | None = None,
    flops: float | None = None,
    gpu_hours: float | None = None,
    rate: Rate | None = None,
) -> Spending:
    """All three from the one that is given.

    Parameters:
        shape: of the model
        sequence: tokens of context, on which the FLOPs of attention depend
        tokens, flops, gpu_hours: one of them
        rate: of the GPUs; needed for `gpu_hours`

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        >>> f"{spend(read_config(gpt2, 'gpt2'), 1024, tokens=300e9).flops:.2e}"
        '2.57e+20'
    """
    each = training_flops(shape, sequence)
    if gpu_hours is not None:
        if rate is None:
            raise BadInput("--gpu-hours needs the kind of GPU: add for example --gpu h100")
        flops = rate.flops(gpu_hours)
    if tokens is None:
        assert flops is not None, "one of tokens, flops and gpu_hours"
        tokens = flops / each
    flops = tokens * each
    return Spending(
        params=counted_parameters(shape),
        flops_per_token=each,
        tokens=tokens,
        flops=flops,
        gpu_hours=None if rate is None else rate.gpu_hours(flops),
        days=None if rate is None else rate.days(flops),
    )


def counted_parameters(shape: ModelShape) -> int:
    """N of the fits and of tokens per parameter: all of them, of a mixture of experts those that one token uses."""
    return shape.active if shape.experts > 1 else shape.params


def training_flops(shape: ModelShape, sequence: int) -> float:
    """A token: as `cost` counts them, or six for each parameter in use where it does not, as of recurrent blocks."""
    return float(cost(shape, sequence).training_flops or 6 * shape.active)
