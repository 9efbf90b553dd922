"""The exact rank at weights that are not generic: at most the rank of almost all weights (Claim 7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.load import load


def measure_special_weights(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """The exact rank at weights that are not generic: all equal (`ties`), or a share of them 0 (`zeros`)."""
    module = load(config["net"], seed=seed, **config["shape"]).module
    _specialise(module, config["weights"], seed)
    sizes = {k: v for k, v in config["shape"].items() if k == "tokens"}
    options = {"partition": config.get("partition", "left-right"), "weights": "own", "repeats": 2}
    return separation_rank(module, seed=seed, device=device, features=_features(module), **options, **sizes).to_json()


def _features(module: nn.Module) -> int:
    return int(getattr(module, "features"))  # noqa: B009 — pyright knows no such attribute of nn.Module


def _specialise(module: nn.Module, kind: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if kind == "ties":
                parameter.fill_(1.0)
            elif kind == "zeros":
                parameter.mul_((torch.rand(parameter.shape, generator=generator) < 0.5).to(parameter.dtype))
            else:
                raise BadInput(f"special weights '{kind}' are unknown: use ties or zeros")
