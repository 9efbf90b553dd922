"""Formulas for all tensors of a type, and the flags under which they hold."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from benchmarks.advise_descriptions.built_type import Sample
from benchmarks.advise_descriptions.effort import Effort, TooMuch
from benchmarks.advise_descriptions.fitting import Fitting, Polynomial, Unexplained, evaluate, product
from benchmarks.advise_descriptions.signatures import Signature, signatures

from theodolite.advice.building.parts import is_expert, part_of
from theodolite.advice.described.flat import Flat

_ALWAYS = ("vocab_size", "tie_word_embeddings", "num_labels")  # what is held last


class Found(NamedTuple):
    """Parameters of one part, where the flags have these values."""

    part: str
    of_experts: bool
    when: Mapping[str, Any]
    polynomial: Polynomial


class Explained(NamedTuple):
    terms: list[Found]
    fixed: set[str]  # fields that had to be held at their default


def total(terms: list[Found], flat: Flat) -> Fraction:
    there = [one for one in terms if all(flat.get(flag) == value for flag, value in one.when.items())]
    return sum((evaluate(one.polynomial, flat) for one in there), Fraction(0))


def settle(
    base: Flat, samples: list[Sample], sizes: set[str], flags: set[str], fixed: set[str], effort: Effort
) -> Explained | None:
    """Formulas, after as few fields as that takes are held at their default; all of them where that takes too long."""

    def attempt(held: set[str]) -> list[Found] | str:
        kept = [one for one in samples if all(one[0].get(name) == base.get(name) for name in held)]
        try:
            return _explain(kept, flags - held, Fitting(base, sizes - held, effort))
        except Unexplained as error:
            return str(error)

    def few(fixed: set[str]) -> Explained | None:
        for _ in range(10):
            found = attempt(fixed)
            if not isinstance(found, str):
                return Explained(found, fixed)
            if not found or found in fixed:
                break
            fixed = {*fixed, found}
        singly = [{name} for name in sorted(flags | sizes)] if len(samples) * len(sizes) < 1500 else []
        return first(singly)

    def first(choices: list[set[str]]) -> Explained | None:
        for held in choices:
            found = attempt(held)
            if not isinstance(found, str):
                return Explained(found, held)
        return None

    always = {name for name in sizes | flags if name.split(".")[-1] in _ALWAYS}
    many = (flags - always, (sizes | flags) - always, sizes | flags)
    for search in (lambda: few(fixed), *(partial(first, [held]) for held in many)):
        effort.search()
        try:
            explained = search()
        except TooMuch:
            continue
        if explained is not None:
            return explained
    return None


def written(terms: list[Found]) -> list[list[Any]]:
    """[part, whether of experts, flags, sum of products], terms of a kind together."""
    together: dict[str, Found] = {}
    for part, expert, when, polynomial in terms:
        key = json.dumps([part, expert, when], sort_keys=True)
        sum_ = together.setdefault(key, Found(part, expert, when, defaultdict(Fraction))).polynomial
        for names, factor in polynomial.items():
            sum_[names] += factor
    lines = []
    for part, expert, when, polynomial in together.values():
        products = ["*".join((str(factor), *names)) for names, factor in sorted(polynomial.items()) if factor]
        if products:  # else they cancel
            lines.append([part, expert, when, " + ".join(products)])
    return lines


def _explain(samples: list[Sample], flags: set[str], fitting: Fitting) -> list[Found]:
    seen = signatures(samples)
    terms: list[Found] = []
    for name in sorted({name for signature in seen for name in signature}):
        present = {index for index, signature in enumerate(seen) if name in signature}
        terms += _of_tensor(name, _condition(present, samples, flags), samples, seen, flags, fitting)
    return terms


def _of_tensor(
    name: str,
    when: dict[str, Any],
    samples: list[Sample],
    seen: list[Signature],
    flags: set[str],
    fitting: Fitting,
) -> list[Found]:
    """One term, or two where a flag changes the tensor's size."""

    def fitted(when: dict[str, Any]) -> Found:
        where = [i for i in range(len(samples)) if all(samples[i][0].get(k) == v for k, v in when.items())]
        there = [i for i in where if name in seen[i]]
        counts = [seen[i][name][0] if name in seen[i] else 0 for i in where]
        size = fitting.fit([samples[i][0] for i in where], counts)
        for axis in range(len(seen[there[0]][name][1]) if there else 0):
            dims = [seen[i][name][1][axis] for i in there]
            size = product(size, fitting.fit([samples[i][0] for i in there], dims))
        return Found(part_of(re.sub("#", "0", name)), is_expert(name), when, size)

    try:
        return [fitted(when)]
    except Unexplained:
        for flag in sorted(flags - set(when)):
            try:
                return [fitted({**when, flag: value}) for value in (True, False)]
            except Unexplained:
                continue
        raise


def _condition(present: set[int], samples: list[Sample], flags: set[str]) -> dict[str, Any]:
    """The flags that decide whether a tensor is there; none where its number goes to zero by itself."""
    absent = [i for i in range(len(samples)) if i not in present]
    if not absent:
        return {}
    single = []
    for flag in sorted(flags):
        values = {samples[i][0].get(flag) for i in present}
        if len(values) == 1:
            single.append((flag, values.pop()))
    for some in itertools.chain.from_iterable(itertools.combinations(single, n) for n in (1, 2, 3)):
        if all(any(samples[i][0].get(k) != v for k, v in some) for i in absent):
            return dict(some)
    return {}
