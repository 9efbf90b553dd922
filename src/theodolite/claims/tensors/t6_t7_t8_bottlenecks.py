"""Claims T6 to T8 of the tensor source: the embedding's rank, the bottleneck inside attention, degree and mixing."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.claims.contract import claim
from theodolite.claims.rule import Verdict, outcome
from theodolite.claims.tensors.rank_cell import TENSORS, rank_cell
from theodolite.lab.cell import Cell, Row
from theodolite.theory.attention import degree, mixing
from theodolite.theory.bottleneck import T5_11B, T5_11B_PUBLISHED, excess_share
from theodolite.theory.cap import attention_cap
from theodolite.theory.heads import heads_that_see_all

# T6 — Theorem 7.3: the embedding's rank


@claim(
    "T6",
    "An input embedding of rank r < d caps the separation rank as if the width were r.",
    TENSORS + "Theorem 7.3",
    "Width 4 and depth 2 with r = 1 … 4: the exact rank equals the cap of width r, and grows with r.",
    lambda: [
        rank_cell("self-attention", {"depth": 2, "width": 4, "tokens": 10, "embedding_rank": r}, repeats=2)
        for r in (1, 2, 3, 4)
    ],
    quote="A network with a low-rank embedding r < d_x cannot express the operation of a full-rank r = d_x network.",
    kind="theorem",
)
def _t6(rows: Sequence[Row]) -> Verdict:
    predicted = [attention_cap(2, r["shape"]["embedding_rank"], 5, 5) for r in rows]
    measured = [r["rank"] for r in rows]
    return Verdict(
        outcome(measured == predicted and all(r["exact"] for r in rows)),
        predicted,
        measured,
        f"Ranks {measured} for r = 1 to 4 at width 4, against the caps {predicted} of widths 1 to 4.",
    )


# T7 — the bottleneck inside the attention


_T7_WIDTH = 3


def _t7_cells() -> list[Cell]:
    shapes = [(heads, 1) for heads in range(1, 9)] + [(1, inner) for inner in range(1, 7)]
    return [
        rank_cell(
            "self-attention",
            {"depth": 2, "width": _T7_WIDTH, "tokens": 8, "heads": heads, "attention_width": inner},
            repeats=2,
        )
        for heads, inner in shapes
    ]


@claim(
    "T7",
    "Attention width H·d_a beyond the width d buys no separation rank.",
    TENSORS + "Section 7.3.2, mid-architecture bottlenecks",
    "Fails if some rank with H·d_a > d exceeds the rank with H·d_a = d on the same line (heads at d_a = 1, d_a at one "
    "head). The true form is reported: from how many heads on the cap is reached, and from how many theory says.",
    _t7_cells,
    quote="A mid-architecture bottleneck — width caps the internal attention dimension. Upper bound does not depend "
    "on H.",
    kind="bound",
)
def _t7(rows: Sequence[Row]) -> Verdict:
    along_heads = {r["shape"]["heads"]: r["rank"] for r in rows[:8]}
    along_width = {r["shape"]["attention_width"]: r["rank"] for r in rows[8:]}
    cap = attention_cap(2, _T7_WIDTH, 4, 4)
    enough = heads_that_see_all(_T7_WIDTH, 1)
    gains = [line for line in (along_heads, along_width) if max(line.values()) > line[_T7_WIDTH]]
    reached = {
        name: next((x for x, rank in line.items() if rank == cap), None)
        for name, line in (("heads", along_heads), ("attention width", along_width))
    }
    return Verdict(
        outcome(not gains),
        predicted={"no gain beyond": _T7_WIDTH, "cap": cap, "heads that reach it": enough},
        measured={"rank by heads (d_a = 1)": along_heads, "rank by attention width (one head)": along_width},
        detail=f"Width {_T7_WIDTH}, depth 2, 8 tokens. Read literally the claim "
        f"{'fails: rank still grows for H·d_a > d' if gains else 'holds here'}. The true form: the cap {cap} is "
        f"reached where H·d_a² forms are all of the d(d+1)/2 entries of S, at {enough} heads; measured at "
        f"{_reach(reached)}. In T5-11B "
        f"{excess_share(T5_11B):.0%} of the blocks' parameters lie in attention beyond that "
        f"(published: {_percent(T5_11B_PUBLISHED)}).",
    )


def _percent(interval: tuple[float, float]) -> str:
    return "–".join(f"{share:.0%}" for share in interval)


def _reach(reached: dict[str, int | None]) -> str:
    return ", ".join(f"{name} {'never in this range' if x is None else f'= {x}'}" for name, x in reached.items())


# T8 — degree and mixing


def _t8_cells() -> list[Cell]:
    degrees = [
        Cell("line-degree", {"net": "self-attention", "shape": {"depth": depth, "width": 3, "tokens": 4}})
        for depth in (1, 2, 3, 4, 5)
    ]
    mixed = [
        Cell(
            "mixing",
            {
                "net": "self-attention",
                "shape": {"depth": depth, "width": 2, "tokens": mixing(depth) + 1},
                "most": mixing(depth) + 1,
            },
        )
        for depth in (1, 2, 3)
    ]
    return degrees + mixed


@claim(
    "T8",
    "The output of depth L has degree 3^L and mixes (3^L − 1)/2 + 1 inputs.",
    TENSORS + "Eq. 7.7 (Corollary 7.1)",
    "The degree along a random line is 3^L for L = 1 to 5, and the largest set of tokens with a non-zero "
    "inclusion–exclusion difference has (3^L − 1)/2 + 1 members for L = 1 to 3, one more token being on offer.",
    _t8_cells,
    quote="y = Σ_(j₁, …, j_C = 1 … N) g^L(x^i, x^(j₁), …, x^(j_C)), where the function g^L is a placeholder which "
    "integrates C + 1 := (3^L − 1)/2 + 1 different network input vectors",
    kind="theorem",
)
def _t8(rows: Sequence[Row]) -> Verdict:
    depths = [r.cell.config["shape"]["depth"] for r in rows]
    predicted = [degree(d) for d in depths[:5]] + [mixing(d) for d in depths[5:]]
    measured = [r["degree"] for r in rows[:5]] + [r["mixing"] for r in rows[5:]]
    return Verdict(
        outcome(predicted == measured),
        predicted={"degrees": predicted[:5], "mixing": predicted[5:]},
        measured={"degrees": measured[:5], "mixing": measured[5:]},
        detail=f"Degrees {measured[:5]} for depths 1 to 5, {measured[5:]} tokens mixed for depths 1 to 3.",
    )
