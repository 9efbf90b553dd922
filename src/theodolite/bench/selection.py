"""Which members a filter means: by net, by task, by what became of them, or by any value they have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.bench.summary import flat
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.cell import Row
from theodolite.registry import unknown

STATUSES = ("solved", "unsolved", "diverged")
SECTIONS = ("shape", "task_args", "schedule", "optimiser")  # of a training cell's configuration, beside:
_PLAIN = ("net", "task", "seed", "lr", "weight_decay", "source", "checkpoint", "net_version", "task_version")
_HASHES = ("key", "source", "checkpoint")  # named by how they begin
_MISSING = object()


def select(
    rows: Sequence[Row],
    net: str | None = None,
    task: str | None = None,
    status: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> list[Row]:
    """`net`, `task` and `status` take several names with commas between them; `where` as `conditions` reads it."""
    statuses = names(status)
    for one in statuses:
        if one not in STATUSES:
            raise UnknownName(unknown("status", one, STATUSES))
    if not rows:
        return []
    rows = _called(_called(rows, "net", names(net)), "task", names(task))
    wanted = conditions(rows, where or {})
    return [row for row in rows if meets(row, wanted) and (not statuses or row["status"] in statuses)]


def conditions(rows: Sequence[Row], where: Mapping[str, Any]) -> dict[str, Any]:
    """`where` with every name spelt out and every text read as what that column holds.

    A name is a column of `flat`, or an entry of the cell's shape, task_args, schedule or optimiser: `width`, or
    `shape.width` where two of them have one.
    """
    if not where or not rows:
        return {}
    tables = [columns(row) for row in rows]
    known = list(dict.fromkeys(name for table in tables for name in table))
    result: dict[str, Any] = {}
    for name, value in where.items():
        column = _resolve(name, known)
        if column in result:
            raise BadInput(f"'{name}' is asked for twice: give it once")
        result[column] = _read(column, value, [table[column] for table in tables if column in table])
    return result


def meets(row: Row, wanted: Mapping[str, Any]) -> bool:
    """Whether a member has these values; one without such a column has not."""
    if not wanted:
        return True
    table = columns(row)
    return all(_equal(column, table.get(column, _MISSING), value) for column, value in wanted.items())


def columns(row: Row) -> dict[str, Any]:
    """Everything a member can be chosen by: its settings, and what became of it."""
    return flat(row) | settings(row)


def settings(row: Row) -> dict[str, Any]:
    """What was decided before a member was trained, by column."""
    config = row.cell.config
    table = {name: config[name] for name in _PLAIN if name in config}
    for section in SECTIONS:
        table |= {f"{section}.{name}": value for name, value in config.get(section, {}).items()}
    return table


def names(text: str | None) -> list[str]:
    """`a,b` as a list without empty parts; nothing for None."""
    if text is None:
        return []
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise BadInput(f"'{text}' names nothing: give at least one name, or leave it out")
    return found


def _called(rows: Sequence[Row], kind: str, wanted: Sequence[str]) -> Sequence[Row]:
    if not wanted:
        return rows
    known = list(dict.fromkeys(row.cell.config[kind] for row in rows))
    for name in wanted:
        if name not in known:
            raise UnknownName(unknown(f"{kind} of these runs", name, known))
    return [row for row in rows if row.cell.config[kind] in wanted]


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
