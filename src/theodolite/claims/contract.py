"""What a claim is, and the verdict on one from the rows of its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from theodolite.lab.cell import Cell, Row
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
class Claim:
    """`rule` says in words what `decide` computes; it is written before the run, and `changed` records a later change
    of it or of the cells. A `heavy` claim trains for minutes: the survey leaves it to its full preset, and its cells
    are run first. `nets`: those of its cells that no registry knows, as `file.py:Name`."""

    id: str
    statement: str
    source: str
    rule: str
    cells: Callable[[], Sequence[Cell]] = field(repr=False)
    decide: Decide = field(repr=False)
    changed: str = ""
    heavy: bool = False
    nets: tuple[str, ...] = ()


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
) -> Callable[[Decide], Decide]:
    """Decorator: registers a claim that the function decides."""

    def add(decide: Decide) -> Decide:
        claims.add(id, Claim(id, statement, source, rule, cells, decide, changed, heavy, nets))
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
    """Every claim: id, statement, source and the rule it is decided by.

    Examples:
        >>> [claim["id"] for claim in list_claims()][:3]
        ['T1', 'T2', 'T3']
    """
    return [{"id": c.id, "statement": c.statement, "source": c.source, "rule": c.rule} for c in ordered()]


def judge(claim: Claim, rows: Sequence[Row]) -> dict[str, Any]:
    """The verdict on the rows of a claim's cells, with what it is about."""
    broken = [row.error for row in rows if row.error]
    verdict = Verdict("not run", None, None, f"a cell failed: {broken[0]}") if broken else claim.decide(rows)
    return {
        "id": claim.id,
        "verdict": verdict.outcome,
        "predicted": verdict.predicted,
        "measured": verdict.measured,
        "detail": verdict.detail,
        "statement": claim.statement,
        "source": claim.source,
        "rule": claim.rule,
        "cells": len(rows),
        "seconds": round(sum(row.facts.get("seconds", 0.0) for row in rows), 3),
    }
