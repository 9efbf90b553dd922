"""Whether held-out rows prefer a proposed graph to a dense network: only then is the graph worth having."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from theodolite.graphs import CompositionalGraph
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.paired import LEVEL, holm
from theodolite.structure.draws import own_draws
from theodolite.structure.fit.effort import EFFORTS, Effort, effort_named
from theodolite.structure.fit.fitting import Fitted, checked, drawn_folds, fit_until, network_size
from theodolite.structure.fit.guide import Guide
from theodolite.structure.fit.side_by_side import one_thread, threads
from theodolite.structure.progress import Progress
from theodolite.structure.result import Found
from theodolite.structure.surrogate.networks import better_folds
from theodolite.structure.workers import by_workers

Array = NDArray[np.float64]
MARGIN = 0.05  # by which a simpler graph may be worse than dense: of dense's error, and of what dense explains
RESAMPLES = 2000
WIDER = 2  # times the width of constituents, where the best graph does not reach the dense network
FINALISTS = 3  # candidates that are fitted with full effort, after a quick fit of all


@dataclass(frozen=True)
class Trial:
    """A candidate beside the dense network: mean squared error over the target's variance on rows its networks did not
    see, and the ratio of this to dense's, with a bootstrap interval of 90 % and the share `p` of resamples in which the
    graph was no better. `screened`: left out after a quick fit, which the figures are of. `rows_enough`: about how many
    rows would show that the graph is better, were the errors as they are; None where they are no lower than dense's.
    `told`: the rows that its networks could tell, where steps leave some open; None: all."""

    found: Found
    fitted: Fitted = field(repr=False)
    error: float
    ratio: float
    interval: tuple[float, float]
    p: float
    preferred: bool
    screened: bool = False
    rows_enough: int | None = None
    told: NDArray[np.bool_] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "graph": self.found.graph.to_json(),
            "parameters": self.fitted.parameters,
            "held_out_error": self.error,
            "ratio_to_dense": self.ratio,
            "interval": list(self.interval),
            "p": self.p,
            "preferred": self.preferred,
            "screened": self.screened,
            "rows_enough": self.rows_enough,
        }


@dataclass(frozen=True)
class Confirmation:
    """`chosen` is None where it abstained; then `model`, which predicts, is `dense` or one that is better. Every model
    has learnt from all the rows."""

    chosen: Found | None
    model: Fitted
    dense: Fitted
    dense_kind: str  # "of the graph's size" or "larger"
    trials: tuple[Trial, ...]
    reason: str
    seconds: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "abstained": self.chosen is None,
            "reason": self.reason,
            "dense_held_out_error": self.dense.validation_error,
            "dense_kind": self.dense_kind,
            "dense_parameters": self.dense.parameters,
            "parameters": self.model.parameters,
            "candidates": [trial.to_json() for trial in self.trials],
            "seconds": self.seconds,
        }


@one_thread()
def confirm(
    candidates: Sequence[Found],
    x: ArrayLike,
    y: ArrayLike,
    generator: np.random.Generator,
    *,
    variables: Sequence[str] | None = None,
    leave_out: Collection[str] = (),
    effort: str | Effort = "standard",
    guide: Guide | None = None,
    fold: NDArray[np.int64] | None = None,
    known: Mapping[CompositionalGraph, Fitted] | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Confirmation:
    """Fits every candidate and dense networks to the same rows, and compares them on the rows each did not see.

    A graph must predict better than the mean of the target. It is preferred where its error is lower than dense's in a
    paired bootstrap over rows, at 95 % over all candidates (Holm); or where it is simpler and, at 95 %, not worse by
    more than 5 % of dense's error, nor of what dense explains. Of several, the simplest that the best is not
    significantly better than. Otherwise it abstains. `variables` names the columns where there are no candidates, and
    the dense network does not read those to `leave_out`.
    `guide` is the function itself where it can be asked for values; otherwise the dense network of a fold guides the
    graphs' networks of this fold, as far as the effort has guided starts. `known` are networks of candidates that were
    fitted on the rows' folds `fold` before, from which it goes on; a dense network among them is the one to beat.
    """
    began = time.monotonic()
    names = candidates[0].graph.variables if candidates else variables
    columns = np.asarray(x).shape[-1]
    names = tuple(names) if names is not None else tuple(f"x{i + 1}" for i in range(columns))
    read = [name for name in names if name not in leave_out]
    whole = replace(CompositionalGraph.dense(read), variables=names)
    rows, targets = checked(x, y, whole)
    work = effort_named(effort, len(rows))
    proposed = [found for found in candidates if not (found.graph.is_dense and len(found.graph.used) == len(read))]
    screen = len(proposed) > FINALISTS and work != EFFORTS["quick"]
    jobs = _Jobs(rows, targets, generator, seconds, began, progress)
    dense_fits = 0 if known and whole in known else 1 if work.dense_width is None else 2
    jobs.total = dense_fits + (len(proposed) + FINALISTS if screen else len(proposed))

    quick: list[tuple[Found, Fitted]] = []
    if screen:
        looks = jobs.fits([(found.graph, EFFORTS["quick"], {}) for found in proposed], "candidate")
        quick = sorted(zip(proposed, looks, strict=True), key=lambda pair: pair[1].validation_error)
        proposed = [found for found, _ in quick[:FINALISTS]]
    fold = drawn_folds(len(rows), work, generator) if fold is None else fold
    matched = max((network_size(found.graph, work.width) for found in proposed), default=0)
    before = {} if known is None else known
    dense_kind, dense = jobs.dense(whole, work, matched, fold, before.get(whole))
    graphs, asking = [found.graph for found in proposed], guide or dense.guide()
    fits = jobs.candidates(graphs, work, fold, asking, before, shared=guide is None)
    best = min(range(len(fits)), key=lambda place: fits[place].validation_error, default=None)
    if best is not None and fits[best].validation_error > (1 + MARGIN) * dense.validation_error:
        # without noise, narrow constituents lose to a dense network that no graph holds back
        jobs.total += 1
        wider = {"fold": fold, **_layers(fits[best]), "width": WIDER * fits[best].width}
        once = replace(work, restarts=2, descent=min(200, work.descent), guided=0)
        (again,) = jobs.fits([(fits[best].graph, once, wider)], "candidate")
        fits[best] = min(fits[best], again, key=lambda fitted: fitted.validation_error)

    return compared(
        list(zip(proposed, fits, strict=True)),
        dense,
        targets,
        generator,
        dense_kind=dense_kind,
        began=began,
        left_out=quick[FINALISTS:],
    )


def compared(
    fits: Sequence[tuple[Found, Fitted]],
    dense: Fitted,
    targets: Array,
    generator: np.random.Generator,
    *,
    dense_kind: str,
    began: float,
    left_out: Sequence[tuple[Found, Fitted]] = (),
) -> Confirmation:
    """Networks of graphs beside a dense one, on rows that none has seen; those left out after a quick fit cannot be
    chosen."""
    every = [*fits, *left_out]
    losses = [_losses(f, targets) for f in (dense, *(fitted for _, fitted in every))]
    losses = np.stack([*losses, (targets - targets.mean()) ** 2], axis=1)
    means = resampled_means(losses, generator, RESAMPLES)
    means, of_mean = means[:, :-1], means[:, -1]
    p = (1 + (means[:, 1:] >= means[:, :1]).sum(0)) / (1 + len(means))
    preferred = holm(p[: len(fits)].tolist())
    trials = []
    for place, (found, fitted) in enumerate(every):
        ratios = means[:, place + 1] / np.maximum(means[:, 0], 1e-300)
        screened = place >= len(fits)
        simpler = complexity(found.graph) < complexity(dense.graph)
        level = simpler and _no_worse(means[:, place + 1], means[:, 0], of_mean)
        predicts = float(np.mean(means[:, place + 1] >= of_mean)) <= LEVEL
        trials.append(
            Trial(
                *(found, fitted, fitted.validation_error),
                ratio=float(losses[:, place + 1].mean() / max(losses[:, 0].mean(), 1e-300)),
                interval=percentile_interval(ratios, 1 - 2 * LEVEL),
                p=float(p[place]),
                preferred=not screened and predicts and (level or preferred[place]),
                screened=screened,
                rows_enough=rows_enough(losses[:, 0] - losses[:, place + 1], LEVEL / max(1, len(fits))),
            )
        )
    chosen = _choose(trials, means)
    return Confirmation(
        chosen=None if chosen is None else chosen.found,
        model=dense if chosen is None else chosen.fitted,
        dense=dense,
        dense_kind=dense_kind,
        trials=tuple(trials),
        reason=reason_of(chosen, trials, dense),
        seconds=time.monotonic() - began,
    )


def complexity(graph: CompositionalGraph) -> tuple[int, ...]:
    """The fan-ins of the graph, largest first, compared in that order: a constituent of d inputs costs ε^(−d/m) units
    (Theorem 1), so the largest decides. Sums and products are made of functions of one input."""
    return tuple(sorted((len(n.inputs) if n.kind == "general" else 1 for n in graph.nodes), reverse=True))


def rows_enough(gains: Array, level: float = LEVEL) -> int | None:
    """About how many such values would show that their mean is above 0: z grows like the root of their number.

    Examples:
        >>> rows_enough(np.tile([-1.0, 1.5], 50))
        68
    """
    spread = float(gains.std())
    if gains.mean() <= 0 or spread == 0:
        return None
    return math.ceil((stats.norm.isf(level) * spread / float(gains.mean())) ** 2)


class _Jobs:
    """Fits that know nothing of each other side by side, within a common time limit, telling how far they are."""

    def __init__(
        self,
        rows: Array,
        targets: Array,
        generator: np.random.Generator,
        seconds: float | None,
        began: float,
        progress: Progress | None,
    ) -> None:
        self.rows, self.targets, self.generator = rows, targets, generator
        self.until = None if seconds is None else began + seconds
        self.progress, self.done, self.total = progress, 0, 0

    def fits(
        self, wanted: Sequence[tuple[CompositionalGraph, Effort, Mapping[str, Any]]], label: str, *, shared: bool = True
    ) -> list[Fitted]:
        """Of graphs, each with its effort and options; one after another unless `shared`."""
        now, left = time.monotonic(), self.total - self.done
        calls = []
        for place, (graph, effort, options) in enumerate(wanted):
            # those that go side by side have a turn together
            turns = min(left, (place // threads() + 1) * threads()) if shared else place + 1
            until = None if self.until is None else now + max(0.0, self.until - now) * turns / left
            own = own_draws(self.generator)
            calls.append(partial(fit_until, until, graph, self.rows, self.targets, own, effort=effort, **options))
        found = []
        for one in by_workers(calls) if shared else (call() for call in calls):
            found.append(one)
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.total, label)
        return found

    def candidates(
        self,
        graphs: Sequence[CompositionalGraph],
        effort: Effort,
        fold: NDArray[np.int64],
        guide: Guide,
        known: Mapping[CompositionalGraph, Fitted],
        *,
        shared: bool,
    ) -> list[Fitted]:
        """Networks that are known already go on from where they are. Not `shared` where only this process can ask the
        guide."""
        wanted = []
        for graph in graphs:
            start = known.get(graph)
            layers = {} if start is None else {"start": start, **_layers(start)}
            wanted.append((graph, effort, {"fold": fold, "guide": guide, **layers}))
        found = self.fits(wanted, "candidate", shared=shared)
        return [
            one if graph not in known else better_folds(one, known[graph], self.targets, fold)
            for graph, one in zip(graphs, found, strict=True)
        ]

    def dense(
        self,
        whole: CompositionalGraph,
        effort: Effort,
        matched: int,
        fold: NDArray[np.int64],
        known: Fitted | None = None,
    ) -> tuple[str, Fitted]:
        """The one that is known already; or the better of two on held-out rows: of as many parameters as the graph's,
        and larger."""
        if known is not None:
            return "larger", known
        inputs = len(whole.used)
        # w² + (inputs + 3) w + inputs + 1 parameters: two hidden layers of w units, and a linear path
        width = round((np.sqrt((inputs + 3) ** 2 + 4 * max(0, matched - inputs - 1)) - inputs - 3) / 2)
        widths = [max(4, width), *([] if effort.dense_width is None else [effort.dense_width])]
        small, *larger = self.fits(
            [(whole, effort, {"fold": fold, "width": width, "depth": 2}) for width in widths], "dense"
        )
        for large in larger:
            if large.validation_error < small.validation_error:
                return "larger", large
        return "of the graph's size", small


def _layers(fitted: Fitted) -> dict[str, int]:
    return {"width": fitted.width, "depth": fitted.depth, "shallow": fitted.shallow}


def _losses(fitted: Fitted, targets: Array) -> Array:
    assert fitted.held_out is not None
    return (fitted.held_out - targets) ** 2


def _no_worse(graph: Array, dense: Array, mean: Array) -> bool:
    """Within the margin of dense, in 95 % of the resamples."""
    allowed = MARGIN * np.minimum(dense, np.maximum(mean - dense, 0.0))
    return float(np.mean(graph - dense > allowed)) <= LEVEL


def _choose(trials: Sequence[Trial], means: Array) -> Trial | None:
    """Of the preferred, the simplest that the one of the lowest error does not beat in 95 % of the resamples."""
    able = [place for place, trial in enumerate(trials) if trial.preferred]
    if not able:
        return None
    best = min(able, key=lambda place: trials[place].error)
    level = [place for place in able if place == best or _level(means, place, best)]
    return trials[min(level, key=lambda place: (complexity(trials[place].found.graph), trials[place].error))]


def _level(means: Array, place: int, best: int) -> bool:
    return bool(np.mean(means[:, place + 1] <= means[:, best + 1]) > LEVEL)


def reason_of(chosen: Trial | None, trials: Sequence[Trial], dense: Fitted) -> str:
    at = f"{dense.validation_error:.3g} of the variance"
    if chosen is not None:
        low, high = chosen.interval
        return (
            f"on rows held out the graph's error is {chosen.error:.3g} of the variance and the dense network's {at}: "
            f"{chosen.ratio:.3g} times (90 % interval {low:.3g} to {high:.3g})"
        )
    if not trials:
        return f"no graph was proposed; the dense network's held-out error is {at}"
    best = min(trials, key=lambda trial: trial.error)
    low, high = best.interval
    enough = "" if best.rows_enough is None else f"; about {best.rows_enough:,} rows would be enough to tell"
    return (
        f"held-out rows do not prefer a graph: the best of {len(trials)} has {best.ratio:.3g} times the dense "
        f"network's error (90 % interval {low:.3g} to {high:.3g}), which is {at}{enough}"
    )
