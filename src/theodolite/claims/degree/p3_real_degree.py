"""P3, a task of the degree source: building blocks of fractional degree, e above all."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import SOURCE
from theodolite.claims.degree.real_degree_blocks import TARGETS, spread_degree, whole_degrees
from theodolite.claims.rule import Statistics, Verdict
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import mean_interval

_SHAPES = ((4, 4, 8), (8, 4, 5), (12, 6, 5))  # inputs, width, sum of the degrees
_POINTS = 1300

_SUM, _WIDTH = 8, 16
_TRAINING = {"targets": list(TARGETS), "seeds": 8, "steps": 300, "batch": 64, "rates": [0.003, 0.01, 0.03]}
_USELESS = 0.9  # a relative error from which on a network has learnt nothing worth the name


@dataclass(frozen=True)
class _Trained:
    """A network of the comparison. Powers and learnt exponents pay for ⌈d⌉ matrices and are narrower for it."""

    name: str
    degrees: tuple[float, ...]
    power: str = "share"
    width: int = _WIDTH

    @property
    def real(self) -> bool:
        return self.power != "share" or any(degree != int(degree) for degree in self.degrees)


_REFERENCE = _Trained("3,3,2", (3, 3, 2))
_NETS = (
    _REFERENCE,
    _Trained("2,2,2,2", (2,) * 4),
    _Trained("4,4", (4, 4)),
    _Trained("3,3,3, narrower", (3,) * 3, width=15),
    _Trained("share 2.67 × 3", tuple(spread_degree(_SUM, 3, _WIDTH))),
    _Trained("share 1.33 × 6", tuple(spread_degree(_SUM, 6, _WIDTH))),
    _Trained("signed 2.67 × 3", (8 / 3,) * 3, "signed", 15),
    _Trained("learnt from 2.67 × 3", (8 / 3,) * 3, "learnt", 15),
)


def _lists(shape: tuple[int, int, int]) -> list[tuple[float, ...]]:
    """Whole degrees in every order, then real ones at every depth; no list twice."""
    _, width, total = shape
    whole = [tuple(map(float, each)) for each in whole_degrees(total)]
    real = [tuple(spread_degree(total, depth, width)) for depth in range(1, total)]
    return list(dict.fromkeys([*whole, *real]))


def _cells() -> list[Cell]:
    ranks = [
        Cell(
            "real-degree-rank",
            {"features": shape[0], "width": shape[1], "degrees": list(degrees), "points": _POINTS, "repeats": 2},
        )
        for shape in _SHAPES
        for degrees in _lists(shape)
    ]
    trained = [
        Cell(
            "real-degree-training",
            {"features": f, "width": net.width, "degrees": list(net.degrees), "power": net.power, **_TRAINING},
        )
        for f in (1, 8)
        for net in _NETS
    ]
    return ranks + trained


@claim(
    "P3",
    "How can building blocks of a fractional degree be made, and is e the best of all degrees at equal parameters?",
    SOURCE + "Conclusion 1.1 and Task 3",
    "The source asks. Real degrees are made of units: a share of a layer's units has ⌈d⌉ factors, the others ⌊d⌋, "
    "which costs exactly the parameters of d matrices and has an exact rank; as a polynomial such a block has degree "
    "⌈d⌉, so that the whole has ∏ ⌈d⌉. Reported for shapes (inputs, width, sum of degrees) (4, 4, 8), (8, 4, 5), "
    "(12, 6, 5) are parameters, degree of the whole along a line and rank: real, every depth below the sum, degrees "
    f"as equal as whole units allow; whole, every list of degrees of 2 or more with that sum. Up to {_POINTS:,} "
    "points; a rank that fills them is a lower bound. Then whether blocks of real degree (shares, signed powers, "
    "learnt exponents) train: at rates 0.003, 0.01 and 0.03, 8 seeds, the worst error over a constant's, on sums of "
    "waves and of kinks in 1 and 8 variables, and by how much they beat the whole degrees 3,3,2 at their best rates, "
    "with 95 % intervals. The predicted gain of 0.46 % in log degree is too small for training to see.",
    _cells,
    quote="Task 3: How to build fractional transformers with d = e? … If in someway we know to create building blocks "
    "with fractional degrees then further improvement can be achieved by taking each building block to be with degree "
    "e.",
    kind="task",
    statistics=Statistics(
        "every rank exactly; 8 seeds at 3 rates in training",
        "none: training is reported with 95 % intervals and decides nothing",
    ),
    heavy=True,
)
def _p3(rows: Sequence[Row]) -> Verdict:
    ranks = [r for r in rows if r.cell.measure == "real-degree-rank"]
    shapes = [_shape(shape, ranks) for shape in _SHAPES]
    trained = {
        (f, net.name): next(r for r in rows if r.cell.measure == "real-degree-training" and _is(r.cell.config, f, net))
        for f in (1, 8)
        for net in _NETS
    }
    worst = max(_worst(trained[f, net.name]) for f in (1, 8) for net in _NETS if net.real)
    compared = _compared(trained)
    ratios = _real(compared)
    return Verdict(
        "not a claim",
        predicted={"best degree": round(math.e, 4), "gain of e over 3 in log degree": _gain()},
        measured={"ranks": shapes, "error against 3,3,2": compared, "learnt": _learnt(trained), "worst error": worst},
        detail=_words(shapes, worst)
        + f" Trained, real degrees have {min(ratios):.2f} to {max(ratios):.2f} times the error of 3,3,2.",
    )


def _gain() -> float:
    """Of ln(d)/d, what log degree per parameter is."""
    return round(1 / math.e / (math.log(3) / 3) - 1, 4)


def _shape(shape: tuple[int, int, int], rows: Sequence[Row]) -> dict[str, Any]:
    features, width, total = shape
    found = {
        tuple(r.cell.config["degrees"]): r
        for r in rows
        if (r.cell.config["features"], r.cell.config["width"]) == (features, width)
        and round(sum(r.cell.config["degrees"])) == total
    }
    nearest = tuple(spread_degree(total, min(range(1, total), key=lambda p: abs(total / p - math.e)), width))
    whole = {d: r for d, r in found.items() if all(each == int(each) and each >= 2 for each in d)}
    top, top_whole = (max(lists, key=lambda d, r=lists: r[d]["rank"]) for lists in (found, whole))
    return {
        "shape": f"{features} inputs, width {width}, sum {total}",
        "parameters": sorted({r["parameters"] for r in found.values()}),
        "ranks": {
            _named(d): {"degree": r["degree"], "rank": r["rank"], "cap": r["cap"], "at least": r["at_least"]}
            for d, r in found.items()
        },
        "best whole": _one(top_whole, found),
        "nearest to e": _one(nearest, found),
        "best": _one(top, found),
    }


def _one(degrees: tuple[float, ...], rows: Mapping[tuple[float, ...], Row]) -> dict[str, Any]:
    row = rows[degrees]
    kept = {name: row[name] for name in ("parameters", "degree", "rank")}
    return {"degrees": _named(degrees), **kept, "at least": row["at_least"]}


def _named(degrees: Sequence[float]) -> str:
    return ", ".join(f"{d:.3g}" for d in degrees)


def _is(config: Mapping[str, Any], features: int, net: _Trained) -> bool:
    own = (config["features"], config["width"], tuple(config["degrees"]), config["power"])
    return own == (features, net.width, net.degrees, net.power)


def _worst(row: Row) -> float:
    """Of all targets, rates and seeds; what is no number is the worst."""
    errors = [e for by_rate in row["errors"].values() for seeds in by_rate for e in seeds]
    return max(map(_error, errors))


def _error(stored: float | None) -> float:
    """A store, like JSON, has None for what is no number."""
    return stored if stored is not None and math.isfinite(stored) else math.inf


def _best_rate(by_rate: Sequence[Sequence[float | None]]) -> list[float]:
    """Logarithms of the errors, seed by seed, at the rate where their mean is lowest."""
    logs = [[math.log(_error(e)) for e in seeds] for seeds in by_rate]
    return min(logs, key=statistics.fmean)


def _compared(trained: Mapping[tuple[int, str], Row]) -> dict[str, dict[str, Any]]:
    """Ratio of errors to the reference's, geometric mean over seeds that share target and batches, and its interval."""
    found: dict[str, dict[str, Any]] = {}
    for (features, name), row in trained.items():
        for target in TARGETS:
            own, other = (_best_rate(r["errors"][target]) for r in (row, trained[features, _REFERENCE.name]))
            off = [a - b for a, b in zip(own, other, strict=True)]
            interval = mean_interval(off) or (-math.inf, math.inf)
            found.setdefault(name, {})[f"{target}, {features}-D"] = {
                "error": round(math.exp(statistics.fmean(own)), 5),
                "ratio": [round(math.exp(v), 3) for v in (statistics.fmean(off), *interval)],
                "parameters": row["parameters"],
            }
    return found


