"""`learn`: train nets on tasks over seeds and rates, and say how many of them learnt what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.bench.columns import flat
from theodolite.bench.frames import frame
from theodolite.bench.leaks import leak_warnings
from theodolite.bench.lengths import unseen_lengths
from theodolite.bench.plan import Net, TrainingPlan, plan_training
from theodolite.bench.settings import Evaluation, Saving, Training, merged
from theodolite.bench.summary import summarise
from theodolite.bench.tracking import Board
from theodolite.errors import BadInput
from theodolite.instruments.state_size import state_size
from theodolite.lab.campaign import Failure, Listener
from theodolite.lab.cell import Row
from theodolite.lab.running import Running
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context, weights_name
from theodolite.measurement import canonical
from theodolite.nets.explain import explain
from theodolite.nets.size import parse_budget
from theodolite.notebook import Shown
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.own_task import check_name, task_of
from theodolite.training.pairing import Pairing, task_sizes, with_shape
from theodolite.training.precision import check_precision

if TYPE_CHECKING:
    import pandas

_DATA = "data"  # the task on rows of a file


@dataclass(frozen=True)
class Learning(Shown):
    """What `learn` gives: rows of members, and one entry per net × task. `reused` rows were in the store before.

    `asked` is how many members there should be; the others failed, or were not run because too many did.
    """

    rows: tuple[Row, ...]
    summary: tuple[dict[str, Any], ...]
    not_applicable: tuple[str, ...]
    failures: tuple[Failure, ...]
    reused: int
    asked: int
    assumed: tuple[str, ...] = ()  # of users' nets: what nobody said of them
    warnings: tuple[str, ...] = ()  # of nets that see more than their input

    def to_json(self) -> dict[str, Any]:
        return {
            "results": list(self.summary),
            "not_applicable": list(self.not_applicable),
            "failures": [{"cells": len(f.cells), "reason": f.sentence} for f in self.failures],
            "reused": self.reused,
            "asked": self.asked,
            **({"assumed": list(self.assumed)} if self.assumed else {}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One line per member; needs the extra `data`."""
        return frame([flat(row) for row in self.rows])


