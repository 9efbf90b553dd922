"""The graph that held-out rows prefer and nothing speaks against: proposed, refined, confirmed, doubted."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from theodolite.structure.data.source import Array
from theodolite.structure.draws import own_draws
from theodolite.structure.fit.closer import closer
from theodolite.structure.fit.confirm import Confirmation, complexity, confirm
from theodolite.structure.fit.effort import EFFORTS, TRIAL, Effort, effort_named
from theodolite.structure.fit.fitting import LEAST_SECONDS
from theodolite.structure.fit.side_by_side import one_thread, threads
from theodolite.structure.fit.verify import verified
from theodolite.structure.piecewise import with_steps
from theodolite.structure.progress import Progress, part_of
from theodolite.structure.refine import CONFIRMED, Refinement, shortlist
from theodolite.structure.result import Found
from theodolite.structure.search.interactions import propose
from theodolite.structure.search.sources import Sources, undetermined, with_sources
from theodolite.structure.surrogate.derived import derived_notes, sources_of
from theodolite.structure.surrogate.noise_share import noise_share
from theodolite.structure.surrogate.screening import screened
from theodolite.structure.workers import Promise, forget, ready

LEAST_ROWS = 50  # fewer cannot tell one graph from another
MANY = 500  # rows, with which quick fits take longer than it takes to start a worker
SECOND = replace(EFFORTS["standard"], descent=200, polish=60, dense_width=None)
AGAIN = 2  # graphs that are fitted again, with more effort, where quick fits do not tell
QUICKLY = 2.0  # times the dense network's error that a quick fit of a graph may have, to be fitted again
ONCE, TWICE = 0.3, 0.7  # with quick effort: when fits begin, and second ones
WEIGHED, CLOSE = 0.82, 0.95  # of the time, about, at which doubts and closer fits end


@one_thread()
def settle(
    x: Array,
    y: Array,
    variables: Sequence[str],
    generator: np.random.Generator,
    *,
    leave_out: Collection[str] = (),
    effort: str | Effort = "auto",
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Confirmation:
    """Proposes graphs, refines the best in rounds (unless the effort is less than that of one fit in a round, as quick
    is), and lets `confirm` decide, and `verified` doubt. No graph reads the variables to `leave_out`; the dense network
    may."""
    began = time.monotonic()
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    work = effort_named(effort, len(y))
    kept = [place for place, name in enumerate(variables) if name not in leave_out]
    enough, notes = len(y) >= LEAST_ROWS and np.ptp(y) > 0, ()
    if enough and len(tight := screened(x[:, kept], y, generator)) < len(kept):
        notes = (
            f"{len(tight)} of {len(kept)} columns were searched, those that the target seems to depend on by ranks, in "
            "pairs, or in boosted trees; the others were left out",
        )
        kept = [kept[place] for place in tight]
    names = tuple(variables[place] for place in kept)
    # of the columns that are searched, because a process of hundreds takes noise for a function of them
    noise = Promise(partial(noise_share, x[:, kept], y, own_draws(generator)))
    if progress is not None:
        progress(0.0, 1.0, "looking for candidates")
    quick = work.products < TRIAL.products
    ready(threads() if enough and (not quick or len(y) >= MANY) else 1)
    sources = sources_of(x[:, kept], names, np.random.default_rng(0)) if enough else {}
    candidates: list[Found] = []
    before: dict[str, Any] = {}
    if enough and len(kept) > 1:
        if quick:
            candidates = shortlist(propose(x[:, kept], y, names, generator, quick=True))
        else:
            until = None if seconds is None else began + seconds / 2
            refinement = Refinement(x[:, kept], y, names, generator, noise, until, progress)
            candidates = refinement.finalists()
            before["fold"] = refinement.fold
            fits = [tried.fitted for tried in refinement.tried.values()]
            fits += [refinement.dense] if len(kept) == len(variables) or notes else []
            before["known"] = {wide.graph: wide for wide in (one.widened(tuple(variables), x) for one in fits)}
        candidates += _with_sources(candidates, sources)
        whole = tuple(variables)
        candidates = [replace(found, graph=replace(found.graph, variables=whole)) for found in candidates]

    def weighed(proposed: Sequence[Found], much: Effort, begin: float, end: float) -> tuple[Confirmation, Confirmation]:
        """What rows held out prefer, and what is left of it after doubts."""
        left = None if seconds is None else max(LEAST_SECONDS, seconds - (time.monotonic() - began))
        outside = [name for name in variables if name not in names] if notes else ()
        asked = confirm(
            *(proposed, x, y, generator),
            **{"variables": variables, "leave_out": outside, "effort": much, "seconds": left},
            progress=part_of(progress, begin, end),
            **before,
        )
        return asked, verified(asked, x, y, generator, noise.result)

    asked, found = weighed(candidates, work, *((ONCE, TWICE) if quick else (CONFIRMED, WEIGHED)))
    if found.chosen is None and quick and (again := _hopeful(asked)):
        # quick networks may be far above the noise, or dense ones, by themselves, whatever their graph
        _, found = weighed(again, SECOND, TWICE, CONFIRMED)
    if found.chosen is None and candidates:
        found = with_steps(found, x, y, names, generator, noise.result, None if seconds is None else began + seconds)
    forget([noise])
    until, tell = None if seconds is None else began + seconds, part_of(progress, WEIGHED, CLOSE)
    found = closer(found, x, y, generator, until, tell)
    return replace(found, notes=(*notes, *found.notes, *derived_notes(sources)))


def _with_sources(candidates: Sequence[Found], sources: Sources) -> list[Found]:
    """What reads a column that others predict, and not all of these, with these instead."""
    open_ = [found for found in candidates if undetermined(found.graph, sources) is not None]
    return [replace(found, graph=with_sources(found.graph, sources), confidence={}) for found in open_]


def _hopeful(asked: Confirmation) -> list[Found]:
    """The graph that quick networks prefer, and the best of the others that come near a dense network: which of them is
    right need not show in quick fits."""
    whole = complexity(asked.dense.graph)
    near = [trial for trial in asked.trials if trial.error <= QUICKLY * asked.dense.validation_error]
    near = [trial for trial in near if complexity(trial.found.graph) < whole or trial.found is asked.chosen]
    near.sort(key=lambda trial: (trial.found is not asked.chosen, trial.error))
    return [trial.found for trial in near[:AGAIN]]
