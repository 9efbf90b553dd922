"""Smooth functions of constituents of one or two variables, without noise: how close does the claimed graph's network
come, and is it right?

1,000 rows, uniform on [-1, 1]; errors are mean squared errors over the variance at 4,000 fresh rows, of what `discover`
does with its training rows. A sum of three pairs, a tree of four variables and one of eight; constituents are drawn
(`tasks/shared/constituents.py`). Seeds from 20,000 on were not looked at while it was developed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.known_structures.formula_structure import modules_of

from discover_jobs import Job, Row, seconds, timed
from discover_random import exact_interval
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree
from theodolite.tasks.shared.constituents import ComposedFunction

HELD_OUT = 20_000
ROWS, FRESH = 1_000, 4_000
CLOSE = 1e-8
PAIRS = ("a", "b"), ("c", "d"), ("e", "f")
SHAPES = {
    "sum of three pairs": CompositionalGraph(
        tuple("abcdef"),
        (*(Node(f"n{i}", pair) for i, pair in enumerate(PAIRS)), Node("y", ("n0", "n1", "n2"), "sum")),
    ),
    "tree of four": binary_tree(4),
    "tree of eight": binary_tree(8),
}


def names(draws: int, first: int = 0) -> list[str]:
    return [f"{shape} {HELD_OUT + first + draw}" for draw in range(draws) for shape in SHAPES]


def measure(job: Job) -> Row:
    from theodolite.structure.settle import settle

    shape, seed = job.name.rsplit(" ", 1)
    graph = SHAPES[shape]
    generator = np.random.default_rng(int(seed))
    function = ComposedFunction(graph, generator)
    x, points = (generator.uniform(-1, 1, (count, len(graph.variables))) for count in (ROWS, FRESH))
    y, values = np.asarray(function(x)), np.asarray(function(points))
    asked, taken = timed(lambda: settle(x, y, graph.variables, np.random.default_rng(0), effort="auto"))
    error_of = lambda model: float(np.mean((model.predict(points) - values) ** 2) / np.var(values))
    row = {**taken, "shape": shape, "dense_error": error_of(asked.dense), "outcome": "abstained"}
    if asked.chosen is not None:
        own = next(trial.fitted for trial in asked.trials if trial.found is asked.chosen)
        found, true = modules_of(asked.chosen.graph), modules_of(graph)
        every = set(asked.chosen.graph.used) == set(graph.variables)
        row["outcome"] = "exact" if every and found == true else "coarser" if every and found < true else "other"
        row |= {"error": error_of(own), "graph": asked.chosen.graph.to_json()}
    row["said"] = f"{row['outcome']}, {row.get('error', float('nan')):.1e} to {row['dense_error']:.1e}"
    return row


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        _of(shape, [row for row in rows if row["shape"] == shape]) for shape in dict.fromkeys(r["shape"] for r in rows)
    ]


def _of(shape: str, rows: Sequence[Row]) -> dict[str, Any]:
    """`close` and `median_error` are of the graphs that are exact."""
    exact = [row["error"] for row in rows if row["outcome"] == "exact"]
    close = sum(error <= CLOSE for error in exact)
    return {
        "shape": shape,
        "functions": len(rows),
        "outcomes": {
            name: sum(row["outcome"] == name for row in rows) for name in ("exact", "coarser", "other", "abstained")
        },
        "close": [close, len(exact)],
        "close_interval": exact_interval(close, len(exact)),
        "median_error": statistics.median(exact) if exact else None,
        "most_error": max(exact, default=None),
        "median_dense_error": statistics.median(row["dense_error"] for row in rows),
        "seconds": seconds(rows),
    }
