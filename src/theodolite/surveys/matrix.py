"""The section that sets three things side by side for a task and a network: whether explicit weights are known that
compute it, how much of the first gradient speaks of it, and what training reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.bench.plan import training_cells
from theodolite.bench.summary import summarise
from theodolite.errors import BadInput, NotApplicable
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.measurement import canonical
from theodolite.nets.load import blueprint
from theodolite.report import Answer, Board, Chart, Column, Square, Standing, Summary, Table
from theodolite.surveys.answers import Ability, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting, training_seconds
from theodolite.tasks.contract import Task, make_task
from theodolite.training.group import Schedule
from theodolite.training.pairing import gives_signs, task_sizes

_EXPRESS, _SIGNAL = "express", "target-signal"
_ABILITY = Ability(
    "learnability of the expressible",
    "Does training find what it can express?",
    "of the tasks that explicit weights are known to solve, how many gradient descent learns in these steps",
)
_WORDS = {True: "yes", False: "no", None: None}
_FAINTEST = 1e-6  # shares of the gradient below are drawn as nothing


@dataclass(frozen=True)
class _Effort:
    bits: int
    tasks: tuple[str, ...]
    seeds: int
    steps: int
    batch: int
    rates: tuple[float, ...]
    draws: int


def _tasks(bits: int) -> dict[str, Task]:
    """By the name they have in the chart, the simplest first."""
    named = {
        "first bit": ("boolean", {"function": "first", "bits": bits}),
        "majority": ("majority", {"bits": bits}),
        "carry": ("boolean", {"function": "carry", "bits": bits}),
        "multiplexer": ("boolean", {"function": "multiplexer", "bits": bits}),
        "brackets": ("boolean", {"function": "brackets", "bits": bits}),
        "equality": ("boolean", {"function": "equality", "bits": bits}),
        "inner product": ("boolean", {"function": "inner-product", "bits": bits}),
        "parity of 2": ("parity", {"bits": bits, "relevant": 2}),
        f"parity of {bits // 2}": ("parity", {"bits": bits, "relevant": bits // 2}),
        f"parity of {bits}": ("parity", {"bits": bits, "relevant": bits}),
        "sawtooth": ("sawtooth", {"folds": 3}),
        "wave": ("linear-periodic", {"dimensions": bits, "frequency": 0.5}),
    }
    return {label: make_task(name, fields) for label, (name, fields) in named.items()}


_EFFORT: dict[str, _Effort] = {
    "quick": _Effort(
        8, ("majority", "parity of 2", "parity of 8"), seeds=3, steps=300, batch=32, rates=(5e-3,), draws=3
    ),
    "standard": _Effort(10, tuple(_tasks(10)), seeds=4, steps=2000, batch=32, rates=(3e-3,), draws=5),
    "full": _Effort(12, tuple(_tasks(12)), seeds=8, steps=10_000, batch=64, rates=(1e-3,), draws=16),
}
_COLUMNS = (
    Column("task", "task", numeric=False),
    Column("net", "network", numeric=False),
    Column("expressible", "expressible", "explicit weights were checked on the inputs; a dash: none are known", False),
    Column("witness", "by", "the construction, or the proof that there is none", False),
    Column("needed", "its para- meters", "of the network with explicit weights"),
    Column("checked", "checked on", "inputs on which its answer was compared; all of them where exhaustive"),
    Column("signal", "signal", "share of the first gradient's power that speaks of the task"),
    Column("interval", "95 % interval", "over draws of the weights"),
    Column("solved", "seeds that solve it"),
    Column("score", "score", "mean over seeds: accuracy, or the share of variance explained"),
    Column("guess", "chance", "score of the best constant answer"),
    Column("median", "steps to solve", "median over the seeds that solve it"),
    Column("parameters", "para- meters", "of the network that is trained"),
)
_MEANING = (
    "Expressible: weights written down, not trained, for a network of this architecture, of whatever size they need; "
    "the answer is compared on every input where there are at most 2^20. Signal: at the weights training starts from, "
    "the share of the gradient's power that depends on the target; near 0, one target looks like any other. Learnt: "
    "share of the seeds that solve the task in the steps allowed. All tasks read the same ±1 bits, networks of tokens "
    "one bit after the other; sawtooth and wave read real numbers."
)


class MatrixSection(Section):
    id = "matrix"
    title = "Expressivity, gradient signal, learnability"
    trains = True

    def applies(self, net: Candidate, /) -> str | None:
        if net.polynomial and net.registered:
            return f"'{net.name}' is a polynomial, which other sections measure exactly"
        plan = blueprint(net.net, **net.given)
        if plan.kind != net.kind:
            return f"'{net.name}' reads tokens and does not name them: let its constructor have an argument 'tokens'"
        return None

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell | Row]:
        assert net is not None
        effort = _EFFORT[preset]
        ids = blueprint(net.net, **net.given).vocab is not None
        chosen = {
            label: task
            for label, task in _tasks(effort.bits).items()
            if label in effort.tasks and (not ids or gives_signs(task))
        }
        planned: list[Cell | Row] = []
        for label, task in chosen.items():
            try:
                planned += _cells(net, task, effort)
            except BadInput as error:
                if isinstance(error, NotApplicable):
                    raise
                planned.append(Row(Cell(TRAINING, {**net.named(), "task": label}), {}, error=str(error)))
        return planned

    def seconds(self, cell: Cell) -> float:
        if cell.measure == TRAINING:
            return training_seconds(cell.config["schedule"], cell.config["task_args"].get("bits"))
        return 0.1 if cell.measure == _EXPRESS else 0.4

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        found = _cells_of(good, setting.preset)
        nets = list(dict.fromkeys(net for _, net in found))
        labels = list(dict.fromkeys(label for label, _ in found))
        notes = (_MEANING, *failures(rows, setting))
        broken = {row.cell.config["net"]: row.error or "" for row in reversed(rows) if row.error}
        lost = [_ABILITY.failed(net, why) for net, why in {**broken, **setting.troubles}.items() if net not in nets]
        if not found:
            return Summary("No network could be measured.", notes=notes, answers=lost)
        effort = _EFFORT[setting.preset]
        caption = (
            f"{effort.bits} bits: a parity drawn at random gets {2.0**-effort.bits:.1g} of the gradient on average. "
            f"At most {effort.steps:,} steps, batch {effort.batch}, AdamW, {effort.seeds} seeds."
        )
        table = Table("Tasks by network", _COLUMNS, [_line(found[key]) for key in found], caption)
        chart = _chart(found, labels, nets, effort)
        of_net = {net: [cell for (_, other), cell in found.items() if other == net] for net in nets}
        answers = [_answer(net, cells, effort) for net, cells in of_net.items()] + lost
        return Summary(_headline(list(found.values())), [table], notes=notes, answers=answers, charts=[chart])


def _cells(net: Candidate, task: Task, effort: _Effort) -> list[Cell]:
    sizes = task_sizes(net.net, task)
    if not net.registered and net.kind == "sequence":
        entry = {"features": 1} if blueprint(net.net, **net.given).vocab is None else {"vocab": 2}
        sizes |= {**entry, "tokens": task.spec.features}
    shape = net.shape(**sizes)
    schedule = Schedule(effort.steps, effort.batch, every=max(10, effort.steps // 20), rows=32)
    training = training_cells(net.net, task, schedule, effort.rates, effort.seeds, shape)
    about = {"task": task.name, "task_args": training[0].config["task_args"]}
    cells = [*training, Cell(_SIGNAL, {**net.named(), "shape": shape, **about, "draws": effort.draws})]
    if net.registered:
        cells.append(Cell(_EXPRESS, {"net": net.name, **about}))
    return cells


@dataclass(frozen=True)
class _Found:
    """What is known of a task and a net; each part is None where it could not be had."""

    label: str
    net: str
    expressed: Mapping[str, Any] | None
    signal: Mapping[str, Any] | None
    learnt: Mapping[str, Any] | None

    @property
    def expressible(self) -> bool | None:
        return None if self.expressed is None else self.expressed["expressible"]

    @property
    def solved(self) -> bool | None:
        return None if self.learnt is None else self.learnt["solved"]["count"] == self.learnt["solved"]["of"]


def _cells_of(rows: Sequence[Row], preset: str) -> dict[tuple[str, str], _Found]:
    """By label and net, in the order of the tasks."""
    labels = {_of_task(task.name, vars(task)): label for label, task in _tasks(_EFFORT[preset].bits).items()}
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row.cell.measure != TRAINING:
            config = row.cell.config
            key = (labels[_of_task(config["task"], config["task_args"])], config["net"])
            parts.setdefault(key, {})[row.cell.measure] = row.result
    for entry in summarise([row for row in rows if row.cell.measure == TRAINING]):
        key = (labels[_of_task(entry["task"], entry["task_args"])], entry["net"])
        parts.setdefault(key, {})[TRAINING] = entry
    order = list(labels.values())
    return {
        key: _Found(*key, each.get(_EXPRESS), each.get(_SIGNAL), each.get(TRAINING))
        for key, each in sorted(parts.items(), key=lambda item: order.index(item[0][0]))
    }


def _of_task(name: str, fields: Mapping[str, Any]) -> str:
    return canonical([name, dict(fields)])


def _line(cell: _Found) -> dict[str, Any]:
    expressed, signal, learnt = cell.expressed or {}, cell.signal or {}, cell.learnt or {}
    solved = learnt.get("solved")
    return {
        "task": cell.label,
        "net": cell.net,
        "expressible": _WORDS[expressed.get("expressible")],
        "witness": expressed.get("witness") or expressed.get("reason"),
        "needed": expressed.get("parameters"),
        "checked": expressed.get("verified_on") or None,
        "signal": signal.get("share"),
        "interval": "{:.2g} to {:.2g}".format(*signal["interval"]) if signal.get("interval") else None,
        "solved": f"{solved['count']} of {solved['of']}" if solved else None,
        "score": learnt["accuracy"]["mean"] if learnt.get("accuracy") else None,
        "guess": learnt.get("chance"),
        "median": learnt["steps_to_solve"]["median"] if learnt.get("steps_to_solve") else None,
        "parameters": learnt.get("parameters"),
    }


def _answer(net: str, cells: Sequence[_Found], effort: _Effort) -> Answer:
    """What is not learnt in these steps is not said to be beyond it."""
    expressed = [cell for cell in cells if cell.expressible]
    learnt = [cell for cell in cells if cell.solved]
    both = [cell for cell in expressed if cell.solved]
    missed = [cell.label for cell in (expressed or cells) if not cell.solved]
    but = f", not {', '.join(missed)}" if missed else ""
    measured_with = spelt(
        {"tasks": ", ".join(effort.tasks), "bits": effort.bits, "steps": effort.steps, "seeds": effort.seeds}
    )
    if not expressed:  # nothing is known of what it can express, so only success settles the question
        value, number = f"{len(learnt)}/{len(cells)}", len(learnt) / len(cells)
        text = f"{value} in {effort.steps:,} steps{but}; no explicit weights known"
        standing: Standing = "unknown" if missed else "yes"
    else:
        value, number = f"{len(both)}/{len(expressed)}", len(both) / len(expressed)
        text = f"{value} in {effort.steps:,} steps{but}"
        standing = "yes" if not missed else "unlearnt" if not both else "partly"
    return _ABILITY.answer(net, standing, text, value=value, number=number, setting=measured_with)


def _headline(cells: Sequence[_Found]) -> str:
    by_net: dict[str, list[int]] = {}
    for cell in cells:
        counts = by_net.setdefault(cell.net, [0, 0, 0])
        counts[0] += bool(cell.expressible)
        counts[1] += bool(cell.solved)
        counts[2] += 1
    listed = "; ".join(f"{net} {expressed} and {solved} of {of}" for net, (expressed, solved, of) in by_net.items())
    expressed, solved = sum(bool(cell.expressible) for cell in cells), sum(bool(cell.solved) for cell in cells)
    return (
        f"Of {len(cells)} pairs of task and network, {expressed} are expressible by known weights and {solved} are "
        f"learnt in all seeds. By network, expressed and learnt: {listed}."
    )


def _chart(
    found: Mapping[tuple[str, str], _Found], labels: Sequence[str], nets: Sequence[str], effort: _Effort
) -> Chart:
    none = Square(None, "–", "not measured")

    def board(title: str, note: str, square: Any) -> Board:
        cells = [[found.get((label, net)) for net in nets] for label in labels]
        return Board(title, note, [[none if cell is None else square(cell) for cell in row] for row in cells])

    return Chart(
        "What is expressible, what the gradient says, what is learnt",
        f"Three boards of {len(labels)} tasks by {len(nets)} networks: whether explicit weights are known, the share "
        "of the first gradient that speaks of the task, and the share of seeds that solve it.",
        labels,
        nets,
        [
            board("Expressible", "parameters of explicit weights", _expressed_square),
            board("Signal", "share of the first gradient", _signal_square),
            board("Learnt", f"seeds, in {effort.steps:,} steps", _learnt_square),
        ],
        caption=f"{effort.bits} bits. The fuller a square, the better; signal on a logarithmic scale, where a parity "
        f"drawn at random gets {2.0**-effort.bits:.1g} on average. A dotted square: not known.",
    )


def _expressed_square(cell: _Found) -> Square:
    found = cell.expressed
    if found is None or found["expressible"] is None:
        return Square(None, "?", f"{cell.label}, {cell.net}: no explicit weights known")
    if not found["expressible"]:
        return Square(0.0, "no", f"{cell.label}, {cell.net}: {found['reason']}")
    inputs = f"{'all ' if found['exhaustive'] else ''}{found['verified_on']:,} inputs"
    return Square(1.0, _short(found["parameters"]), f"{cell.label}, {cell.net}: {found['witness']}, right on {inputs}")


def _signal_square(cell: _Found) -> Square:
    if cell.signal is None:
        return Square(None, "–", "not measured")
    share = max(float(cell.signal["share"]), 0.0)
    if not cell.signal["exact"] and (share == 0 or (cell.signal["interval"] or (1,))[0] <= 0):
        return Square(0.0, "≈0", f"{cell.label}, {cell.net}: cannot be told from 0 by {cell.signal['inputs']:,} inputs")
    full = 1 - math.log(max(share, _FAINTEST)) / math.log(_FAINTEST)
    low, high = cell.signal["interval"] or (share, share)
    return Square(full, _fraction(share), f"{cell.label}, {cell.net}: {share:.2g} (95 % {low:.2g} to {high:.2g})")


def _learnt_square(cell: _Found) -> Square:
    if cell.learnt is None:
        return Square(None, "–", "not trained")
    solved = cell.learnt["solved"]
    accuracy = cell.learnt["accuracy"]
    score = f", score {accuracy['mean']:.2f}" if accuracy else ""
    text = f"{solved['count']}/{solved['of']}"
    return Square(solved["share"], text, f"{cell.label}, {cell.net}: {text} seeds{score}")


def _short(count: int) -> str:
    if count < 1000:
        return str(count)
    return (
        f"{count / 1000:.1f}k" if count < 10_000 else f"{count / 1000:.0f}k" if count < 10**6 else f"{count / 1e6:.1f}M"
    )


def _fraction(share: float) -> str:
    if share < _FAINTEST:
        return f"<{_FAINTEST:.0e}".replace("e-0", "e-")
    return f"{share:.2f}".lstrip("0") if share >= 0.01 else f"{share:.0e}".replace("e-0", "e-")


section = MatrixSection()
