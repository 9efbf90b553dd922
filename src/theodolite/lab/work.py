"""What a worker does with a group: train its members or measure its cells, and say so as it goes."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell, Row
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint
from theodolite.lab.compile_ahead import CompileAhead
from theodolite.lab.condition import TRAINING, condition, lineage
from theodolite.lab.ends import read_end, write_end
from theodolite.lab.group import Group
from theodolite.lab.run_cells import net_of, run, task_place
from theodolite.measurement import Provenance, canonical
from theodolite.nets.weights import fitting
from theodolite.tasks.contract import Task, make_task
from theodolite.training.compiler import send_workers_home
from theodolite.training.earning import check_compiling
from theodolite.training.group import Finished, Look, MemberSpec, Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.own_task import task_of
from theodolite.training.pairing import Pairing, pair
from theodolite.training.precision import check_precision, multiplying
from theodolite.training.program import Batching
from theodolite.training.session import Session, recorded_batching
from theodolite.training.trial import Trial, try_sizes

logger = logging.getLogger(__name__)

State = tuple[dict[str, torch.Tensor], dict[str, str]]  # tensors and texts, as a checkpoint holds them
_GROUP_LIMIT = {"cpu": 64, "cuda": 1024}


@dataclass(frozen=True)
class Context:
    """What a command tells its workers and no cell says: where things are, and how to run."""

    checkpoints: Path
    locations: Mapping[str, Any] = field(default_factory=dict)  # by `place`: a net's name, file.py:Name, or the object
    save_every: float = 20.0
    quiet: float = 0.5  # seconds between updates that carry nothing but progress
    trial: Mapping[str, Any] | None = None
    weights: Path | None = None
    initial: Path | None = None  # weights to start from, instead of drawing them
    state_sizes: Mapping[str, Any] = field(default_factory=dict)  # measured, by condition


@dataclass(frozen=True)
class Update:
    """News of a group. Rows and checkpoint belong together: they are recorded at once or not at all.

    `number` counts a group's updates, because a checkpoint is good only if every row before it was recorded.
    """

    group: str
    step: int = 0
    live: int = 0
    rows: tuple[Row, ...] = ()
    looks: tuple[Look, ...] = ()
    checkpoint: str | None = None
    trial: Mapping[str, Any] | None = None
    done: bool = False
    number: int = 0
    note: str = ""  # what takes time beside training


def work(group: Group, context: Context, stopping: Callable[[], bool] = lambda: False) -> Iterator[Update]:
    """Run a group to its end, or to the next block once `stopping` says so; either way nothing is lost."""
    steps = _train if group.cells[0].measure == TRAINING else _measure
    for number, update in enumerate(steps(group, context, stopping)):
        yield replace(update, number=number)


def _measure(group: Group, context: Context, stopping: Callable[[], bool]) -> Iterator[Update]:
    rows = []
    for row in run(group.cells, group.settings["device"], locations=context.locations):
        rows.append(row)
        if stopping() and len(rows) < len(group.cells):
            yield Update(group.id, len(rows), rows=(row,))
            return
        yield Update(group.id, len(rows), len(group.cells) - len(rows), (row,), done=len(rows) == len(group.cells))


def plan(cells: list[Cell], settings: Mapping[str, Any], workers: int) -> list[Group]:
    """Cells of one condition run together, spread over the workers where there are fewer conditions than those; but not
    where training may grow, since it goes on for the same members only."""
    conditions: dict[str, list[Cell]] = {}
    for cell in cells:
        conditions.setdefault(condition(cell.config) if cell.measure == TRAINING else cell.key, []).append(cell)
    parts = max(1, workers // max(1, len(conditions)))
    limit = _GROUP_LIMIT["cuda" if str(settings["device"]).startswith("cuda") else "cpu"]
    groups = []
    for members in conditions.values():
        grows = members[0].config.get("schedule", {}).get("grows", False)
        count = max(-(-len(members) // limit), 1 if grows else min(parts, len(members)))
        size = -(-len(members) // count)
        groups += [Group.of(members[i : i + size], settings) for i in range(0, len(members), size)]
    return groups


def trial_name(group: Group) -> str:
    """Trials are shared by groups of one condition, size and place."""
    config = dict(group.cells[0].config)
    return canonical([condition(config), dict(group.settings), len(group.cells)])


def paired(config: Mapping[str, Any], locations: Mapping[str, Any]) -> Pairing:
    """The net and task that a training cell names."""
    task = _task(config, locations)
    net = net_of(config, locations)
    unseen = config["schedule"]["unseen"]
    pairing = pair(net, task, config["shape"], max(unseen, default=None))
    if pairing.source != config["source"] and isinstance(net, str):
        raise BadInput(
            f"the file of '{config['net']}', or what it imports, was changed since this run was planned: start the "
            "command again, with the same libraries wherever it runs"
        )
    return pairing


def _task(config: Mapping[str, Any], locations: Mapping[str, Any]) -> Task:
    if "task_source" not in config:
        return make_task(config["task"], config["task_args"])
    if (key := task_place(config)) not in locations:
        raise BadInput(
            f"this command does not name the task '{config['task']}' of a cell: start the one that planned it"
        )
    found = task_of(locations[key], config["task_args"])
    if found.code != config["task_source"]:
        raise BadInput(
            f"the file of '{config['task']}', or what it imports, was changed since this run was planned: start again"
        )
    return found.task


def _train(group: Group, context: Context, stopping: Callable[[], bool]) -> Iterator[Update]:
    config = group.cells[0].config
    device = resolve_device(group.settings["device"])
    pairing = paired(config, context.locations)
    if context.initial is not None:
        pairing = replace(pairing, build=_initial(pairing, context.initial))
    rule = Rule.from_json(config["optimiser"])
    schedule = Schedule.from_json(config["schedule"])
    state, batching, continued = _saved(group, context, schedule)
    trial = None
    if batching is None:
        batching, trial = _batching(group, context, pairing, rule, schedule, device)
    if trial is not None:
        yield Update(group.id, group.step, len(group.cells), trial=trial.to_json())
    cells = {lineage(cell).key: cell for cell in group.cells}
    specs = [
        MemberSpec(key, lineage(c).seed, Rates(c.config["lr"], c.config["weight_decay"])) for key, c in cells.items()
    ]
    compiling = check_compiling(group.settings.get("compile", "auto"))
    if compiling == "auto" and device.type == "cpu":
        compiling = "never"  # a choice by the clock would cost rows that repeat bit for bit
    if compiling == "always" and not batching.batched and schedule.steps:
        why = _why_alone(group, context, trial)
        logger.warning("the steps of '%s' are not compiled: its members run one by one, since %s", pairing.name, why)
    precision = check_precision(config.get("precision", "float32"), str(device))
    session = Session(pairing, specs, schedule, rule, batching, device, compiling, precision)
    if compiling == "auto" and session.compiling.lengths and batching.batched:
        chunk, decays = min(batching.chunk, len(specs)), any(spec.rates.weight_decay for spec in specs)
        ahead = CompileAhead(config, context.locations, str(device), chunk, decays, session.compiling.lengths)
        session.compiling.compile_by(ahead)
    if state is not None:
        session.restore(*state)
    if continued and session.early:
        over = [Finished(key, result, 0.0, str(batching), {}) for key, result in session.early.items()]
        rows = tuple(_row(one, cells[one.key], group, context, session) for one in over)
        yield Update(group.id, session.step, len(session.live), rows)
    saved = said = time.monotonic()
    while not session.done:
        finished, looks = session.advance()
        if session.end is not None:
            write_end(context.checkpoints, group, session.step, *session.end)
        for one in finished:
            _keep_weights(one, cells[one.key], context)
        rows = tuple(_row(one, cells[one.key], group, context, session) for one in finished)
        looks = [replace(look, key=cells[look.key].key) for look in looks]
        now = time.monotonic()
        stop = stopping()
        checkpoint = None
        if not session.done and (stop or now - saved >= context.save_every):
            checkpoint = group.checkpoint_name(session.step)
            write_checkpoint(context.checkpoints / checkpoint, *session.state())
            saved = now
        if rows or looks or checkpoint or now - said >= context.quiet:
            said = now
            live = len(session.live)
            news = tuple(looks)
            yield Update(group.id, session.step, live, rows, news, checkpoint, done=session.done, note=session.note)
        if stop:
            break
    session.compiling.leave()
    send_workers_home()


def _saved(group: Group, context: Context, schedule: Schedule) -> tuple[State | None, Batching | None, bool]:
    """The group's checkpoint and how it ran, and whether it is the end of a shorter training. One that cannot be used
    costs time only: the group begins again."""
    try:
        if group.checkpoint is not None:
            state, continued = read_checkpoint(context.checkpoints / group.checkpoint), False
        else:
            state, continued = read_end(context.checkpoints, group, schedule.steps) if schedule.grows else None, True
        if state is None:
            return None, None, False
        members = {lineage(cell).key for cell in group.cells}
        if not set(json.loads(state[1]["session"])["members"]) <= members:
            raise BadInput("it belongs to another group")
        return state, recorded_batching(state[1]), continued
    except (BadInput, KeyError, TypeError, ValueError) as error:
        logger.warning("a group begins again, because its checkpoint cannot be used: %s", error)
        return None, None, False


def _batching(
    group: Group, context: Context, pairing: Pairing, rule: Rule, schedule: Schedule, device: torch.device
) -> tuple[Batching, Trial | None]:
    """As the plan says, as an earlier trial of this condition found, or by a trial now."""
    members, graphs = len(group.cells), device.type == "cuda"
    chunk = group.settings.get("chunk")
    if chunk is not None:
        return Batching(min(chunk, members), batched=chunk > 1, graphs=graphs and chunk > 1), None
    if context.trial is not None and (known := Trial.from_json(dict(context.trial))).speaks_here():
        return known.choose(members, graphs), None
    if schedule.steps == 0:
        return Batching(1, batched=False), None
    precision = check_precision(group.cells[0].config.get("precision", "float32"), str(device))
    with multiplying(precision, device):
        trial = try_sizes(pairing, rule, schedule.batch, members, device)
    return trial.choose(members, graphs), trial


def _why_alone(group: Group, context: Context, trial: Trial | None) -> str:
    """Why members are not batched, in words that end a sentence."""
    if group.settings.get("chunk") is not None:
        return "--chunk 1 asks for that"
    known = Trial.from_json(dict(context.trial)) if trial is None and context.trial is not None else trial
    return known.reason if known is not None and known.reason else "a short trial found that faster"


def _row(one: Finished, cell: Cell, group: Group, context: Context, session: Session) -> Row:
    facts = {
        "seconds": one.seconds,
        "device": device_name(session.device),
        "batching": one.batching,
        "compilation": session.compiling.said,
        "precision": session.precision,
        "group": group.id,
        "members": len(group.cells),
        "threads": session.threads or torch.get_num_threads(),
        "provenance": asdict(Provenance.here(cell.seed, str(session.device))),
    }
    result = {**one.result, "state_size": context.state_sizes.get(condition(cell.config))}
    return Row(cell, result, None, facts)


def weights_name(key: str) -> str:
    """The file of a member's weights."""
    return f"{key[:16]}.safetensors"


def _keep_weights(one: Finished, cell: Cell, context: Context) -> None:
    if context.weights is not None:
        config = cell.config
        metadata = {"net": config["net"], "shape": canonical(config["shape"]), "task": config["task"], "key": cell.key}
        write_checkpoint(context.weights / weights_name(cell.key), one.weights, metadata)


def _initial(pairing: Pairing, path: Path) -> Callable[[int], nn.Module]:
    """Members with the weights of a file, which must be of this net and shape."""
    weights = checked_weights(pairing, path)

    def build(seed: int) -> nn.Module:
        built = pairing.build(seed)
        built.load_state_dict(weights)
        return built

    return build


def checked_weights(pairing: Pairing, path: Path) -> dict[str, torch.Tensor]:
    """The weights of a file; those of another net are refused, by name or by shapes."""
    tensors, metadata = read_checkpoint(path)
    if metadata.get("net", pairing.name) != pairing.name:
        raise BadInput(f"'{path}' holds weights of '{metadata['net']}', not of '{pairing.name}': name that net")
    return fitting(pairing.name, pairing.build(0), tensors, path)
