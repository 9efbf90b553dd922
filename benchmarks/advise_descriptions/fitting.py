"""A polynomial in the fields through the values of one size: the first hypothesis that meets all of them exactly."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from benchmarks.advise_descriptions.effort import Effort
from benchmarks.advise_descriptions.hypotheses import Monomials, hypotheses, pairs, simple

from theodolite.advice.described.flat import Flat
from theodolite.advice.described.formulas import NotStated, derived

Polynomial = dict[tuple[str, ...], Fraction]
_DENOMINATOR = 64  # of a coefficient, at most


class Unexplained(Exception):
    """No formula was found; the text is the field that it fails on, where there is one."""


class Fitting:
    """Sizes as polynomials in the fields `sizes`; what was found once is not looked for again."""

    def __init__(self, base: Flat, sizes: set[str], effort: Effort) -> None:
        self.base, self.sizes, self.effort = base, sizes, effort
        self._found: dict[tuple[tuple[int, ...], tuple[int, ...]], Polynomial] = {}

    def fit(self, flats: Sequence[Flat], values: Sequence[int]) -> Polynomial:
        key = (tuple(map(id, flats)), tuple(values))
        if key not in self._found:
            self._found[key] = self._fit(flats, values)
        return self._found[key]

    def _fit(self, flats: Sequence[Flat], values: Sequence[int]) -> Polynomial:
        if not values:  # a flag of which one value was never built
            raise Unexplained("")
        if len(set(values)) == 1:
            return {(): Fraction(values[0])}
        moved = self._responding(flats, values)
        more = [name for name in sorted(self.sizes) if len({flat.get(name) for flat in flats}) > 1]
        others = itertools.chain(simple(more), pairs(moved, more)) if len(flats) > 4 else ()
        for hypothesis in itertools.chain(hypotheses(moved), others):
            found = self._solve(hypothesis, flats, values)
            if found is not None:
                return found
        for culprit in sorted(moved, key=lambda one: "expert" not in one and "step" not in one):
            kept = [i for i, flat in enumerate(flats) if flat.get(culprit) == self.base.get(culprit)]
            fewer, there = [values[i] for i in kept], [flats[i] for i in kept]
            rest = [name for name in moved if name != culprit]
            if len(set(fewer)) == 1 or any(self._solve(h, there, fewer) is not None for h in hypotheses(rest)):
                raise Unexplained(culprit)
        raise Unexplained(moved[0] if moved else "")

    def _responding(self, flats: Sequence[Flat], values: Sequence[int]) -> list[str]:
        """Fields whose change alone changes the value, or that at least go with it."""
        groups = defaultdict(set)
        for flat, value in zip(flats, values, strict=True):
            changed = [name for name in self.sizes if flat.get(name) != self.base.get(name)]
            if len(changed) <= 1:
                groups[changed[0] if changed else ""].add(value)
        if "" in groups:
            return sorted(name for name, seen in groups.items() if name and seen != groups[""])
        scored = []
        for name in self.sizes:
            seen = defaultdict(set)
            for flat, value in zip(flats, values, strict=True):
                seen[flat.get(name)].add(value)
            scored.append((sum(len(s) for s in seen.values()) / len(seen), name))
        return [name for _, name in sorted(scored)[:4]]

    def _solve(self, monomials: Monomials, flats: Sequence[Flat], values: Sequence[int]) -> Polynomial | None:
        if len(flats) < len(monomials) + 1:
            return None
        self.effort.solve()
        try:
            return _solved(monomials, flats, values)
        except NotStated:
            return None


def evaluate(polynomial: Polynomial, flat: Flat) -> Fraction:
    total = Fraction(0)
    for names, factor in polynomial.items():
        worth = factor
        for name in names:
            worth *= _value(name, flat)
        total += worth
    return total


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = defaultdict(Fraction)
    for (one, x), (two, y) in itertools.product(a.items(), b.items()):
        found[tuple(sorted((*one, *two)))] += x * y
    return dict(found)


def _value(name: str, flat: Flat) -> Fraction:
    if name.startswith("@"):
        return Fraction(derived(name, flat))
    return Fraction(flat[name]).limit_denominator(10**6)


def _solved(monomials: Monomials, flats: Sequence[Flat], values: Sequence[int]) -> Polynomial | None:
    rows = [
        [float(np.prod([float(_value(n, flat)) for n in some])) if some else 1.0 for some in monomials]
        for flat in flats
    ]
    matrix = np.array(rows)
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1
    solution, _, rank, _ = np.linalg.lstsq(matrix / scale, np.array(values, dtype=float), rcond=1e-10)
    if rank < len(monomials):
        return None
    factors = [Fraction(float(c / s)).limit_denominator(_DENOMINATOR) for c, s in zip(solution, scale, strict=True)]
    found = {some: factor for some, factor in zip(monomials, factors, strict=True) if factor}
    if all(evaluate(found, flat) == value for flat, value in zip(flats, values, strict=True)):
        return found
    return None
