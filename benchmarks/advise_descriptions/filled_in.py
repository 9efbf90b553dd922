"""What a configuration class fills in for a size that is not stated."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.advise_descriptions.built_type import BuiltType

from theodolite.advice.described.flat import Flat
from theodolite.advice.described.formulas import evaluate_rule

_DRAWS = 40
UNKNOWN = "?"


def filling_rules(it: BuiltType, relevant: list[str]) -> dict[str, str]:
    """By field: another one, a multiple or a share of one; "?" where none was found; no rule means the default."""
    rules: dict[str, str] = {}
    plain = {name: v for name, v in it.default.items() if type(v) is int}
    sizes = [name for name in relevant if type(it.default.get(name)) is int]
    drawn: list[tuple[set[str], Flat, Flat]] = []
    for changed in _changes(it, sizes):
        stated = set(changed)
        for prefix in sorted({one.rpartition(".")[0] for one in changed}):
            key = f"{prefix}.model_type" if prefix else "model_type"
            if key in it.default:
                changed[key] = it.default[key]
        try:
            filled = it.filled(changed)
        except Exception:  # sizes that the class refuses together
            continue
        drawn.append((stated, {**plain, **{k: v for k, v in filled.items() if type(v) is int}}, filled))
    for name in sizes:
        seen = [(flat, filled.get(name)) for stated, flat, filled in drawn if name not in stated]
        if len({value for _, value in seen}) > 1:
            fitting = (rule for rule in _candidates(name, sizes) if _fits(rule, seen))
            rules[name] = next(fitting, UNKNOWN)
    return rules


def _changes(it: BuiltType, sizes: list[str]) -> Iterator[Flat]:
    """None, each size alone, which few classes refuse, then many of them at once."""
    draw = random.Random(f"rules of {it.model_type}")
    yield {}
    for one in sizes:
        for times in (2, 3):
            yield {one: it.default[one] * times}
    for _ in range(_DRAWS):
        yield {one: it.default[one] * draw.choice((1, 2, 3)) for one in sizes if draw.random() < 0.4}


def _candidates(name: str, sizes: list[str]) -> list[str]:
    others = [one for one in sizes if one != name]
    return [
        *others,
        *(f"{a}/{b}" for a in others for b in others if a != b),
        *(f"{c}*{a}" for a in others for c in (2, 3, 4, 8)),
        *(f"{a}/16" for a in others),
    ]


def _fits(rule: str, seen: list[tuple[Flat, int | None]]) -> bool:
    return all(evaluate_rule(rule, flat) == value for flat, value in seen)
