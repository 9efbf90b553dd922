"""Claims T1 to T3 of the tensor source: grids, draws of weights and partitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.tensors.rank_cell import TENSORS, rank_cell
from theodolite.lab.cell import Cell, Row

# T1 — Claim 7.1: the matricised grid tensor


def _t1_cells() -> list[Cell]:
    return [
        rank_cell(
            "sum-of-products", {"tokens": 4, "features": 2, "terms": terms}, partition, mode="grid", templates=count
        )
        for terms in (1, 2, 3, 4)
        for partition in ("left-right", "interleaved", "0,3|1,2", "0|1,2,3")
        for count in (1, 2, 3)
    ]


@claim(
    "T1",
    "The rank of the matricised grid tensor is at most the separation rank, whatever the templates.",
    TENSORS + "Claim 7.1",
    "Functions of known rank: no grid rank may exceed it, and from 2 templates on (2 features) it must be reached.",
    _t1_cells,
    quote="For any integer M and any set of template vectors x⁽¹⁾, …, x⁽ᴹ⁾ we have sep_(A,B)(y) ≥ rank(⟦𝒜(y)⟧_(A,B))",
    kind="theorem",
)
def _t1(rows: Sequence[Row]) -> Verdict:
    above = [r for r in rows if r["rank"] > r["cap"]]
    short = [r for r in rows if r["details"]["templates"] >= r["shape"]["features"] and r["rank"] != r["cap"]]
    return Verdict(
        outcome(not above and not short),
        predicted=[r["cap"] for r in rows],
        measured=[r["rank"] for r in rows],
        detail=f"{len(rows)} grids of sums of 1 to 4 products: {len(above)} above the known rank, "
        f"{len(short)} short of it with enough templates.",
    )


# T2 — Claim 7.2: one good draw proves the rank for almost all


_T2_SHAPE = {"depth": 2, "width": 3, "heads": 1, "tokens": 6}


def _t2_cells() -> list[Cell]:
    return [
        rank_cell("self-attention", _T2_SHAPE, repeats=12),
        rank_cell("self-attention", {**_T2_SHAPE, "heads": 3}, repeats=12),
        *(
            Cell("special-weights", {"net": "self-attention", "shape": _T2_SHAPE, "weights": kind, "draw": draw})
            for kind, draws in (("ties", 1), ("zeros", 6))
            for draw in range(draws)
        ),
    ]


@claim(
    "T2",
    "One weight setting with rank R shows rank at least R for almost all weights; special weights give at most that.",
    TENSORS + "Claim 7.2",
    "All of 12 draws of prime, weights and points must give one rank, and no special weights more than it.",
    _t2_cells,
    quote="If there exists a point Θ s.t. rank(A(Θ)) ≥ R, then the set {Θ | rank(A(Θ)) < R} has zero measure.",
    kind="theorem",
    statistics=Statistics(
        "24 draws of prime, weights and points, 7 of special weights",
        "none: a generic draw falls short with a chance of at most degree over prime",
    ),
)
def _t2(rows: Sequence[Row]) -> Verdict:
    generic, special = rows[:2], rows[2:]
    same = all(len(set(r["ranks"])) == 1 for r in generic)
    below = all(r["rank"] <= generic[0]["rank"] for r in special)
    return Verdict(
        outcome(same and below),
        predicted={"one rank": True, "special at most": generic[0]["rank"]},
        measured={"draws": [list(r["ranks"]) for r in generic], "special": [r["rank"] for r in special]},
        detail=f"24 draws over 24 primes: {'one rank each' if same else 'ranks differ'}; "
        f"special weights reach at most {max(r['rank'] for r in special)} of {generic[0]['rank']}.",
    )


# T3 — Proposition 7.1: partitions


def _t3_cells() -> list[Cell]:
    attention = [
        rank_cell("self-attention", {"depth": 2, "width": 2, "tokens": tokens}, partition, repeats=2)
        for tokens in (4, 6, 8)
        for partition in _balanced(tokens)
    ]
    convolution = [
        rank_cell("conv-circuit", {"tokens": tokens, "width": 2}, partition, repeats=2)
        for tokens in (4, 8, 16)
        for partition in ("left-right", "interleaved")
    ]
    recurrence = [
        rank_cell("recurrent-circuit", {"depth": depth, "tokens": tokens, "width": 2}, partition, repeats=2)
        for depth, partition, lengths in (
            (1, "left-right", (4, 8, 16)),
            (1, "interleaved", (4, 8, 16)),
            (2, "left-right", (4, 6, 8, 10, 12, 14, 16)),
            (2, "interleaved", (4, 6, 8)),
        )
        for tokens in lengths
    ]
    return attention + convolution + recurrence


def _balanced(tokens: int) -> list[str]:
    """Every balanced partition once: token 0 stands on side A."""
    sides = itertools.combinations(range(1, tokens), tokens // 2 - 1)
    return [
        ",".join(map(str, (0, *rest))) + "|" + ",".join(str(i) for i in range(1, tokens) if i not in rest)
        for rest in sides
    ]


@claim(
    "T3",
    "Attention's rank does not depend on the balanced partition; convolutional and recurrent circuits have an "
    "exponentially larger rank interleaved than left-right.",
    TENSORS + "Proposition 7.1 and Fig. 7.4",
    "Attention: one rank over all balanced partitions of 4, 6 and 8 tokens. Circuits: the interleaved rank at least "
    "doubles with every two tokens; left-right, the rank of convolution and of one recurrent layer stays constant and "
    "that of two recurrent layers of width 2 grows by a constant step (a polynomial).",
    _t3_cells,
    quote="its separation rank w.r.t. balanced partitions … is invariant to the identity of the partition; the "
    "functions realized by convolutional and recurrent networks have exponentially higher separation ranks w.r.t. the "
    "interleaved partition than w.r.t. the left-right partition",
    kind="theorem",
)
def _t3(rows: Sequence[Row]) -> Verdict:
    def ranks(net: str, depth: int | None, interleaved: bool) -> dict[int, int]:
        return {
            r["shape"]["tokens"]: r["rank"]
            for r in rows
            if r["net"] == net
            and (depth is None or r["shape"].get("depth") == depth)
            and (r["partition"] == "interleaved") == interleaved
        }

    attention = {
        n: sorted({r["rank"] for r in rows if r["net"] == "self-attention" and r["shape"]["tokens"] == n})
        for n in (4, 6, 8)
    }
    flat = [ranks("conv-circuit", None, False), ranks("recurrent-circuit", 1, False)]
    steep = [
        ranks("conv-circuit", None, True),
        ranks("recurrent-circuit", 1, True),
        ranks("recurrent-circuit", 2, True),
    ]
    gentle = ranks("recurrent-circuit", 2, False)
    steps_left = {b - a for a, b in itertools.pairwise(gentle[n] for n in sorted(gentle))}
    polynomial = len(steps_left) == 1
    invariant = all(len(found) == 1 for found in attention.values())
    exponential = all(
        high >= low * 2 ** ((n - m) // 2)
        for r in steep
        for (m, low), (n, high) in itertools.pairwise(sorted(r.items()))
    )
    constant = all(len(set(r.values())) == 1 for r in flat)
    return Verdict(
        outcome(invariant and exponential and constant and polynomial),
        predicted={
            "attention": "one rank per length",
            "interleaved": "doubles every 2 tokens",
            "left-right": "polynomial",
        },
        measured={
            "attention": {str(n): found for n, found in attention.items()},
            "convolution": {"left-right": flat[0], "interleaved": steep[0]},
            "one recurrent layer": {"left-right": flat[1], "interleaved": steep[1]},
            "two recurrent layers": {"left-right": gentle, "interleaved": steep[2]},
        },
        detail=f"Attention has {'one rank' if invariant else 'several ranks'} over all balanced partitions of 4, 6, 8 "
        f"tokens; interleaved circuits {'double' if exponential else 'do not double'} every two tokens; two recurrent "
        f"layers grow left-right by {', '.join(map(str, sorted(steps_left)))} every two tokens.",
    )
