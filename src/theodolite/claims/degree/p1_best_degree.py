"""Claim P1 of the degree paper, on its exact side: is degree 3 the best degree of a block?"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import ATTENTION, CONNECTED, SOURCE, Case, text
from theodolite.claims.rule import Verdict
from theodolite.instruments.rank.result import predict
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.lab.cell import Cell, Row
from theodolite.measurement import canonical
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters
from theodolite.partition import Partition
from theodolite.theory.degree import COUNTS, best_degree, matrices_per_block
from theodolite.theory.gated_cap import one_wide_rank

_BUDGETS = (12, 18, 24, 36)
_DEGREES = (2, 3, 4, 6)  # whose blocks divide at least three of the budgets
_LAST = _BUDGETS[-2:]
_MEASURED, _WITHIN_REACH = 1_900, _BUDGETS[:2]  # caps up to here, at these budgets, are measured
_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fully connected, 1 input a side, width 2": (CONNECTED, {"features": 2, "width": 2}),
    "fully connected, 2 inputs a side, width 2": (CONNECTED, {"features": 4, "width": 2}),
    **{
        f"attention, {tokens} token{'s' * (tokens > 1)} a side, width {width}": (
            ATTENTION,
            {"tokens": 2 * tokens, "width": width},
        )
        for width in (1, 2)
        for tokens in (1, 2, 4)
    },
}
_ONE_TOKEN = "attention, 1 token a side, width 2"
_PARTS = (_ONE_TOKEN, 18, 3)  # its cap of 66,795 is within reach part by part
_COUNTED = ("fully connected, 1 input a side, width 2", "attention, 2 tokens a side, width 1")
_ORDERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "fully connected, 2 inputs a side, width 2": (CONNECTED, {"features": 4, "width": 2}, (3, 3, 2)),
    "attention, 3 tokens a side, width 2": (ATTENTION, {"tokens": 6, "width": 2}, (3, 2)),
    "attention, 2 tokens a side, width 1": (ATTENTION, {"tokens": 4, "width": 1}, (3, 3, 2)),
}


@dataclass(frozen=True)
class Known:
    """What is known of a rank: at least `low` (none: nothing beyond 1) and at most `cap`; `how` says whence `low`."""

    degree: int
    total: int
    parameters: int
    low: int | None
    cap: int
    how: str

    def __str__(self) -> str:
        if self.low == self.cap:
            return f"{self.cap:,}"
        return f"{self.low:,} to {self.cap:,}" if self.low else f"at most {self.cap:,}"


def _blocks(degree: int, budget: int, count: str = "d") -> tuple[int, ...]:
    return (degree,) * (budget // int(matrices_per_block(degree, count)))


def _main() -> list[tuple[int, Case]]:
    return [
        (budget, Case(family, net, shape, _blocks(degree, budget)))
        for family, (net, shape) in _FAMILIES.items()
        for budget in _BUDGETS
        for degree in _DEGREES
        if budget % degree == 0
    ]


def closed_form(case: Case) -> int | None:
    """The rank where a line proves it: width 1 (`one_wide_rank`), and fully connected with one input a side, where
    equal rows make y = (u + v)^T, of rank T + 1, which is the cap."""
    if case.net == ATTENTION and case.shape["width"] == 1:
        return one_wide_rank(case.degrees, case.shape["tokens"] // 2)
    if case.net == CONNECTED and case.shape["features"] == 2:
        return _told(case)[1] if case.matrices == "d" else None
    return None


def _told(case: Case) -> tuple[int, int, int]:
    """Total degree, cap and parameters."""
    return _predicted(case.net, canonical(case.full_shape))


@cache
def _predicted(net: str, shape: str) -> tuple[int, int, int]:
    subject = load(net, **json.loads(shape))
    split = Partition.left_right(subject.sites)
    told = predict(ScalarFunction.of(subject, None, 0), split)
    assert told is not None
    assert told.cap is not None
    return told.degree, told.cap, count_parameters(subject.module)


def _asked(budget: int, case: Case) -> Cell | None:
    """What is measured of a case: nothing where its rank is proven or out of reach."""
    if (case.family, budget, case.degrees[0]) == _PARTS:
        side = 3 ** len(case.degrees) // 2 + 1
        return Cell("part-ranks", {"depth": len(case.degrees), "width": 2, "tokens": 1, "points": side})
    if budget in _WITHIN_REACH and closed_form(case) is None and _told(case)[1] <= _MEASURED:
        return case.cell
    return None


def _counts() -> list[Case]:
    """The other two counts, wherever a degree's matrices divide the budget; 800 points tell the best apart."""
    return [
        Case(family, *_FAMILIES[family], _blocks(degree, budget, count), count, draws=2, points=800)
        for family in _COUNTED
        for count, budget, degrees in (("d-1", 12, (2, 3, 4, 5)), ("d+1", 12, (2, 3, 5)), ("d+1", 20, (3, 4)))
        for degree in degrees
    ]


