"""T10, ours: the generic separation rank of self-attention, exactly, which the tensor source leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.rule import Verdict
from theodolite.claims.tensors.rank_cell import TENSORS
from theodolite.lab.cell import Cell, Row
from theodolite.theory.attention_growth import base_depth, growth_lower_bound_log3
from theodolite.theory.attention_rank import heads_deficit_depth_2, measured_law_depth_2
from theodolite.theory.cap import attention_cap, attention_cap_log3

_ONE_HEAD = [(1, d) for d in range(1, 7)] + [(2, d) for d in range(1, 7)] + [(3, 2), (3, 3)]
_SHARED = [(2, 2), (3, 3), (4, 2), (4, 4), (5, 5), (6, 2), (6, 3), (6, 6)]  # width, heads
_OTHER = [(3, 4, 1), (3, 6, 1), (4, 3, 1), (4, 3, 2), (5, 1, 3), (5, 3, 2), (6, 1, 4)]  # width, heads, attention width
_GROWTH = [(4, 1), (4, 2), (4, 4), (8, 1)]  # width, heads
_SHALLOW, _DEEP, _MARGIN = 20, 40, 0.01
_FEW = [(2, 3, 1, 2), (3, 2, 2, 1)]  # depth, width, tokens with the output, other tokens


def _cells() -> list[Cell]:
    one = [{"depth": depth, "width": width} for depth, width in _ONE_HEAD]
    shared = [{"depth": 2, "width": width, "heads": heads} for width, heads in _SHARED]
    other = [{"depth": 2, "width": d, "heads": h, "attention_width": inner} for d, h, inner in _OTHER]
    few = [{"depth": depth, "width": d, "tokens_with_output": n, "tokens_other": m} for depth, d, n, m in _FEW]
    growth = [{"width": d, "heads": h, "base": base_depth(d)} for d, h in _GROWTH]
    return [Cell("graded-rank", config) for config in one + shared + other + few] + [
        Cell("growth-certificate", config) for config in growth
    ]


def _slope(log3: Any, width: int) -> float:
    """Growth of a bound a layer, over the chosen depths."""
    return (log3(_DEEP, width) - log3(_SHALLOW, width)) / (_DEEP - _SHALLOW)


@claim(
    "T10",
    "The generic separation rank, exactly: with d tokens a side or more, one head of full width has the cap at "
    "depth 1 and 2; at depth 2, H > 1 heads of width d/H stay binom(D − d²/H + 1, 2) below it, D = d(d+1)/2, and heads "
    "of one entry max(0, d(D − d) − binom(d+2, 3)) more; and log3 sep = D·L + O(1), not 2dL.",
    TENSORS + "the gap between the bounds of Theorems 7.1 and 7.2 (open there)",
    "A finding of ours, with proofs (docs/exact-rank.md); no source claims it. Reported are ranks over GF(p), part "
    "by part. (a) One head: whether depth 1 and 2 with d = 1 to 6 and depth 3 with d = 2 and 3 reach the cap, which "
    "proves them. (b) Depth 2, heads of width d/H in eight shapes up to d = 6, and seven shapes with other heads: "
    "whether every part equals the law. (c) Growth: whether at d = 4 with 1, 2 and 4 heads and d = 8 with one the "
    f"theorem's premise is certified modulo a prime, and whether from depth {_SHALLOW} to {_DEEP} the proven lower "
    f"bound and the cap both grow by D a layer within {_MARGIN:.0%}. Shapes with few tokens that stay below their cap "
    "are listed.",
    _cells,
    quote="",
    kind="ours",
)
def _t10(rows: Sequence[Row]) -> Verdict:
    first, second, third = len(_ONE_HEAD), len(_SHARED), len(_OTHER)
    one, shared = rows[:first], rows[first : first + second]
    other, few = rows[first + second : first + second + third], rows[first + second + third : -len(_GROWTH)]
    certificates = rows[-len(_GROWTH) :]
    wrong = [f"L={d} d={w}, one head" for row, (d, w) in zip(one, _ONE_HEAD, strict=True) if not _has_cap(row)]
    deficits = {}
    for row, (width, heads) in zip(shared, _SHARED, strict=True):
        deficits[f"d={width} H={heads}"] = row["cap"] - row["total"]
        if row["cap"] - row["total"] != heads_deficit_depth_2(width, heads) or not row["exact"]:
            wrong.append(f"d={width} H={heads}")
    for row, shape in zip([*shared, *other], [*((d, h, d // h) for d, h in _SHARED), *_OTHER], strict=True):
        if [block["rank"] for block in row["blocks"]] != measured_law_depth_2(*shape) or not row["exact"]:
            wrong.append("d={} H={} d_a={}".format(*shape))
    slopes = {
        width: (_slope(growth_lower_bound_log3, width), _slope(attention_cap_log3, width))
        for width in sorted({width for width, _ in _GROWTH})
    }
    grows = all(
        abs(slope / (width * (width + 1) / 2) - 1) <= _MARGIN for width, pair in slopes.items() for slope in pair
    )
    certified = all(row["certified"] for row in certificates)
    below = {
        "L={} d={} n={} m={}".format(*shape): f"{row['total']} of {row['cap']}"
        for row, shape in zip(few, _FEW, strict=True)
    }
    fastest = max(slopes)
    return Verdict(
        "not a claim",
        predicted={
            "one head": [attention_cap(depth, width, width, width) for depth, width in _ONE_HEAD],
            "below the cap": {f"d={d} H={h}": heads_deficit_depth_2(d, h) for d, h in _SHARED},
            "growth a layer": {str(width): width * (width + 1) // 2 for width in slopes},
        },
        measured={
            "one head": [row["total"] for row in one],
            "below the cap": deficits,
            "growth a layer, proven from below and above": {
                str(w): [round(s, 3) for s in p] for w, p in slopes.items()
            },
            "certified": {f"d={d} H={h}": row["certified"] for row, (d, h) in zip(certificates, _GROWTH, strict=True)},
            "few tokens": below,
        },
        detail=f"{first} shapes of one head and {second + third} of other heads: "
        f"{'each has the rank of the law' if not wrong else 'the law fails for ' + ', '.join(wrong)}. At d = {fastest} "
        f"log3 sep grows by {slopes[fastest][0]:.2f} a layer at least and {slopes[fastest][1]:.2f} at most, where "
        f"Theorem 7.2 allows {2 * fastest + 1}{'' if certified else '; not every premise is certified'}"
        f"{'' if grows else '; not every bound grows as the law says'}. With few "
        f"tokens the cap is not always the rank: {', '.join(f'{shape}: {found}' for shape, found in below.items())}.",
    )


def _has_cap(row: Row) -> bool:
    return row["complete"] and row["total"] == row["cap"]
