"""Pairs of members: alike in task, seed, rates, optimiser and schedule, unlike in what two selectors name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.bench.selection import conditions, meets, names, select, settings
from theodolite.errors import BadInput
from theodolite.lab.cell import Row
from theodolite.measurement import canonical

_OWN = ("net", "net_version", "source", "checkpoint")  # what two nets cannot share; shapes neither
_SAME = {"steps": "schedule.steps", "batch": "schedule.batch", "optimiser": "optimiser.name"}  # under two names
_SHOWN = 3  # columns or values told in a sentence


@dataclass(frozen=True)
class Pairs:
    """`alone` are the chosen members of either side without a partner; `named` the columns the selectors name."""

    pairs: tuple[tuple[Row, Row], ...]
    alone: tuple[tuple[Row, ...], tuple[Row, ...]]
    named: frozenset[str]


def pair_members(
    rows: Sequence[Row], first: str, second: str, task: str | None = None, same_unseen: bool = False
) -> Pairs:
    """A selector is a net's name, `key=value,…` or both: `lstm,width=16`.

    The two of a pair agree in every setting but the net and its shape, what a selector names, and what `learn` derives
    from that: the steps between evaluations from the steps, and the unseen lengths from the fields of the task. With
    `same_unseen` those must be the same all the same.
    """
    sides, named = [], set()
    for text in (first, second):
        members, columns = _chosen(rows, text, task)
        sides.append(members)
        named |= columns
    shared = {row.cell.key for row in sides[0]} & {row.cell.key for row in sides[1]}
    if shared:
        raise BadInput(f"'{first}' and '{second}' share {len(shared)} members: name what differs between the two")
    free = _free(named, same_unseen)
    keys = [[_agreed(row, free) for row in side] for side in sides]
    texts = [[canonical(key) for key in side] for side in keys]
    common = set(texts[0]) & set(texts[1])
    if not common:
        raise BadInput(f"'{first}' and '{second}' have no pair of members: {_apart(keys[0], keys[1])}")
    one = _unique(first, sides[0], texts[0], common)
    other = _unique(second, sides[1], texts[1], common)
    alone = [tuple(row for row, key in zip(sides[i], texts[i], strict=True) if key not in common) for i in (0, 1)]
    return Pairs(tuple((row, other[key]) for key, row in one.items()), (alone[0], alone[1]), frozenset(named))


def _chosen(rows: Sequence[Row], text: str, task: str | None) -> tuple[list[Row], set[str]]:
    """The members a selector means, and the columns it names."""
    net, where = _parse(text)
    among = select(rows, net=net, task=task)
    wanted = conditions(among, where)
    found = [row for row in among if meets(row, wanted)]
    if not found:
        raise BadInput(f"no member is chosen by '{text}': see 'theodolite runs --members' for what there is")
    return found, set(wanted)


def _parse(text: str) -> tuple[str | None, dict[str, str]]:
    net, where = None, {}
    for part in names(text):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and net is None:
            net = part
        elif not equals:
            raise BadInput(f"'{text}' names two nets, {net} and {part}: compare one with one")
        elif not key or key in where:
            raise BadInput(f"'{part}' in '{text}' is not KEY=VALUE, each key once: write for example lr=0.001")
        else:
            where[key] = value
    return net, where


def _free(named: set[str], same_unseen: bool) -> set[str]:
    """What a pair may differ in, beside the net and its shape."""
    free = named | {_SAME[name] for name in named if name in _SAME}
    if "schedule.steps" in free:
        free.add("schedule.every")
    if not same_unseen and any(name.startswith("task_args.") for name in named):
        free.add("schedule.unseen")
    return free - {"task"}


def _agreed(row: Row, free: set[str]) -> dict[str, Any]:
    """What a member and its partner agree in."""
    return {
        name: value
        for name, value in settings(row).items()
        if name not in free and name not in _OWN and not name.startswith("shape.")
    }


def _unique(text: str, side: Sequence[Row], keys: Sequence[str], common: set[str]) -> dict[str, Row]:
    """The members of a side that have a partner, by what they agree in; two with one partner are refused."""
    found: dict[str, Row] = {}
    for row, key in zip(side, keys, strict=True):
        if key not in common:
            continue
        if key in found:
            one, other = ({"key": r.cell.key[:12]} | settings(r) for r in (found[key], row))
            name = next(n for n in (*settings(row), *settings(found[key]), "key") if one.get(n) != other.get(n))
            values = [str(table.get(name))[:16] for table in (one, other)]
            raise BadInput(
                f"'{text}' has two members for one pair, which differ in {name} ({values[0]} and {values[1]}): "
                f"add {name}={values[0]} or {name}={values[1]} to it"
            )
        found[key] = row
    return found


def _apart(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> str:
    """Why nothing fits: columns in which no member of one side has a value of the other."""
    unlike = []
    for name in {name: None for key in (*first, *second) for name in key}:
        one, other = (dict.fromkeys(canonical(key.get(name)) for key in side) for side in (first, second))
        if not one.keys() & other.keys():
            shown = (", ".join(list(values)[:_SHOWN]).replace('"', "")[:40] for values in (one, other))
            unlike.append(f"{name} ({' against '.join(shown)})")
    if not unlike:
        return "no two agree in task, seed, rates, optimiser and schedule; train both with the same options"
    listed = ", ".join(unlike[:_SHOWN])
    return f"they differ in {listed}; train both with the same options, or name what differs in both"
