"""Columns that are functions of one or two others: what a graph says of one it might as well say of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from theodolite.structure.fit.dependence import polynomials, products

Array = NDArray[np.float64]
DERIVED = 0.99  # of a column's variance, on rows held out
ROWS = 1_000  # looked at
MOST = 40  # columns: of more, pairs are too many to look at
TOLD = 3  # in a note
RIDGE = 1e-6  # keeps the solution finite where two columns are one
TINY = np.finfo(np.float64).tiny


def derived_columns(x: Array, generator: np.random.Generator) -> dict[int, tuple[int, ...]]:
    """Each column of which polynomials in the ranks of one or two others predict 99 % of the variance on other rows (of
    its values within their middle 98 %, or of its ranks), and these others.

    Examples:
        >>> draw = np.random.default_rng(0)
        >>> a, b, c = draw.uniform(-1, 1, (3, 600))
        >>> derived_columns(np.stack([a, b, c, np.tanh(a + b**2)], axis=1), draw)
        {3: (0, 1)}
    """
    columns = x.shape[1]
    if not 2 <= columns <= MOST:
        return {}
    chosen = generator.permutation(len(x))[:ROWS]
    half = len(chosen) // 2
    rows = x[chosen]
    bases = [polynomials(column) for column in rows.T]
    told = np.column_stack([np.clip(rows, *np.quantile(rows, [0.01, 0.99], axis=0)), *(b[:, :1] for b in bases)])
    told = told - told[:half].mean(0)
    spread = (told[half:] ** 2).sum(0)
    found: dict[int, tuple[int, ...]] = {}
    for size in (1, 2):  # of two that tell each other the later is named, and none is explained by what is derived
        best = np.full(columns, DERIVED)
        known = [place for place in range(columns) if place not in found]
        for sources in combinations(known, size):
            both = [bases[place] for place in sources]
            basis = np.column_stack([np.ones(len(rows)), *both, *([products(*both)] if size == 2 else [])])
            learnt = basis[:half]
            matrix = learnt.T @ learnt + RIDGE * half * np.eye(basis.shape[1])
            missed = told[half:] - basis[half:] @ np.linalg.solve(matrix, learnt.T @ told[:half])
            shares = np.where(spread > 0, 1 - (missed**2).sum(0) / np.maximum(spread, TINY), 0.0)
            for place in np.flatnonzero(shares.reshape(2, columns).max(0) > best).tolist():
                used = any(place in found.get(source, ()) for source in sources)
                if place in known and place not in sources and not used:
                    found[place], best[place] = sources, shares.reshape(2, columns)[:, place].max()
    return found


def sources_of(x: Array, variables: Sequence[str], generator: np.random.Generator) -> dict[str, tuple[str, ...]]:
    """`derived_columns` by name."""
    found = derived_columns(x, generator).items()
    return {variables[place]: tuple(variables[one] for one in sources) for place, sources in found}


def derived_notes(sources: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    notes = [
        f"{' and '.join(repr(one) for one in others)} predict{'s' if len(others) == 1 else ''} '{name}' (over "
        f"{DERIVED:.0%} of its variance): which of them a graph reads is hardly told by data"
        for name, others in sources.items()
    ]
    more = len(notes) - TOLD
    return (*notes[:TOLD], *([f"{more} more columns are predicted by others"] if more > 0 else ()))
