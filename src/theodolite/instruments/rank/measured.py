"""Separation ranks as cells ask for them: exact ranks, and spectra of one net under several partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.contract import Symmetrical
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters


def measure_separation_rank(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, partition, and any option of `separation_rank`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    result = separation_rank(config["net"], seed=seed, device=device, **options, **config["shape"])
    return result.to_json()


def measure_spectrum(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
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