def _orders() -> list[Case]:
    return [
        Case(family, net, shape, order, draws=2)
        for family, (net, shape, degrees) in _ORDERS.items()
        for order in sorted(set(itertools.permutations(degrees)))
    ]


def _lines() -> list[Case]:
    return [case for budget, case in _main() if budget == _BUDGETS[0] and case.family in (_ONE_TOKEN, _COUNTED[0])]


def _p1_cells() -> list[Cell]:
    asked = [cell for budget, case in _main() if (cell := _asked(budget, case)) is not None]
    lines = [Cell("line-degree", {"net": case.net, "shape": case.full_shape}) for case in _lines()]
    return asked + lines + [case.cell for case in [*_counts(), *_orders()]]


@claim(
    "P1",
    "At a fixed budget of parameters, d matrices for a block of degree d, degree 3 is the best whole degree of a "
    "block: by the degree of the whole, d^p, and by separation rank.",
    SOURCE + "Eq. 2–4, Conclusion 1.1 (d*_ℕ = 3) and Eq. 16–17",
    "12, 18, 24 and 36 matrices, d of them a block (Eq. 4), equal measured parameters, degrees 2, 3, 4 and 6 where "
    "they divide the budget. Families, fixed before their ranks at these budgets were known: the fully connected "
    "network of Comment 3.1 with 1 and 2 inputs a side at width 2, attention with 1, 2 and 4 tokens a side at width 1 "
    "and 2. A degree is first in rank if its rank is proven (by a closed form, or measured and equal to its cap) or "
    "certified to lie above the caps of all others. The source's rank is an order of growth, so what counts is the "
    "larger budgets. Fails if the total degree of degree 3 is not the largest at some budget, or if in some family "
    "one and the same other degree is first at both 24 and 36 matrices. Holds if degree 3 is first at 36 in every "
    "family. Undecided else. No sample, hence no correction: a rank once certified is not revised. Reported beside: "
    "where the order turns, d−1 and d+1 matrices a block, every order of mixed blocks.",
    _p1_cells,
    quote="d*_ℕ = 3 while d* = e and the optimal building block for the transformer mechanism should be polynomial of "
    "degree 3 which is exactly the attention mechanism, as long as we assume that it should be polynomial with "
    "integer degrees.",
    kind="theorem",
)
def _p1(rows: Sequence[Row]) -> Verdict:
    reading = iter(rows)
    table: dict[str, dict[int, list[Known]]] = {family: {} for family in _FAMILIES}
    for budget, case in _main():
        row = None if _asked(budget, case) is None else next(reading)
        table[case.family].setdefault(budget, []).append(_known(case, row))
    measured_degrees = [next(reading)["degree"] == _told(case)[0] for case in _lines()]
    rest = [(case, case.found(next(reading))) for case in [*_counts(), *_orders()]]
    counts, orders = rest[: len(_counts())], rest[len(_counts()) :]
    firsts = {family: {b: first(known) for b, known in budgets.items()} for family, budgets in table.items()}
    equal = all(len({k.parameters for k in known}) == 1 for budgets in table.values() for known in budgets.values())
    by_degree = {b: _most([(k.degree, k.total) for k in table[_ONE_TOKEN][b]]) for b in _BUDGETS}
    arithmetic = all(measured_degrees) and equal and all(best == [3] for best in by_degree.values())
    lost = {f: own[_LAST[0]] for f, own in firsts.items() if own[_LAST[0]] == own[_LAST[1]] not in (3, None)}
    won = all(own[_LAST[1]] == 3 for own in firsts.values())
    by_count = _by_count(counts)
    by_order = {name: {text(c.degrees): f["rank"] for c, f in orders if c.family == name} for name in _ORDERS}
    return Verdict(
        "fails" if lost or not arithmetic else "holds" if won else "undecided",
        predicted={"best degree": {count: best_degree(count) for count in COUNTS}, "ties": "2 and 4 with d matrices"},
        measured={
            "rank by family, matrices and degree": {
                family: {str(b): {str(k.degree): str(k) for k in known} for b, known in budgets.items()}
                for family, budgets in table.items()
            },
            "first by family and matrices": {f: {str(b): d for b, d in own.items()} for f, own in firsts.items()},
            "largest total degree": {str(b): best for b, best in by_degree.items()},
            "other counts": by_count,
            "rank by order of blocks": by_order,
        },
        detail="The largest total degree belongs to degree "
        f"{' or '.join(sorted({text(b) for b in by_degree.values()}))} at every budget. First in "
        f"rank at {text(_BUDGETS)} matrices: "
        + "; ".join(f"{family} {', '.join(str(d or '?') for d in own.values())}" for family, own in firsts.items())
        + " (?: not proven). "
        + (
            f"Another degree stays first in {' and '.join(lost)}: there even blocks, which are ours (Eq. 2 fits no "
            "shape), see the sum of the tokens as well. "
            if lost
            else ""
        )
        + f"{_ONE_TOKEN}: {_turn(table[_ONE_TOKEN])}. Other counts: "
        f"{'; '.join(f'{name}: best {best}' for name, best in by_count.items())}. Orders: "
        f"{'; '.join(f'{name} {_pairs(ranks)}' for name, ranks in by_order.items())}.",
    )


