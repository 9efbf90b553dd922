"""A graph that is claimed, fitted closer where there is no noise to stop at: its networks grow, and least squares goes
on. Each is that of a fold, and knows no more of the rows held out than it did."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from theodolite.structure.data.source import Array
from theodolite.structure.fit.confirm import Confirmation, Trial
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import Fitted, fit, network_size
from theodolite.structure.progress import Progress, part_of

CLOSE = 3e-3  # of the variance: a network that misses more has a graph that misses something, or noise
APART = 0.1  # of the error: where networks of different folds agree better than that, the rest is noise,
LITTLE = 5e-5  # unless one of them misses less than this
WIDTH, MOST_PARAMETERS = 16, 600  # at that width
EFFORT = Effort(folds=4, restarts=0, descent=0, polish=60, products=6e10, width=WIDTH, dense_width=None)
EFFORTS = (EFFORT, replace(EFFORT, polish=100, products=1.5e11, width=24))  # a wider one where the first was closer


def closer(
    asked: Confirmation,
    x: Array,
    y: Array,
    generator: np.random.Generator,
    until: float | None = None,
    progress: Progress | None = None,
) -> Confirmation:
    """The same claim; its network, and what predicts, are those of the closest fit that rows held out prefer."""
    found = asked
    for place, effort in enumerate(EFFORTS):
        tell = part_of(progress, place / len(EFFORTS), (place + 1) / len(EFFORTS))
        nearer = _closer(found, x, y, generator, effort, until, tell)
        if nearer is found:
            break
        found = nearer
    if found is asked:
        return asked
    error = next(trial.error for trial in found.trials if trial.found is found.chosen)
    return replace(found, reason=f"{asked.reason}; with wider constituents its network misses {error:.2g}")


def _closer(
    asked: Confirmation,
    x: Array,
    y: Array,
    generator: np.random.Generator,
    effort: Effort,
    until: float | None,
    progress: Progress | None,
) -> Confirmation:
    trial = next((trial for trial in asked.trials if trial.found is asked.chosen), None)
    left = None if until is None else until - time.monotonic()
    if trial is None or trial.told is not None or (left is not None and left <= 0) or not _without_noise(trial, x, y):
        return asked
    before = trial.fitted
    found = fit(
        *(before.graph, x, y, generator),
        effort=effort,
        fold=before.fold_of(x),
        start=before,
        width=max(effort.width, before.width),
        depth=before.depth,
        shallow=before.shallow,
        seconds=left,
        progress=None if progress is None else lambda done, total, _: progress(done, total, "closer fit"),
    )
    if found.validation_error >= before.validation_error:
        return asked
    ratio = found.validation_error / max(asked.dense.validation_error, 1e-300)
    again = replace(trial, fitted=found, error=found.validation_error, ratio=ratio)
    return replace(
        asked,
        model=min(asked.model, found, key=lambda fitted: fitted.validation_error),
        trials=tuple(again if one is trial else one for one in asked.trials),
    )


def _without_noise(trial: Trial, x: Array, y: Array) -> bool:
    """Whether what the network misses is its own: its folds then differ by as much as they miss, and where it is noise
    they agree."""
    fitted = trial.fitted
    if network_size(fitted.graph, WIDTH, fitted.depth, fitted.shallow) > MOST_PARAMETERS:
        return False
    assert fitted.held_out is not None
    fold = fitted.fold_of(x)
    missed = (fitted.held_out - y) ** 2 / fitted.spread**2
    least = min(float(missed[fold == one].mean()) for one in np.unique(fold))
    if least > CLOSE:
        return False
    return least <= LITTLE or _spread(fitted, x) > APART * trial.error


def _spread(fitted: Fitted, x: Array) -> float:
    """By how much networks of the folds differ from their mean, squared, over the variance."""
    said = np.stack([one(x) for one in fitted.guide().functions])
    return float(said.var(0).mean() / fitted.spread**2)
