"""Rows of members put together per net and task. Computed on reading, so more seeds join the old ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from theodolite.lab.cell import Row
from theodolite.lab.condition import condition
from theodolite.statistics.intervals import mean_interval, wilson


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One entry per net × task (× settings that differ), in the order of first appearance."""
    conditions: dict[str, list[Row]] = {}
    for row in rows:
        conditions.setdefault(condition(row.cell.config), []).append(row)
    return [_entry(members) for members in conditions.values()]


def _entry(rows: Sequence[Row]) -> dict[str, Any]:
    config, first = rows[0].cell.config, rows[0].result
    trained = [r for r in rows if r["status"] != "diverged"]
    unseen = [r["unseen"] for r in trained if r["unseen"] is not None]
    least = 0.0 if first["score"] == "accuracy" else -math.inf
    return {
        "net": config["net"],
        "shape": config["shape"],
        "task": config["task"],
        "task_args": config["task_args"],
        "members": len(rows),
        "seeds": len({r.cell.config["seed"] for r in rows}),
        "solved": _solved(rows),
        "diverged": sum(1 for r in rows if r["status"] == "diverged"),
        "score": first["score"],
        "accuracy": _spread([r["accuracy"] for r in trained], least),
        "chance": first["chance"],
        "threshold": first["threshold"],
        "unseen": _spread(unseen, least) if unseen else None,
        "by_length": _by_length(trained),
        "trained_lengths": first.get("trained_lengths"),
        "steps": config["schedule"]["steps"],
        "steps_to_solve": _steps_to_solve(rows),
        "rates": _by_rate(rows),
        "parameters": first["parameters"],
        "converged": _spread([r["converged"] for r in trained if r.result.get("converged") is not None], 0.0),
        "mean_steps": _mean_steps(trained),
        "state_size": first.get("state_size"),
        "seconds": math.fsum(r.facts.get("seconds", 0.0) for r in rows),
        "device": _listed(r.facts.get("device") for r in rows),
        "batching": _listed(r.facts.get("batching") for r in rows),
    }


def _solved(rows: Sequence[Row]) -> dict[str, Any]:
    count = sum(1 for r in rows if r["status"] == "solved")
    return {"count": count, "of": len(rows), "share": count / len(rows), "interval": wilson(count, len(rows))}


def _spread(values: Sequence[float], least: float = -math.inf) -> dict[str, Any] | None:
    """No score is above 1, and no share below 0."""
    if not values:
        return None
    interval = mean_interval(values)
    return {
        "mean": math.fsum(values) / len(values),
        "interval": interval and (max(least, interval[0]), min(1.0, interval[1])),
        "max": max(values),
        "min": min(values),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "of": len(values),
    }


def _mean_steps(rows: Sequence[Row]) -> dict[str, float] | None:
    """Of nets that choose their number of steps: over members, and the least and most of one."""
    steps = [r["mean_steps"] for r in rows if r.result.get("mean_steps") is not None]
    return {"mean": math.fsum(steps) / len(steps), "min": min(steps), "max": max(steps)} if steps else None


def _by_length(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found: dict[int, list[float]] = {}
    for row in rows:
        for length, score in row["by_length"]:
            found.setdefault(length, []).append(score)
    return [
        {"length": length, "accuracy": math.fsum(scores) / len(scores), "max": max(scores)}
        for length, scores in sorted(found.items())
    ]


def _steps_to_solve(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Over the members that solved it: a median over few of many is not the median of all."""
    steps = [float(r["solved_at"]) for r in rows if r["status"] == "solved" and r["solved_at"] is not None]
    if not steps:
        return None
    low, median, high = np.quantile(steps, (0.25, 0.5, 0.75)).tolist()
    return {"median": median, "quartiles": [low, high], "of": len(steps)}


def _by_rate(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same per learning rate and weight decay, since solving is often a matter of those."""
    found: dict[tuple[float, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row.cell.config["lr"], row.cell.config["weight_decay"]), []).append(row)
    return [
        {
            "lr": lr,
            "weight_decay": decay,
            "solved": _solved(members),
            "accuracy": _spread(
                [r["accuracy"] for r in members if r["accuracy"] is not None],
                0.0 if members[0]["score"] == "accuracy" else -math.inf,
            ),
        }
        for (lr, decay), members in sorted(found.items(), reverse=True)
    ]


def _listed(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(v for v in values if v))


def flat(row: Row) -> dict[str, Any]:
    """One member as one line of a table: plain values only."""
    config, result, facts = row.cell.config, row.result, row.facts
    provenance = facts.get("provenance", {})
    return {
        "key": row.cell.key[:12],
        "net": config["net"],
        "task": config["task"],
        "seed": config["seed"],
        "lr": config["lr"],
        "weight_decay": config["weight_decay"],
        "optimiser": config["optimiser"]["name"],
        "steps": config["schedule"]["steps"],
        "batch": config["schedule"]["batch"],
        "shape": _text(config["shape"]),
        "task_args": _text(config["task_args"]),
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


def _text(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