def _known(case: Case, row: Row | None) -> Known:
    total, cap, parameters = _told(case)
    proven = closed_form(case)
    if proven is not None:
        return Known(case.degrees[0], total, parameters, proven, proven, "closed form")
    if row is None:
        return Known(case.degrees[0], total, parameters, None, cap, "cap")
    high = row["rank"] if row.result.get("exact") else cap
    return Known(case.degrees[0], total, parameters, row["rank"], high, row.cell.measure)


def first(known: Sequence[Known]) -> int | None:
    """The degree whose rank is certified to be above the caps of all others, if there is one."""
    for one in known:
        if one.low is not None and all(one.low > other.cap for other in known if other is not one):
            return one.degree
    return None


def _most(pairs: Sequence[tuple[int, int]]) -> list[int]:
    return [degree for degree, value in pairs if value == max(v for _, v in pairs)]


def _turn(budgets: Mapping[int, Sequence[Known]]) -> str:
    return "; ".join(
        f"{budget} matrices {', '.join(f'degree {k.degree} {k}' for k in known)}" for budget, known in budgets.items()
    )


def _by_count(counts: Sequence[tuple[Case, Mapping[str, Any]]]) -> dict[str, str]:
    return {
        f"{family}, {budget} matrices, {count} a block": " or ".join(
            map(
                str,
                _perhaps_best([f for case, f in counts if case.family == family and _spent(case) == (budget, count)]),
            )
        )
        for family in _COUNTED
        for count, budget in (("d-1", 12), ("d+1", 12), ("d+1", 20))
    }


def _spent(case: Case) -> tuple[int, str]:
    return sum(int(matrices_per_block(degree, case.matrices)) for degree in case.degrees), case.matrices


def _perhaps_best(family: Sequence[Mapping[str, Any]]) -> list[int]:
    """The block degrees whose rank may be the largest: a lower bound may stand for as much as its cap."""
    most = max(found["rank"] for found in family)
    return [f["degrees"][0] for f in family if (f["rank"] if f["exact"] else f["cap"]) >= most]


def _pairs(values: Mapping[str, int]) -> str:
    return ", ".join(f"({name}) {value}" for name, value in values.items())
