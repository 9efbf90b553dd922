"""Claim G12: the sawtooth that is cheap to express deep, cheaper as a recurrence, and dear to express shallow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.rule import Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.theory.sawtooth import (
    RECURRENT_PARAMETERS,
    deep_parameters,
    least_width,
    most_pieces,
    sawtooth_pieces,
    shallow_parameters,
    shallow_units,
)

_FOLDS = range(1, 9)
_FORMS = ("shallow", "deep", "recurrent")
_TRAINING = {"seeds": 5, "steps": 2000, "batch": 128, "rate": 0.03}
_WIDE = 16


def _cells() -> list[Cell]:
    witnesses = [Cell("sawtooth-witness", {"form": form, "folds": k}) for form in _FORMS for k in _FOLDS]
    trained = [
        Cell("sawtooth-training", {"folds": k, "widths": widths, **_TRAINING})
        for k in (2, 3, 4)
        for widths in _widths(k)
    ]
    return witnesses + trained


def _widths(folds: int) -> list[list[int]]:
    """As small as the deep witness; then deep of width 16, and shallow with as many parameters."""
    parameters = 2 * _WIDE + (folds - 1) * (_WIDE + 1) * _WIDE + _WIDE + 1
    return [[2] * folds, [_WIDE] * folds, [(parameters - 1) // 3]]


@claim(
    "G12",
    "The k-fold tent map has 2^k linear pieces: a shallow network needs exponentially many parameters, a deep one "
    "linearly many, a recurrent one a constant number.",
    EXPRESSIVITY + "sawtooths (Telgarsky 2015)",
    "k = 1 … 8, in rational arithmetic: all three witnesses equal the tent map with no gap and have 2^k pieces. "
    "Parameters: shallow 3·2^k + 1 with 2^k units, the fewest possible; deep the same step from each k to the next; "
    "recurrent the same number for all k. No network, the trained ones included, may have more pieces than "
    "∏ (width + 1). What 2,000 steps of Adam at rate 0.03 reach with 5 seeds is reported "
    "and decides nothing.",
    _cells,
    quote="Shallow Network: exponential params; Deep Network: linear params; RNN: constant params",
    kind="theorem",
)
def _g12(rows: Sequence[Row]) -> Verdict:
    found = {form: {r.cell.config["folds"]: r for r in rows if r.cell.config.get("form") == form} for form in _FORMS}
    trained = [r for r in rows if r.cell.measure == "sawtooth-training"]
    exact = all(
        r["gap"] == 0 and r["pieces"] == sawtooth_pieces(k) for by_folds in found.values() for k, r in by_folds.items()
    )
    parameters = {form: [by_folds[k]["parameters"] for k in _FOLDS] for form, by_folds in found.items()}
    shallow = all(
        r["units"] == shallow_units(k) and r["parameters"] == shallow_parameters(k) for k, r in found["shallow"].items()
    )
    steps = {after - before for before, after in pairwise(parameters["deep"])}
    constant = len(set(parameters["recurrent"])) == 1
    within = all(pieces <= most_pieces(r.cell.config["widths"]) for r in trained for pieces in r["pieces"]) and all(
        r["pieces"] <= r["units"] + 1 for r in found["shallow"].values()
    )
    return Verdict(
        outcome(exact and shallow and len(steps) == 1 and constant and within),
        predicted={
            "pieces": [sawtooth_pieces(k) for k in _FOLDS],
            "shallow": [shallow_parameters(k) for k in _FOLDS],
            "deep": [deep_parameters(k) for k in _FOLDS],
            "recurrent": RECURRENT_PARAMETERS,
            "narrowest of k layers": [least_width(k, k) for k in _FOLDS],
        },
        measured={
            "pieces": {form: [by_folds[k]["pieces"] for k in _FOLDS] for form, by_folds in found.items()},
            **parameters,
            "trained": [_reached(r) for r in trained],
        },
        detail=f"Witnesses of 2 to 256 pieces {'are exact' if exact else 'are not exact'}: parameters "
        f"{_range(parameters['shallow'])} shallow, {_range(parameters['deep'])} deep, "
        f"{_range(parameters['recurrent'])} recurrent. Training, explained variance, median of 5 seeds: "
        f"{'; '.join(map(_words, trained))}.",
    )


def _median(row: Row) -> float:
    return statistics.median(row["explained"])


def _reached(row: Row) -> dict[str, Any]:
    config = row.cell.config
    return {
        "folds": config["folds"],
        "widths": list(config["widths"]),
        "parameters": row["parameters"],
        "explained": [round(share, 4) for share in row["explained"]],
        "pieces": list(row["pieces"]),
    }


def _words(row: Row) -> str:
    config, widths = row.cell.config, row.cell.config["widths"]
    shape = f"{len(widths)}×{widths[0]}"
    return f"{2 ** config['folds']} pieces with {row['parameters']} parameters ({shape}) {max(_median(row), 0):.2f}"


def _range(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else f"{counts[0]} to {counts[-1]}"
