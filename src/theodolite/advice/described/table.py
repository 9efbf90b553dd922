"""The table of descriptions, which `benchmarks/advise_descriptions` finds by experiment and checks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("table.json.gz")


@dataclass(frozen=True)
class Term:
    """A sum of products that counts parameters of one part, where the flags have these values."""

    part: str
    of_experts: bool  # a token uses only some of them
    when: Mapping[str, Any]
    formula: str


@dataclass(frozen=True)
class Description:
    """How many parameters the `counted` class of a model type has, in the fields of its configuration.

    `rules` say what is filled in for a field that is not stated; where there is none it is the default, and "?" means
    that nobody found the rule. Fields in `harmless` were changed from these defaults and changed nothing, with flags as
    they are by default; of those in `fixed`, and of all that are not named, only the default is described.
    """

    model_type: str
    counted: str
    language_part: bool
    aliases: Mapping[str, str]
    defaults: Mapping[str, Any]
    rules: Mapping[str, str]
    harmless: Mapping[str, Any]
    fixed: frozenset[str]
    terms: tuple[Term, ...]
    used: frozenset[str]  # fields in formulas and flags


def description(model_type: str) -> Description | None:
    entry = _table().get(model_type)
    return None if entry is None else _description(model_type)


def described_types() -> tuple[str, ...]:
    return tuple(_table())


@cache
def type_of_class(name: str) -> str | None:
    """The model type whose default class has this name, the shortest where several do."""
    found = [model_type for model_type, entry in _table().items() if entry["class"] == name]
    return min(found, key=lambda one: (len(one), one), default=None)


@cache
def _description(model_type: str) -> Description:
    return read_entry(model_type, _table()[model_type])


def read_entry(model_type: str, entry: Mapping[str, Any]) -> Description:
    """An entry of the table."""
    terms = tuple(Term(*term) for term in entry["terms"])
    used = {field for term in terms for field in (*term.when, *_fields(term.formula))}
    return Description(
        model_type,
        entry["class"],
        entry["language_part"],
        entry["aliases"],
        entry["defaults"],
        entry["rules"],
        entry["harmless"],
        frozenset(entry["fixed"]),
        terms,
        frozenset(used),
    )


def _fields(formula: str) -> set[str]:
    found = set()
    for product in formula.split(" + "):
        for name in product.split("*")[1:]:
            found |= set(name.partition(":")[2].split("/")) if name.startswith("@") else {name}
    return found


@cache
def _table() -> dict[str, Any]:
    return json.loads(gzip.decompress(DATA.read_bytes())) if DATA.exists() else {}
