"""What a summary and a comparison say, computed from whole rows by their definitions, one row after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from theodolite.lab.cell import Row
from theodolite.lab.condition import condition


def summaries(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(condition(row.cell.config), []).append(row)
    return [_summary(own) for own in found.values()]


def _summary(rows: Sequence[Row]) -> dict[str, Any]:
    config, first = rows[0].cell.config, rows[0].result
    trained = [row for row in rows if row["status"] != "diverged"]
    lengths = sorted({length for row in trained for length, _ in row["by_length"]})
    by_length = {n: [score for row in trained for length, score in row["by_length"] if length == n] for n in lengths}
    steps = [row["solved_at"] for row in rows if row["status"] == "solved" and row["solved_at"] is not None]
    rates = sorted({(row.cell.config["lr"], row.cell.config["weight_decay"]) for row in rows}, reverse=True)
    floor = 0.0 if first["score"] == "accuracy" else -math.inf
    return {
        **{name: config[name] for name in ("net", "shape", "task", "task_args")},
        "members": len(rows),
        "seeds": len({row.cell.config["seed"] for row in rows}),
        "solved": _solved(rows),
        "diverged": len(rows) - len(trained),
        **{name: first[name] for name in ("score", "chance", "threshold", "parameters")},
        "accuracy": _spread([row["accuracy"] for row in trained], floor),
        "unseen": _spread([row["unseen"] for row in trained], floor),
        "by_length": [
            {"length": n, "accuracy": math.fsum(scores) / len(scores), "max": max(scores)}
            for n, scores in by_length.items()
        ],
        "trained_lengths": first.get("trained_lengths"),
        "steps": config["schedule"]["steps"],
        "steps_to_solve": {
            "median": float(np.median(steps)),
            "quartiles": [float(np.quantile(steps, share)) for share in (0.25, 0.75)],
            "of": len(steps),
        }
        if steps
        else None,
        "rates": [
            {
                "lr": lr,
                "weight_decay": decay,
                "solved": _solved(own),
                "accuracy": _spread([row["accuracy"] for row in own], floor),
            }
            for lr, decay in rates
            if (own := [r for r in rows if (r.cell.config["lr"], r.cell.config["weight_decay"]) == (lr, decay)])
        ],
        "converged": _spread([row.result.get("converged") for row in trained], 0.0),
        "mean_steps": _mean_steps([v for row in trained if (v := row.result.get("mean_steps")) is not None]),
        "state_size": first.get("state_size"),
        "seconds": math.fsum(row.facts.get("seconds", 0.0) for row in rows),
        "device": ", ".join(dict.fromkeys(v for row in rows if (v := row.facts.get("device")))),
        "batching": ", ".join(dict.fromkeys(v for row in rows if (v := row.facts.get("batching")))),
    }


def _solved(rows: Sequence[Row]) -> dict[str, Any]:
    count = Counter(row["status"] for row in rows)["solved"]
    low, high = stats.binomtest(count, len(rows)).proportion_ci(method="wilson")
    return {"count": count, "of": len(rows), "share": count / len(rows), "interval": (float(low), float(high))}


def _spread(given: Sequence[float | None], floor: float) -> dict[str, Any] | None:
    values = [value for value in given if value is not None]
    if not values:
        return None
    mean, interval = math.fsum(values) / len(values), None
    deviation = float(np.std(np.array(values, dtype=np.longdouble), ddof=1)) if len(values) > 1 else 0.0
    if len(values) > 1:
        half = float(stats.t.ppf(0.975, len(values) - 1)) * deviation / math.sqrt(len(values))
        interval = (max(floor, mean - half), min(1.0, mean + half))
    extremes = {"max": max(values), "min": min(values)}
    return {"mean": mean, "interval": interval, **extremes, "deviation": deviation, "of": len(values)}


def _mean_steps(values: Sequence[float]) -> dict[str, float] | None:
    return {"mean": math.fsum(values) / len(values), "min": min(values), "max": max(values)} if values else None


def paired(rows: Sequence[Row], first: str, second: str, entry: str) -> dict[str, tuple[int, int, float | None, int]]:
    """Of two nets, by task: pairs, pairs with the score on both sides, the mean difference, and wins of the second."""
    found: dict[str, tuple[int, int, float | None, int]] = {}
    alike = lambda row: {k: v for k, v in row.cell.config.items() if k not in ("net", "shape", "net_version", "source")}
    for task in dict.fromkeys(row.cell.config["task"] for row in rows):
        pairs = [
            (one, other)
            for one in rows
            for other in rows
            if (one.cell.config["net"], other.cell.config["net"]) == (first, second)
            and one.cell.config["task"] == task
            and alike(one) == alike(other)
        ]
        both = [(a[entry], b[entry]) for a, b in pairs if a[entry] is not None and b[entry] is not None]
        if pairs:
            mean = math.fsum(b - a for a, b in both) / len(both) if both else None
            found[task] = (len(pairs), len(both), mean, sum(b > a for a, b in both))
    return found
