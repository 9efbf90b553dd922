"""Random trees, DAGs and formulas as black boxes: is the graph found exactly? Theodolite against pykan's tree."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.known_structures.feynman import FORMULAS
from benchmarks.known_structures.formula_structure import FormulaStructure, modules_of

from discover_jobs import Job, Row, seconds, timed
from theodolite.graphs import CompositionalGraph
from theodolite.graphs.equivalence import flattened, recovers
from theodolite.graphs.families import random_dag, random_tree
from theodolite.graphs.formula import Formula
from theodolite.statistics.intervals import wilson
from theodolite.tasks.shared.constituents import ComposedFunction

KINDS = ("trees", "dags", "binary")
FAN_IN = 3
FEYNMAN = {formula.id: formula for formula in FORMULAS}
THRESHOLDS = (1e-2, 1e-3, 1e-4)  # of pykan, which has 1e-3


@dataclass(frozen=True)
class Target:
    graph: CompositionalGraph
    function: ComposedFunction
    overlap: int


def target(part: str, draw: int) -> Target:
    """8–16 variables, all on [−1, 1]; DAGs have 1–3 further uses of a variable or node. Binary trees are there for
    pykan, which joins groups two at a time and so has no way to a node of three inputs that work together."""
    generator = np.random.default_rng([draw, KINDS.index(part)])
    variables = int(generator.integers(8, 17))
    overlap = int(generator.integers(1, 4)) if part == "dags" else 0
    if overlap:
        graph = random_dag(variables, FAN_IN, overlap, None, generator)
    else:
        graph = random_tree(variables, 2 if part == "binary" else FAN_IN, generator)
    return Target(graph, ComposedFunction(graph, generator), overlap)


def measure(job: Job) -> Row:
    asked = target(job.part, int(job.name))
    row = _theodolite(asked, int(job.name)) if job.method == "theodolite" else _pykan(asked, job.method)
    said = ("exact" if row["exact"] else "other") + f", {len(asked.graph.variables)} variables"
    return {"variables": len(asked.graph.variables), "overlap": asked.overlap, **row, "said": said}


def _theodolite(asked: Target, draw: int) -> Row:
    box = [(-1.0, 1.0)] * len(asked.graph.variables)
    found, row = _searched(asked.function, box, asked.graph.variables, draw)
    return {**row, **_scores(found, asked.graph)}


def _pykan(asked: Target, method: str) -> Row:
    from discover_peers import pykan_tree

    threshold = float(method.removeprefix("pykan "))
    found, taken = timed(lambda: pykan_tree(asked.function, asked.graph.variables, threshold))
    return {**taken, **_scores(found, asked.graph)}


def measure_formula(job: Job) -> Row:
    """A formula without noise, asked for values anywhere in its ranges; exact where the modules are those that its
    derivatives show."""
    formula = FEYNMAN[job.name]
    structure = FormulaStructure(formula.text, formula.ranges)
    function = Formula(formula.text, formula.variables).function
    found, row = _searched(function, list(formula.ranges.values()), formula.variables, 0)
    row |= {**_scores(found, structure.graph), "variables": len(formula.variables), "overlap": 0}
    counts, used = row["modules"], set(found.used) == set(structure.relevant)
    row["exact"] = used and counts["found"] == counts["true"] and not counts["false"]
    return {**row, "said": "exact" if row["exact"] else f"other: {counts}"}


def _searched(
    function: Callable[[Any], Any], ranges: Sequence[tuple[float, float]], variables: Sequence[str], seed: int
) -> tuple[CompositionalGraph, Row]:
    from theodolite.structure.data.black_box import CallableSource
    from theodolite.structure.search.search import search
    from theodolite.structure.surrogate.evidence import gather

    def work() -> tuple[CompositionalGraph, int]:
        generator = np.random.default_rng(seed)
        source = CallableSource(function, ranges, variables)
        return search(gather(source, generator), source, generator).graph, source.evaluations

    (graph, evaluations), taken = timed(work)
    return graph, {**taken, "evaluations": evaluations}


def _scores(found: CompositionalGraph, truth: CompositionalGraph) -> Row:
    """`exact` up to what no data could show; modules that are there and found, and found and not there."""
    stated, true = modules_of(found), modules_of(truth)
    return {
        "exact": recovers(found, truth) or recovers(flattened(found), truth),
        "dense": found.is_dense,
        "modules": {"true": len(true), "found": len(stated & true), "false": len(stated - true)},
        "graph": found.to_json(),
    }


def methods(peers: bool) -> list[str]:
    return ["theodolite", *(f"pykan {threshold:g}" for threshold in THRESHOLDS if peers)]


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each method; `on_peers` counts the draws that every method was asked about."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    common = set.intersection(*({row["name"] for row in rows if row["method"] == name} for name in names))
    return [_of_method(name, [row for row in rows if row["method"] == name], common) for name in names]


def _of_method(name: str, rows: Sequence[Row], common: set[str]) -> dict[str, Any]:
    exact = sum(row["exact"] for row in rows)
    beside = [row for row in rows if row["name"] in common]
    counts = {key: sum(row["modules"][key] for row in rows) for key in ("true", "found", "false")}
    return {
        "method": name,
        "draws": len(rows),
        "exact": exact,
        "share": exact / len(rows),
        "interval": wilson(exact, len(rows)),
        "by_overlap": {
            str(overlap): [sum(row["exact"] for row in some), len(some)]
            for overlap in sorted({row["overlap"] for row in rows})
            for some in [[row for row in rows if row["overlap"] == overlap]]
        },
        "on_peers": [sum(row["exact"] for row in beside), len(beside)],
        "module_recall": counts["found"] / max(1, counts["true"]),
        "false_modules": counts["false"] / len(rows),
        "seconds": seconds(rows),
        "evaluations": statistics.median(row["evaluations"] for row in rows) if "evaluations" in rows[0] else None,
    }
