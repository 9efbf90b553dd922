"""Verdicts that were kept: results of `claims check` in files of JSON, one for every claim and size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from theodolite.claims.contract import Claim, claims, ordered
from theodolite.claims.records import registered
from theodolite.claims.rule import Size
from theodolite.errors import BadInput
from theodolite.files import json_fault, refuse_endless, write_text
from theodolite.measurement import finite

Result = Mapping[str, Any]
_SAID = ("holds", "fails")


def keep(file: str | Path, results: Iterable[Result]) -> None:
    """Put results into a file of them, in the place of earlier ones of the same claim and record; what no registered
    rule covers any more is dropped."""
    path = Path(file)
    before = [result for result in (_results(path) if path.exists() else []) if _sizes(result)]
    merged = {(r["id"], r["record"]): r for r in (*before, *results)}
    order = [claim.id for claim in ordered()]
    sorted_ = sorted(merged.values(), key=lambda r: order.index(r["id"]) if r["id"] in order else len(order))
    text = json.dumps(
        {"benchmark": "theodolite claims check", "results": finite(sorted_)}, indent=1, ensure_ascii=False
    )
    write_text(path, text + "\n")


def read(files: Sequence[str | Path]) -> dict[tuple[str, Size], Result]:
    """By claim and size what was measured by its registered rule; results of an earlier rule are left out, and of
    several by the same rule the last counts."""
    found: dict[tuple[str, Size], Result] = {}
    for result in (r for file in files for r in _results(Path(file))):
        found |= {(result["id"], size): result for size in _sizes(result)}
    return found


def _sizes(result: Result) -> list[Size]:
    """Of the claim's rules those that it was decided by, if they are registered still."""
    if result["id"] not in claims:
        return []
    sizes: list[Size] = []
    for size in claims[result["id"]].sizes:
        record = registered(result["id"], size)
        if record is not None and record.covers(result["record"]):
            sizes.append(size)
    return sizes


def standing(kept: Mapping[tuple[str, Size], Result]) -> list[dict[str, Any]]:
    """Every claim with its verdict: at full size where that decided it, else of the small run.

    Examples:
        >>> one = {"id": "S8", "verdict": "holds", "detail": "alike"}
        >>> [(c["verdict"], c["size"]) for c in standing({("S8", "full"): one}) if c["id"] == "S8"]
        [('holds', 'full')]
    """
    return [_standing(claim, kept) for claim in ordered()]


def _standing(claim: Claim, kept: Mapping[tuple[str, Size], Result]) -> dict[str, Any]:
    own: dict[Size, Result] = {size: kept[claim.id, size] for size in claim.sizes if (claim.id, size) in kept}
    decided: list[Size] = [size for size in reversed(claim.sizes) if size in own and own[size]["verdict"] in _SAID]
    told: list[Size] = [*decided, *own]
    size = told[0] if told else None
    verdict = "not run" if size is None else own[size]["verdict"]
    return {"id": claim.id, "statement": claim.statement, "verdict": verdict, "size": size, "results": own}


def _results(path: Path) -> Sequence[Result]:
    refuse_endless(path)
    try:
        file = json.loads(path.read_text(encoding="utf-8"))
        made = file.get("hardware", {})
        known = {"finished": made.get("date"), "devices": [made[part] for part in ("gpu", "cpu") if part in made][:1]}
        found = [{**known, **result} for result in file["results"]]
        if all({"id", "verdict", "detail", "record"} <= r.keys() for r in found):
            return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"'{path}' is no file of results of `theodolite claims check` ({json_fault(error)}): give one"
        ) from error
    raise BadInput(f"'{path}' holds results without id, verdict, detail or record: give a file of `claims check`")
