"""Graphs of functions with jumps: looked for where smooth networks show none and boosted trees predict better."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from theodolite.structure.data.source import Array
from theodolite.structure.fit.confirm import Confirmation, compared
from theodolite.structure.fit.step_network import fit_steps, terms_of
from theodolite.structure.fit.verify import verified
from theodolite.structure.search.interactions import propose_sums
from theodolite.structure.surrogate.noise_share import Noise
from theodolite.structure.surrogate.trees import tree_source

CANDIDATES = 3
FOLDS = 4
LEAST_ROWS = 100  # for trees


def with_steps(
    asked: Confirmation,
    x: Array,
    y: Array,
    searched: Sequence[str],
    generator: np.random.Generator,
    noise: Noise,
    until: float | None = None,
) -> Confirmation:
    """An abstention; or, with constituents that are constant on boxes, a graph that rows held out prefer to all that
    was fitted before, if nothing speaks against it. Only the columns `searched` are looked at, and nothing is begun
    after the moment `until` (of `time.monotonic`)."""
    began = time.monotonic()
    late = lambda: until is not None and time.monotonic() > until
    smooth, variables = asked.model, asked.dense.graph.variables
    if len(y) < LEAST_ROWS or late():
        return asked
    kept = [place for place, name in enumerate(variables) if name in set(searched)]
    source = tree_source(x[:, kept], y, searched, int(generator.integers(2**31)))
    if 1 - source.r2 >= smooth.validation_error or late():
        return asked
    proposed = [
        replace(found, graph=replace(found.graph, variables=variables)) for found in propose_sums(source, generator)
    ]
    whole = len(asked.dense.graph.used)
    proposed = [found for found in proposed if not (found.graph.is_dense and len(found.graph.used) == whole)]
    fold = generator.permutation(len(y)) % FOLDS
    able = [found for found in proposed if terms_of(found.graph) is not None][:CANDIDATES]
    fits = [(found, fit_steps(found.graph, x, y, fold)) for found in able if not late()]
    made = [(found, *one) for found, one in fits if one is not None]
    if not made:
        return asked
    pairs = [(found, fitted) for found, fitted, _ in made]
    stepped = compared(pairs, smooth, y, generator, dense_kind=asked.dense_kind, began=began)
    trials = [replace(trial, told=told) for trial, (_, _, told) in zip(stepped.trials, made, strict=True)]
    stepped = replace(stepped, trials=tuple(trials))
    found = verified(stepped, x, y, generator, noise)
    said = (
        f"on rows held out constituents with jumps miss {found.model.validation_error:.3g} of the variance, and the "
        f"best smooth network {smooth.validation_error:.3g}"
    )
    return replace(
        found,
        dense=asked.dense,
        trials=(*found.trials, *asked.trials),
        reason=asked.reason if found.chosen is None else said,
        seconds=asked.seconds + found.seconds,
    )
