"""Degree along a random line and the number of tokens an output multiplies together, as claim T8 asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from theodolite.device import resolve_device
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import line_degree, mixing
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.nets.load import load
from theodolite.partition import Partition


def measure_line_degree(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return {"degree": line_degree(_sample(config, seed, device))}


def measure_mixing(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return {"mixing": mixing(_sample(config, seed, device), config["most"])}


def _sample(config: Mapping[str, Any], seed: int, device: str | torch.device) -> FieldSample:
    subject = load(config["net"], seed=seed, **config["shape"])
    device = resolve_device(device)
    subject.module.to(device)
    partition = Partition.left_right(subject.sites)
    return FieldSample.make(ScalarFunction.of(subject), partition, seed, 0, device)
