"""The first screen of the page: what each net can and cannot do, as sentences, as a matrix and as cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from theodolite.report.answer import (
    MARKS,
    Answer,
    Question,
    agreement,
    differences,
    gather,
    sentence,
    short_names,
    tally,
)
from theodolite.report.table import Column, Table


@dataclass(frozen=True)
class ShownAnswer:
    """One cell of the matrix and one line of a card; without an answer the net was not asked."""

    net: str
    question: str
    anchor: str
    section: str
    answer: Answer | None

    @property
    def mark(self) -> tuple[str, str]:
        return MARKS[self.answer.standing] if self.answer else ("–", "does not apply")

    @property
    def agreement(self) -> str:
        return agreement(self.answer.agrees) if self.answer and self.answer.agrees is not None else ""


@dataclass(frozen=True)
class ShownNet:
    name: str
    short: str
    folder: str  # where a user's net comes from, shown small above its name
    sentence: str
    answers: tuple[ShownAnswer, ...]


@dataclass(frozen=True)
class FirstScreen:
    nets: tuple[ShownNet, ...]
    rows: tuple[tuple[ShownAnswer, ...], ...]  # question by question
    agreement: str
    differences: tuple[str, ...]
    table: Table


def first_screen(
    asked: Sequence[tuple[str, Answer]],
    anchors: Mapping[str, tuple[str, str]],
    nets: Sequence[str] = (),
    command: str = "",
) -> FirstScreen | None:
    """`asked` is (section id, answer), `anchors` the anchor and title of each section; None where nothing was asked."""
    if not asked:
        return None
    answers = [answer for _, answer in asked]
    names = list(dict.fromkeys([*nets, *(answer.net for answer in answers)]))
    short = short_names(names)
    rows = tuple(tuple(_shown(question, net, anchors) for net in names) for question in gather(asked))
    shown = []
    for i, net in enumerate(names):
        column = tuple(row[i] for row in rows)
        given = [cell.answer for cell in column if cell.answer]
        folder = net.removesuffix(short[net]).rstrip(":") if short[net] != net else ""
        shown.append(ShownNet(net, short[net], folder, sentence(given), column))
    summary = tally(answers)
    return FirstScreen(
        tuple(shown),
        rows,
        summary[:1].upper() + summary[1:] + "." if summary else "",
        tuple(differences(answers, short)),
        _table(rows, command),
    )


def _shown(question: Question, net: str, anchors: Mapping[str, tuple[str, str]]) -> ShownAnswer:
    anchor, section = anchors[question.section]
    return ShownAnswer(net, question.text, anchor, section, question.answers.get(net))


def _table(rows: Sequence[Sequence[ShownAnswer]], command: str) -> Table:
    """The matrix as a long table, for downloads."""
    columns = [
        *(Column(key, key, numeric=False) for key in ("net", "section", "question", "answer", "measured", "predicted")),
        Column("agrees", "agrees", numeric=False, kind="agreement"),
    ]
    body = [
        {
            "net": cell.net,
            "section": cell.section,
            "question": cell.question,
            "answer": cell.mark[1],
            "measured": cell.answer.text if cell.answer else None,
            "predicted": (cell.answer.predicted or None) if cell.answer else None,
            "agrees": cell.answer.agrees if cell.answer else None,
        }
        for row in rows
        for cell in row
    ]
    return Table("Verdicts", columns, body, command=command)
