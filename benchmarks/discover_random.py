"""Functions drawn from seeds (`known_structures/random_functions.py`): is what `discover` says of them true?

Errors are mean squared errors over the variance of the noiseless target at 4,000 fresh rows. `theodolite` does what
`discover` does with its training rows, `theodolite quick` what it does with `--effort quick`. Seeds from 10,000 on were
never looked at while it was developed.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.known_structures.judge import judge
from benchmarks.known_structures.random_functions import HELD_OUT, random_function
from scipy import stats

from discover_jobs import Job, Row, seconds, timed
from estimators import boosting, ebm, gaussian_process
from theodolite.statistics.paired import error_ratio

PEERS = {"boosting": boosting, "ebm": ebm, "gaussian process": gaussian_process}
METHODS = ("theodolite", "theodolite quick", *PEERS)
WORSE = 1.05


def names(draws: int, first: int = 0) -> list[str]:
    return [str(HELD_OUT + first + draw) for draw in range(draws)]


def measure(job: Job) -> Row:
    truth = random_function(int(job.name))
    x, y = truth.sample()
    points, values = truth.fresh()
    error_of = lambda predicted: float(np.mean((predicted - values) ** 2) / np.var(values))
    about = {
        **{"kind": truth.kind, "function": truth.name, "distribution": truth.distribution, "sd_noise": truth.noise},
        **{"rows": truth.rows, "columns": len(truth.variables)},
    }
    if job.method in PEERS:
        model, taken = timed(lambda: PEERS[job.method](x, y))
        error = error_of(model.predict(points))
        return {**about, **taken, "error": error, "said": f"{error:.2e}"}
    from theodolite.structure.settle import settle
    from theodolite.structure.stacking import stacked

    effort = "quick" if job.method == "theodolite quick" else "auto"
    generator = np.random.default_rng(0)
    asked, taken = timed(lambda: settle(x, y, truth.variables, generator, effort=effort))
    stack, longer = timed(lambda: stacked(asked.model, asked.dense, x, y, generator))
    taken = {name: value + longer[name] for name, value in taken.items()}
    error, dense = (error_of(model.predict(points)) for model in (stack.returned, asked.dense))
    row = {**about, **taken, "abstained": asked.chosen is None, "error": error, "dense_error": dense}
    row |= {"reason": asked.reason, "held_out_error": asked.model.validation_error, "outcome": "abstained"}
    row |= {"returned": stack.returned.kind, "network_error": error_of(asked.model.predict(points))}
    if asked.chosen is not None:
        own = next(trial.fitted for trial in asked.trials if trial.found is asked.chosen)
        found = judge(truth, asked.chosen.graph, error_of(own.predict(points)))
        outcome = "exact" if found.exact else "coarser" if found.coarser else "other, nothing that matters"
        row |= {"material": found.material, "outcome": "materially false" if found.material else outcome}
        row["graph"] = asked.chosen.graph.to_json()
    row["said"] = (
        f"{truth.name}, {truth.distribution}, {truth.noise:g}, {x.shape}: {row['outcome']}, {error:.2e} to {dense:.2e} "
        f"in {taken['seconds']:.0f} s {'; '.join(row.get('material', ()))[:200]}"
    )
    return row


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry for each effort."""
    made = (_of(method, rows) for method in METHODS if method.startswith("theodolite"))
    return [entry for entry in made if entry]


def _of(effort: str, rows: Sequence[Row]) -> dict[str, Any]:
    ours = {row["name"]: row for row in rows if row["method"] == effort}
    if not ours:
        return {}
    every = list(ours.values())
    graphs = [row for row in every if not row["abstained"]]
    false = sum(row["outcome"] == "materially false" for row in every)
    parts = [" ".join(row.get("material", ())) for row in every]
    gross = sum("left out" in part or "put apart" in part for part in parts)
    found: dict[str, Any] = {
        "method": effort,
        "functions": len(every),
        "seeds": [min(map(int, ours)), max(map(int, ours))],
        "graphs": len(graphs),
        "materially_false": false,
        "materially_false_interval": exact_interval(false, len(every)),
        "variable_left_out_or_pair_put_apart": gross,
        "variable_left_out_or_pair_put_apart_interval": exact_interval(gross, len(every)),
        "materially_false_interval_of_graphs": exact_interval(false, len(graphs)),
        "outcomes": dict(Counter(row["outcome"] for row in every)),
        "by_kind": {
            kind: dict(Counter(row["outcome"] for row in every if row["kind"] == kind))
            for kind in sorted({row["kind"] for row in every})
        },
        "error_over_dense": _ratios(every, [row["dense_error"] for row in every]),
        "error_over_dense_of_graphs": _ratios(graphs, [row["dense_error"] for row in graphs]),
        "seconds": seconds(every),
        "false_parts": [
            {
                "seed": row["name"],
                "function": row["function"],
                "parts": len(row["material"]),
                "what": row["material"][:3],
            }
            for row in every
            if row["outcome"] == "materially false"
        ],
    }
    for method in dict.fromkeys(row["method"] for row in rows if row["method"] in PEERS):
        theirs = {row["name"]: row for row in rows if row["method"] == method and row["name"] in ours}
        if theirs:
            ratios = _ratios([ours[name] for name in theirs], [row["error"] for row in theirs.values()])
            found[f"error_over_{method}"] = {**(ratios or {}), "seconds": seconds([*theirs.values()])}
    return found


def exact_interval(count: int, total: int) -> tuple[float, float] | None:
    """Clopper and Pearson's, 95 %."""
    if not total:
        return None
    found = stats.binomtest(count, total).proportion_ci(method="exact")
    return float(found.low), float(found.high)


def _ratios(rows: Sequence[Row], rival: Sequence[float]) -> dict[str, Any] | None:
    if not rows:
        return None
    own = [max(row["error"], 1e-300) for row in rows]
    found = error_ratio(np.log(own).tolist(), np.log(np.maximum(rival, 1e-300)).tolist())
    ratios = [a / max(b, 1e-300) for a, b in zip(own, rival, strict=True)]
    worse = sum(ratio > WORSE for ratio in ratios)
    return {
        "geometric_mean": found.value,
        "interval": found.interval,
        "median": statistics.median(ratios),
        "worse_by_5_percent": [worse, len(ratios)],
        "worst": sorted(zip(ratios, (row["name"] for row in rows), strict=True))[-3:],
    }
