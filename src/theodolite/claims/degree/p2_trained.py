"""Claim P2: which degree learns best at equal budget, where a target needs a high separation rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import SOURCE
from theodolite.claims.rule import Outcome, Statistics, Verdict
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_excess
from theodolite.statistics.paired import ErrorRatio, error_ratio, holm, signs

CHAMPION, RIVALS = "3", ("2", "4")
EDGE = 0.98  # of the rival's error: less is no edge
LEVEL = 0.025  # of a second run, as much as is left to it
# Families of high ε-rank, and one of rank 1 that the verdict does not use: there no edge is claimed.
HIGH: dict[str, dict[str, Any]] = {
    "14 products": {"kind": "products", "rank": 14, "degree": 2},
    "32 products": {"kind": "products", "rank": 32, "degree": 3},
    "smooth": {"kind": "smooth", "rank": 64, "degree": 2},
    "rough": {"kind": "rough", "rank": 64, "degree": 2},
    "network of degree 5": {"kind": "network", "rank": 8, "degree": 5},
}
LOW: dict[str, dict[str, Any]] = {"1 product": {"kind": "products", "rank": 1, "degree": 3}}
_SETTING = {
    "degrees": [2, 3, 4],
    "budget": 12,
    "width": 16,
    "seeds": 64,
    "tuning": 8,
    "steps": 2000,
    "batch": 64,
    "rates": [0.003, 0.01, 0.03],
}


@dataclass(frozen=True)
class Standing:
    """Degree 3's error over a rival's; `sign` is −1 where it is clearly lower, 1 where clearly higher, 0 else; whether
    it is clearly not lower by the margin."""

    ratio: ErrorRatio
    sign: int
    edgeless: bool


def standing(
    rows: Sequence[Mapping[str, Any]], families: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], Standing]:
    """By family and rival; clear over all comparisons together (Holm)."""
    pairs = {
        (family, rival): (_logs(rows, args, CHAMPION), _logs(rows, args, rival))
        for family, args in families.items()
        for rival in RIVALS
    }
    ratios = [error_ratio(*logs) for logs in pairs.values()]
    least = [chance_of_no_excess(np.subtract(*logs).tolist(), math.log(EDGE)) for logs in pairs.values()]
    clear = holm([*(ratio.p for ratio in ratios), *least], LEVEL)
    differs, edgeless = clear[: len(ratios)], clear[len(ratios) :]
    return dict(zip(pairs, map(Standing, ratios, signs(ratios, differs), edgeless), strict=True))


def ruling(found: Mapping[tuple[str, str], Standing]) -> Outcome:
    """The rule of the claim, by family and rival."""
    families = list(dict.fromkeys(family for family, _ in found))
    most = len(families) // 2 + 1
    best = sum(all(found[f, rival].sign < 0 for rival in RIVALS) for f in families)
    if best >= most and not any(one.sign > 0 for one in found.values()):
        return "holds"
    against = [[found[f, rival] for f in families] for rival in RIVALS]
    beaten = max(max(sum(one.sign > 0 for one in each), sum(one.edgeless for one in each)) for each in against)
    return "fails" if beaten >= most else "undecided"


def _logs(rows: Sequence[Mapping[str, Any]], args: Mapping[str, Any], degree: str) -> list[float]:
    return next(row["log_errors"] for row in rows if row["task_args"] == args and row["degree"] == degree)


def _p2_cells() -> list[Cell]:
    problems = [["prescribed-rank", args] for args in (*HIGH.values(), *LOW.values())]
    return [Cell("degree-training", {**_SETTING, "problems": problems})]


@claim(
    "P2",
    "Trained at equal budget, T₃ beats T₂ and T₄ where high separation rank is needed.",
    SOURCE + "Section 3.1",
    "Normalised product blocks, 12 matrices of 16 × 16, 3,409 parameters each; 2,000 steps of 64 fresh points. Five "
    "families of functions of 8 variables with ε-rank of 5 or more at ε = 0.3; 64 functions of each, the same for all "
    "degrees; the rate chosen per degree and family on 8 other functions. Degree 3 against 2 and against 4, ten pairs "
    "of networks, the log of the test error: paired t-tests of a difference, and one-sided ones of degree 3's error "
    f"being above {EDGE:g} of the rival's, Holm over all 20 at {LEVEL:.1%}. Holds if T₃ is better than both on most "
    "families and worse on none; fails if one of the two is better than T₃ on most, or T₃ is clearly not better by 2 % "
    "than one of the two on most; else undecided.",
    _p2_cells,
    quote="our goal would be to find which d achieves the best results, for fixed parameters budget B, where our "
    "theory claims that d = 3 is the optimal one",
    kind="conjecture",
    statistics=Statistics(
        "64 functions of each of 5 families, the same for all degrees, none of them in the run before; 8 others for "
        "the rates",
        f"Holm over all 20 tests, {LEVEL:.1%}",
        "two stages: 16 functions a family and 500 steps at 5 % left it open; this is the last, at 2.5 %",
    ),
    heavy=True,
)
def _p2(rows: Sequence[Row]) -> Verdict:
    found: list[dict[str, Any]] = rows[0]["rows"]
    high, low = standing(found, HIGH), standing(found, LOW)
    medians = {
        family: {row["degree"]: _short(row["error"]) for row in found if row["task_args"] == args}
        for family, args in (HIGH | LOW).items()
    }
    ratios = {
        f"{family}, T3/T{rival}": [_short(one.ratio.value), *map(_short, one.ratio.interval)]
        for (family, rival), one in (high | low).items()
    }
    counts = {rival: [sum(high[f, rival].sign == sign for f in HIGH) for sign in (-1, 0, 1)] for rival in RIVALS}
    edgeless = {rival: sum(high[f, rival].edgeless for f in HIGH) for rival in RIVALS}
    return Verdict(
        ruling(high),
        predicted={"log degree of T3 over that of T2 and T4": _short(math.log(3) / 3 / (math.log(2) / 2))},
        measured={
            "median error": medians,
            "error ratio with 95 % interval": ratios,
            "rates": {
                f"{row['task_args']['kind']} {row['task_args']['rank']}, T{row['degree']}": row["rate"] for row in found
            },
            "diverged": max(row["diverged"] for row in found),
            "parameters": sorted({row["parameters"] for row in found}),
        },
        detail="Of 5 families T₃ is better, not clearly different, worse: "
        + "; ".join(
            f"than T{rival} on {', '.join(map(str, counts[rival]))} (clearly not by 2 % on {edgeless[rival]})"
            for rival in RIVALS
        )
        + ". Error of T₃ over the rival's: "
        + "; ".join(f"{name} {value[0]} ({value[1]} to {value[2]})" for name, value in ratios.items())
        + ".",
    )


def _short(value: float) -> float:
    return float(f"{value:.3g}")
