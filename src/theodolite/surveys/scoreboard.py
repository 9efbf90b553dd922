"""The section on theory itself: every claim of the sources, decided from numbers by the rule fixed beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import Claim, claims, ordered
from theodolite.claims.judge import judge
from theodolite.lab.cell import Cell, Row
from theodolite.report import Column, Summary, Table
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Setting

_COLUMNS = (
    Column("id", "claim", numeric=False),
    Column("statement", "statement", "as the source makes it", numeric=False),
    Column("verdict", "verdict", "computed from the measured numbers by the rule, never typed in", numeric=False),
    Column("agrees", "theory", "holds or fails; a dash where the numbers do not decide", False, "agreement"),
    Column("detail", "what was measured", numeric=False),
    Column("rule", "rule", "fixed before the run", numeric=False),
    Column("record", "record", "hash of rule, statistics and cells, and since when they are so", numeric=False),
    Column("source", "source", numeric=False),
)
_MEANING = (
    "These claims are about theory, not about the networks of this survey: each is a statement of a source with a rule "
    "that was fixed before anything was measured. `fails` is a finding; `undecided` means that the numbers neither "
    "contradict nor confirm it, `not a claim` that the source asks or hopes, or that the statement is ours."
)


class ScoreboardSection:
    id = "claims"
    title = "Theory scoreboard"
    of_nets = False

    def applies(self, _net: Candidate) -> str | None:
        return "it is about theory"

    def plan(self, _net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        """Not in a quick survey: the claims do not depend on the networks."""
        return [cell for claim in decided(preset) for cell in claim.cells()]

    def seconds(self, _cell: Cell) -> float:
        return 0.2

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        found = {row.cell.key: row for row in rows}
        results = []
        for claim in decided(setting.preset):
            of_claim = [found[cell.key] for cell in claim.cells() if cell.key in found]
            results.append(judge(claim, of_claim))
        return scoreboard(results)


def decided(preset: Preset) -> list[Claim]:
    """Claims that train for minutes are left to the full preset."""
    if preset == "quick":
        return []
    return [claim for claim in ordered() if preset == "full" or not claim.heavy]


def tally(results: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(result["verdict"] for result in results)
    found = [
        f"{verdict} {counts[verdict]}" for verdict in ("holds", "fails", "undecided", "not run") if counts[verdict]
    ]
    asked = counts["not a claim"]
    said = f"{len(results) - asked} claims: {', '.join(found)}."
    return said + (f" Beside them {asked} that no source claims: tasks, hopes and findings of ours." if asked else "")


def scoreboard(results: Sequence[Mapping[str, Any]]) -> Summary:
    """Verdicts as a section of a report."""
    failed = [f"{r['id']}: {r['statement']}" for r in results if r["verdict"] == "fails"]
    headline = f"Of {tally(results)}" + (f" What fails: {' '.join(failed)}" if failed else "")
    body = [
        {
            **{name: r[name] for name in ("id", "statement", "verdict", "detail", "rule", "source")},
            "agrees": _mark(r),
            "record": f"{r['record']} since {r['registered'][:10]}" if r["registered"] else r["record"],
        }
        for r in results
    ]
    ids = "--all" if len(results) == len(claims) else " ".join(str(r["id"]) for r in results)
    table = Table("Claims", _COLUMNS, body, command=f"theodolite claims check {ids}")
    return Summary(headline, [table], notes=(_MEANING,))


def _mark(result: Mapping[str, Any]) -> bool | None:
    return {"holds": True, "fails": False}.get(result["verdict"])


section = ScoreboardSection()