def learn(
    net: Net | Sequence[Net],
    task: str | Sequence[str] = (),
    *,
    data: str | Path | None = None,
    seeds: int = 8,
    seed: int = 0,
    params: int | str | None = None,
    shape: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    training: Training = Training(),
    evaluation: Evaluation = Evaluation(),
    saving: Saving = Saving(),
    running: Running = Running(),
    listener: Listener | None = None,
    **options: Any,
) -> Learning:
    """Train `seeds` members for every net, task, learning rate and weight decay, and see who solves what.

    Parameters:
        net: a built-in net, `file.py:Name`, or a class or function that builds a module; or several
        task: a task's name, `file.py:Name` of one of your own, or several
        data: a .jsonl or .csv file of inputs and targets, as a task
        seeds: members per net, task and rates, with the seeds from `seed` on
        params: parameters per net, such as 64k: sets the width
        shape: arguments of the nets, such as {"depth": 2}
        task_args: fields of the tasks, such as {"bits": 8}; {"parity.bits": 8} for one of several
        training: how: `Training(steps=2000, lr=1e-3, weight_decay=0, batch=64, optimiser="adamw", …)`
        evaluation: `Evaluation(every=None, rows=32, unseen=None, checkpoint=None)`
        saving: `Saving(keep_weights=False, save_every=20, tensorboard=None)`
        running: `Running(device="cpu", out=None, engine="local", workers=None, …)`: `out` is the folder of a store;
            what is finished there is never run again; without `workers` all runs in this process
        listener: is told of progress and of failures
        options: any field of the four groups by its own name: `lr=3e-3`, `device="cuda"`, `out="runs"`

    Examples:
        >>> found = learn("mlp", "majority", seeds=2, steps=60, task_args={"bits": 3}, shape={"width": 8}, chunk=2)
        >>> found.summary[0]["members"], found.summary[0]["parameters"]
        (2, 113)
    """
    training, evaluation, saving, running = merged([training, evaluation, saving, running], options)
    nets_, tasks_ = _listed(net), _tasks(task, data)
    task_args = {**(task_args or {}), **({} if data is None else {f"{_DATA}.file": str(data)})}
    for name in tasks_:
        check_name(name)
    _positive("seeds", seeds)
    check_precision(training.precision, running.device)
    if saving.keep_weights and running.out is None:
        raise BadInput("weights are kept in the folder of the store: give out as well")
    if evaluation.checkpoint is not None and training.weights is not None:
        raise BadInput("a checkpoint is evaluated and weights are trained on: give one of --checkpoint and --weights")
    initial = evaluation.checkpoint if training.weights is None else training.weights
    if evaluation.checkpoint is not None:
        seeds, training = 1, replace(training, steps=0, lr=1e-3, weight_decay=0.0)
    rule = Rule(name=training.optimiser, momentum=training.momentum, clip=training.clip)  # pyright: ignore[reportArgumentType]
    rates = [Rates(float(a), float(b)) for a in _listed(training.lr) for b in _listed(training.weight_decay)]
    budget = parse_budget(params) if isinstance(params, str) else params
    every = evaluation.every if evaluation.every is not None else min(1000, max(10, training.steps // 50))
    schedule = Schedule(training.steps, training.batch, every, evaluation.rows, (), training.to_the_end)
    planned = TrainingPlan()
    for one in nets_:
        for name in tasks_:
            named = task_of(name, _fields_of(name, task_args, tasks_))
            built = named.task
            planned += plan_training(
                one,
                built,
                schedule=replace(schedule, unseen=unseen_lengths(built, evaluation.unseen)),
                rule=rule,
                rates=rates,
                seeds=range(seed, seed + seeds),
                shape=shape,
                budget=budget,
                checkpoint=initial,
                precision=training.precision,
                own=named,
            )
    cells, locations = planned.cells, planned.locations
    if not cells:
        raise BadInput(f"no net fits a task here: {'; '.join(planned.skipped)}")
    with ExitStack() as stack:
        board = None if saving.tensorboard is None else stack.enter_context(Board(saving.tensorboard))
        store = stack.enter_context(running.open())
        context = Context(
            checkpoints=store.checkpoints.resolve(),
            locations=locations,
            save_every=saving.save_every,
            weights=_weights_folder(store) if saving.keep_weights else None,
            initial=None if initial is None else Path(initial).resolve(),
            state_sizes={key: _state_size(store, *found) for key, found in planned.conditions.items()},
        )
        listener = listener or Listener.unless_given()
        if board is not None:
            listener = board.listening(listener)
        outcome = running.run(cells, store, context, listener=listener)
    found_rows = tuple(outcome.rows.values())
    return Learning(
        rows=found_rows,
        summary=tuple(summarise(found_rows)),
        not_applicable=planned.skipped,
        failures=tuple(outcome.failures),
        reused=outcome.reused,
        asked=len({cell.key for cell in cells}),
        assumed=_assumed([pairing for _, pairing in planned.conditions.values()]),
        warnings=leak_warnings(list(planned.conditions.values())),
    )


def explained(
    net: Net | Sequence[Net],
    task: str | Sequence[str] = (),
    data: str | Path | None = None,
    shape: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
) -> list[str]:
    """A line for each net on how it is built, fed and read at the first task."""
    tasks_ = _tasks(task, data)
    given = {**(task_args or {}), **({} if data is None else {f"{_DATA}.file": str(data)})}
    built = task_of(tasks_[0], _fields_of(tasks_[0], given, tasks_)).task
    return [explain(one, **with_shape(task_sizes(one, built), shape or {})) for one in _listed(net)]


def _assumed(pairings: Sequence[Pairing]) -> tuple[str, ...]:
    """What was assumed of users' nets, a line for each net and way to read it."""
    told = [(one.name, (*one.assumed, *one.read_as)) for one in pairings]
    return tuple(dict.fromkeys(f"{name}: {'; '.join(words)}" for name, words in told if words))


def _state_size(store: Store, net: Net, pairing: Pairing) -> dict[str, Any] | None:
    """Measured once per net and shape: a number, or how much it grows with every token."""
    if pairing.task.spec.kind != "sequence":
        return None
    name = "state size, growth shown " + canonical([pairing.name, pairing.version, pairing.source, dict(pairing.shape)])
    known = store.trial(name)
    if known is None:
        measured = state_size(net, **with_shape(task_sizes(net, pairing.task), pairing.shape))
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
        owner, dot, field = name.rpartition(".")
        if not dot:
            fields[name] = value
        elif owner == task:
            fields[field] = value
        elif owner not in all_tasks:
            raise BadInput(
                f"--task-arg {name} is about '{owner}', which is not among the tasks: {', '.join(all_tasks)}"
            )
    return fields


def _tasks(task: str | Sequence[str], data: str | Path | None) -> list[str]:
    """Names of all tasks, the file's among them."""
    if not task and data is None:
        raise BadInput("no task is named: give --task, or a file of your own rows with --data")
    named = _listed(task) if task else []
    return named if data is None or _DATA in named else [*named, _DATA]


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
