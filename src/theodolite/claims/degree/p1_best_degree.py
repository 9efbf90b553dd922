"""Claim P1 of the degree paper, on its exact side: is degree 3 the best degree of a block?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import Verdict, claim, outcome
from theodolite.claims.degree.cases import ATTENTION, CONNECTED, SOURCE, Case, text
from theodolite.lab.cell import Cell, Row
from theodolite.theory.degree import COUNTS, best_degree, matrices_per_block

_BUDGET = 12
_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fully connected, 1 input a side, width 2": (CONNECTED, {"features": 2, "width": 2}),
    "fully connected, 2 inputs a side, width 2": (CONNECTED, {"features": 4, "width": 2}),
    "attention, 1 token a side, width 2": (ATTENTION, {"tokens": 2, "width": 2}),
    "attention, 2 tokens a side, width 1": (ATTENTION, {"tokens": 4, "width": 1}),
}
_COUNTED = ("fully connected, 1 input a side, width 2", "attention, 2 tokens a side, width 1")
_DIRECT = "a first block that reads 4 features directly, width 2"
_ORDERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "fully connected, 2 inputs a side, width 2": (CONNECTED, {"features": 4, "width": 2}, (3, 3, 2)),
    "attention, 3 tokens a side, width 2": (ATTENTION, {"tokens": 6, "width": 2}, (3, 2)),
    "attention, 2 tokens a side, width 1": (ATTENTION, {"tokens": 4, "width": 1}, (3, 3, 2)),
}


def _blocks(degree: int, budget: int, count: str = "d") -> tuple[int, ...]:
    return (degree,) * (budget // int(matrices_per_block(degree, count)))


def _p1_main() -> list[Case]:
    return [
        Case(family, net, shape, _blocks(degree, _BUDGET))
        for family, (net, shape) in _FAMILIES.items()
        for degree in (2, 3, 4)
    ]


def _p1_counts() -> list[Case]:
    """The other two counts, wherever a degree's matrices divide the budget; 800 points tell the best apart."""
    return [
        Case(family, *_FAMILIES[family], _blocks(degree, budget, count), count, draws=2, points=800)
        for family in _COUNTED
        for count, budget, degrees in (("d-1", 12, (2, 3, 4, 5)), ("d+1", 12, (2, 3, 5)), ("d+1", 20, (3, 4)))
        for degree in degrees
    ]


