"""Claim P2: which degree learns best at equal budget, where a target needs a high separation rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import SOURCE
from theodolite.claims.rule import Outcome, Statistics, Verdict
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.paired import ErrorRatio, error_ratio, signs

CHAMPION, RIVALS = "3", ("2", "4")
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
    "seeds": 16,
    "tuning": 4,
    "steps": 500,
    "batch": 64,
    "rates": [0.003, 0.01, 0.03],
}


def standing(
    rows: Sequence[Mapping[str, Any]], families: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], tuple[ErrorRatio, int]]:
    """By family and rival: degree 3's error over the rival's, and −1 where its error is lower, 1 where higher, 0 where
    they do not differ significantly over all comparisons (Holm)."""
    ratios = {
        (family, rival): error_ratio(_logs(rows, args, CHAMPION), _logs(rows, args, rival))
        for family, args in families.items()
        for rival in RIVALS
    }
    found = signs(list(ratios.values()))
    return {key: (ratio, sign) for (key, ratio), sign in zip(ratios.items(), found, strict=True)}


def ruling(found: Mapping[tuple[str, str], int]) -> Outcome:
    """The rule of the claim, from the signs by family and rival."""
    families = list(dict.fromkeys(family for family, _ in found))
    most = len(families) // 2 + 1
    best = sum(all(found[f, rival] < 0 for rival in RIVALS) for f in families)
    if best >= most and not any(sign > 0 for sign in found.values()):
        return "holds"
    beaten = max(sum(found[f, rival] > 0 for f in families) for rival in RIVALS)
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
    "Normalised product blocks, 12 matrices of 16 × 16, 3,409 parameters each; 500 steps of 64 fresh points. Five "
    "families of functions of 8 variables with ε-rank of 5 or more at ε = 0.3; 16 functions of each, the same for all "
    "degrees; the rate chosen per degree and family on 4 other functions. Paired t-tests of the log of the test error, "
    "degree 3 against 2 and against 4, Holm over all 10 at 5 %. Holds if T₃ is better than both on most families and "
    "worse on none; fails if one of the two is better than T₃ on most; else undecided. The predicted edge is 6 % in "
    "log degree; 16 pairs resolve about 5 % of error.",
    _p2_cells,
    quote="our goal would be to find which d achieves the best results, for fixed parameters budget B, where our "
    "theory claims that d = 3 is the optimal one",
    kind="conjecture",
    statistics=Statistics(
        "16 functions of each of 5 families, the same for all degrees; 4 others for the rates",
        "Holm over all 10 comparisons, 5 %",
    ),
    heavy=True,
)
def _p2(rows: Sequence[Row]) -> Verdict:
    found: list[dict[str, Any]] = rows[0]["rows"]
    high = standing(found, HIGH)
    standings = {key: sign for key, (_, sign) in high.items()}
    low = standing(found, LOW)
    medians = {
        family: {row["degree"]: _short(row["error"]) for row in found if row["task_args"] == args}
        for family, args in (HIGH | LOW).items()
    }
    ratios = {
        f"{family}, T3/T{rival}": [_short(ratio.value), *map(_short, ratio.interval)]
        for (family, rival), (ratio, _) in (high | low).items()
    }
    counts = {rival: [sum(standings[f, rival] == sign for f in HIGH) for sign in (-1, 0, 1)] for rival in RIVALS}
    return Verdict(
        ruling(standings),
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
        + "; ".join(f"than T{rival} on {', '.join(map(str, counts[rival]))}" for rival in RIVALS)
        + ". Error of T₃ over the rival's: "
        + "; ".join(f"{name} {value[0]} ({value[1]} to {value[2]})" for name, value in ratios.items())
        + ".",
    )


def _short(value: float) -> float:
    return float(f"{value:.3g}")
