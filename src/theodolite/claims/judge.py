"""The verdict on a claim from the rows of its cells, by its registered rule and by rows measured after that alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.claims.contract import FINDINGS, Claim, ordered
from theodolite.claims.records import Record, registered
from theodolite.claims.rule import Rule, Verdict
from theodolite.lab.cell import Row
from theodolite.notebook import Entries


def list_claims() -> Entries[dict[str, Any]]:
    """Every claim: id, statement, the source's words and where they stand, what kind of statement it is, the rule it is
    decided by with its statistics and its registered record, at full size too where there is one.

    Examples:
        >>> [claim["id"] for claim in list_claims()][:3]
        ['T1', 'T2', 'T3']
    """
    found = [
        {**_about(c), **_registered(c.quick, registered(c.id))}
        | ({} if c.full is None else {"full": _registered(c.full, registered(c.id, "full"))})
        for c in ordered()
    ]
    return Entries("claims", found)


def judge(claim: Claim, rows: Sequence[Row], further: Sequence[Row] | None = None) -> dict[str, Any]:
    """The verdict on the rows of a claim's cells, with what it is about; with rows of a second stage, none perhaps, by
    the rule at full size."""
    size = "quick" if further is None else "full"
    rule, record = claim.at(size), registered(claim.id, size)
    hash = rule.record([row.cell for row in rows])
    rows = [*rows, *(further or ())]
    reason = _refused(claim, rows, hash, record)
    verdict = rule.decide(rows) if reason is None else Verdict("not run", None, None, reason)
    if verdict.outcome != "not run" and (verdict.outcome == "not a claim") != (claim.kind in FINDINGS):
        raise ValueError(f"{claim.id} is a {claim.kind} and cannot be said to be '{verdict.outcome}'")
    return {
        "id": claim.id,
        "verdict": verdict.outcome,
        "predicted": verdict.predicted,
        "measured": verdict.measured,
        "detail": verdict.detail,
        **_about(claim),
        **_registered(rule, record),
        "record": hash,
        "cells": len(rows),
        "seconds": round(sum(row.facts.get("seconds", 0.0) for row in rows), 3),
        "finished": max((row.facts["finished"] for row in rows if "finished" in row.facts), default=None),
        "devices": sorted({device for row in rows for device in _devices(row)}),
    }


def _devices(row: Row) -> Sequence[str]:
    """Where it was measured; a measure that reads what was trained elsewhere says where that was."""
    return row.result.get("devices") or [str(row.facts["device"])] if "device" in row.facts else []


def _refused(claim: Claim, rows: Sequence[Row], hash: str, record: Record | None) -> str | None:
    """Why these rows decide nothing."""
    broken = [row.error for row in rows if row.error]
    if broken:
        return f"a cell failed: {broken[0]}"
    if record is not None and record.hash != hash:
        return (
            f"the rule or the cells ({hash}) are not the registered ones ({record.hash} of {record.date}): register "
            f'the change before you measure, `python -m theodolite.claims.records --update {claim.id} --why "…"`'
        )
    early = [row for row in rows if record is not None and not record.precedes(row.facts.get("finished"))]
    if record is not None and early:
        return (
            f"{len(early)} of {len(rows)} rows are from before the rule of {record.date} and do not count: measure "
            "anew, in another folder"
        )
    return None


def _about(claim: Claim) -> dict[str, Any]:
    return {name: getattr(claim, name) for name in ("id", "statement", "quote", "source", "kind")}


def _registered(rule: Rule, record: Record | None) -> dict[str, Any]:
    """The rule with its statistics, the hash of its record and since when it is so, None where nobody registered it."""
    about = {"rule": rule.words, **vars(rule.statistics)}
    return {**about, "record": record and record.hash, "registered": record and record.date}
