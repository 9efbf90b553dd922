"""Formulas of physics from data: is their structure found, and what is the network of it worth?

1,600 rows to learn from, noise of a share of the target's standard deviation; errors are mean squared errors over the
variance of the *noiseless* target at 4,000 fresh points. `theodolite` does what `discover` does with its training rows.
"""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from benchmarks.known_structures.feynman import FORMULAS, FeynmanFormula
from benchmarks.known_structures.formula_structure import FormulaStructure, modules_of
from numpy.typing import NDArray

from discover_jobs import Job, Row, seconds
from estimators import boosting
from theodolite.graphs.equivalence import recovers
from theodolite.graphs.formula import Formula
from theodolite.statistics.intervals import wilson

Array = NDArray[np.float64]
METHODS = ("theodolite", "boosting", "pykan")
ROWS, TEST_ROWS = 1_600, 4_000
WORSE = 1.05
BINS = (0.0, 0.5, 1 / WORSE, WORSE, 2.0, 4.0, 10.0, 100.0, np.inf)  # of the dense network's error over the graph's
QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
FEYNMAN = {formula.id: formula for formula in FORMULAS}


@dataclass(frozen=True)
class Data:
    x: Array
    y: Array
    points: Array
    truth: Array

    def error(self, predicted: Array) -> float:
        return float(np.mean((predicted - self.truth) ** 2) / np.var(self.truth))


def draw(formula: FeynmanFormula, noise: float) -> Data:
    """The same rows and the same noise but for its size, whatever the method."""
    generator = np.random.default_rng(zlib.crc32(formula.id.encode()))
    function = Formula(formula.text, formula.variables).function
    low, high = np.array(list(formula.ranges.values())).T
    x, points = (low + (high - low) * generator.random((count, len(low))) for count in (ROWS, TEST_ROWS))
    y = function(x)
    y = y + noise * y.std() * generator.standard_normal(ROWS)
    return Data(x, y, points, function(points))


def measure(job: Job) -> Row:
    formula = FEYNMAN[job.name]
    data = draw(formula, job.noise)
    return {"theodolite": _theodolite, "boosting": _boosting, "pykan": _pykan, "oracle": _oracle}[job.method](
        formula, data
    )


def _theodolite(formula: FeynmanFormula, data: Data) -> Row:
    from theodolite.structure.settle import settle

    asked = settle(data.x, data.y, formula.variables, np.random.default_rng(0), effort="auto")
    abstained = asked.chosen is None
    graph, dense = (data.error(model.predict(data.points)) for model in (asked.model, asked.dense))
    truth = FormulaStructure(formula.text, formula.ranges)
    found = modules_of(asked.model.graph)
    exact = [
        set(t.found.graph.used) == set(truth.relevant) and modules_of(t.found.graph) == truth.modules
        for t in asked.trials
    ]
    right = any(same and trial.found is asked.chosen for same, trial in zip(exact, asked.trials, strict=True))
    return {
        "variables": len(formula.variables),
        "abstained": abstained,
        "recovered": right,
        "bracketed": not abstained and recovers(asked.model.graph, truth.graph),
        "proposed": any(exact),
        "something_to_find": bool(truth.modules),
        "modules": {
            "true": len(truth.modules),
            "found": len(found & truth.modules),
            "false": len(found - truth.modules),
        },
        "error": graph,
        "dense_error": dense,
        "dense_kind": asked.dense_kind,
        "parameters": asked.model.parameters,
        "dense_parameters": asked.dense.parameters,
        "graph": asked.model.graph.to_json(),
        "trials": [
            {"exact": same, "ratio": t.ratio, "high": t.interval[1], "preferred": t.preferred, "screened": t.screened}
            for same, t in zip(exact, asked.trials, strict=True)
        ],
        "said": f"{'abstained' if abstained else 'recovered' if right else 'other graph'}, {graph:.2e} to {dense:.2e}",
    }


def _oracle(formula: FeynmanFormula, data: Data) -> Row:
    """The network of the true graph: what knowing it would be worth."""
    from theodolite.structure.fit.fitting import fit

    truth = FormulaStructure(formula.text, formula.ranges)
    fitted = fit(truth.graph, data.x, data.y, np.random.default_rng(0), effort="auto")
    error = data.error(fitted.predict(data.points))
    return {"error": error, "parameters": fitted.parameters, "said": f"{error:.2e}"}


def _boosting(formula: FeynmanFormula, data: Data) -> Row:
    error = data.error(boosting(data.x, data.y).predict(data.points))
    return {"error": error, "said": f"{error:.2e}"}


def _pykan(formula: FeynmanFormula, data: Data) -> Row:
    from discover_peers import pykan_fit

    predicted, parameters = pykan_fit(data.x, data.y, data.points, seed=0)
    error = data.error(predicted)
    return {"error": error, "parameters": parameters, "said": f"{error:.2e}"}


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry a noise."""
    return [_at_noise(noise, [r for r in rows if r["noise"] == noise]) for noise in sorted({r["noise"] for r in rows})]


def _at_noise(noise: float, rows: Sequence[Row]) -> dict[str, Any]:
    by_method = {m: {r["name"]: r for r in rows if r["method"] == m} for m in dict.fromkeys(r["method"] for r in rows)}
    ours = by_method.pop("theodolite", {})
    found: dict[str, Any] = {"noise": noise, "rows": ROWS, "formulas": len(ours)}
    if ours:
        found |= _of_ours(list(ours.values()))
    for method, theirs in by_method.items():
        both = [(theirs[name]["error"], ours[name]["error"]) for name in theirs if name in ours]
        ratios = [their / own for their, own in both]
        found[method] = {
            "formulas": len(theirs),
            "median_error": statistics.median(row["error"] for row in theirs.values()),
            "over_ours": statistics.median(ratios) if ratios else None,
            "ours_better": [sum(ratio > 1 for ratio in ratios), len(ratios)],
            "seconds": seconds(theirs.values()),
        }
    return found


def _of_ours(rows: Sequence[Row]) -> dict[str, Any]:
    worth = [row for row in rows if row["something_to_find"]]
    graphs = [row for row in rows if not row["abstained"]]
    ratios = [row["dense_error"] / row["error"] for row in graphs]
    recovered = sum(row["recovered"] for row in worth)
    return {
        "recovered": [recovered, len(worth)],
        "recovered_share": recovered / max(1, len(worth)),
        "recovered_interval": wilson(recovered, len(worth)),
        "recovered_or_bracketed": sum(row["recovered"] or row["bracketed"] for row in worth),
        "proposed": sum(row["proposed"] for row in worth),
        "abstained": len(rows) - len(graphs),
        "false_modules": [sum(row["modules"]["false"] > 0 for row in graphs), len(graphs)],
        "median_error": statistics.median(row["error"] for row in rows),
        "median_dense_error": statistics.median(row["dense_error"] for row in rows),
        "seconds": seconds(rows),
        "dense_over_graph": {
            "median": statistics.median(ratios) if ratios else None,
            "worse_than_dense": [sum(ratio < 1 / WORSE for ratio in ratios), len(ratios)],
            "worst": sorted((row["dense_error"] / row["error"], row["name"]) for row in graphs)[:5],
            "quantiles": {str(q): float(np.quantile(ratios, q)) for q in QUANTILES} if ratios else {},
            "histogram": histogram(ratios),
        },
    }


def histogram(ratios: Sequence[float]) -> dict[str, int]:
    counts, _ = np.histogram(ratios, BINS)
    names = [f"{low:.3g}–{high:.3g}" for low, high in pairwise(BINS)]
    return {name: int(count) for name, count in zip(names, counts, strict=True)}
