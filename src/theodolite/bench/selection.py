"""Which members of a store a filter means: by net, by task, by what became of them, or by any value they have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from theodolite.bench.columns import FLAT, SECTIONS, columns, shared
from theodolite.bench.summary import entry, summarise
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.cell import Row
from theodolite.lab.store.digest import SCORE, condition_name
from theodolite.lab.store.trained import Condition, Trained
from theodolite.lab.tally import STATUSES, Tallies
from theodolite.registry import unknown

if TYPE_CHECKING:
    import numpy as np

_HASHES = ("key", "source", "checkpoint")  # named by how they begin
_RATED = ("lr", "weight_decay", "status")  # by which members of a condition are put together
_MISSING = object()


@dataclass(frozen=True)
class Chosen:
    """Members of an open store, at best without one of their rows being read.

    They are those of `conditions` that have all of `wanted`, values by column; `rows`, with their numbers, where that
    says more than rates and status, and so had to be looked up row by row.
    """

    trained: Trained
    conditions: Sequence[Condition]
    wanted: Mapping[str, Any] = field(default_factory=dict)
    statuses: Sequence[str] = ()
    rows: Sequence[tuple[int, Row]] | None = None

    @cached_property
    def tallies(self) -> dict[int, Tallies]:
        """What they come to, by the number of their condition; not where they were looked up row by row."""
        return self.tallies_of(self.conditions)

    def tallies_of(self, conditions: Sequence[Condition]) -> dict[int, Tallies]:
        rated = {name: value for name, value in self.wanted.items() if name in _RATED}
        whole = len(conditions) == len(self.trained.conditions)
        found: dict[int, Tallies] = {}
        for own, tallies in self.trained.tallies(None if whole else conditions).items():
            fitting = {
                key: one
                for key, one in tallies.items()
                if all(key[_RATED.index(name)] == value for name, value in rated.items())
                and (not self.statuses or key[2] in self.statuses)
            }
            if fitting:
                found[own] = fitting
        return found

    @cached_property
    def count(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        if not self.rated:
            return sum(one.members for one in self.conditions)
        return sum(one.members for tallies in self.tallies.values() for one in tallies.values())

    @property
    def rated(self) -> bool:
        """Whether rates or status leave some members of a condition out."""
        return bool(self.statuses) or any(name in _RATED for name in self.wanted)

    def summary(self) -> list[dict[str, Any]]:
        """One entry per net × task (× settings that differ), in the order of first appearance."""
        return [found for _, found in self.page(0, None)[0]]

    def page(self, begin: int, most: int | None) -> tuple[list[tuple[Condition, dict[str, Any]]], int]:
        """Some of these entries, each with its condition, and how many there are."""
        end = None if most is None else begin + most
        if self.rows is not None:
            rows: dict[str, list[Row]] = {}
            for _, row in self.rows:
                rows.setdefault(condition_name(row.cell.config), []).append(row)
            by_name = {one.name: one for one in self.conditions}
            shown = list(rows.items())[begin:end]
            return [(by_name[name], summarise(own)[0]) for name, own in shown], len(rows)
        if self.rated:
            first = {own: min(one.first for one in tallies.values()) for own, tallies in self.tallies.items()}
            chosen = sorted((one for one in self.conditions if one.number in first), key=lambda one: first[one.number])
        else:
            chosen = list(self.conditions)
        shown = chosen[begin:end]
        tallies = self.tallies if self.rated else self.tallies_of(shown)
        seeds = self._seeds(shown) if self.rated else {}
        made = [
            (one, entry(one.config, seeds.get(one.number, one.seeds), tallies[one.number]))
            for one in shown
            if one.number in tallies
        ]
        return made, len(chosen)

    def _seeds(self, conditions: Sequence[Condition]) -> dict[int, int]:
        """How many different ones. At one pair of rates every member has its own, so that nothing is looked up."""
        found, several = {}, []
        for one in conditions:
            tallies = self.tallies[one.number]
            members = sum(tally.members for tally in tallies.values())
            if len({key[:2] for key in tallies}) == 1 and members <= one.seeds:
                found[one.number] = members
            else:
                several.append(one)
        if several:
            import numpy as np

            scores = Chosen(self.trained, several, self.wanted, self.statuses).scores()
            found |= {own: len(np.unique(members["seed"])) for own, members in scores.items()}
        return found

    def scores(self) -> dict[int, np.ndarray]:
        """What a comparison needs of every member, by the number of its condition; as `SCORE` says."""
        import numpy as np

        found = {}
        only = None if self.rows is None else np.array([number for number, _ in self.rows], dtype=np.int64)
        for own, packed in self.trained.scores(self.conditions).items():
            members = unpacked(self.trained, packed)
            keep = np.ones(len(members), dtype=bool)
            if only is not None:
                keep &= np.isin(members["number"], only)
            for name in ("lr", "weight_decay"):
                if name in self.wanted:
                    keep &= members[name] == self.wanted[name]
            for allowed in (self.statuses, [self.wanted["status"]] if "status" in self.wanted else ()):
                if allowed:
                    keep &= np.isin(members["status"], [STATUSES.index(one) for one in allowed if one in STATUSES])
            if keep.any():
                found[own] = members if keep.all() else members[keep]
        return found

    def read(self, begin: int = 0, most: int | None = None, upto: int | None = None) -> list[Row]:
        """Whole rows, in the order of finishing: all, a page of them, or those up to the one of a number."""
        end = None if most is None else begin + most
        if self.rows is not None:
            found = list(self.rows[begin:end])
        elif self.rated:
            numbers = sorted(int(number) for members in self.scores().values() for number in members["number"])
            found = self.trained.rows(numbers=numbers[begin:end])
        elif most is None:
            found = self.trained.rows(self.conditions)
        else:
            found = self.trained.rows(numbers=self.trained.numbers(self.conditions, begin, most))
        return [row for number, row in found if upto is None or number <= upto]


def choose(
    trained: Trained,
    net: str | None = None,
    task: str | None = None,
    status: str | None = None,
    where: Mapping[str, Any] | None = None,
    among: Sequence[Condition] | None = None,
) -> Chosen:
    """`net`, `task` and `status` take several names with commas between them; `where` has values by column. A name is
    a column of `flat`, or an entry of the cell's shape, task_args, schedule or optimiser: `width`, or `shape.width`
    where two of them have one."""
    statuses = names(status)
    for one in statuses:
        if one not in STATUSES:
            raise UnknownName(unknown("status", one, STATUSES))
    conditions = trained.conditions if among is None else among
    if not conditions:
        return Chosen(trained, ())
    conditions = _called(_called(conditions, "net", names(net)), "task", names(task))
    if not where:
        return Chosen(trained, conditions, {}, statuses)
    tables = [shared(one.config) for one in conditions]
    known = list(dict.fromkeys((*FLAT, *(name for table in tables for name in table))))
    resolved = {}
    for name, value in where.items():
        column = _resolve(name, known)
        if column in resolved:
            raise BadInput(f"'{name}' is asked for twice: give it once")
        resolved[column] = value
    wanted: dict[str, Any] = {}
    for column, value in resolved.items():
        values = [table[column] for table in tables if column in table]
        if values:
            wanted[column] = _read(column, value, values)
    kept = [
        condition
        for condition, table in zip(conditions, tables, strict=True)
        if all(_equal(column, table.get(column, _MISSING), value) for column, value in wanted.items())
    ]
    chosen = Chosen(trained, kept, wanted, statuses)
    rest = {column: value for column, value in resolved.items() if column not in wanted}
    return _of_members(chosen, trained.member(min(one.first for one in conditions)), rest) if rest else chosen


def _of_members(chosen: Chosen, example: Mapping[str, Any], asked: Mapping[str, Any]) -> Chosen:
    """With what is asked of single members. Rows are read only where neither rates nor status say, and all of them
    only where there is no index either."""
    trained, conditions = chosen.trained, chosen.conditions
    easy = {column: _read(column, value, [example[column]]) for column, value in asked.items() if column in example}
    wanted = {**chosen.wanted, **easy}
    if not set(asked) - set(_RATED):
        return Chosen(trained, conditions, wanted, chosen.statuses)
    if isinstance(wanted.get("key"), str):
        rows = trained.rows(numbers=trained.of_key(conditions, wanted["key"]))
    elif type(wanted.get("seed")) is int:
        rows = trained.rows(numbers=trained.of_seed(conditions, wanted["seed"]))
    else:
        rows = trained.rows(conditions)
    tables = [columns(row) for _, row in rows]
    for column, value in asked.items():
        if column not in wanted:
            wanted[column] = _read(column, value, [table[column] for table in tables])
    kept = [
        one
        for one, table in zip(rows, tables, strict=True)
        if all(_equal(column, table.get(column, _MISSING), value) for column, value in wanted.items())
        and (not chosen.statuses or table["status"] in chosen.statuses)
    ]
    return Chosen(trained, conditions, wanted, chosen.statuses, kept)


def unpacked(trained: Trained, packed: bytes) -> np.ndarray:
    import numpy as np

    kind = np.dtype(SCORE)
    if not isinstance(packed, bytes) or len(packed) % kind.itemsize:
        raise trained.damaged()
    members = np.frombuffer(packed, dtype=kind)
    if members["status"].min() < 0 or members["status"].max() >= len(STATUSES):
        raise trained.damaged()
    return members


def names(text: str | None) -> list[str]:
    """`a,b` as a list without empty parts; nothing for None."""
    if text is None:
        return []
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise BadInput(f"'{text}' names nothing: give at least one name, or leave it out")
    return found


def _called(conditions: Sequence[Condition], kind: str, wanted: Sequence[str]) -> Sequence[Condition]:
    if not wanted:
        return conditions
    known = list(dict.fromkeys(one.config[kind] for one in conditions))
    for name in wanted:
        if name not in known:
            raise UnknownName(unknown(f"{kind} of these runs", name, known))
    return [one for one in conditions if one.config[kind] in wanted]


def _resolve(name: str, known: Sequence[str]) -> str:
    asked = name.strip().replace("-", "_")
    if asked.startswith("task."):
        asked = f"task_args.{asked.removeprefix('task.')}"
    if asked in known:
        return asked
    found = [f"{section}.{asked}" for section in SECTIONS if f"{section}.{asked}" in known]
    if len(found) > 1:
        raise BadInput(f"'{name}' may be {' or '.join(found)}: write which")
    if not found:
        short = dict.fromkeys(column.rpartition(".")[2] for column in known if column != "optimiser.name")
        raise UnknownName(unknown("column of these runs", name, short))
    return found[0]


def _read(column: str, value: Any, values: Sequence[Any]) -> Any:
    """`value` as something this column may hold; other kinds of value are refused, since they would match nothing."""
    kinds = {_kind(v) for v in values if v is not None}
    if value is None or (isinstance(value, str) and value.lower() in ("none", "null") and "text" not in kinds):
        return None
    if isinstance(value, str) and "text" not in kinds and kinds:
        try:
            value = json.loads(value.lower() if kinds == {"true or false"} else value)
        except (ValueError, RecursionError):
            raise _wrong_kind(column, value, values) from None
    if kinds and _kind(value) not in kinds:
        raise _wrong_kind(column, value, values)
    if column in ("net", "task", "status"):
        known = STATUSES if column == "status" else dict.fromkeys(values)
        if value not in known:
            raise UnknownName(unknown(f"{column} of these runs", value, known))
    return list(value) if isinstance(value, tuple) else value


def _wrong_kind(column: str, value: Any, values: Sequence[Any]) -> BadInput:
    example = next(v for v in values if v is not None)
    shown = example if isinstance(example, str) else json.dumps(example)
    return BadInput(f"'{column}' holds a {_kind(example)} such as {shown}, and '{value}' is none: give one")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list | tuple) else "group of values"


def _equal(column: str, value: Any, wanted: Any) -> bool:
    if column in _HASHES and isinstance(value, str) and isinstance(wanted, str):
        return bool(wanted) and value.startswith(wanted)
    return value is not _MISSING and value == wanted
