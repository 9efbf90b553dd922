"""The verdicts on claims as a page of the documentation: what is registered, and what was measured and kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.claims.archive import Result, standing
from theodolite.claims.contract import Claim, ordered
from theodolite.claims.records import Record, registered
from theodolite.claims.rule import Rule, Size
from theodolite.report.page.template import environment
from theodolite.surveys.scoreboard import tally

_UNMEASURED = "Not measured by the registered rule yet."


def claims_page(kept: Mapping[tuple[str, Size], Result]) -> str:
    """`docs/claims.md` from the registry and the results that were kept."""
    stand = standing(kept)
    template = environment("theodolite.cli.views").get_template("claims.md.j2")
    page = template.render(
        rows=[_row(one) for one in stand], claims=[_about(claim) for claim in ordered()], tally=tally(stand)
    )
    return page.strip() + "\n"


def _row(one: Mapping[str, Any]) -> dict[str, Any]:
    results: Mapping[Size, Result] = one["results"]
    size: Size = one["size"] or "quick"
    parts = [
        (f"*At full size ({_where(result)}):* {result['verdict']}. " if name == "full" else "") + result["detail"]
        for name, result in results.items()
    ]
    record = registered(one["id"], size)
    return {
        "id": one["id"],
        "verdict": one["verdict"],
        "record": "–" if record is None else f"`{record.hash[:8]}`, {_day(record.date)}",
        "measured": _cell(" ".join(parts) or _UNMEASURED),
    }


def _where(result: Result) -> str:
    """When and on what it was measured, as far as the result says."""
    said = [_day(result["finished"])] if result.get("finished") else []
    return ", ".join([*result.get("devices", []), *said]) or "see `benchmarks/results/`"


def _about(claim: Claim) -> dict[str, Any]:
    rules = {size: (claim.at(size), registered(claim.id, size)) for size in claim.sizes}
    return {
        "id": claim.id,
        "kind": claim.kind,
        "source": claim.source,
        "statement": claim.statement,
        "quote": claim.quote,
        "rules": {size: _ruled(rule, record) for size, (rule, record) in rules.items()},
    }


def _ruled(rule: Rule, record: Record | None) -> dict[str, Any]:
    history = [] if record is None else record.history
    return {
        "words": rule.words,
        "statistics": rule.statistics,
        "record": "none" if record is None else f"`{record.hash}`, {_day(record.date)}",
        "history": [
            f"{'' if each.hash is None else f'(until then `{each.hash}`) '}{each.why.rstrip('.')}." for each in history
        ],
    }


def _day(moment: str) -> str:
    return moment[:10]


def _cell(text: str) -> str:
    """A text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
