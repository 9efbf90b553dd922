"""The parameters of a configuration by its type's description, and the fields that the description does not know."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.advice.described.flat import OTHER_PARTS, Flat, flatten, labelled
from theodolite.advice.described.formulas import NotStated, evaluate, evaluate_rule
from theodolite.advice.described.harmless import is_harmless
from theodolite.advice.described.table import Description
from theodolite.advice.fields import LARGEST_SIZE, LISTED
from theodolite.errors import BadInput

_TIED = "tie_word_embeddings"  # brings a table or takes it away, whatever else is stated


@dataclass(frozen=True)
class Count:
    """`fields` are those stated and those filled in; `unread` what may change the count and is not described."""

    parts: Mapping[str, int]
    of_experts: int
    fields: Flat
    unread: tuple[str, ...]


def count(config: Mapping[str, Any], name: str, known: Description) -> Count:
    stated, unread = _stated(config, name, known)
    fields = {**known.defaults, **stated}
    changed = {field for field in known.used if field in stated and stated[field] != known.defaults.get(field)}
    for field, rule in known.rules.items():
        if field in stated:
            continue
        if rule == "?":
            unread += [field] if changed else []
            continue
        filled = evaluate_rule(rule, fields)
        if filled is not None:
            fields[field] = filled
    parts: dict[str, int] = {}
    of_experts = 0
    for term in known.terms:
        if any(fields.get(flag) != value for flag, value in term.when.items()):
            continue
        try:
            worth = evaluate(term.formula, fields)
        except NotStated as error:
            unread.append(str(error))
            continue
        if worth < 0 or worth.denominator != 1:  # outside of what was tried
            unread += sorted(changed)
        parts[term.part] = parts.get(term.part, 0) + max(0, round(worth))
        of_experts += round(worth) if term.of_experts else 0
    return Count(parts, of_experts, fields, tuple(dict.fromkeys(unread)))


def _stated(config: Mapping[str, Any], name: str, known: Description) -> tuple[Flat, list[str]]:
    """The fields that say something, and those of them that are not understood."""
    stated: Flat = {}
    twice: list[str] = []  # under two names, with two values
    for alias, value in labelled(flatten(config)).items():
        field = known.aliases.get(alias, alias)
        if value is not None and not OTHER_PARTS.match(field):
            if stated.get(field, value) != value:
                twice.append(alias)
            read = field in known.used and field not in known.fixed
            stated[field] = _checked(field, value, name, known) if read else value
    defaults = known.defaults
    flags = [flag for flag in known.used if isinstance(defaults.get(flag), bool) and not flag.endswith(_TIED)]
    switched = any(stated.get(flag, defaults[flag]) != defaults[flag] for flag in flags)
    unread = [
        field
        for field, value in stated.items()
        if (field in known.fixed or field not in known.used) and not _understood(field, value, known, switched)
    ]
    return stated, [*unread, *twice]


def _understood(field: str, value: Any, known: Description, switched: bool) -> bool:
    """Its default, harmless by name, or harmless by experiment: those were made with the default's flags only."""
    if value == known.defaults.get(field) or _nothing(field, value, known):
        return True
    if field in known.fixed or field.endswith(".model_type"):  # another language model than the usual one
        return False
    if is_harmless(field):
        return True
    if field in known.harmless or _within(field, known.harmless):
        default = known.harmless.get(field)
        return not switched or type(default) is not int or value == default
    return False


def _checked(field: str, value: Any, name: str, known: Description) -> Any:
    """As the default is: a flag, a number, or a positive whole number."""
    default = known.defaults.get(field)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise BadInput(f"{field} of {name} is {reprlib.repr(value)}: write true or false")
        return value
    if isinstance(value, list):
        raise BadInput(f"{field} of {name} is {reprlib.repr(value)}: {LISTED}")
    if isinstance(value, float) and value.is_integer() and not isinstance(default, float):
        value = int(value)
    fits = isinstance(value, int | float) if isinstance(default, float) else type(value) is int
    if isinstance(value, bool) or not fits or not 0 <= value <= LARGEST_SIZE or (value == 0 and default):
        raise BadInput(f"{field} of {name} is {reprlib.repr(value)}: write a positive whole number")
    return value


def _within(field: str, harmless: Mapping[str, Any]) -> bool:
    """An entry of a list, or a field of an object, that is harmless as a whole."""
    return any(field.startswith(f"{one}.") for one in harmless)


def _nothing(field: str, value: Any, known: Description) -> bool:
    """Switched off, and the default says nothing else."""
    return not known.defaults.get(field) and (value is False or value == 0 or value in ("", [], {}))