def _p1_direct() -> list[Case]:
    """Twice as many features as the width cost the first block twice: d·(L + 1) matrices for L blocks."""
    shape = {"features": 4, "width": 2, "embed": False}
    return [Case(_DIRECT, CONNECTED, shape, (degree,) * (_BUDGET // degree - 1)) for degree in (2, 3, 4)]


def _p1_orders() -> list[Case]:
    return [
        Case(family, net, shape, order, draws=2)
        for family, (net, shape, degrees) in _ORDERS.items()
        for order in sorted(set(itertools.permutations(degrees)))
    ]


def _p1_cells() -> list[Cell]:
    cases = [*_p1_main(), *_p1_counts(), *_p1_direct(), *_p1_orders()]
    lines = [Cell("line-degree", {"net": case.net, "shape": case.full_shape}) for case in _p1_main()]
    return [case.cell for case in cases] + lines


@claim(
    "P1",
    "With the sum of the blocks' degrees fixed, degree 3 per block is the best whole degree; the whole has degree d^p.",
    SOURCE + "Conclusion 1.1 and Section 6.2",
    "12 matrices, d of them a block (Eq. 4), equal measured parameters: holds if among degrees 2, 3 and 4 degree 3 has "
    "the largest total degree, measured along a line, and the largest exact rank in each of four families (fully "
    "connected with 1 and with 2 inputs a side, attention with 1 and with 2 tokens a side); fails if another degree "
    "has the larger rank in one of them. Reported beside: d−1 and d+1 matrices a block, a first block that reads a "
    "wide input directly, every order of mixed blocks.",
    _p1_cells,
    changed="The families were chosen after exploratory runs, with most of their ranks known.",
)
def _p1(rows: Sequence[Row]) -> Verdict:
    groups = (_p1_main(), _p1_counts(), _p1_direct(), _p1_orders())
    reading = iter(rows)
    main, counts, direct, orders = ([(case, case.found(next(reading))) for case in group] for group in groups)
    lines = [row["degree"] for row in reading]
    families = {name: [found for case, found in main if case.family == name] for name in _FAMILIES}
    as_predicted = all(line == found["total degree"] for line, (_, found) in zip(lines, main, strict=True))
    equal = all(len({found["parameters"] for found in family}) == 1 for family in families.values())
    highest = all(_best(family, "total degree") == [3] for family in families.values())
    winners = {name: _best(family, "rank") for name, family in families.items()}
    lost = [name for name, best in winners.items() if best != [3]]
    known = all(found["exact"] for family in families.values() for found in family)
    by_count = {
        f"{family}, {budget} matrices, {count} a block": [
            found for case, found in counts if case.family == family and _spent(case) == (budget, count)
        ]
        for family in _COUNTED
        for count, budget in (("d-1", 12), ("d+1", 12), ("d+1", 20))
    }
    others = {name: " or ".join(map(str, _perhaps_best(found))) for name, found in by_count.items()}
    read = [found for _, found in direct]
    by_order = {name: {text(c.degrees): f["rank"] for c, f in orders if c.family == name} for name in _ORDERS}
    return Verdict(
        outcome(as_predicted and equal and highest and not lost, known),
        predicted={"best degree": {count: best_degree(count) for count in COUNTS}, "ties": "2 and 4 with d matrices"},
        measured={
            "d matrices a block": families,
            "other counts": by_count,
            _DIRECT: read,
            "rank by order of blocks": by_order,
        },
        detail=f"{_BUDGET} matrices, d a block. Total degrees {_listed(main[:3], 'total degree')} for degrees 2, 3, 4. "
        f"Ranks: {'; '.join(f'{name} {_ranks(family)}' for name, family in families.items())}. Degree 3 is best in "
        f"{len(families) - len(lost)} of {len(families)} families"
        f"{'; not in ' + ' and '.join(lost) if lost else ''}. Fully connected ranks are those of any polynomial of "
        f"the degree: arithmetic. Other counts: "
        f"{'; '.join(f'{name}: best {best}' for name, best in others.items())}. "
        f"{_DIRECT.capitalize()}: {_ranks(read)}, best {text(_best(read, 'rank'))}. Orders: "
        f"{'; '.join(f'{name} {_pairs(ranks)}' for name, ranks in by_order.items())}.",
    )


def _spent(case: Case) -> tuple[int, str]:
    return sum(int(matrices_per_block(degree, case.matrices)) for degree in case.degrees), case.matrices


def _best(family: Sequence[Mapping[str, Any]], what: str) -> list[int]:
    """The block degrees whose net has the most of it."""
    most = max(found[what] for found in family)
    return [found["degrees"][0] for found in family if found[what] == most]


def _perhaps_best(family: Sequence[Mapping[str, Any]]) -> list[int]:
    """The block degrees whose rank may be the largest: a lower bound may stand for as much as its cap."""
    most = max(found["rank"] for found in family)
    return [f["degrees"][0] for f in family if (f["rank"] if f["exact"] else f["cap"]) >= most]


def _ranks(family: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{'' if found['exact'] else '≥ '}{found['rank']}" for found in family)


def _listed(pairs: Sequence[tuple[Case, Mapping[str, Any]]], what: str) -> str:
    return ", ".join(str(found[what]) for _, found in pairs)


def _pairs(values: Mapping[str, int]) -> str:
    return ", ".join(f"({name}) {value}" for name, value in values.items())
