"""What a claim is, and the verdict on one from the rows of its cells."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from theodolite.errors import BadInput
from theodolite.lab.cell import Cell, Row
from theodolite.measurement import canonical
from theodolite.registry import Registry

Outcome = Literal["holds", "fails", "undecided", "not run"]


@dataclass(frozen=True)
class Verdict:
    """`predicted` and `measured` are plain values that belong together; `detail` explains them in a sentence or two."""

    outcome: Outcome
    predicted: Any
    measured: Any
    detail: str


Decide = Callable[[Sequence[Row]], Verdict]


@dataclass(frozen=True)
class FullSize:
    """A claim at the size of its published table: `cells` of a first stage; `further`, given their rows, those of a
    second and last; `decide` is given the rows of both."""

    rule: str
    cells: Callable[[], Sequence[Cell]]
    further: Callable[[Sequence[Row]], Sequence[Cell]]
    decide: Decide

    def record(self, cells: Sequence[Cell]) -> str:
        """A hash of the rule and of what is measured first: it changes if one of them does."""
        text = canonical({"rule": self.rule, "cells": [cell.key for cell in cells]})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Claim:
    """`rule` says in words what `decide` computes; it is written before the run, and `changed` records a later change
    of it or of the cells. A `heavy` claim trains for minutes: the survey leaves it to its full preset, and its cells
    are run first. `nets`: those of its cells that no registry knows, as `file.py:Name`. `full`: the same claim at the
    size of its published table, with a rule of its own."""

    id: str
    statement: str
    source: str
    rule: str
    cells: Callable[[], Sequence[Cell]] = field(repr=False)
    decide: Decide = field(repr=False)
    changed: str = ""
    heavy: bool = False
    nets: tuple[str, ...] = ()
    full: FullSize | None = field(default=None, repr=False)


_HOMES = (
    "tensors.t1_t2_t3_rank",
    "tensors.t4_t5_bounds",
    "tensors.t6_t7_t8_bottlenecks",
    "tensors.t10_exact_law",
    "degree.p1_best_degree",
    "degree.p2_trained",
    "degree.p3_real_degree",
    "degree.p4_growth",
    "degree.p5_mixer",
    "degree.p6_monomials",
    "degree.p7_p9_p10_epsilon",
    "degree.p8_ablation",
    "expressivity.g1_g2_g4_signal",
    "expressivity.g3_g5_to_g8_failures",
    "expressivity.g9_to_g11_g19_circuits",
    "expressivity.g12_sawtooth",
    "expressivity.g13_g14_g17_g18_limits",
    "expressivity.g15_g16_g20_hierarchy",
    "sparsity.s1_s10_approximation",
    "sparsity.s2_s3_s4_known_graph",
    "sparsity.s5_s13_masks",
    "sparsity.s6_s7_s11_s12_structure",
    "sparsity.s8_s9_attention",
)
claims: Registry[Claim] = Registry("claim", homes=[f"theodolite.claims.{home}" for home in _HOMES])
_SOURCES = "TPGS"

EXPRESSIVITY = "Expressivity, complexity, learnability, "  # the source of the claims G; a place in it follows


def claim(
    id: str,
    statement: str,
    source: str,
    rule: str,
    cells: Callable[[], Sequence[Cell]],
    changed: str = "",
    heavy: bool = False,
    nets: tuple[str, ...] = (),
    full: FullSize | None = None,
) -> Callable[[Decide], Decide]:
    """Decorator: registers a claim that the function decides."""

    def add(decide: Decide) -> Decide:
        claims.add(id, Claim(id, statement, source, rule, cells, decide, changed, heavy, nets, full))
        return decide

    return add


def outcome(good: bool, decided: bool = True) -> Outcome:
    return "undecided" if good and not decided else "holds" if good else "fails"


def ordered() -> list[Claim]:
    """All claims: source by source, by their numbers there; those of other names come last, as they were registered."""

    def place(claim: Claim) -> tuple[int, int]:
        source, number = claim.id[0], claim.id[1:]
        known = source in _SOURCES and number.isdigit()
        return (_SOURCES.index(source), int(number)) if known else (len(_SOURCES), 0)

    return sorted((claim for _, claim in claims.items()), key=place)


def list_claims() -> list[dict[str, str]]:
    """Every claim: id, statement, source and the rule it is decided by, at full size too where there is one.

    Examples:
        >>> [claim["id"] for claim in list_claims()][:3]
        ['T1', 'T2', 'T3']
    """
    return [
        {"id": c.id, "statement": c.statement, "source": c.source, "rule": c.rule}
        | ({} if c.full is None else {"rule_at_full_size": c.full.rule})
        for c in ordered()
    ]


def at_full_size(claim: Claim) -> FullSize:
    if claim.full is None:
        known = ", ".join(c.id for c in ordered() if c.full is not None)
        raise BadInput(f"{claim.id} has one size only: leave out the preset, or name some of {known}")
    return claim.full


def judge(claim: Claim, rows: Sequence[Row], further: Sequence[Row] | None = None) -> dict[str, Any]:
    """The verdict on the rows of a claim's cells, with what it is about; with rows of a second stage, none perhaps, by
    the rule at full size."""
    full = None if further is None else at_full_size(claim)
    first, rows = rows, [*rows, *(further or ())]
    broken = [row.error for row in rows if row.error]
    decide = claim.decide if full is None else full.decide
    verdict = Verdict("not run", None, None, f"a cell failed: {broken[0]}") if broken else decide(rows)
    return {
        "id": claim.id,
        "verdict": verdict.outcome,
        "predicted": verdict.predicted,
        "measured": verdict.measured,
        "detail": verdict.detail,
        "statement": claim.statement,
        "source": claim.source,
        "rule": claim.rule if full is None else full.rule,
        **({} if full is None else {"record": full.record([row.cell for row in first])}),
        "cells": len(rows),
        "seconds": round(sum(row.facts.get("seconds", 0.0) for row in rows), 3),
    }
