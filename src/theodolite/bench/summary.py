"""Rows of members put together per net and task. Computed on reading, so more seeds join the old ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from theodolite.lab.cell import Row
from theodolite.lab.condition import condition
from theodolite.lab.sums import Spread, Sum, joined, spread_of
from theodolite.lab.tally import Tallies, Tally, tallied
from theodolite.statistics.intervals import interval_of, wilson


def summarise(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One entry per net × task (× settings that differ), in the order of first appearance."""
    conditions: dict[str, list[Row]] = {}
    for row in rows:
        conditions.setdefault(condition(row.cell.config), []).append(row)
    return [
        entry(members[0].cell.config, len({row.cell.config["seed"] for row in members}), tallied(members))
        for members in conditions.values()
    ]


def entry(config: Mapping[str, Any], seeds: int, tallies: Tallies) -> dict[str, Any]:
    """Of members of one condition, of whom one at least is there."""
    everyone = list(tallies.values())
    trained = [one for (*_, status), one in tallies.items() if status != "diverged"]
    told, least = _first(everyone), _least(everyone)
    return {
        "net": config["net"],
        "shape": config["shape"],
        "task": config["task"],
        "task_args": config["task_args"],
        "members": sum(one.members for one in everyone),
        "seeds": seeds,
        "solved": _solved(tallies),
        "diverged": sum(one.members for (*_, status), one in tallies.items() if status == "diverged"),
        "score": told["score"],
        "accuracy": _spread([one.accuracy for one in trained], least),
        "chance": told["chance"],
        "threshold": told["threshold"],
        "unseen": _spread([one.unseen for one in trained], least),
        "by_length": _by_length(trained),
        "trained_lengths": told["trained_lengths"],
        "steps": config["schedule"]["steps"],
        "steps_to_solve": _steps_to_solve(tallies),
        "rates": _by_rate(tallies),
        "parameters": told["parameters"],
        "converged": _spread([one.converged for one in trained], 0.0),
        "mean_steps": _mean_steps(joined(one.mean_steps for one in trained)),
        "state_size": told["state_size"],
        "seconds": joined(one.seconds for one in everyone).total,
        "device": _listed(one.devices for one in everyone),
        "batching": _listed(one.batchings for one in everyone),
    }


def _first(members: Sequence[Tally]) -> Mapping[str, Any]:
    """What the first member says for all of them."""
    return min(members, key=lambda one: one.first).told


def _least(members: Sequence[Tally]) -> float:
    """No share is below 0."""
    return 0.0 if _first(members)["score"] == "accuracy" else -math.inf


def _solved(tallies: Tallies) -> dict[str, Any]:
    members = sum(one.members for one in tallies.values())
    count = sum(one.members for (*_, status), one in tallies.items() if status == "solved")
    return {"count": count, "of": members, "share": count / members, "interval": wilson(count, members)}


def _spread(parts: Iterable[Spread], least: float) -> dict[str, Any] | None:
    """No score is above 1."""
    found = spread_of(parts)
    count, mean, deviation = found.values.count, found.values.mean, found.deviation
    if mean is None:
        return None
    low, high = interval_of(mean, deviation, count) if count > 1 else (mean, mean)
    return {
        "mean": mean,
        "interval": (max(least, low), min(1.0, high)) if count > 1 else None,
        "max": found.values.most,
        "min": found.values.least,
        "deviation": deviation,
        "of": count,
    }


def _mean_steps(steps: Sum) -> dict[str, float | None] | None:
    """Of nets that choose their number of steps: over members, and the least and most of one."""
    return {"mean": steps.mean, "min": steps.least, "max": steps.most} if steps.count else None


def _by_length(members: Sequence[Tally]) -> list[dict[str, Any]]:
    found: dict[int, list[Sum]] = {}
    for one in members:
        for length, scores in one.lengths.items():
            found.setdefault(length, []).append(scores)
    sums = {length: joined(parts) for length, parts in sorted(found.items())}
    return [{"length": length, "accuracy": scores.mean, "max": scores.most} for length, scores in sums.items()]


def _steps_to_solve(tallies: Tallies) -> dict[str, Any] | None:
    """Over the members that solved it: a median over few of many is not the median of all."""
    counts: Counter[float] = Counter()
    for (*_, status), one in tallies.items():
        if status == "solved":
            counts.update(one.solved_at)
    if not counts:
        return None
    steps = sorted(counts.items())
    low, median, high = (_quantile(steps, share) for share in (0.25, 0.5, 0.75))
    return {"median": median, "quartiles": [low, high], "of": sum(count for _, count in steps)}


def _quantile(counted: list[tuple[float, int]], share: float) -> float:
    """Between the two values at whose places it falls, where it falls between two."""
    place = share * (sum(count for _, count in counted) - 1)
    low, high = (_at(counted, index) for index in (math.floor(place), math.ceil(place)))
    return low + (high - low) * (place - math.floor(place))


def _at(counted: list[tuple[float, int]], index: int) -> float:
    for value, count in counted:
        index -= count
        if index < 0:
            return value
    raise IndexError(index)


def _by_rate(tallies: Tallies) -> list[dict[str, Any]]:
    """The same per learning rate and weight decay, since solving is often a matter of those."""
    found: dict[tuple[float, float], dict[tuple[float, float, str], Tally]] = {}
    for (lr, decay, status), one in tallies.items():
        found.setdefault((lr, decay), {})[lr, decay, status] = one
    entries = []
    for (lr, decay), own in sorted(found.items(), reverse=True):
        accuracy = _spread([one.accuracy for one in own.values()], _least(list(own.values())))
        entries.append({"lr": lr, "weight_decay": decay, "solved": _solved(own), "accuracy": accuracy})
    return entries


def _listed(first_seen: Iterable[Mapping[str, int]]) -> str:
    """Names, the one that was seen first before the others."""
    found = sorted((number, name) for one in first_seen for name, number in one.items() if name)
    return ", ".join(dict.fromkeys(name for _, name in found))
