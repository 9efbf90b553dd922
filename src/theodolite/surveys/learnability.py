"""The section on learning: which tasks training solves, in how many of the seeds, and on which lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.bench.lengths import unseen_lengths
from theodolite.bench.plan import training_cells
from theodolite.bench.summary import summarise
from theodolite.claims.tables.length_generalisation_published import (
    SOLVED,
    Published,
    agreement,
    published,
    setting_in_short,
)
from theodolite.errors import BadInput, NotApplicable
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.report import Answer, Band, Column, Figure, Line, Panel, Series, Standing, Summary, Table
from theodolite.statistics.intervals import mean_interval
from theodolite.surveys.answers import Ability, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting, training_seconds
from theodolite.tasks.contract import Task, make_task, tasks
from theodolite.training.group import Schedule
from theodolite.training.pairing import task_sizes


@dataclass(frozen=True)
class _Effort:
    """How long a preset trains, by what a task gives, and the tasks' sizes where they differ from their own. `tasks`
    are those of the preset; none named stands for every task there is."""

    tasks: tuple[str, ...]
    seeds: int
    steps: Mapping[str, int]
    batch: int
    rates: tuple[float, ...]
    unseen: int  # lengths evaluated beyond training
    fields: Mapping[str, Mapping[str, Any]]


_STRINGS = ("copy", "reverse", "parity-check", "dyck", "recall")
_VECTORS = ("parity", "majority", "boolean", "linear-periodic", "sawtooth")
_EFFORT: dict[str, _Effort] = {
    "quick": _Effort(
        tasks=(*_STRINGS, *_VECTORS),
        seeds=4,
        steps={"vector": 3000, "sequence": 600},
        batch=32,
        rates=(5e-3,),
        unseen=4,
        fields={
            "copy": {"symbols": 2, "longest": 5},
            "reverse": {"symbols": 2, "longest": 5},
            "parity-check": {"longest": 6},
            "dyck": {"longest": 12, "depth": 3},
            "recall": {"keys": 4, "values": 4, "longest": 4},
        },
    ),
    "standard": _Effort(
        tasks=(*_STRINGS, "modular-arithmetic", "word-problem", "selective-copy", *_VECTORS),
        seeds=4,
        steps={"vector": 20_000, "sequence": 2500},
        batch=32,
        rates=(3e-3, 1e-3),
        unseen=8,
        fields={
            "copy": {"symbols": 4, "longest": 8},
            "reverse": {"symbols": 4, "longest": 8},
            "parity-check": {"longest": 12},
            "dyck": {"longest": 20},
            "recall": {"keys": 16, "values": 16, "longest": 6},
            "modular-arithmetic": {"longest": 11},
            "word-problem": {"group": "S3", "longest": 12},
            "selective-copy": {"longest": 8},
        },
    ),
    "full": _Effort(
        tasks=(),
        seeds=16,
        steps={"vector": 50_000, "sequence": 20_000},
        batch=64,
        rates=(1e-3, 3e-4),
        unseen=16,
        fields={},
    ),
}
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("task", "task", numeric=False),
    Column("here", "setting", "symbols; lengths in training → the longest scored", False),
    Column("solved", "seeds that solve it"),
    Column("share", "95 % interval", "of the share of seeds that solve it (Wilson)"),
    Column("score", "score", "mean over seeds, on lengths of training; accuracy, or the share of variance explained"),
    Column("chance", "chance", "score of the best constant answer"),
    Column("unseen", "longer", "mean score on longer inputs than in training"),
    Column("best", "best longer", "of all seeds; published figures are of the best seed too"),
    Column("published", "published", "score on longer inputs in another paper's experiment, after longer training"),
    Column("setting", "setting there", "of that experiment: symbols; lengths in training → the longest scored", False),
    Column(
        "agrees",
        "same side",
        "of 90 %, where task, alphabet and lengths are the paper's; a dash where they are not, or nothing follows",
        False,
        "agreement",
    ),
    Column("median", "steps to solve", "median over the seeds that solve it"),
    Column("parameters", "para- meters"),
)


_SOMETIMES = ("here", "unseen", "best", "published", "setting", "agrees")  # columns that go where they are empty


class LearnabilitySection(Section):
    id = "learnability"
    title = "Learnability and length generalisation"
    trains = True

    def applies(self, net: Candidate, /) -> str | None:
        fitting = any(make_task(name, {}).spec.kind == net.kind for name in tasks)
        return None if fitting else f"no task gives what '{net.name}' reads, a {net.kind}"

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell | Row]:
        """A net that fits some tasks is trained on those; where it fails, the answer says so."""
        assert net is not None
        planned: list[Cell | Row] = []
        misfit = ""
        for name in _EFFORT[preset].tasks or tasks:
            task = make_task(name, dict(_EFFORT[preset].fields.get(name, {})))
            if task.spec.kind != net.kind:
                continue
            try:
                planned += _cells(net, task, _EFFORT[preset])
            except NotApplicable as reason:
                misfit = str(reason)
            except BadInput as error:
                planned.append(Row(Cell(TRAINING, {**net.named(), "task": name}), {}, error=str(error)))
        if not planned:
            why = f", the last because {misfit}" if misfit else ""
            raise NotApplicable(f"'{net.name}' fits none of the tasks{why}")
        return planned

    def seconds(self, cell: Cell) -> float:
        return training_seconds(cell.config["schedule"], cell.config["task_args"].get("longest"))

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        tried = [row for row in rows if not row.error]
        good = at_best_rate(tried)
        entries = summarise(good)
        members = _members(good)
        broken = {
            (row.cell.config["net"], row.cell.config["task"]): row.error or ""
            for row in rows
            if row.error and (row.cell.config["net"], row.cell.config["task"]) not in members
        }
        asked = Counter(entry["task"] for entry in entries)
        entries = sorted(entries, key=lambda entry: -asked[entry["task"]])  # what most nets were asked comes first
        answers = [_answer(entry, members[entry["net"], entry["task"]]) for entry in entries]
        fields = _EFFORT[setting.preset].fields
        answers += [
            ability(make_task(task, dict(fields.get(task, {})))).failed(net, why) for (net, task), why in broken.items()
        ]
        figures = [_shares(entries)] if entries else []
        over_length = _lengths(entries, members)
        figures += [over_length] if over_length else []
        return Summary(
            _headline(entries, good),
            [_table(entries, members)] if entries else [],
            figures,
            (_MEANING, *_rates(tried), *_glossary(entries), *_papers(entries), *failures(rows, setting)),
            answers,
        )


def at_best_rate(rows: Sequence[Row]) -> list[Row]:
    """Of every net and task the rows of one learning rate: that at which most seeds solve it, then the best scores."""
    found: dict[tuple[str, str], dict[float, list[Row]]] = {}
    for row in rows:
        config = row.cell.config
        found.setdefault((config["net"], config["task"]), {}).setdefault(config["lr"], []).append(row)
    kept = {id(row) for by_rate in found.values() for row in max(by_rate.values(), key=_standing_of)}
    return [row for row in rows if id(row) in kept]


def _standing_of(rows: Sequence[Row]) -> tuple[float, float]:
    scores = [row["accuracy"] for row in rows if row["status"] != "diverged" and row["accuracy"] is not None]
    return sum(row["status"] == "solved" for row in rows) / len(rows), sum(scores) / len(scores) if scores else -1.0


def _rates(rows: Sequence[Row]) -> list[str]:
    rates = sorted({row.cell.config["lr"] for row in rows}, reverse=True)
    if len(rates) < 2:
        return []
    listed = " and ".join(f"{rate:g}" for rate in rates)
    return [f"Trained at the rates {listed}; each network and task is shown at the one at which most seeds solve it."]


def _papers(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the experiments of other papers were made, once for each."""
    found = [figure for entry in entries if (figure := _published(entry)) is not None]
    told = dict.fromkeys(f"{one.source}: {one.setting.removeprefix(_symbols(one.task_args))}" for one in found)
    return [f"Published elsewhere. {'; '.join(told)}."] if told else []


