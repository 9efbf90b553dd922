"""What a claim is: a statement of a source, in its words, and the registered rule that decides it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from theodolite.claims.rule import EXACT, Decide, Rule, Size, Statistics
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell
from theodolite.registry import Registry

Kind = Literal["theorem", "bound", "published table", "observation", "conjecture", "hope", "task", "ours"]
FINDINGS: tuple[Kind, ...] = ("hope", "task", "ours")  # what nobody claims: `not a claim`, and what was found


@dataclass(frozen=True)
class Claim:
    """`statement` says in a sentence what `quote`, the words of the `source`, claim; `kind` is what it is there.

    A `heavy` claim trains for minutes: the survey leaves it to its full preset, and its cells are run first. `nets`:
    those of its cells that no registry knows, as `file.py:Name`. `full`: the rule at the size of a published table.
    """

    id: str
    statement: str
    quote: str
    source: str
    kind: Kind
    quick: Rule
    heavy: bool = False
    nets: tuple[str, ...] = ()
    full: Rule | None = None

    @property
    def rule(self) -> str:
        return self.quick.words

    @property
    def cells(self) -> Callable[[], Sequence[Cell]]:
        return self.quick.cells

    @property
    def decide(self) -> Decide:
        return self.quick.decide

    @property
    def sizes(self) -> tuple[Size, ...]:
        return ("quick",) if self.full is None else ("quick", "full")

    def at(self, size: Size) -> Rule:
        if size == "quick":
            return self.quick
        if self.full is None:
            known = ", ".join(c.id for c in ordered() if c.full is not None)
            raise BadInput(f"{self.id} has one size only: leave out the preset, or name some of {known}")
        return self.full


_HOMES = (
    "tensors.t1_t2_t3_rank",
    "tensors.t4_t5_bounds",
    "tensors.t6_t7_t8_bottlenecks",
    "tensors.t9_regimes",
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
    "expressivity.g21_translation",
    "sparsity.s1_s10_approximation",
    "sparsity.s2_s3_s4_known_graph",
    "sparsity.s5_s13_masks",
    "sparsity.s6_selection",
    "sparsity.s7_s11_s12_structure",
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
    *,
    quote: str,
    kind: Kind,
    statistics: Statistics = EXACT,
    heavy: bool = False,
    nets: tuple[str, ...] = (),
    full: Rule | None = None,
) -> Callable[[Decide], Decide]:
    """Decorator: registers a claim that the function decides."""

    def add(decide: Decide) -> Decide:
        quick = Rule(rule, cells, decide, statistics)
        claims.add(id, Claim(id, statement, quote, source, kind, quick, heavy, nets, full))
        return decide

    return add


def ordered() -> list[Claim]:
    """All claims: source by source, by their numbers there; those of other names come last, as they were registered."""

    def place(claim: Claim) -> tuple[int, int, str]:
        found = re.fullmatch(rf"([{_SOURCES}])(\d+)([a-z]?)", claim.id)
        return (_SOURCES.index(found[1]), int(found[2]), found[3]) if found else (len(_SOURCES), 0, "")

    return sorted((claim for _, claim in claims.items()), key=place)
