"""What a member can be listed and chosen by: its settings, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.lab.cell import Row

SECTIONS = ("shape", "task_args", "schedule", "optimiser")  # of a training cell's configuration, beside:
_PLAIN = ("net", "task", "seed", "lr", "weight_decay", "source", "checkpoint", "net_version", "task_version")


def columns(row: Row) -> dict[str, Any]:
    """Everything a member can be chosen by."""
    return flat(row) | settings(row.cell.config)


def shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """Those columns that all members of a condition have in common; `config` has neither seed nor rates."""
    return _settled(config) | settings(config)


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """What was decided before a member was trained, by column."""
    table = {name: config[name] for name in _PLAIN if name in config}
    for section in SECTIONS:
        table |= {f"{section}.{name}": value for name, value in config.get(section, {}).items()}
    return table


def flat(row: Row) -> dict[str, Any]:
    """One member as one line of a table: plain values only, under the names of FLAT."""
    config, result, facts = row.cell.config, row.result, row.facts
    provenance = facts.get("provenance", {})
    return {
        "key": row.cell.key[:12],
        "net": config["net"],
        "task": config["task"],
        "seed": config["seed"],
        "lr": config["lr"],
        "weight_decay": config["weight_decay"],
        **_settled(config),
        "status": result["status"],
        "accuracy": result["accuracy"],
        "unseen": result["unseen"],
        "exact": result.get("exact"),
        "converged": result.get("converged"),
        "mean_steps": result.get("mean_steps"),
        "chance": result["chance"],
        "solved_at": result["solved_at"],
        "trained_steps": result["steps"],
        "parameters": result["parameters"],
        "state_size": (result.get("state_size") or {}).get("size"),
        "seconds": facts.get("seconds"),
        "device": facts.get("device"),
        "batching": facts.get("batching"),
        "finished": facts.get("finished"),
        "version": provenance.get("version"),
        "commit": provenance.get("commit"),
        "package": provenance.get("package"),
    }


# The names that `flat` gives, in its order.
FLAT = (
    *("key", "net", "task", "seed", "lr", "weight_decay", "optimiser", "steps", "batch", "shape", "task_args"),
    *("status", "accuracy", "unseen", "exact", "converged", "mean_steps", "chance", "solved_at", "trained_steps"),
    *("parameters", "state_size", "seconds", "device", "batching", "finished", "version", "commit", "package"),
)


def _settled(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "optimiser": config["optimiser"]["name"],
        "steps": config["schedule"]["steps"],
        "batch": config["schedule"]["batch"],
        "shape": _text(config["shape"]),
        "task_args": _text(config["task_args"]),
    }


def _text(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
