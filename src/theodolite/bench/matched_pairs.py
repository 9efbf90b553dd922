"""Pairs of members: alike in task, seed, rates, optimiser and schedule, unlike in what two selectors name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.bench.columns import settings
from theodolite.bench.selection import Chosen, choose, names
from theodolite.errors import BadInput
from theodolite.lab.store.digest import SCORE
from theodolite.lab.store.trained import Condition, Trained
from theodolite.measurement import canonical

_OWN = ("net", "net_version", "source", "checkpoint")  # what two nets cannot share; shapes neither
_SAME = {"steps": "schedule.steps", "batch": "schedule.batch", "optimiser": "optimiser.name"}  # under two names
_OF_A_MEMBER = ("seed", "lr", "weight_decay")
_SHOWN = 3  # columns or values told in a sentence


@dataclass(frozen=True)
class Side:
    """Chosen members in the order of finishing, as `SCORE` says; `own` is the place of each one's condition."""

    conditions: Sequence[Condition]
    own: np.ndarray
    members: np.ndarray

    @classmethod
    def of(cls, chosen: Chosen) -> Side:
        found = chosen.scores()
        conditions = [one for one in chosen.conditions if one.number in found]
        arrays = [found[one.number] for one in conditions]
        if not arrays:
            return cls((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=SCORE))
        own, members = np.repeat(np.arange(len(arrays)), [len(one) for one in arrays]), np.concatenate(arrays)
        order = np.argsort(members["number"], kind="stable")
        return cls(conditions, own[order], members[order])

    def __getitem__(self, which: np.ndarray) -> Side:
        return Side(self.conditions, self.own[which], self.members[which])


@dataclass(frozen=True)
class Pairs:
    """The members at one place of the two sides are a pair. `alone` are those without a partner; `named` the columns
    that the selectors name."""

    first: Side
    second: Side
    alone: tuple[Side, Side]
    named: frozenset[str]


def pair_members(
    trained: Trained,
    first: str,
    second: str,
    task: str | None = None,
    same_unseen: bool = False,
    among: Sequence[Condition] | None = None,
) -> Pairs:
    """A selector is a net's name, `key=value,…` or both: `lstm,width=16`.

    The two of a pair agree in every setting but the net and its shape, what a selector names, and what `learn` derives
    from that: the steps between evaluations from the steps, and the unseen lengths from the fields of the task. With
    `same_unseen` those must be the same all the same.
    """
    sides: list[Side] = []
    named: set[str] = set()
    for text in (first, second):
        side, columns = _chosen(trained, text, task, among)
        sides.append(side)
        named |= columns
    shared = len(np.intersect1d(sides[0].members["number"], sides[1].members["number"], assume_unique=True))
    if shared:
        raise BadInput(f"'{first}' and '{second}' share {shared} members: name what differs between the two")
    free = _free(named, same_unseen)
    keys = _keys(sides, free)
    partnered = [np.isin(keys[0], keys[1]), np.isin(keys[1], keys[0])]
    if not partnered[0].any():
        agreed = [_agreed_of(side, free) for side in sides]
        raise BadInput(f"'{first}' and '{second}' have no pair of members: {_apart(agreed[0], agreed[1])}")
    kept = [side[which] for side, which in zip(sides, partnered, strict=True)]
    alone = [side[~which] for side, which in zip(sides, partnered, strict=True)]
    own = [key[which] for key, which in zip(keys, partnered, strict=True)]
    for text, side, key in zip((first, second), kept, own, strict=True):
        _check_unique(trained, text, side, key)
    order = np.argsort(own[1], kind="stable")
    partners = order[np.searchsorted(own[1], own[0], sorter=order)]
    return Pairs(kept[0], kept[1][partners], (alone[0], alone[1]), frozenset(named))


def _chosen(trained: Trained, text: str, task: str | None, among: Sequence[Condition] | None) -> tuple[Side, set[str]]:
    """The members a selector means, and the columns it names."""
    net, where = _parse(text)
    chosen = choose(trained, net=net, task=task, where=where, among=among)
    side = Side.of(chosen)
    if not len(side.members):
        raise BadInput(f"no member is chosen by '{text}': see 'theodolite runs --members' for what there is")
    return side, set(chosen.wanted)


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


def _agreed(table: Mapping[str, Any], free: set[str]) -> dict[str, Any]:
    """Of columns, those in which a member and its partner agree."""
    return {
        name: value
        for name, value in table.items()
        if name not in free and name not in _OWN and not name.startswith("shape.")
    }


def _keys(sides: Sequence[Side], free: set[str]) -> list[np.ndarray]:
    """A number for each member, equal for those that agree."""
    texts = [[canonical(_agreed(settings(one.config), free)) for one in side.conditions] for side in sides]
    places = {text: place for place, text in enumerate(dict.fromkeys(text for side in texts for text in side))}
    found = [np.array([places[text] for text in own])[side.own] for own, side in zip(texts, sides, strict=True)]
    for name in _OF_A_MEMBER:
        if name not in free:
            values = np.concatenate([side.members[name] for side in sides])
            codes, count = _codes(values)
            parts = np.split(codes, [len(found[0])])
            found = [key * count + part for key, part in zip(found, parts, strict=True)]
    return found


def _codes(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Equal numbers for equal values, below a bound: whole numbers that lie close together are such numbers already."""
    if values.dtype.kind == "i" and 0 <= (span := int(values.max()) - int(values.min())) < 2**31:
        return values - values.min(), span + 1
    distinct, codes = np.unique(values, return_inverse=True)
    return codes, len(distinct)


def _check_unique(trained: Trained, text: str, side: Side, keys: np.ndarray) -> None:
    """Two members of a side with one partner are refused."""
    order = np.argsort(keys, kind="stable")
    again = order[1:][keys[order][1:] == keys[order][:-1]]
    if not len(again):
        return
    second = int(again.min())
    first = int(np.flatnonzero(keys == keys[second])[0])
    one, other = (trained.member(int(side.members["number"][place])) for place in (first, second))
    tables = [
        {**settings(side.conditions[side.own[place]].config), **member}
        for place, member in ((first, one), (second, other))
    ]
    name = next(n for n in (*tables[1], *tables[0]) if n != "status" and tables[0].get(n) != tables[1].get(n))
    values = [str(table.get(name))[:16] for table in tables]
    raise BadInput(
        f"'{text}' has two members for one pair, which differ in {name} ({values[0]} and {values[1]}): "
        f"add {name}={values[0]} or {name}={values[1]} to it"
    )


def _agreed_of(side: Side, free: set[str]) -> list[dict[str, Any]]:
    """What members agree in with their partners: enough of them that every value of every column occurs."""
    firsts = [
        np.unique(values, return_index=True)[1] for values in (side.own, *(side.members[n] for n in _OF_A_MEMBER))
    ]
    tables = []
    for place in sorted({int(one) for found in firsts for one in found}):
        rates = {name: side.members[name][place].item() for name in _OF_A_MEMBER}
        tables.append(_agreed({**settings(side.conditions[side.own[place]].config), **rates}, free))
    return tables


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
