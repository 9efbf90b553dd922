"""The training cells of a net on a task, and where workers find the net; the reason instead, where they do not fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput, NotApplicable
from theodolite.lab.cell import Cell
from theodolite.lab.condition import TRAINING, condition
from theodolite.lab.run_cells import place, task_place
from theodolite.lab.tally import LARGEST
from theodolite.lab.work import checked_weights
from theodolite.nets.contract import nets
from theodolite.nets.from_file import is_file
from theodolite.nets.hugging_face import absolute, is_hugging_face
from theodolite.nets.size import fit_budget
from theodolite.tasks.contract import Task
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.own_task import NamedTask
from theodolite.training.pairing import Pairing, pair, task_sizes, with_shape

Net = str | Callable[..., Any]


@dataclass(frozen=True)
class TrainingPlan:
    """`conditions`: by condition, the net and how it meets the task; `skipped`: why a pair of them has no cells."""

    cells: tuple[Cell, ...] = ()
    locations: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, tuple[Net, Pairing]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def __add__(self, other: TrainingPlan) -> TrainingPlan:
        return TrainingPlan(
            self.cells + other.cells,
            {**self.locations, **other.locations},
            {**self.conditions, **other.conditions},
            self.skipped + other.skipped,
        )


def plan_training(
    net: Net,
    task: Task,
    *,
    schedule: Schedule,
    rule: Rule,
    rates: Sequence[Rates],
    seeds: Iterable[int],
    shape: Mapping[str, Any] | None = None,
    budget: int | None = None,
    checkpoint: str | Path | None = None,
    precision: str = "float32",
    own: NamedTask | None = None,
) -> TrainingPlan:
    """One cell per seed and rates. A budget of parameters sets the width; `own`: the task is of a user's file."""
    try:
        pairing = _pairing(net, task, dict(shape or {}), budget, max(schedule.unseen, default=None))
    except NotApplicable as reason:
        return TrainingPlan(skipped=(str(reason),))
    config = _config(pairing, rule, schedule)
    if precision != "float32":
        config["precision"] = precision
    if own is not None and own.code is not None:
        config["task_source"] = own.code
    if checkpoint is not None:
        config["checkpoint"] = _weights_hash(pairing, Path(checkpoint))
    chosen = list(seeds)
    if too_large := [seed for seed in chosen if not -LARGEST <= seed < LARGEST]:
        raise BadInput(f"seed {too_large[0]} cannot be kept: give one from -{LARGEST} to {LARGEST - 1}")
    cells = tuple(
        Cell(TRAINING, {**config, "seed": seed, "lr": r.lr, "weight_decay": r.weight_decay})
        for seed in chosen
        for r in rates
    )
    places = {place(config): location(net)}
    if own is not None and own.code is not None:
        places[task_place(config)] = own.location
    return TrainingPlan(cells, places, {condition(cells[0].config): (net, pairing)})


def training_cells(
    net: Net, task: Task, schedule: Schedule, rates: Sequence[float], seeds: int | range, shape: Mapping[str, Any]
) -> tuple[Cell, ...]:
    """One cell per rate and seed, the first so many or those given; `NotApplicable` where net and task do not fit."""
    pairs = [Rates(rate, 0.0) for rate in rates]
    chosen = range(seeds) if isinstance(seeds, int) else seeds
    plan = plan_training(net, task, schedule=schedule, rule=Rule(), rates=pairs, seeds=chosen, shape=shape)
    if plan.skipped:
        raise NotApplicable(plan.skipped[0])
    return plan.cells


def location(net: Net) -> Any:
    """Where workers find a net, wherever they run."""
    if isinstance(net, str) and is_hugging_face(net):
        return absolute(net)
    if not isinstance(net, str) or not is_file(net):
        return net
    path, _, name = net.rpartition(":")
    return f"{Path(path).resolve()}:{name}"


def _pairing(net: Net, task: Task, shape: dict[str, Any], budget: int | None, longest: int | None) -> Pairing:
    if budget is not None:
        if isinstance(net, str) and net in nets:
            pair(net, task, shape, longest)  # a net that does not fit at any width is not applicable, not too small
        sizes = task_sizes(net, task, longest)
        try:
            fitted = fit_budget(net, budget, **with_shape(sizes, shape))
        except BadInput as error:  # no width comes near: others may
            raise NotApplicable(str(error)) from error
        shape = {k: v for k, v in fitted.items() if k not in sizes or k in shape}
    return pair(net, task, shape, longest)


def _config(pairing: Pairing, rule: Rule, schedule: Schedule) -> dict[str, Any]:
    """Everything that changes what a member learns."""
    config = {
        "net": pairing.name,
        "net_version": pairing.version,
        "source": pairing.source,
        "shape": dict(pairing.shape),
        "task": pairing.task.name,
        "task_version": pairing.task.version,
        "task_args": asdict(pairing.task),  # pyright: ignore[reportArgumentType]
        "optimiser": rule.to_json(),
        "schedule": schedule.to_json(),
    }
    return {**config, "read_as": list(pairing.read_as)} if pairing.read_as else config


def _weights_hash(pairing: Pairing, path: Path) -> str:
    checked_weights(pairing, path)
    return hashlib.sha256(path.read_bytes()).hexdigest()
