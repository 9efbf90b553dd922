"""Claims T4 and T5 of the tensor source: depth against width, and the bounds on the rank."""

from __future__ import annotations

from collections.abc import Sequence

from theodolite.claims.contract import claim
from theodolite.claims.rule import Verdict, outcome
from theodolite.claims.tensors.rank_cell import TENSORS, rank_cell
from theodolite.lab.cell import Cell, Row
from theodolite.theory.attention import Bounds, attention_bounds
from theodolite.theory.attention_growth import base_depth, growth_lower_bound, refuted_depth

# T4, T5 — Theorems 7.1 and 7.2: depth against width


def _lower_cell(depth: int, width: int, heads: int, tokens: int) -> Cell:
    """As many points as the theorem's lower bound asks for: a regular matrix of them certifies it."""
    points = attention_bounds(depth, width, heads).lower or 1
    shape = {"depth": depth, "width": width, "heads": heads, "tokens": tokens}
    return rank_cell("self-attention", shape, points=points, repeats=1)


def _bounds_verdict(rows: Sequence[Row]) -> Verdict:
    """Lower: the certified rank reaches it. Upper: the cap, or an exact rank, stays below it."""
    predicted, measured, outcomes = [], [], []
    for row in rows:
        shape = row["shape"]
        bounds: Bounds = attention_bounds(shape["depth"], shape["width"], shape["heads"])
        highest = row["rank"] if row["exact"] else row["cap"]
        lower = None if bounds.vacuous or bounds.lower is None else row["rank"] >= bounds.lower
        upper = None
        if bounds.upper is not None and highest <= bounds.upper:
            upper = True
        elif bounds.upper is not None and row["rank"] > bounds.upper:
            upper = False
        name = "L={depth} d={width} H={heads} N={tokens}".format(**shape)
        predicted.append({"net": name, "lower": bounds.lower, "upper": bounds.upper})
        measured.append({"net": name, "rank at least": row["rank"], "rank at most": highest})
        outcomes.append((name, lower, upper))
    failed = [name for name, lower, upper in outcomes if lower is False or upper is False]
    open_lower = [name for name, lower, _ in outcomes if lower is None]
    open_upper = [name for name, _, upper in outcomes if upper is None]
    decided = any(lower for _, lower, _ in outcomes) and not open_upper
    shown = [
        f"{name} {row['rank']} ≥ {p['lower']}"
        for (name, lower, _), row, p in zip(outcomes, rows, predicted, strict=True)
        if lower is not None
    ]
    parts = [f"{len(rows)} shapes; certified rank against the lower bound: {', '.join(shown)}"]
    if failed:
        parts.append(f"fails for {', '.join(failed)}")
    if open_lower:
        parts.append(f"the lower bound says nothing for {', '.join(open_lower)}")
    if open_upper:
        parts.append(f"the upper bound is open for {', '.join(open_upper)}: its cap lies above it")
    return Verdict(outcome(not failed, decided), predicted, measured, "; ".join(parts) + ".")


_T4_RULE = (
    "Lower: that many drawn points must give a regular matrix, in at least one shape where the bound is not vacuous. "
    "Upper: the proven cap or the exact rank must not exceed it in any shape."
)


@claim(
    "T4",
    "For L < log3 d: 3^(L−2)·(log3(d−H) + a) ≤ log3 sep ≤ (3^L−1)/2·log3(d+H).",
    TENSORS + "Theorem 7.1",
    _T4_RULE,
    lambda: [
        _lower_cell(1, 4, 1, 10),
        _lower_cell(1, 8, 2, 18),
        _lower_cell(2, 10, 1, 22),
        _lower_cell(2, 12, 3, 26),
        _lower_cell(3, 28, 1, 58),
        _lower_cell(3, 28, 2, 58),
    ],
    quote="3^(L−2)·(log₃(d_x − H) + a) ≤ log₃(sep) ≤ (3^L − 1)/2·log₃(d_x + H)",
    kind="bound",
)
def _t4(rows: Sequence[Row]) -> Verdict:
    return _bounds_verdict(rows)


_T5_WIDTH = 8


@claim(
    "T5",
    "For L > log3 d: ½dL + b₁ + b₂ ≤ log3 sep ≤ 2dL + c₁ + c₂.",
    TENSORS + "Theorem 7.2",
    f"{_T4_RULE} It fails if the proven lower bound on growth (docs/exact-rank.md) exceeds the upper bound at some "
    f"depth of width {_T5_WIDTH}, the theorem's premise being certified there.",
    lambda: [
        *(_lower_cell(6, 10, 1, tokens) for tokens in (4, 20)),
        *(_lower_cell(7, 8, 1, tokens) for tokens in (4, 16)),
        rank_cell("self-attention", {"depth": 2, "width": 3, "heads": 1, "tokens": 8}, repeats=2),
        rank_cell("self-attention", {"depth": 2, "width": 4, "heads": 2, "tokens": 10}, repeats=2),
        rank_cell("self-attention", {"depth": 3, "width": 2, "heads": 1, "tokens": 6}, repeats=2),
        Cell("growth-certificate", {"width": _T5_WIDTH, "heads": 1, "base": base_depth(_T5_WIDTH)}),
    ],
    quote="½·d_x·L + b₁ + b₂ ≤ log₃(sep) ≤ 2·d_x·L + c₁ + c₂",
    kind="bound",
)
def _t5(rows: Sequence[Row]) -> Verdict:
    measured, certificate = _bounds_verdict(rows[:-1]), rows[-1]
    depth = refuted_depth(_T5_WIDTH, base=certificate["base"])
    if not certificate["certified"] or depth is None:
        return measured
    proven, published = growth_lower_bound(depth, _T5_WIDTH, certificate["base"]), _upper(depth, _T5_WIDTH)
    return Verdict(
        "fails",
        [*measured.predicted, {"net": f"L={depth} d={_T5_WIDTH} H=1 N≥{2 * _T5_WIDTH}", "upper": published}],
        [*measured.measured, {"net": f"L={depth} d={_T5_WIDTH} H=1 N≥{2 * _T5_WIDTH}", "rank at least": proven}],
        f"The upper half is false with d tokens a side or more: at L = {depth}, d = {_T5_WIDTH} the rank is at least "
        f"{_rounded_down(proven)} by the theorem on growth, its premise certified modulo {certificate['prime']}, and "
        f"the bound is {float(published):.1e}. " + measured.detail,
    )


def _rounded_down(large: int) -> str:
    digits = str(large)
    return f"{digits[0]}.{digits[1]}e{len(digits) - 1}"


def _upper(depth: int, width: int) -> int:
    bound = attention_bounds(depth, width, 1).upper
    return bound if bound is not None else 0
