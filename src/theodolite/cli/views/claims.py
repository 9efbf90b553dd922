"""The verdicts on claims as a page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import claims
from theodolite.report.page.template import environment
from theodolite.surveys.scoreboard import tally
from theodolite.version import __version__


def claims_page(results: Sequence[Mapping[str, Any]], device: str, date: str, version: str = __version__) -> str:
    """`docs/claims.md` from what `check_claims` gave."""
    shown = [{**result, **_about(result["id"]), "detail": _cell(result["detail"])} for result in results]
    template = environment("theodolite.cli.views").get_template("claims.md.j2")
    page = template.render(results=shown, tally=tally(results), version=version, device=device, date=date)
    return page.strip() + "\n"


def _about(id: str) -> dict[str, str | None]:
    claim = claims[id]
    return {"changed": claim.changed, "full": None if claim.full is None else claim.full.rule}


def _cell(text: str) -> str:
    """A text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
