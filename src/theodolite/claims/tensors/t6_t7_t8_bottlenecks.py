"""Claims T6 to T8 of the tensor source: the embedding's rank, the bottleneck inside attention, degree and mixing."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.claims.contract import claim
from theodolite.claims.rule import Verdict, outcome
from theodolite.claims.tensors.rank_cell import TENSORS, rank_cell
from theodolite.lab.cell import Cell, Row
from theodolite.theory.attention import degree, mixing
from theodolite.theory.attention_growth import base_depth, growth_lower_bound_log3
from theodolite.theory.bottleneck import T5_11B, T5_11B_PUBLISHED, excess_share
from theodolite.theory.cap import attention_cap
from theodolite.theory.heads import heads_that_see_all

# T6 — Theorem 7.3: the embedding's rank, and how fast it lets the separation rank grow


@claim(
    "T6a",
    "An input embedding of rank r < d caps the separation rank as if the width were r.",
    TENSORS + "Theorem 7.3, its consequence ①, and Section 7.3.2",
    "Width 4 and depth 2 with r = 1 … 4: holds if the exact rank equals the cap of width r, and so grows with r; fails "
    "if one rank differs.",
    lambda: [
        rank_cell("self-attention", {"depth": 2, "width": 4, "tokens": 10, "embedding_rank": r}, repeats=2)
        for r in (1, 2, 3, 4)
    ],
    quote="A network with a low-rank embedding r < d_x cannot express the operation of a full-rank r = d_x network. … "
    "When the dimensionality of the inputs is lower than the network width, the network width's contribution to "
    "expressivity is capped.",
    kind="theorem",
)
def _t6a(rows: Sequence[Row]) -> Verdict:
    predicted = [attention_cap(2, r["shape"]["embedding_rank"], 5, 5) for r in rows]
    measured = [r["rank"] for r in rows]
    return Verdict(
        outcome(measured == predicted and all(r["exact"] for r in rows)),
        predicted,
        measured,
        f"Ranks {measured} for r = 1 to 4 at width 4, against the caps {predicted} of widths 1 to 4.",
    )


_T6_CERTIFIED, _T6_RANKS = (4, 8), (4, 8, 16, 32, 64)
_T6_DEPTHS = (40, 80)
_T6_MARGIN = 0.01


@claim(
    "T6b",
    "With an input embedding of rank r the logarithm of the separation rank is Õ(L·min(r, d)).",
    TENSORS + "Theorem 7.3, Eq. 7.12",
    "Weights that act on the r dimensions of the inputs make the network one of width r, so that the theorem on "
    "growth (docs/exact-rank.md) holds with r for the width, with r tokens a side or more; the source sets no "
    "condition on their number. Fails if its premise is certified modulo a prime at r = "
    f"{' and '.join(map(str, _T6_CERTIFIED))} and its proven lower bound grows from depth {_T6_DEPTHS[0]} to "
    f"{_T6_DEPTHS[1]} by r(r+1)/2 a layer within {_T6_MARGIN:.0%} for r = {', '.join(map(str, _T6_RANKS))}: r² is not "
    "r times a power of log r, whatever logarithms Õ hides. Undecided else; no finite number of shapes could confirm "
    "an order of growth.",
    lambda: [Cell("growth-certificate", {"width": r, "heads": 1, "base": base_depth(r)}) for r in _T6_CERTIFIED],
    quote="log(sep(y)) = Õ(L · min{r, d_x})",
    kind="bound",
)
def _t6b(rows: Sequence[Row]) -> Verdict:
    shallow, deep = _T6_DEPTHS
    grown = {
        r: (growth_lower_bound_log3(deep, r) - growth_lower_bound_log3(shallow, r)) / (deep - shallow)
        for r in _T6_RANKS
    }
    quadratic = all(abs(slope / (r * (r + 1) / 2) - 1) <= _T6_MARGIN for r, slope in grown.items())
    certified = all(row["certified"] for row in rows)
    return Verdict(
        outcome(not (certified and quadratic), decided=False),
        predicted={"log₃ sep a layer, over r": "at most a power of log r"},
        measured={
            "log₃ sep a layer, over r": {str(r): round(slope / r, 3) for r, slope in grown.items()},
            "certified": {str(row.cell.config["width"]): row["certified"] for row in rows},
        },
        detail="Proven lower bounds on log₃ sep grow a layer by "
        + ", ".join(f"{slope / r:.1f}·r at r = {r}" for r, slope in grown.items())
        + f": as r(r+1)/2, not as r. The premise is {'' if certified else 'not '}certified at r = "
        f"{' and '.join(map(str, _T6_CERTIFIED))}, and proven for every r with one head of full width. That rank r "
        "acts as width r (T6a) stands.",
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
    "The bound on the separation rank does not depend on the attention width H·d_a: the width caps what it can buy.",
    TENSORS + "Section 7.3.3, consequence ③ of Theorem 7.3, and Section 7.3.2",
    "What is said is said of a bound. Eq. 7.12 knows neither H nor d_a, and itself is another claim (T6b). Decided "
    f"is whether such a bound exists: width {_T7_WIDTH}, depth 2, 8 tokens, 1 to 8 heads of width 1 and one head of "
    "width 1 to 6. Holds if no exact rank exceeds the cap of the width, which knows neither and is proven for all "
    "weights, and the cap is reached on both lines, so that attention width buys nothing from there on; fails if one "
    "exceeds it; undecided else. Reported as a finding of ours: what the rank does below the cap.",
    _t7_cells,
    quote="A mid-architecture bottleneck — width caps the internal attention dimension. Upper bound does not depend "
    "on H. … Low representation dimension caps the ability an excessive parameter increase in the Self-attention "
    "operation. (T5-11B is ~50% redundant.)",
    kind="bound",
)
def _t7(rows: Sequence[Row]) -> Verdict:
    along_heads = {r["shape"]["heads"]: r["rank"] for r in rows[:8]}
    along_width = {r["shape"]["attention_width"]: r["rank"] for r in rows[8:]}
    cap = attention_cap(2, _T7_WIDTH, 4, 4)
    enough = heads_that_see_all(_T7_WIDTH, 1)
    lines = {"heads": along_heads, "attention width": along_width}
    within = all(rank <= cap for line in lines.values() for rank in line.values())
    gains = [name for name, line in lines.items() if max(line.values()) > line[_T7_WIDTH]]
    reached = {name: next((x for x, rank in line.items() if rank == cap), None) for name, line in lines.items()}
    grows = (
        f"the rank still grows for H·d_a > d along {' and '.join(gains)}" if gains else "no rank grows for H·d_a > d"
    )
    return Verdict(
        outcome(within, None not in reached.values()),
        predicted={"cap, whatever H and d_a": cap, "heads that reach it": enough},
        measured={"rank by heads (d_a = 1)": along_heads, "rank by attention width (one head)": along_width},
        detail=f"Width {_T7_WIDTH}, depth 2, 8 tokens: {'no rank exceeds' if within else 'some rank exceeds'} the cap "
        f"{cap}, whatever H and d_a; it is reached at {_reach(reached)}. Beside it, a finding: below the cap {grows}, "
        f"until H·d_a² forms are all of the d(d+1)/2 entries of S, at {enough} heads. In T5-11B "
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
