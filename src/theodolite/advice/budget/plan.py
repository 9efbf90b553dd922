"""A run planned: the budget of a shape, the sizes beside it, and what it takes on a GPU in training and afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from theodolite.advice.budget.frontier import Frontier, frontier
from theodolite.advice.budget.gpus import Gpu
from theodolite.advice.budget.inference_memory import InferenceMemory, inference_memory
from theodolite.advice.budget.resources import Resources
from theodolite.advice.budget.spending import Rate, Spending, spend
from theodolite.advice.budget.training_memory import Setting, TrainingMemory, training_memory
from theodolite.advice.shape import ModelShape


@dataclass(frozen=True)
class Plan:
    """`spending` and `frontier` are None without a budget; `rate` without a GPU."""

    name: str  # of the shape in question
    setting: Setting
    rate: Rate | None
    spending: Spending | None
    frontier: Frontier | None
    training: TrainingMemory
    inference: InferenceMemory
    remedy: str  # what would make it fit; empty where it does, or nothing was found
    notes: tuple[str, ...]
    whole: bool = True  # false where activations and cache are not known, as of what is no Transformer

    @property
    def gpu(self) -> Gpu | None:
        return None if self.rate is None else self.rate.gpu

    @property
    def fits(self) -> bool | None:
        """Training, on one of the GPUs; None without one, and where only a part of it is known."""
        if self.gpu is None or (not self.whole and self.training.total <= self.gpu.bytes):
            return None
        return self.training.total <= self.gpu.bytes

    @property
    def verdict(self) -> str:
        """In one sentence."""
        total = f"{self.training.total / 1e9:,.1f} GB"
        if not self.whole and self.fits is None:
            return (
                f"Weights, gradients and optimiser take {total} a GPU; activations, which come on top, are not known."
            )
        if self.gpu is None:
            return f"Training takes {total} a GPU; with --gpu it is said whether that fits."
        if self.fits:
            return f"Training takes {total} and fits on {self.gpu}."
        largest = self.training.largest()
        size = self.training.logits if largest == "logits" else getattr(self.training, largest)
        why = f"{total}, of which {largest} {size / 1e9:,.1f} GB"
        return f"Training does not fit on {self.gpu}: {why}.{self.remedy}"

    def to_json(self) -> dict[str, Any]:
        gpu = None if self.gpu is None else {**asdict(self.gpu), "mfu": self.rate.mfu if self.rate else None}
        return {
            "of": self.name,
            "setting": asdict(self.setting),
            "gpu": gpu,
            "budget": None if self.spending is None else self.spending.to_json(),
            "frontier": None if self.frontier is None else self.frontier.to_json(),
            "training_memory": self.training.to_json(),
            "inference_memory": self.inference.to_json(),
            "fits": self.fits,
            "verdict": self.verdict,
            "notes": list(self.notes),
        }


def plan(
    shape: ModelShape,
    resources: Resources,
    context: int,
    shape_at: Callable[[int], ModelShape],
    *,
    tensor: int = 1,
    pipeline: int = 1,
) -> Plan:
    """The plan of one shape.

    Parameters:
        shape: the one that would be trained
        resources: what there is
        context: tokens of a sequence where `resources` do not say
        shape_at: the shape of the family with about this many parameters
        tensor, pipeline: GPUs that one layer, and that one replica's layers, are divided among
    """
    setting, budget = resources.setting(context, tensor, pipeline), resources.budget()
    rate = resources.rate(setting.gpus)
    spending = spend(shape, setting.sequence, **budget, rate=rate) if budget else None
    sizes = None
    if spending is not None and shape.speaks and shape.modality == "language":
        sizes = frontier(spending.flops, setting.sequence, shape_at, own=shape, rate=rate)
    training = training_memory(shape, setting)
    longest = min(setting.sequence, shape.positions or setting.sequence)
    return Plan(
        name=shape.name,
        setting=setting,
        rate=rate,
        spending=spending,
        frontier=sizes,
        training=training,
        inference=inference_memory(shape, bits=resources.bits, batch=setting.batch, context=longest),
        remedy="" if rate is None or training.total <= rate.gpu.bytes else _remedy(shape, setting, rate.gpu),
        notes=_notes(shape, setting, spending),
        whole=shape.speaks,
    )


def _remedy(shape: ModelShape, setting: Setting, gpu: Gpu) -> str:
    """The least change that fits: first computing again, then sharding, then both, then a batch of one."""
    more = [one for one in ("selective", "full") if one != setting.recompute and setting.recompute != "full"]
    stages = range(setting.zero + 1, 4) if setting.replicas > 1 else ()
    changes: list[dict[str, Any]] = [{"recompute": one} for one in more]
    changes += [{"zero": stage} for stage in stages]
    changes += [{"zero": stage, "recompute": "full"} for stage in stages if more]
    changes += [{**change, "batch": 1} for change in ({}, *changes) if setting.batch > 1]
    for change in changes:
        total = training_memory(shape, replace(setting, **change)).total
        if total <= gpu.bytes:
            options = " ".join(f"--{name} {value}" for name, value in change.items())
            return f" With {options} it takes {total / 1e9:,.1f} GB."
    states = training_memory(shape, replace(setting, recompute="full", batch=1)).states
    if setting.replicas == 1:
        return (
            f" Weights, gradients and optimiser are {states / 1e9:,.1f} GB: divide them with --zero 3 and more --gpus."
        )
    return " No ZeRO stage, recomputation or smaller batch makes it fit: take more --gpus or a smaller model."


def _notes(shape: ModelShape, setting: Setting, spending: Spending | None) -> tuple[str, ...]:
    notes = []
    if not shape.speaks:
        notes.append("Activations and cache are not computed for what is no Transformer: memory is its parameters'.")
    elif setting.kernels == "eager" and not training_memory(shape, setting).checked:
        notes.append(
            f"What blocks of '{shape.family}' keep was not compared with torch: activations are about those of a "
            f"{'gated' if shape.gated else 'plain'} block with flash attention."
        )
    if shape.positions and setting.sequence > shape.positions:
        notes.append(f"Sequences of {setting.sequence} tokens are longer than the {shape.positions} the model reads.")
    if spending is not None and shape.modality != "language":
        notes.append("The published fits of the loss are of words of language: no sizes are compared here.")
    elif spending is not None and shape.experts > 1:
        notes.append("The published fits are of dense models; here the parameters that one token uses are put in.")
    elif spending is not None and shape.two_stacks:
        notes.append(
            "The published fits are of one stack; here all parameters and the tokens of both sides are put in."
        )
    return tuple(notes)
