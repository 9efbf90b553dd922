"""Which variations are built: a small model to start from, one field changed, many changed at once."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.advise_descriptions.built_type import BuiltType, Sample, Shapes, nest

from theodolite.advice.described.flat import OTHER_PARTS, Flat
from theodolite.advice.described.formulas import evaluate_rule
from theodolite.advice.described.harmless import is_harmless
from theodolite.advice.fields import HEADS, KEY_VALUE_HEADS, MLP_WIDTH, WIDTH

LAYERS, EXPERTS = 4, 16  # of the small model, where the type has more
SHARES = (0.15, 0.3, 0.5)  # of the fields that are changed at once


def derived_lists(it: BuiltType) -> set[str]:
    """Lists and nested values that the configuration class works out from other fields when they are not stated."""
    lists = [name for name, value in it.default.items() if isinstance(value, list)]
    found = set()
    for name in (one for one in lists if len(it.default[one]) > 1 or "layer" in one):
        without = {k: v for k, v in it.default.items() if k != name}
        try:
            if it.filled(without).get(name) == it.default[name]:
                found.add(name)
        except Exception:  # the class needs the list
            continue
    return found


def effective_lists(it: BuiltType, base: Flat, shapes: Shapes, lists: set[str]) -> Iterator[str]:
    """Those whose entries change the count: only the derived list is described."""
    for name in sorted(lists):
        value = base[name] if name in base else _at(nest(it.filled(base)), name)
        if not isinstance(value, list) or not value:
            continue
        alike = [[one] * len(value) for one in {json.dumps(item): item for item in value}.values()]
        if any(it.build({**base, name: other}) != shapes for other in (*alike, *_other_entries(value))):
            yield name


def _at(nested: Any, name: str) -> Any:
    for step in name.split("."):
        nested = nested.get(step) if isinstance(nested, dict) else None
    return nested


def _other_entries(value: list[Any]) -> list[list[Any]]:
    """Numbers doubled, flags turned; texts have only the values that are there."""
    if all(isinstance(one, bool) for one in value):
        return [[not one for one in value]]
    if all(isinstance(one, int | float) for one in value):
        return [[2 * one for one in value]]
    return []


def small(it: BuiltType, base: Flat, whole_sized: frozenset[str]) -> Flat:
    """With few layers and experts, so that it is built fast."""
    for name, v in base.items():
        if type(v) is int and v > 1 and OTHER_PARTS.match(name) and re.search(r"layers?$|depth$", name):
            fewer = {**base, name: 1}
            base = fewer if it.build(fewer) is not None else base
    stacks = [name for name in base if re.search(r"layers?$|depth$|n_layer", name) and not OTHER_PARTS.match(name)]
    wanted = [name for name in stacks if type(base[name]) is int and base[name] > LAYERS and name not in whole_sized]
    counts = [name for name in base if re.search(r"(num|n)_\w*experts$", name) and name not in whole_sized]
    many = [name for name in counts if type(base[name]) is int and base[name] > EXPERTS]
    shallow = {**base, **dict.fromkeys(wanted, LAYERS)}
    if it.build(shallow) is None:
        shallow = dict(base)
        for name in wanted:
            attempt = {**shallow, name: LAYERS}
            shallow = attempt if it.build(attempt) is not None else shallow
    fewer = {**shallow, **dict.fromkeys(many, EXPERTS)}
    return fewer if many and it.build(fewer) is not None else shallow


def written_out(it: BuiltType, base: Flat, shapes: Shapes) -> tuple[Flat, dict[str, str]]:
    """Null sizes given the value that changes nothing: a share of the width, as many as heads, four times the width."""
    rules: dict[str, str] = {}
    for name, value in list(base.items()):
        prefix, last = name.rpartition(".")[::2]
        prefix = f"{prefix}." if prefix else ""
        width = next((f"{prefix}{one}" for one in WIDTH if type(base.get(f"{prefix}{one}")) is int), None)
        heads = next((f"{prefix}{one}" for one in HEADS if type(base.get(f"{prefix}{one}")) is int), None)
        if value is not None or width is None or last not in ("head_dim", "d_kv", *KEY_VALUE_HEADS, *MLP_WIDTH):
            continue
        for rule in filter(None, (heads and f"{width}/{heads}", heads, f"4*{width}", width)):
            worth = evaluate_rule(rule, base)
            if worth is not None and it.build({**base, name: worth}) == shapes:
                base = {**base, name: worth}
                rules[name] = rule
                break
    return base, rules


def one_changed(it: BuiltType, base: Flat, shapes: Shapes) -> dict[str, list[tuple[Any, Shapes]]]:
    """By field: other values, and what is built with them; up to two that change something, or three that do not."""
    found: dict[str, list[tuple[Any, Shapes]]] = {}
    for name, value in base.items():
        if OTHER_PARTS.match(name) or is_harmless(name) or isinstance(value, str | list | dict) or value is None:
            continue
        got: list[tuple[Any, Shapes]] = []
        for one in _values(name, value):
            if one in (value, 0) and not isinstance(value, bool):
                continue
            built = it.build({**base, name: one})
            if built is not None:
                got.append((one, built))
            if _enough(got, shapes, name, value):
                break
        found[name] = got
    return found


def many_changed(
    it: BuiltType,
    base: Flat,
    options: Mapping[str, list[Any]],
    draw: random.Random,
    wanted: int,
    shares: tuple[float, ...] = SHARES,
) -> Iterator[Sample]:
    made = 0
    for attempt in range(4 * wanted):
        share = draw.choice(shares) if attempt < 3 * wanted else min(shares)
        flat = {**base}
        for name, values in options.items():
            if values and draw.random() < share:
                value = draw.choice(values)
                if type(value) is int and draw.random() < 0.3 and value > 3 and not isinstance(base[name], bool):
                    value *= draw.choice((2, 3))
                flat[name] = value
        found = it.build(flat)
        if found is not None:
            yield flat, found
            made += 1
        if made == wanted:
            return


def _values(name: str, value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        return [value * 2, value / 2 + 0.25]
    if value == 0:
        return [1, 2]
    if re.search(r"layer|depth", name):
        return [value + 1, value + 2, 2 * value]
    return [2 * value, 3 * value, value // 2, value + 1, 4 * value]


def _enough(got: list[tuple[Any, Shapes]], shapes: Shapes, name: str, value: Any) -> bool:
    if len(got) >= 3:
        return True
    if any(built != shapes for _, built in got):
        return len(got) == 2
    steps = type(value) is int and value > 1 and ("layer" in name or "step" in name or "freq" in name)
    return len(got) == 1 and not steps  # a period may answer to the second value only
