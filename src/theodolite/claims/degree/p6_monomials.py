"""Claim P6 of the degree source: sums of monomials, their ranks, and how many have a high one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import SOURCE
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import wilson
from theodolite.theory.monomials import largest_epsilon_rank, matched_share, orthogonal_share, share_of_full_rank

_EPSILONS = (0.1, 0.01)
_EXACT = (  # terms, variables, largest exponent, partition
    (4, 4, 6, "left-right"),
    (8, 4, 3, "interleaved"),
    (16, 4, 4, "left-right"),
    (16, 6, 2, "interleaved"),
    (32, 6, 3, "left-right"),
    (32, 4, 8, "0|1,2,3"),
    (64, 4, 8, "left-right"),
    (16, 8, 6, "interleaved"),
)
_GRIDS = ((2, 4), (3, 4))  # largest exponent, variables: all monomials
_BIRTHDAYS = ((2, 2, 2), (4, 4, 3), (8, 4, 5), (8, 8, 3), (16, 8, 6))  # terms, variables, largest exponent
_DENSITIES = (1, 2, 3)  # terms for each of the 1,000 exponents of either variable
_PARTS = 1000
_VARIABLES = (4, 8, 32)  # of the ε-ranks
_MEMBERS = {"exact": 4, "birthday": 1000, "density": 5, "epsilon": 100}


def _cells() -> list[Cell]:
    def family(terms: int, variables: int, largest: int, kind: str, **more: Any) -> dict[str, Any]:
        sizes = {"terms": terms, "variables": variables, "largest": largest}
        return {**sizes, "members": _MEMBERS[kind], **more}

    exact = [
        Cell("monomial-ranks", family(terms, variables, largest, "exact", partition=partition))
        for terms, variables, largest, partition in _EXACT
    ]
    exact += [
        Cell("monomial-ranks", {"variables": variables, "largest": largest, "partition": "left-right"})
        for largest, variables in _GRIDS
    ]
    birthdays = [Cell("monomial-matchings", family(*sizes, "birthday")) for sizes in _BIRTHDAYS]
    dense = [Cell("monomial-matchings", family(c * _PARTS, 2, _PARTS, "density")) for c in _DENSITIES]
    epsilon = [
        Cell(
            "monomial-epsilon",
            family(terms, n, q, "epsilon", epsilons=list(_EPSILONS), inputs="uniform", coefficients=coefficients),
        )
        for coefficients in ("plain", "balanced")
        for terms in (16, 64)
        for n in _VARIABLES
        for q in (2, 16)
    ]
    return exact + birthdays + dense + epsilon


@claim(
    "P6",
    "A sum of d monomials has separation rank at most d, and may have less.",
    SOURCE + "Section 5.1.1",
    "Exact ranks over GF(p) of 32 random members (4 to 64 terms, 4 to 8 variables, 3 kinds of partition) and of two "
    "sums of all monomials. Holds if none has a rank above d and there are some of rank d and some of less; fails if "
    "one has more. The source then asks which have rank d or a high ε-rank, and what share of the family they are. "
    "Reported as findings: whether drawn coefficients give the maximum matching between A- and B-exponents in every "
    "case, all of them 1 never more, and rank 1 for the sum of all monomials; whether over 1,000 random members the "
    "share of rank d lies within 4 standard errors of the birthday law, and of 1,000 exponents a side rank over 1,000 "
    "within 0.01 of Karp and Sipser's law; ε-ranks, exact from the moments of x uniform in [−1, 1]^n: never above "
    "that of a flat spectrum, with terms of equal size in 32 variables the mean over 64 terms within 0.02 of the law "
    "for orthogonal terms, and the share with an ε-rank of at least d/2 with its 95 % interval.",
    _cells,
    quote="clearly ∀ p_d ∈ F_d: sep(p_d) ≤ d but of course it could be smaller. Questions: which polynomials in F_d "
    "are of sep-rank d; what is their measure; which of them are from ε-sep-rank d; what is their measure",
    kind="theorem",
    statistics=Statistics(
        "32 random members and two sums of all monomials exactly; 1,000 and 100 members for the shares",
        "none: the verdict is by exact ranks; what is reported beside has margins of 4 standard errors",
    ),
)
def _p6(rows: Sequence[Row]) -> Verdict:
    by = {name: [r for r in rows if r.cell.measure == name] for name in {r.cell.measure for r in rows}}
    members = [
        (rank, equal, matching, row["terms"])
        for row in by["monomial-ranks"]
        for rank, equal, matching in zip(row["ranks"], row["equal"], row["matchings"], strict=True)
    ]
    matched = all(rank == matching <= terms for rank, _, matching, terms in members)
    matched = matched and all(row["exact"] for row in by["monomial-ranks"])
    grids = members[-len(_GRIDS) :]
    below = all(equal <= matching for _, equal, matching, _ in members) and all(e == 1 for _, e, _, _ in grids)
    shares = [_share(row) for row in by["monomial-matchings"]]
    lawful = all(abs(s["measured"] - s["predicted"]) <= s["margin"] for s in shares)
    table = [_high(row) for row in by["monomial-epsilon"]]
    bounded = all(t["within bound"] for t in table)
    orthogonal = [t for t in table if (t["coefficients"], t["terms"], t["variables"]) == ("balanced", 64, 32)]
    laws = {str(e): round(orthogonal_share(e), 3) for e in _EPSILONS}
    limit = all(abs(t["mean over d"][str(e)] - orthogonal_share(e)) <= 0.02 for t in orthogonal for e in _EPSILONS)
    at = sum(rank == matching for rank, _, matching, _ in members)
    full = sum(rank == terms for rank, _, _, terms in members)
    return Verdict(
        outcome(
            all(rank <= terms for rank, _, _, terms in members),
            any(rank == terms for rank, _, _, terms in members) and any(rank < terms for rank, _, _, terms in members),
        ),
        predicted={
            "rank": "maximum matching",
            "shares": [{k: s[k] for k in ("family", "predicted")} for s in shares],
            "ε-rank over d, orthogonal terms": laws,
        },
        measured={
            "exact members": len(members),
            "at the matching": at,
            "coefficients all 1, below it": sum(equal < matching for _, equal, matching, _ in members),
            "shares": [{k: s[k] for k in ("family", "measured")} for s in shares],
            "ε-ranks": table,
        },
        detail=f"{at} of {len(members)} sums have the rank of their matching, {full} of them d; sums of all "
        "monomials with coefficients 1 give "
        f"{', '.join(str(equal) for _, equal, _, _ in grids)} where the matching is "
        f"{', '.join(str(matching) for _, _, matching, _ in grids)}. Laws for the share of rank d "
        f"{'hold' if lawful else 'fail'}{'' if matched and below and bounded and limit else '; not all of ours do'}. "
        f"ε-rank of at least d/2 at d = 64 and ε = 0.1, in 4, 8 and 32 variables: "
        f"{_ranges(table, 'balanced')} of the members with terms of equal size, {_ranges(table, 'plain')} with plain "
        "coefficients.",
    )


def _ranges(table: Sequence[dict[str, Any]], coefficients: str) -> str:
    """The shares of high ε-rank by the number of variables, over the largest exponents."""
    parts = []
    for n in _VARIABLES:
        shares = [
            t["high"]["0.1"]["share"]
            for t in table
            if (t["coefficients"], t["terms"], t["variables"]) == (coefficients, 64, n)
        ]
        low, high = min(shares), max(shares)
        parts.append(f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}")
    return ", ".join(parts)


def _share(row: Row) -> dict[str, Any]:
    """The share of full rank beside the birthday law; with many terms a part, the rank beside Karp and Sipser's."""
    terms, variables, largest, members = (row.cell.config[k] for k in ("terms", "variables", "largest", "members"))
    family = f"d={terms} n={variables} q={largest}"
    if largest == _PARTS:
        family, law, found, margin = f"rank/q, {family}", matched_share(terms / _PARTS), row["mean"] / _PARTS, 0.01
    else:
        law = share_of_full_rank(terms, largest, variables // 2, variables - variables // 2)
        family, found = f"share of rank d, {family}", row["full"] / members
        margin = 4 * math.sqrt(law * (1 - law) / members)
    return {"family": family, "predicted": round(law, 4), "measured": round(found, 4), "margin": margin}


def _high(row: Row) -> dict[str, Any]:
    """How many members of one family have an ε-rank of at least half their terms, and the mean ε-rank over d."""
    config = row.cell.config
    terms, high, within = config["terms"], {}, True
    for epsilon, ranks in row["ranks"].items():
        count = sum(2 * rank >= terms for rank in ranks)
        interval = wilson(count, len(ranks)) or (0.0, 1.0)
        high[epsilon] = {"share": count / len(ranks), "interval": [round(end, 3) for end in interval]}
        within = within and all(
            rank <= largest_epsilon_rank(matching, float(epsilon))
            for rank, matching in zip(ranks, row["matchings"], strict=True)
        )
    return {
        **{name: config[name] for name in ("coefficients", "terms", "variables", "largest")},
        "mean rank": sum(row["matchings"]) / len(row["matchings"]),
        "mean over d": {e: round(sum(ranks) / len(ranks) / terms, 3) for e, ranks in row["ranks"].items()},
        "high": high,
        "within bound": within,
    }
