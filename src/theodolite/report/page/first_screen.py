"""The first screen of the page: networks by abilities in one picture, three sentences, and every answer in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from theodolite.report.answer import (
    MARKS,
    Answer,
    Question,
    ability,
    agreement,
    differences,
    gather,
    own,
    short_names,
    short_value,
    tally,
)
from theodolite.report.table import Column, Table


@dataclass(frozen=True)
class Cell:
    """One network's answer; without one it was not asked."""

    net: str
    own: bool
    answer: Answer | None

    @property
    def standing(self) -> str:
        return self.answer.standing if self.answer else "unasked"

    @property
    def mark(self) -> tuple[str, str]:
        return MARKS[self.answer.standing] if self.answer else ("–", "does not apply")

    @property
    def value(self) -> str:
        return short_value(self.answer) if self.answer else ""

    @property
    def told(self) -> str:
        """All that is known, for the pointer."""
        if self.answer is None:
            return f"{self.net}: does not apply"
        lines = [f"{self.net}: {self.mark[1]}", self.answer.text]
        if self.answer.predicted:
            lines.append(f"theory: {self.answer.predicted}")
        if self.answer.agrees is not None:
            lines.append(agreement(self.answer.agrees))
        if self.answer.published:
            lines.append(f"published: {self.answer.published}")
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class AbilityRow:
    ability: str
    explains: str
    anchor: str
    section: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ShownNet:
    name: str
    short: str
    folder: str  # where a user's net comes from, shown small above its name
    own: bool


@dataclass(frozen=True)
class FirstScreen:
    nets: tuple[ShownNet, ...]
    rows: tuple[AbilityRow, ...]
    marks: tuple[tuple[str, str, str], ...]  # standing, mark and word of those that occur
    sentences: tuple[str, ...]
    agreement: str
    differences: tuple[str, ...]
    table: Table


def first_screen(
    asked: Sequence[tuple[str, Answer]],
    anchors: Mapping[str, tuple[str, str]],
    nets: Sequence[str] = (),
    command: str = "",
    sentences: Sequence[str] = (),
) -> FirstScreen | None:
    """`asked` is (section id, answer), `anchors` the anchor and title of each section, `sentences` stand beside the
    picture; None where nothing was asked."""
    if not asked:
        return None
    answers = [answer for _, answer in asked]
    names = list(dict.fromkeys([*nets, *(answer.net for answer in answers)]))
    short = short_names(names)
    questions = gather(asked)
    shown = [
        ShownNet(net, short[net], net.removesuffix(short[net]).rstrip(":") if short[net] != net else "", own(net))
        for net in names
    ]
    summary = tally(answers)
    used = {answer.standing for answer in answers}
    return FirstScreen(
        tuple(shown),
        tuple(_row(question, names, anchors) for question in questions),
        tuple((standing, *mark) for standing, mark in MARKS.items() if standing in used),
        tuple(sentences),
        summary[:1].upper() + summary[1:] + "." if summary else "",
        tuple(differences(answers, short)),
        _table(questions, names, anchors, command),
    )


def _row(question: Question, nets: Sequence[str], anchors: Mapping[str, tuple[str, str]]) -> AbilityRow:
    anchor, section = anchors[question.section]
    first = next(iter(question.answers.values()))
    explains = next((one.explains for one in question.answers.values() if one.explains), question.text)
    cells = tuple(Cell(net, own(net), question.answers.get(net)) for net in nets)
    named = ability(first)
    return AbilityRow(named[:1].upper() + named[1:], explains, anchor, section, cells)


def _table(
    questions: Sequence[Question], nets: Sequence[str], anchors: Mapping[str, tuple[str, str]], command: str
) -> Table:
    """Every answer in full, one row for each."""
    answers = [answer for question in questions for answer in question.answers.values()]
    columns = [
        Column("ability", "ability", numeric=False),
        *(Column(key, key, numeric=False) for key in ("net", "answer", "measured")),
        Column("predicted", "theory", "What theory predicts; a dash where it is silent.", numeric=False),
        Column("agrees", "agrees", "Whether the measurement agrees with theory.", numeric=False, kind="agreement"),
        *(
            [Column("published", "published elsewhere", "Another paper's experiment.", numeric=False)]
            if any(one.published for one in answers)
            else []
        ),
    ]
    body = []
    for question in questions:
        for net in nets:
            one = question.answers.get(net)
            body.append(
                {
                    "ability": ability(next(iter(question.answers.values()))),
                    "net": net,
                    "answer": MARKS[one.standing][1] if one else "does not apply",
                    "measured": one.text if one else None,
                    "predicted": (one.predicted or None) if one else None,
                    "agrees": one.agrees if one else None,
                    "published": (one.published or None) if one else None,
                    "section": anchors[question.section][1],
                    "question": question.text,
                }
            )
    return Table("Every answer", columns, body, command=command)
