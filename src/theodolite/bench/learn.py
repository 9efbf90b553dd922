"""`learn`: train nets on tasks over seeds and rates, and say how many of them learnt what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.bench.frames import frame
from theodolite.bench.lengths import unseen_lengths
from theodolite.bench.plan import Net, TrainingPlan, plan_training
from theodolite.bench.summary import flat, summarise
from theodolite.bench.tracking import Board
from theodolite.errors import BadInput
from theodolite.instruments.state_size import state_size
from theodolite.lab.campaign import Failure, Listener
from theodolite.lab.cell import Row
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.running import Running
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context, weights_name
from theodolite.measurement import canonical
from theodolite.nets.size import parse_budget
from theodolite.tasks.contract import make_task, tasks
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing, task_sizes
from theodolite.training.session import Schedule

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Learning:
    """What `learn` gives: rows of members, and one entry per net × task. `reused` rows were in the store before.

    `asked` is how many members there should be; the others failed, or were not run because too many did.
    """

    rows: tuple[Row, ...]
    summary: tuple[dict[str, Any], ...]
    not_applicable: tuple[str, ...]
    failures: tuple[Failure, ...]
    reused: int
    asked: int

    def to_json(self) -> dict[str, Any]:
        return {
            "results": list(self.summary),
            "not_applicable": list(self.not_applicable),
            "failures": [{"cells": len(f.cells), "reason": f.sentence} for f in self.failures],
            "reused": self.reused,
            "asked": self.asked,
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One line per member; needs the extra `data`."""
        return frame([flat(row) for row in self.rows])


def learn(
    net: Net | Sequence[Net],
    task: str | Sequence[str],
    *,
    seeds: int = 8,
    lr: float | Sequence[float] = 1e-3,
    weight_decay: float | Sequence[float] = 0.0,
    steps: int = 2000,
    params: int | str | None = None,
    shape: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    batch: int = 64,
    optimiser: str = "adamw",
    momentum: float = 0.9,
    clip: float | None = 1.0,
    every: int | None = None,
    rows: int = 32,
    unseen: str | Sequence[int] | None = None,
    to_the_end: bool = False,
    checkpoint: str | Path | None = None,
    chunk: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    keep_weights: bool = False,
    save_every: float = 20.0,
    device: str = "cpu",
    engine: str = "local",
    cluster: Cluster | None = None,
    workers: int | None = None,
    threads: int | None = None,
    max_failures: int | None = None,
    tensorboard: str | Path | None = None,
    listener: Listener | None = None,
) -> Learning:
    """Train `seeds` members for every net, task, learning rate and weight decay, and see who solves what.

    `net` is a built-in net, `file.py:Name`, or a class or function that builds a module. `out` is the folder of the
    store: finished members are there at once and are never run again. Without it nothing is kept. `engine` says where
    members run: `local` is this machine, with `workers` processes side by side; None runs everything in this one.
    `ray` and `slurm` are a cluster, and `cluster` says which.
    `chunk` members go through one batched call, 1 is the plain loop; unless given it is found by a short trial.
    `checkpoint` evaluates those weights without training.
    """
    running = Running(device, out, engine, cluster or Cluster(), workers, threads)
    nets_, tasks_ = _listed(net), _listed(task)
    for name in tasks_:
        _ = tasks[name]
    _positive("seeds", seeds)
    if chunk is not None:
        _positive("chunk", chunk)
    if keep_weights and out is None:
        raise BadInput("weights are kept in the folder of the store: give out as well")
    if checkpoint is not None:
        seeds, steps, lr, weight_decay = 1, 0, 1e-3, 0.0
    rule = Rule(name=optimiser, momentum=momentum, clip=clip)  # pyright: ignore[reportArgumentType]
    rates = [Rates(float(a), float(b)) for a in _listed(lr) for b in _listed(weight_decay)]
    budget = parse_budget(params) if isinstance(params, str) else params
    every = every if every is not None else min(1000, max(10, steps // 50))
    schedule = Schedule(steps, batch, every, rows, (), to_the_end)
    planned = TrainingPlan()
    for one in nets_:
        for name in tasks_:
            built = make_task(name, _fields_of(name, task_args, tasks_))
            planned += plan_training(
                one,
                built,
                schedule=replace(schedule, unseen=unseen_lengths(built, unseen)),
                rule=rule,
                rates=rates,
                seeds=range(seed, seed + seeds),
                shape=shape,
                budget=budget,
                checkpoint=checkpoint,
            )
    cells, locations = planned.cells, planned.locations
    if not cells:
        raise BadInput(f"no net fits a task here: {'; '.join(planned.skipped)}")
    with ExitStack() as stack:
        board = stack.enter_context(Board(tensorboard)) if tensorboard is not None else None
        store = stack.enter_context(running.open())
        context = Context(
            checkpoints=store.checkpoints.resolve(),
            locations=locations,
            save_every=save_every,
            weights=_weights_folder(store) if keep_weights else None,
            initial=None if checkpoint is None else Path(checkpoint).resolve(),
            state_sizes={key: _state_size(store, *found) for key, found in planned.conditions.items()},
        )
        settings = {} if chunk is None else {"chunk": chunk}
        listener = listener or Listener()
        if board is not None:
            listener = board.listening(listener)
        outcome = running.run(cells, store, context, settings, listener, max_failures)
    found_rows = tuple(outcome.rows.values())
    return Learning(
        rows=found_rows,
        summary=tuple(summarise(found_rows)),
        not_applicable=planned.skipped,
        failures=tuple(outcome.failures),
        reused=outcome.reused,
        asked=len({cell.key for cell in cells}),
    )


def _state_size(store: Store, net: Net, pairing: Pairing) -> dict[str, Any] | None:
    """Measured once per net and shape: a number, or how much it grows with every token."""
    if pairing.task.spec.kind != "sequence":
        return None
    name = "state size " + canonical([pairing.name, pairing.version, pairing.source, dict(pairing.shape)])
    known = store.trial(name)
    if known is None:
        measured = state_size(net, **task_sizes(net, pairing.task), **pairing.shape)
        kept = ("growth_per_token", "at_least", "at_most", "reason")
        known = {"size": measured.value, **{n: measured.diagnostics[n] for n in kept if n in measured.diagnostics}}
        store.keep_trial(name, known)
    return known


def weights_file(out: str | Path, key: str) -> Path:
    """Where a member's weights are kept in the folder of a store."""
    return Path(out) / "weights" / weights_name(key)


def _weights_folder(store: Store) -> Path:
    folder = weights_file(store.folder, "").parent
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder '{folder}' cannot be made ({error.strerror}): choose another --out") from error
    return folder.resolve()


def _fields_of(task: str, given: Mapping[str, Any] | None, all_tasks: Sequence[str]) -> dict[str, Any]:
    """`field=value` for every task, `task.field=value` for one of several."""
    fields: dict[str, Any] = {}
    for name, value in (given or {}).items():
        owner, dot, field = name.partition(".")
        if not dot:
            fields[name] = value
        elif owner == task:
            fields[field] = value
        elif owner not in all_tasks:
            raise BadInput(
                f"--task-arg {name} is about '{owner}', which is not among the tasks: {', '.join(all_tasks)}"
            )
    return fields


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        found = [part.strip() for part in value.split(",") if part.strip()]
    elif isinstance(value, Sequence):
        found = list(value)
    else:
        found = [value]
    if not found:
        raise BadInput(f"{value!r} names nothing: give at least one")
    return list(dict.fromkeys(found))


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise BadInput(f"{name} must be at least 1, not {value}")
