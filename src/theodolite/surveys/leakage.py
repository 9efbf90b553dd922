"""Batch independence and causality, asked first of all: where an output sees more, other numbers mean less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer, Column, Summary, Table
from theodolite.surveys.answers import Ability, failures
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

_BATCH = Ability(
    "batch independence",
    "Does an output depend on its own input alone?",
    "an output does not change with the other rows of the batch, with earlier calls, or by calling forward itself",
)
_CAUSAL = Ability(
    "causality",
    "Is an output independent of later tokens?",
    "outputs do not see later tokens, as next-token prediction needs; bidirectional networks do, by design",
)
_MEANING = (
    "One thing is changed and outputs are compared on fresh copies of the network: the other rows of the batch, an "
    "earlier call, the tokens that come later. Numbers are changes relative to how much the output varies, 0 where "
    "there is only rounding. A network that reads both ways sees later tokens by design; one whose answer depends on "
    "other rows or on earlier calls is measured together with them, here and in every other section."
)
_SETTING = "fresh copies, 8 tokens"
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("rows", "other rows", "change of an answer when the other rows of the batch change, in evaluation"),
    Column("rows_training", "in training", "the same in training: batch statistics show here"),
    Column("calls", "earlier call", "change of an answer when another input was given before"),
    Column("weights", "weights changed", "by forward", False),
    Column("later", "later tokens", "change of earlier outputs when later tokens change"),
    Column("ahead", "looks ahead", "by how many of the tokens"),
)


class LeakageSection(Section):
    id = "leakage"
    title = "Batch independence and causality"

    def plan(self, net: Candidate | None, _preset: Preset) -> Sequence[Cell]:
        assert net is not None
        return [Cell("leakage", {**net.named(), "shape": net.measured()})]

    def seconds(self, _cell: Cell) -> float:
        return 0.2

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        answers = _BATCH.failures(rows, setting)
        good = [row for row in rows if not row.error]
        for row in good:
            answers += _answers(row.cell.config["net"], row["diagnostics"])
        notes = [f"{row.cell.config['net']}: {note}." for row in good for note in row["diagnostics"]["notes"]]
        body = [_line(row.cell.config["net"], row["diagnostics"]) for row in good]
        tables = [Table("Change of an output", _COLUMNS, body)] if body else []
        return Summary(_headline(good), tables, (), (_MEANING, *notes, *failures(rows, setting)), answers)


def _answers(net: str, found: Mapping[str, Any]) -> list[Answer]:
    says = found["says"]
    text = "; ".join(says) if says else "sees its own input alone"
    answers = [_BATCH.answer(net, "no" if says else "yes", text, value="" if says else "no change", setting=_SETTING)]
    if found["causal"] is not None:
        seen = f"looks {found['ahead']} tokens ahead" if found["ahead"] else "later tokens change it"
        text = "sees no later token" if found["causal"] else seen
        value = "no change" if found["causal"] else f"{found['ahead']} ahead" if found["ahead"] else "changes"
        answers.append(_CAUSAL.answer(net, "yes" if found["causal"] else "no", text, value=value, setting=_SETTING))
    return answers


def _line(net: str, found: Mapping[str, Any]) -> dict[str, Any]:
    evaluation, training = found["evaluation"], found["training"]
    calls = [each["calls"] for each in (evaluation, training) if each["calls"] is not None]
    weights = dict.fromkeys((*evaluation["weights"], *training["weights"]))
    return {
        "net": net,
        "rows": evaluation["rows"],
        "rows_training": training["rows"],
        "calls": max(calls, default=None),
        "weights": ", ".join(weights) or "none",
        "later": evaluation["later"],
        "ahead": evaluation["ahead"],
    }


def _headline(rows: Sequence[Row]) -> str:
    if not rows:
        return "No network could be measured."
    leaking = [f"{row.cell.config['net']}: {'; '.join(says)}" for row in rows if (says := row["diagnostics"]["says"])]
    if leaking:
        return "Outputs depend on more than their input. " + ". ".join(leaking) + "."
    return "Every output depends on its own input alone."


section = LeakageSection()
