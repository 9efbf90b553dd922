"""How `learn` trains, evaluates and saves: its options, in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.registry import unknown


@dataclass(frozen=True)
class Training:
    """Members are trained for every one of the learning rates `lr` with every `weight_decay`."""

    steps: int = 2000  # at most: who solves the task stops, unless trained `to_the_end`
    lr: float | Sequence[float] = 1e-3
    weight_decay: float | Sequence[float] = 0.0
    batch: int = 64  # fresh rows per member and step
    optimiser: str = "adamw"  # or sgd
    momentum: float = 0.9  # of sgd
    clip: float | None = 1.0  # the largest gradient norm
    to_the_end: bool = False
    precision: str = "float32"  # of products of matrices; or tf32 (CUDA), bf16
    weights: str | Path | None = None  # a file of them to start from, instead of drawing them


@dataclass(frozen=True)
class Evaluation:
    every: int | None = None  # steps between evaluations; a fiftieth of all, from 10 to 1,000
    rows: int = 32  # per length
    unseen: str | Sequence[int] | None = None  # lengths beyond training: 41-500, 41-500/20, 50,100 or none
    checkpoint: str | Path | None = None  # weights to evaluate without training


@dataclass(frozen=True)
class Saving:
    keep_weights: bool = False  # of every member, in the folder of the store
    save_every: float = 20.0  # seconds between checkpoints of what runs
    tensorboard: str | Path | None = None  # a folder for learning curves


def merged(groups: Sequence[Any], given: Mapping[str, Any]) -> list[Any]:
    """The groups with the fields that were given by their own names."""
    owners = {field.name: place for place, group in enumerate(groups) for field in fields(group)}
    for name in given:
        if name not in owners:
            raise BadInput(unknown("option", name, owners))
    return [
        replace(group, **{name: value for name, value in given.items() if owners[name] == place})
        for place, group in enumerate(groups)
    ]