def _symbols(task_args: Mapping[str, Any]) -> str:
    return f"{task_args['symbols']} symbols, " if "symbols" in task_args else ""


def _glossary(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    names = {entry["task"]: _name(entry) for entry in entries}
    told = [f"{names[name]} (--task {name}): {tasks[name].summary}" for name in names]
    return [f"The tasks. {'; '.join(told)}."] if told else []


_MEANING = (
    "A seed solves a task if its score on fresh inputs of the lengths it was trained on passes the task's threshold "
    "(99 % of the answers right, for most). What no seed solves is not said to be beyond the network: it was not "
    "learnt in this many steps at these learning rates. Length generalisation is the score on longer inputs than any "
    "in training. Published figures are other papers' experiments, the best of many runs that were hundreds of times "
    "longer; they are no theory, and are compared only where task, alphabet and lengths are the same."
)


def _cells(net: Candidate, task: Task, effort: _Effort) -> Sequence[Cell]:
    lengths = unseen_lengths(task, None)
    step = max(1, len(lengths) // effort.unseen)
    steps = effort.steps[task.spec.kind]
    schedule = Schedule(
        steps=steps,
        batch=effort.batch,
        every=max(10, steps // 12),
        rows=32,
        unseen=lengths[::-1][::step][::-1],
        to_the_end=False,
    )
    sizes = task_sizes(net.net, task, max(schedule.unseen, default=None))
    return training_cells(net.net, task, schedule, effort.rates, effort.seeds, net.shape(**sizes))


# What the field calls the tasks whose names say something else, or more.
_CALLED = {
    "parity-check": "parity",
    "parity": "sparse parity",
    "dyck": "Dyck brackets",
    "unbounded-dyck": "unbounded Dyck brackets",
    "reverse": "reversal",
    "linear-periodic": "periodic functions",
    "random-language": "random regular languages",
    "word-problem": "group word problems",
}
_RECALL = {
    "recall": "recall capacity",
    "noisy-recall": "recall capacity with noise",
    "fuzzy-recall": "recall capacity, keys of several tokens",
}


def _called(name: str, fields: Mapping[str, Any]) -> str:
    return fields.get("function") or _CALLED.get(name, name.replace("-", " "))


def _name(entry: Mapping[str, Any]) -> str:
    """Of an entry's task, in the field's words."""
    return _called(entry["task"], entry["task_args"])


def ability(task: Task) -> Ability:
    fields, called = vars(task), _called(task.name, vars(task))
    about = tasks[task.name].summary
    if task.name in _RECALL:
        about = f"associative recall of up to {fields['longest']} pairs in training: {about}"
        return Ability(_RECALL[task.name], f"Does it recall pairs of keys and values ({task.name})?", about)
    if unseen_lengths(task, None):
        question = f"Does it learn {called}, and generalise to longer inputs?"
        return Ability(f"length generalisation on {called}", question, f"{about}; on longer inputs than in training")
    return Ability(f"learnability of {called}", f"Does it learn {called}?", about)


def _members(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.cell.config["net"], row.cell.config["task"]), []).append(row)
    return found


def _best_unseen(rows: Sequence[Row]) -> float | None:
    scores = [row["unseen"] for row in rows if row["status"] != "diverged" and row["unseen"] is not None]
    return max(scores, default=None)


def _published(entry: Mapping[str, Any]) -> Published | None:
    return published(entry["task"], entry["net"], entry["task_args"].get("bits"))


def _agrees(entry: Mapping[str, Any], rows: Sequence[Row]) -> bool | None:
    """With another paper's experiment, where that had the same task, alphabet and lengths."""
    published, best, lengths = _published(entry), _best_unseen(rows), entry["trained_lengths"]
    if published is None or not published.same_setting(entry["task_args"], lengths, _farthest(rows)):
        return None
    if best is None and entry["accuracy"] and lengths is None:
        best = entry["accuracy"]["max"]
    learnt = lengths is not None and entry["solved"]["count"] > 0
    return None if best is None else agreement(published, best, learnt)


def _farthest(rows: Sequence[Row]) -> int | None:
    return max((n for row in rows for n in row.cell.config["schedule"]["unseen"]), default=None)


def _answer(entry: Mapping[str, Any], rows: Sequence[Row]) -> Answer:
    """A task that no seed learnt is not said to be beyond the net, however far its score is from the threshold."""
    solved, accuracy, steps = entry["solved"], entry["accuracy"], entry["steps"]
    best, farthest = _best_unseen(rows), _farthest(rows)
    score = accuracy if farthest is None else entry["unseen"]
    standing: Standing = "unlearnt"
    seeds = f"{solved['count']}/{solved['of']}"
    if solved["count"]:
        standing = "yes" if solved["count"] == solved["of"] and (best is None or best >= SOLVED) else "partly"
        value = seeds if farthest is None else f"{score['mean']:.2f}"
        text = f"{seeds} seeds" + ("" if best is None else f", longer {score['mean']:.2f} (best {best:.2f})")
    else:
        value = f"{accuracy['mean']:.3f} < {entry['threshold']:g}" if accuracy else "diverged"
        text = f"{seeds} in {steps:,} steps, " + (f"score {value}" if accuracy else "all diverged")
    published = _published(entry)
    measured_with = {"task": entry["task"], **entry["task_args"], "steps": steps, "seeds": solved["of"], "to": farthest}
    return ability(make_task(entry["task"], dict(entry["task_args"]))).answer(
        entry["net"],
        standing,
        text,
        value=value,
        published="" if published is None else f"{published.score:.2f} ({published.source}: {published.brief})",
        number=score and score["mean"],
        interval=tuple(score["interval"]) if score and score["interval"] else None,
        setting=spelt(measured_with),
    )


def _headline(entries: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
    if not entries:
        return "No network could be trained."
    by_net: dict[str, list[int]] = {}
    for entry in entries:
        found = by_net.setdefault(entry["net"], [0, 0])
        found[0] += entry["solved"]["count"] == entry["solved"]["of"]
        found[1] += 1
    counts = "; ".join(f"{net} {solved} of {of}" for net, (solved, of) in by_net.items())
    return f"Tasks that all seeds solve within {_steps(rows)} steps: {counts}."


def _steps(rows: Sequence[Row]) -> str:
    """The most steps that were allowed, for each kind of task."""
    return " or ".join(f"{n:,}" for n in sorted({row.cell.config["schedule"]["steps"] for row in rows}))


def _table(entries: Sequence[Mapping[str, Any]], members: Mapping[tuple[str, str], Sequence[Row]]) -> Table:
    body = []
    for entry in entries:
        solved, published = entry["solved"], _published(entry)
        rows = members[entry["net"], entry["task"]]
        body.append(
            {
                "net": entry["net"],
                "task": _name(entry),
                "here": setting_in_short(entry["task_args"], entry["trained_lengths"], _farthest(rows)) or None,
                "solved": f"{solved['count']} of {solved['of']}",
                "share": "{:.2f}–{:.2f}".format(*solved["interval"]),
                "score": entry["accuracy"] and entry["accuracy"]["mean"],
                "chance": entry["chance"],
                "unseen": entry["unseen"] and entry["unseen"]["mean"],
                "best": _best_unseen(rows),
                "published": published and published.score,
                "setting": published and published.brief,
                "agrees": _agrees(entry, rows),
                "median": entry["steps_to_solve"] and entry["steps_to_solve"]["median"],
                "parameters": entry["parameters"],
            }
        )
    first = members[entries[0]["net"], entries[0]["task"]][0].cell.config
    caption = (
        f"{_steps([row for rows in members.values() for row in rows])} steps at most, "
        f"batch {first['schedule']['batch']}, AdamW, "
        f"{len({row.cell.config['seed'] for rows in members.values() for row in rows})} seeds. A dash: no such figure."
    )
    empty = [name for name in _SOMETIMES if all(row[name] is None for row in body)]
    return Table("Tasks, seeds and lengths", [each for each in _COLUMNS if each.key not in empty], body, caption)


def _shares(entries: Sequence[Mapping[str, Any]]) -> Figure:
    names = list(dict.fromkeys(_name(entry) for entry in entries))
    series = []
    for net in dict.fromkeys(entry["net"] for entry in entries):
        found = {_name(entry): entry["solved"] for entry in entries if entry["net"] == net}
        mine = [task for task in names if task in found]
        low, high = zip(*(found[task]["interval"] for task in mine), strict=True)
        series.append(Series(net, mine, [found[task]["share"] for task in mine], low, high))
    return Figure(
        "Share of seeds that solve each task",
        "Share of seeds that solve a task, one mark per network and task, with 95 % intervals.",
        "task",
        "share of seeds that solve it",
        [Panel("", series)],
        kind="dots",
        caption="Bars are 95 % Wilson intervals: few seeds say little.",
    )


def _lengths(entries: Sequence[Mapping[str, Any]], members: Mapping[tuple[str, str], Sequence[Row]]) -> Figure | None:
    panels = []
    for task in dict.fromkeys(entry["task"] for entry in entries if entry["by_length"]):
        series = []
        for entry in entries:
            if entry["task"] != task or not entry["by_length"]:
                continue
            scores: dict[int, list[float]] = {}
            for row in members[entry["net"], task]:
                for length, score in row["by_length"] if row["status"] != "diverged" else ():
                    scores.setdefault(length, []).append(score)
            lengths = sorted(scores)
            means = [sum(scores[n]) / len(scores[n]) for n in lengths]
            bounds = [mean_interval(scores[n]) or (min(scores[n]), max(scores[n])) for n in lengths]
            low, high = [max(0.0, low) for low, _ in bounds], [min(1.0, high) for _, high in bounds]
            series.append(Series(entry["net"], lengths, means, low, high))
        first = next(entry for entry in entries if entry["task"] == task)
        bands = [Band(*first["trained_lengths"], label="trained")] if first["trained_lengths"] else []
        panels.append(Panel(_name(first), series, bands, [Line(first["chance"], "chance")]))
    if not panels:
        return None
    return Figure(
        "Score over length",
        "Mean score against input length, one panel per task, one line per network, with 95 % intervals over seeds.",
        "length",
        "score",
        panels,
        log_x=True,
        caption="Training ends where the shaded lengths end.",
    )


section = LearnabilitySection()
