"""The verdicts on claims as a page of the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2

from theodolite.claims.contract import claims
from theodolite.version import __version__


def claims_page(results: Sequence[Mapping[str, Any]], device: str, date: str, version: str = __version__) -> str:
    """`docs/claims.md` from what `check_claims` gave."""
    counts = Counter(result["verdict"] for result in results)
    order = ("holds", "fails", "undecided", "not run")
    tally = f"{len(results)} claims: {', '.join(f'{v} {counts[v]}' for v in order if counts[v])}."
    template = resources.files("theodolite.report").joinpath("templates", "claims.md.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown = [
        {**result, "detail": _cell(result["detail"]), "changed": claims[result["id"]].changed} for result in results
    ]
    page = environment.from_string(template).render(
        results=shown, tally=tally, version=version, device=device, date=date
    )
    return page.lstrip().rstrip() + "\n"


def _cell(text: str) -> str:
    """A text that stays in its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
