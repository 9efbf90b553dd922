"""Tables of trained networks: every entry is a net on a task, trained by the bench over seeds and learning rates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from theodolite.bench.plan import TrainingPlan, plan_training
from theodolite.bench.summary import summarise
from theodolite.claims.tables.contract import Plan, PublishedTable, Request, Result
from theodolite.claims.tables.experiment import Preset
from theodolite.claims.tables.length_generalisation_published import Published, agreement
from theodolite.claims.tables.published_score import Score
from theodolite.errors import TheodoliteError
from theodolite.lab.campaign import Outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import wilson
from theodolite.tasks.contract import Task, make_task
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rates, Rule

RULE = Rule(name="adamw", clip=1.0)  # AdamW without decay is Adam
LOOK = 250  # steps between looks of a training that grows: one number, however long it is


@dataclass(frozen=True)
class Training:
    """How every entry of a preset is trained; `rows` are drawn per length in the last evaluation. What `grows` can be
    made longer with `--steps`, in multiples of `LOOK`: it goes on from where it ended. `precision` of products: the
    papers' networks ran in the default of their GPUs, TF32."""

    steps: int
    batch: int
    seeds: int
    rates: tuple[float, ...]
    decays: tuple[float, ...] = (0.0,)
    rows: int = 32
    grows: bool = False
    precision: str = "float32"

    def schedule(self, unseen: tuple[int, ...]) -> Schedule:
        grows = self.grows and self.steps % LOOK == 0
        every = LOOK if grows else max(10, self.steps // 20)
        return Schedule(self.steps, self.batch, every, self.rows, unseen, to_the_end=True, grows=grows)


@dataclass(frozen=True)
class Entry:
    """A net on a task. `experiment` is what `--only` names, `row` what stands before the nets' columns; `column`: what
    the net's is called, where one net has two."""

    experiment: str
    section: str
    row: str
    net: str
    task: str
    task_args: Mapping[str, Any]
    shape: Mapping[str, Any]
    unseen: tuple[int, ...] = ()
    column: str | None = None

    @property
    def name(self) -> str:
        return self.column or self.net


@dataclass(frozen=True)
class TrainedTable:
    """`quantities`: what is published, by the entry of a member's result that measures it again; the first of them at
    or above `bar` counts as solved. `sides`: whether being on the published side of the bar is asked.

    `published` scores of an entry by quantity; `shorter` says in what an entry falls short of the paper's.
    """

    title: str
    source: str
    quantities: Mapping[str, str]
    bar: float
    training: Mapping[Preset, Training]
    entries: Callable[[Preset], Sequence[Entry]]
    published: Callable[[Entry, str], Sequence[Score]]
    shorter: Callable[[Entry, Training, int], str | None]
    sides: bool = False

    def as_published(
        self,
        experiments: Sequence[str],
        nets: Sequence[str],
        statements: Callable[[Sequence[Mapping[str, Any]]], list[dict[str, str]]],
        quick: Sequence[str] | None = None,
    ) -> PublishedTable:
        names, shown = list(experiments), None if quick is None else tuple(quick)
        return PublishedTable(self.title, self.source, lambda: names, self.plan, tuple(nets), statements, shown)

    def plan(self, request: Request) -> Plan:
        training = self.training[request.preset]
        training = replace(
            training, steps=request.steps or training.steps, precision=request.precision or training.precision
        )
        seeds = request.seeds or training.seeds
        entries = [
            entry
            for entry in self.entries(request.preset)
            if entry.experiment in request.experiments and (request.nets is None or entry.name in request.nets)
        ]
        entries.sort(key=lambda entry: request.experiments.index(entry.experiment))
        plans = [_planned(entry, training, range(request.seed, request.seed + seeds)) for entry in entries]
        whole = sum(plans, TrainingPlan())
        members = seeds * len(training.rates) * len(training.decays)

        def results(outcome: Outcome) -> list[Result]:
            return [
                self._result(entry, training, members, plan, outcome.of(plan.cells))
                for entry, plan in zip(entries, plans, strict=True)
            ]

        # All members of an entry in one batched program: built-in nets are known to agree with the loop.
        return Plan(whole.cells, results, whole.locations, {"chunk": members})

    def _result(
        self, entry: Entry, training: Training, members: int, plan: TrainingPlan, rows: Sequence[Row]
    ) -> Result:
        done = [row for row in rows if row.error is None]
        return {
            **_about(entry, training, members, plan.cells),
            "shorter": self.shorter(entry, training, members),
            **(self._measured(entry, done) if done else self._unmeasured(entry)),
            "error": _error(plan, rows),
            "applicable": not plan.skipped,
        }

    def _unmeasured(self, entry: Entry) -> dict[str, Any]:
        """What is published stands in the table whether or not it was measured."""
        published = {quantity: self._figures(entry, quantity) for quantity in self.quantities}
        return {"quantities": [], "published": published, "solved": None, "agrees": None}

    def _figures(self, entry: Entry, quantity: str) -> list[dict[str, Any]]:
        scores = self.published(entry, quantity)
        return [{"value": s.value, "origin": s.origin, "source": s.source, "called": s.called} for s in scores]

    def _measured(self, entry: Entry, rows: Sequence[Row]) -> dict[str, Any]:
        summary = summarise(rows)[0]
        quantities = [
            self._quantity(entry, quantity, [row.result.get(field) for row in rows])
            for quantity, field in self.quantities.items()
        ]
        first = next(iter(self.quantities.values()))
        solved = sum(1 for row in rows if (row.result.get(first) or 0.0) >= self.bar)
        return {
            "quantities": quantities,
            "solved": {"bar": self.bar, **_share(solved, len(rows))},
            "learnt": {"bar": summary["threshold"], **summary["solved"], "steps": summary["steps_to_solve"]},
            "agrees": self._agrees(entry, quantities[0], summary["solved"]["count"] > 0) if self.sides else None,
            "chance": summary["chance"],
            "diverged": summary["diverged"],
            "lengths": _lengths(rows, summary["trained_lengths"]),
            "mean_steps": summary["mean_steps"],
            "parameters": summary["parameters"],
            "seconds": round(summary["seconds"], 2),
            "device": summary["device"],
            "batching": summary["batching"],
        }

    def _quantity(self, entry: Entry, quantity: str, values: Sequence[float | None]) -> dict[str, Any]:
        """A member that diverged counts as the lowest; the best is the paper's statistic."""
        known = [v for v in values if v is not None]
        middle = statistics.median(-math.inf if v is None else v for v in values)
        return {
            "quantity": quantity,
            "best": max(known, default=None),
            "median": None if math.isinf(middle) else middle,
            "lowest": min(known, default=None),
            "published": self._figures(entry, quantity),
        }

    def _agrees(self, entry: Entry, quantity: Mapping[str, Any], learnt: bool) -> bool | None:
        if not quantity["published"] or quantity["best"] is None:
            return None
        published = quantity["published"][0]
        predicted = Published(entry.task, entry.net, published["value"], published["source"], "")
        return agreement(predicted, quantity["best"], learnt)


def spread_lengths(shortest: int, longest: int, count: int) -> tuple[int, ...]:
    """`count` lengths from the shortest to the longest, evenly apart."""
    gaps = max(1, count - 1)
    return tuple(sorted({round(shortest + i * (longest - shortest) / gaps) for i in range(count)}))


def falls_short(sizes: Iterable[tuple[str, float, float | None]]) -> str | None:
    """(what, ours, the paper's) of everything that is smaller here, in words; None where nothing is."""
    smaller = [f"{what} {own:,} ({paper:,})" for what, own, paper in sizes if paper is not None and own < paper]
    return ", ".join(smaller) or None


def statement(text: str, source: str, rule: str, verdict: bool | None, detail: str) -> dict[str, str]:
    """A sentence of a paper and what the results say of it."""
    word = {True: "holds", False: "fails", None: "open"}[verdict]
    return {"statement": text, "source": source, "rule": rule, "verdict": word, "detail": detail}


def _planned(entry: Entry, training: Training, seeds: Iterable[int]) -> TrainingPlan:
    """The cells of an entry; a net that cannot be built for its task is told like one that does not fit it."""
    try:
        task = make_task(entry.task, entry.task_args)
        return plan_training(
            entry.net,
            task,
            schedule=training.schedule(_existing(task, entry.unseen)),
            rule=RULE,
            rates=[Rates(lr, decay) for lr in training.rates for decay in training.decays],
            seeds=seeds,
            shape=entry.shape,
            precision=training.precision,
        )
    except TheodoliteError as reason:
        return TrainingPlan(skipped=(str(reason),))


def _existing(task: Task, lengths: tuple[int, ...]) -> tuple[int, ...]:
    limit = task.spec.limit
    return lengths if limit is None else tuple(n for n in lengths if n <= limit)


def _about(entry: Entry, training: Training, members: int, cells: Sequence[Cell]) -> dict[str, Any]:
    config = cells[0].config if cells else {}
    return {
        "experiment": entry.experiment,
        "section": entry.section,
        "row": entry.row,
        "net": entry.name,
        "task": entry.task,
        "task_args": dict(config.get("task_args", entry.task_args)),
        "settings": {
            "architecture": entry.net,
            "shape": dict(entry.shape),
            "defaults": {name: v for name, v in config.get("shape", {}).items() if name not in entry.shape},
            "steps": training.steps,
            "batch": training.batch,
            "seeds": members // (len(training.rates) * len(training.decays)),
            "rates": list(training.rates),
            "weight_decays": list(training.decays),
            "members": members,
            "optimiser": RULE.name,
            "clip": RULE.clip,
            "precision": training.precision,
            "unseen": list(config["schedule"]["unseen"]) if config else list(entry.unseen),
        },
    }


def _lengths(rows: Sequence[Row], trained: Sequence[int] | None) -> dict[str, Any] | None:
    """Scores by length: of the best member, the paper's statistic, and the median over members."""
    told = [dict(row["by_length"]) for row in rows if row["by_length"]]
    if trained is None or not told:
        return None
    lengths = sorted(told[0])
    scored = [n for n in lengths if n > trained[1]] or lengths
    best = max(told, key=lambda scores: statistics.fmean(scores[n] for n in scored))
    return {
        "trained": list(trained),
        "length": lengths,
        "best": [best[n] for n in lengths],
        "median": [statistics.median(scores[n] for scores in told) for n in lengths],
    }


def _error(plan: TrainingPlan, rows: Sequence[Row]) -> str | None:
    if plan.skipped:
        return plan.skipped[0]
    wrong = [row.error for row in rows if row.error is not None]
    missing = len(plan.cells) - len(rows)
    if not wrong and not missing:
        return None
    reason = f", the first with: {wrong[0]}" if wrong else ""
    return f"{len(wrong) + missing} of {len(plan.cells)} members were not trained{reason}"


def _share(count: int, of: int) -> dict[str, Any]:
    return {"count": count, "of": of, "share": count / of, "interval": wilson(count, of)}