def _real(compared: Mapping[str, Mapping[str, Any]]) -> list[float]:
    real = {net.name for net in _NETS if net.real}
    return [c["ratio"][0] for name, by in compared.items() if name in real for c in by.values()]


def _learnt(trained: Mapping[tuple[int, str], Row]) -> dict[str, Any]:
    name = next(net.name for net in _NETS if net.power == "learnt")
    return {
        f"{f}-D": {
            "block degrees": [round(d, 3) for d in trained[f, name]["degrees"]],
            "exponents (10, 50, 90 %)": [round(e, 3) for e in trained[f, name]["exponents"]],
        }
        for f in (1, 8)
    }


def _words(shapes: Sequence[Mapping[str, Any]], worst: float) -> str:
    ranks = [
        f"{s['shape']}: {'; '.join(_told(s[which]) for which in ('best whole', 'nearest to e', 'best'))}"
        for s in shapes
    ]
    return (
        "Real degrees can be made. Exact ranks at equal parameters, of the best whole degrees, those nearest to e, and "
        f"the best of all: {'. '.join(ranks)}. A block of real degree has the polynomial degree of its highest units, "
        "which is what these ranks follow. "
        f"Blocks of real degree {'train' if worst < _USELESS else 'do not all train'}: worst relative error of any "
        f"seed and rate {worst:.2f}."
    )


def _told(one: Mapping[str, Any]) -> str:
    return (
        f"{'at least ' if one['at least'] else ''}{one['rank']} for {one['degrees']} ({one['parameters']} parameters, "
        f"degree {one['degree']})"
    )
