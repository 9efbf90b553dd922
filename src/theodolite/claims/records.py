"""The registered records: of every rule its hash, since when it is so, and what it was before and why it changed.

    python -m theodolite.claims.records --update T4 P8 --why "shapes with more tokens"

registers the rules and cells of these claims as they are now. Rows measured before that do not count for them.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from theodolite.claims.contract import Claim, claims, ordered
from theodolite.claims.rule import Size
from theodolite.errors import BadInput
from theodolite.files import write_text

FILE = Path(__file__).with_name("records.json")


@dataclass(frozen=True)
class Change:
    """`hash` and `date` of what was so before, None where no record was kept yet; `why` it changed."""

    hash: str | None
    date: str | None
    why: str


@dataclass(frozen=True)
class Record:
    """`date`: since when rule and cells are these, to the second, UTC; `history`: what was before, oldest first."""

    hash: str
    date: str
    history: tuple[Change, ...] = ()

    def covers(self, hash: str | None) -> bool:
        """Whether it is this record's hash; one of the same date in its history is this record in another form."""
        return hash == self.hash or any(hash == each.hash and each.date == self.date for each in self.history)

    def precedes(self, finished: str | None) -> bool:
        """Whether something finished after the rule was fixed; what says no time was measured just now."""
        return finished is None or datetime.datetime.fromisoformat(finished) >= datetime.datetime.fromisoformat(
            self.date
        )


def registered(id: str, size: Size = "quick") -> Record | None:
    """None for claims of somebody else's, which have no record here.

    Examples:
        >>> registered("T8").covers(registered("T8").hash)
        True
    """
    return _read().get(id, {}).get(size)


@functools.cache
def _read() -> dict[str, dict[str, Record]]:
    return {
        id: {size: _record(entry) for size, entry in sizes.items()}
        for id, sizes in json.loads(FILE.read_text(encoding="utf-8")).items()
    }


def _record(entry: Mapping[str, Any]) -> Record:
    return Record(entry["hash"], entry["date"], tuple(Change(**change) for change in entry["history"]))


def unregistered(claim: Claim, size: Size) -> str | None:
    """The hash of a rule that is not the registered one; None where it is."""
    rule = claim.at(size)
    known, found = registered(claim.id, size), rule.record(rule.cells())
    return None if known is not None and known.hash == found else found


def update(ids: Sequence[str], why: str, file: Path = FILE) -> list[str]:
    """Register the rules of these claims as they are now; which of them had changed, as `T4 (quick)`."""
    if not why.strip():
        raise BadInput("a change needs its reason: say it with --why")
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entries: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    changed = []
    for claim in (claims[id] for id in ids):
        for size in claim.sizes:
            rule = claim.at(size)
            found, before = rule.record(rule.cells()), entries.get(claim.id, {}).get(size)
            if before is not None and before["hash"] == found:
                continue
            history = (
                [] if before is None else [*before["history"], asdict(Change(before["hash"], before["date"], why))]
            )
            entries.setdefault(claim.id, {})[size] = {"hash": found, "date": now, "history": history}
            changed.append(f"{claim.id} ({size})")
    kept = {claim.id: entries[claim.id] for claim in ordered() if claim.id in entries}
    write_text(file, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    _read.cache_clear()
    return changed


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Register the rules and cells of claims as they are now.")
    parser.add_argument("--update", nargs="+", metavar="ID", required=True, help="claims whose rule or cells changed")
    parser.add_argument("--why", required=True, help="the reason, which stays in their history")
    asked = parser.parse_args(arguments)
    changed = update(asked.update, asked.why)
    sys.stdout.write(f"registered: {', '.join(changed)}\n" if changed else "nothing had changed\n")


if __name__ == "__main__":
    main()
