"""Measures by name, as cells ask for them: a configuration in plain JSON in, a row of plain JSON out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.degree import line_degree, mixing
from theodolite.instruments.device import resolve_device
from theodolite.instruments.draws import Draws
from theodolite.instruments.scalar import ScalarFunction
from theodolite.instruments.separation import separation_rank
from theodolite.nets.contract import Symmetrical
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters
from theodolite.partition import Partition
from theodolite.registry import Registry

Measure = Callable[..., dict[str, Any]]  # (config, seed, device, progress) → row

measures: Registry[Measure] = Registry("measure")


@measures.register("separation-rank")
def _separation_rank(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    """config: net, shape, partition, and any option of `separation_rank`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    result = separation_rank(config["net"], seed=seed, device=device, progress=progress, **options, **config["shape"])
    return result.to_json()


@measures.register("spectrum")
def _spectrum(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    """ε-ranks and spectra under several partitions, for the same drawn weights under all of them.

    config: net, shape, partitions, draws, and any option of epsilon mode.
    """
    rest = {k: v for k, v in config.items() if k not in ("net", "shape", "partitions", "draws")}
    kept = ("resolved", "interval", "effective_rank", "held_out_error", "spectrum")
    draws: list[dict[str, Any]] = []
    for draw in range(config["draws"]):
        found = {}
        for partition in config["partitions"]:
            options = {**rest, "seed": (seed + draw) % 2**63, "device": device}
            result = separation_rank(config["net"], "epsilon", partition, **options, **config["shape"])
            found[partition] = {"rank": result.rank, **{name: result.details[name] for name in kept}}
        draws.append(found)
    module = load(config["net"], **config["shape"]).module
    declared = module.symmetries() if isinstance(module, Symmetrical) else {}
    return {
        "draws": draws,
        "parameters": count_parameters(module),
        "alike": declared["permutation"].holds if "permutation" in declared else None,
    }


@measures.register("special-weights")
def _special_weights(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    """The exact rank at weights that are not generic: all equal (`ties`), or a share of them 0 (`zeros`)."""
    module = load(config["net"], seed=seed, **config["shape"]).module
    _specialise(module, config["weights"], seed)
    sizes = {k: v for k, v in config["shape"].items() if k == "tokens"}
    options = {"partition": config.get("partition", "left-right"), "weights": "own", "repeats": 2}
    return separation_rank(module, seed=seed, device=device, features=_features(module), **options, **sizes).to_json()


@measures.register("line-degree")
def _line_degree(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    return {"degree": line_degree(_draws(config, seed, device))}


@measures.register("mixing")
def _mixing(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    return {"mixing": mixing(_draws(config, seed, device), config["most"])}


def _draws(config: Mapping[str, Any], seed: int, device: str) -> Draws:
    subject = load(config["net"], seed=seed, **config["shape"])
    where = resolve_device(device)
    subject.module.to(where)
    partition = Partition.left_right(subject.sites)
    return Draws.make(ScalarFunction.of(subject), partition, seed, 0, where)


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
