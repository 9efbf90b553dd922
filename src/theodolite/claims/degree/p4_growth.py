"""Claim P4 of the degree paper: how the exact rank of blocks of degree d grows with depth, degree and width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import ATTENTION, CONNECTED, SOURCE, Case, text
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Row
from theodolite.theory.degree import attention_exponent, connected_exponent


@dataclass(frozen=True)
class _Growth:
    """A family of nets that differ in their blocks alone, what Eq. 3 says of its exponent, and what the cap says."""

    family: str
    net: str
    shape: Mapping[str, Any]
    blocks: tuple[tuple[int, ...], ...]
    ours: int

    @property
    def published(self) -> int:
        """Eq. 3: log sep = L·d_x·log d, the power d_x of the total degree."""
        return self.shape["width"]

    def cases(self) -> list[Case]:
        return [Case(self.family, self.net, self.shape, degrees) for degrees in self.blocks]


# From total degree 7 on, where the terms of lower order no longer decide: depth and degree both vary.
_ODD = ((7,), (3, 3), (3, 5), (3, 7), (5, 5), (3, 3, 3), (5, 7), (3, 3, 5))
_ALL = (
    (2, 2, 2),
    (2, 4),
    (3, 3),
    (2, 5),
    (2, 2, 3),
    (3, 5),
    (2, 2, 2, 2),
    (4, 4),
    (3, 3, 2),
    (4, 5),
    (5, 5),
    (3, 3, 3),
)
_TWO = ((2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2, 2), (2, 2, 2, 2, 2, 2))
_GROWTH = (
    _Growth(
        "fully connected, width 2",
        CONNECTED,
        {"features": 4, "width": 2},
        (*_ALL, (2, 2, 2, 2, 2), (3, 3, 3, 2)),
        connected_exponent(2, 2, 2),
    ),
    _Growth(
        "fully connected, width 3",
        CONNECTED,
        {"features": 6, "width": 3},
        _ALL,
        connected_exponent(3, 3, 3),
    ),
    _Growth(
        "attention of odd degree, width 2, 1 token a side",
        ATTENTION,
        {"tokens": 2, "width": 2},
        (*_ODD, (3, 3, 3, 3)),
        attention_exponent((3,), 2, 1),
    ),
    _Growth(
        "attention of degree 2, width 2, 2 tokens a side",
        ATTENTION,
        {"tokens": 4, "width": 2},
        _TWO,
        attention_exponent((2,), 2, 2),
    ),
    _Growth(
        "attention of odd degree, width 2, 2 tokens a side",
        ATTENTION,
        {"tokens": 4, "width": 2},
        _ODD,
        attention_exponent((3,), 2, 2),
    ),
)
_FAMILIES = len(_GROWTH)
_CLOSE = 0.15  # ranks below degree 100 are a little off their power law; the exponents to tell apart differ by 1


@dataclass(frozen=True)
class _Exponent:
    """The exponent k of rank ≈ b·(t + offset)^k, with an interval of the fit: 95 % over all families together."""

    value: float
    low: float
    high: float

    def agrees(self, exponent: int) -> bool:
        return min(self.low, self.value - _CLOSE) <= exponent <= max(self.high, self.value + _CLOSE)


def _fitted(totals: Sequence[int], ranks: Sequence[int]) -> _Exponent:
    """Least squares in ln rank. The offset stands for the terms of lower order that a small degree still shows."""
    t, y = np.array(totals, float), np.log(np.array(ranks, float))

    def residuals(x: np.ndarray) -> np.ndarray:
        return x[0] * np.log(t + np.exp(x[1])) + x[2] - y

    fit = least_squares(residuals, x0=(2.0, 0.0, 0.0), x_scale="jac")
    freedom = len(t) - 3
    variance = np.linalg.pinv(fit.jac.T @ fit.jac) * (2 * fit.cost / freedom)
    spread = float(student.ppf(1 - 0.025 / _FAMILIES, freedom)) * math.sqrt(variance[0, 0])
    value = float(fit.x[0])
    return _Exponent(value, value - spread, value + spread)


@claim(
    "P4",
    "The separation rank of L blocks of degree d and width d_x grows like d^(L·d_x).",
    SOURCE + "Eq. 3",
    "Five families (fully connected of width 2 and 3, attention of width 2 with odd degrees and 1 or 2 tokens a side, "
    "and of degree 2), exact ranks, total degree t = ∏ d. Fit rank = b·(t + offset)^k by least squares in ln rank, "
    "99 % t-interval of k (95 % over the five families together), widened to ±0.15 for terms of lower order, total "
    "degrees from 7 on; what it covers is the fit, the ranks being exact. Holds if k = d_x agrees "
    "in every family, fails if it does not in one. Beside it the exponent of our cap: the dimension of what one side "
    "hands to the other.",
    lambda: [case.cell for growth in _GROWTH for case in growth.cases()],
    quote="the obtained expressive power is sep_(A,B)(Y_L^d) = Θ(d^(L·d_x))",
    kind="bound",
    statistics=Statistics(
        "47 exact ranks in five families",
        "Bonferroni over the five families: 99 % each",
    ),
)
def _p4(rows: Sequence[Row]) -> Verdict:
    reading = iter(rows)
    measured: dict[str, Any] = {}
    wrong, ours_wrong = [], []
    for growth in _GROWTH:
        found = [next(reading) for _ in growth.blocks]
        k = _fitted([row["degree"] for row in found], [row["rank"] for row in found])
        measured[growth.family] = {
            "exponent": round(k.value, 3),
            "interval": [round(k.low, 3), round(k.high, 3)],
            "published": growth.published,
            "of the cap": growth.ours,
            "ranks": {text(blocks): row["rank"] for blocks, row in zip(growth.blocks, found, strict=True)},
            "at the cap": sum(row["saturated"] for row in found),
        }
        wrong += [growth.family] if not k.agrees(growth.published) else []
        ours_wrong += [growth.family] if not k.agrees(growth.ours) else []
    shown = "; ".join(
        f"{name} {m['exponent']} [{m['interval'][0]}, {m['interval'][1]}] (Eq. 3: {m['published']}, "
        f"cap: {m['of the cap']})"
        for name, m in measured.items()
    )
    return Verdict(
        outcome(not wrong, all(row["exact"] for row in rows)),
        predicted={growth.family: growth.published for growth in _GROWTH},
        measured=measured,
        detail=f"Exponents k of rank ∝ t^k: {shown}. Eq. 3 "
        f"{'agrees everywhere' if not wrong else 'is refuted for ' + ' and '.join(wrong)}; the cap's exponent "
        f"{'agrees everywhere' if not ours_wrong else 'does not agree for ' + ' and '.join(ours_wrong)}.",
    )
