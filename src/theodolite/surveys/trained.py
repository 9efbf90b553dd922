"""The section on what training changes: the instruments on one network of each architecture, along a short training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer, Column, Figure, Panel, Series, Standing, Summary, Table
from theodolite.surveys.answers import Ability, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting
from theodolite.tasks.contract import make_task
from theodolite.training.pairing import task_sizes

_ABILITY = Ability(
    "rank growth in training",
    "Does its separation rank grow in training?",
    "whether the separation rank (within 1 %) rises in a short training on parity; one seed",
)
_TASKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sequence": ("parity-check", {"longest": 6}),
    "vector": ("parity", {"bits": 8, "relevant": 2}),
}


@dataclass(frozen=True)
class _Effort:
    steps: int
    looks: int
    points: int


_EFFORT = {"quick": _Effort(300, 3, 32), "standard": _Effort(2000, 6, 64), "full": _Effort(10_000, 9, 128)}
_MEANING = (
    "One network of each architecture is trained on one small task, and measured at its start, on the way and at its "
    "end, with the weights it has then, on the task's own symbols. ε-rank: products that come within 1 % of its output "
    "at the last token. Sensitivity: the change of that output by one symbol, at 8 and at 64 tokens. State used: "
    "directions in which 16 tokens of the past reach the future by at least a hundredth of the strongest. One seed: "
    "a path, not an average."
)
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("step", "steps"),
    Column("score", "score", "on fresh inputs of the lengths it is trained on"),
    Column("rank", "ε-rank", "within 1 %; ≥ where more points would show more"),
    Column("near", "sensi- tivity at 8", "change of the output by one symbol of 8"),
    Column("far", "sensi- tivity at 64", "change of the output by one symbol of 64"),
    Column("used", "state used", "numbers of the past that reach the future"),
)
_CURVES = {"ε-rank": "rank", "sensitivity at 64 tokens": "far", "state used": "used", "score": "score"}


class TrainedSection(Section):
    id = "trained"
    title = "Before and after training"
    trains = True

    def applies(self, net: Candidate, /) -> str | None:
        return f"'{net.name}' is a polynomial, which is not trained here" if net.polynomial and net.registered else None

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        name, fields = _TASKS[net.kind]
        effort = _EFFORT[preset]
        shape = net.shape(**task_sizes(net.net, make_task(name, dict(fields))))
        config = {**net.named(), "shape": shape, "task": name, "task_args": dict(fields), **asdict(effort)}
        return [Cell("along-training", config)]

    def seconds(self, cell: Cell) -> float:
        return 0.003 * cell.config["steps"] + 2e-4 * cell.config["points"] ** 2 * cell.config["looks"]

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        answers = _ABILITY.failures(rows, setting) + [_answer(row) for row in good]
        body = [line for row in good for line in _lines(row)]
        return Summary(
            _headline(good),
            [Table("Measured along training", _COLUMNS, body, _caption(good))] if body else [],
            [_figure(good)] if body else [],
            (_MEANING, *failures(rows, setting)),
            answers,
        )


def _answer(row: Row) -> Answer:
    """That it does not grow says something only where the task was learnt."""
    first, last, config = row["looks"][0], row["looks"][-1], row.cell.config
    text = f"{_rank(first)} → {_rank(last)} in {last['step']:,} steps, score {last['score']:.2f}"
    learnt = last["score"] >= make_task(row["task"], dict(config["task_args"])).spec.solved
    standing: Standing = "unknown"
    if first["resolved"] and last["rank"] > first["rank"]:
        standing = "yes"
    elif first["resolved"] and last["resolved"]:
        standing = "no" if learnt else "unlearnt"
    measured_with = spelt({"task": row["task"], **config["task_args"], "steps": config["steps"]})
    value = f"{_rank(first)} → {_rank(last)}"
    return _ABILITY.answer(config["net"], standing, text, value=value, setting=measured_with)


def _rank(look: Mapping[str, Any]) -> str:
    return f"{'' if look['resolved'] else '≥ '}{look['rank']}"


def _lines(row: Row) -> list[dict[str, Any]]:
    lines = []
    for look in row["looks"]:
        near, far = look["felt"] or (None, None)
        line = {"net": row.cell.config["net"], "step": look["step"], "score": look["score"], "rank": _rank(look)}
        lines.append({**line, "near": near, "far": far, "used": look["used"]})
    return lines


def _caption(rows: Sequence[Row]) -> str:
    tasks = dict.fromkeys(f"{row['task']}, chance {row['chance']:.2g}" for row in rows)
    return f"{'; '.join(tasks)}. AdamW, one rate, one seed. A dash: no such figure."


def _headline(rows: Sequence[Row]) -> str:
    if not rows:
        return "No network could be trained."
    told = []
    for row in rows:
        first, last = row["looks"][0], row["looks"][-1]
        told.append(f"{row.cell.config['net']} {_rank(first)} → {_rank(last)} (score {last['score']:.2f})")
    return f"ε-rank before and after {rows[0]['looks'][-1]['step']:,} steps: {'; '.join(told)}."


def _figure(rows: Sequence[Row]) -> Figure:
    panels = []
    for label, key in _CURVES.items():
        series = []
        for row in rows:
            values = [(look["felt"] or (None, None))[1] if key == "far" else look[key] for look in row["looks"]]
            if any(value is not None for value in values):
                series.append(Series(row.cell.config["net"], [look["step"] for look in row["looks"]], values))
        panels.append(Panel(label, series))
    return Figure(
        "What is used, along training",
        "ε-rank, change by one symbol of 64, state used and score against the steps of training, one line per network.",
        "steps",
        "measured",
        [panel for panel in panels if panel.series],
        shared=False,
        caption="One seed of each architecture.",
    )


section = TrainedSection()
