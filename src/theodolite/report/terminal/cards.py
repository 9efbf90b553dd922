"""One short card per architecture in a terminal: what it can and cannot do, with theory beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from theodolite.report.answer import MARKS, Answer, ability, agreement, differences, short_names, tally
from theodolite.report.numbers import format_value

_GAP = 2
_STYLES = {"yes": "green", "no": "red", "partly": "yellow", "unlearnt": "cyan", "unknown": "dim", "failed": "magenta"}
# Letters that question, measurement and theory keep while room can be found elsewhere, and before one is left out.
_FLOORS = ((24, 20, 10), (18, 10, 10))


def print_cards(
    console: Console,
    answers: Sequence[Answer],
    nets: Sequence[str] = (),
    facts: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """A card with every answer per net, then how many predictions agree and which do not.

    `nets` gives the order; `facts` maps a net to a few values shown under its name, such as its parameters. Where the
    terminal is narrow, what was measured and what theory says go on below: no number is cut. A wide one has words
    beside the marks, and what others published.
    """
    names = list(dict.fromkeys([*nets, *(answer.net for answer in answers)]))
    widths = _widths(answers, console.width)
    if answers and widths[2]:
        heads = ("", "", "measured", "theory" if widths[3] else "", "", "published" if widths[5] else "")
        console.print(_row(heads, ("dim",) * 6, widths), crop=False)
    for name in names:
        given = list({answer.question: answer for answer in answers if answer.net == name}.values())
        for line in _card(name, given, (facts or {}).get(name, {}), widths, console.width):
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
        console.print()
    _print_below(console, answers, names)


def _card(
    name: str, answers: Sequence[Answer], facts: Mapping[str, Any], widths: Sequence[int], width: int
) -> list[Text]:
    lines = [Text(line, style="bold") for line in _folded(name, width)]
    if facts:
        summary = ", ".join(f"{key} {format_value(value)}" for key, value in facts.items())
        lines += _indented(summary, width)
    if not answers:
        return [*lines, *_indented("not measured", width)]
    return [*lines, *(line for answer in answers for line in _lines(answer, widths))]


def _indented(text: str, width: int) -> list[Text]:
    return [Text(f"  {line}", style="dim") for line in _folded(text, width - 2)]


def _lines(answer: Answer, widths: Sequence[int]) -> list[Text]:
    """One, or more where measurement or theory are longer than their columns; why something failed stands below the
    cards and is cut here."""
    mark = " ".join(MARKS[answer.standing])
    failed = answer.standing == "failed"
    columns = (
        [mark if cell_len(mark) <= widths[0] else mark[0]],
        _folded(_said(answer), widths[1]),
        [_cut(answer.text, widths[2])] if failed else _folded(answer.text, widths[2]),
        _folded(answer.predicted, widths[3]),
        [_agreed(answer, widths[4])],
        _folded(answer.published, widths[5]),
    )
    agreed = "bold red" if answer.agrees is False else "dim"
    styles = (_STYLES[answer.standing], "", "", "dim", agreed, "dim")
    return [_row(texts, styles, widths) for texts in zip_longest(*columns, fillvalue="")]


def _folded(text: str, width: int) -> list[str]:
    """In lines of this width, at spaces where there are some."""
    return wrap(text, width, break_on_hyphens=False) if width and text else [""]


def _row(texts: Sequence[str], styles: Sequence[str], widths: Sequence[int]) -> Text:
    line = Text("  ")
    for text, style, width in zip(texts, styles, widths, strict=True):
        if width:
            line.append(set_cell_size(_cut(text, width), width), style).append(" " * _GAP)
    line.rstrip()
    return line


def _widths(answers: Sequence[Answer], width: int) -> list[int]:
    """Of mark, question, measurement, theory, agreement and what was published, shared by all cards; 0 leaves a column
    out."""

    def longest(texts: list[str]) -> int:
        return max((cell_len(text) for text in texts), default=0)

    marks = longest([" ".join(MARKS[answer.standing]) for answer in answers])
    whole = [
        longest([_said(a) for a in answers]),
        longest(["measured", *(a.text for a in answers if a.standing != "failed")]),
        longest(["theory", *(a.predicted for a in answers)]) if any(a.predicted for a in answers) else 0,
    ]
    texts = list(whole)
    agreed = longest([agreement(a.agrees) for a in answers if a.agrees is not None])

    def left() -> int:
        used = [marks, *texts, agreed]
        return width - 2 - sum(used) - _GAP * (sum(1 for size in used if size) - 1)

    if left() < 0 and agreed:
        agreed = 1  # the mark alone; its word stands below the cards
    if left() < 0:
        marks = 1  # their words stand below, too
    for floors in _FLOORS:
        while left() < 0 and any(size > floor for size, floor in zip(texts, floors, strict=True)):
            widest = max(range(3), key=lambda i: texts[i] - floors[i])
            texts[widest] -= 1
    for i in (2, 1):
        if left() < 0:
            texts[i] = 0
    texts[0] = max(texts[0] + min(left(), 0), 1)
    for i in range(3):  # what a column left out has freed
        if texts[i]:
            texts[i] += max(min(left(), whole[i] - texts[i]), 0)
    published = longest(["published", *(a.published for a in answers if a.published)])
    shown = any(a.published for a in answers) and left() >= published + _GAP
    return [marks, *texts, agreed, published if shown else 0]


def _said(answer: Answer) -> str:
    return ability(answer).rstrip("?")


def _agreed(answer: Answer, width: int) -> str:
    if answer.agrees is None:
        return ""
    whole = agreement(answer.agrees)
    return whole if cell_len(whole) <= width else whole[0]


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _print_below(console: Console, answers: Sequence[Answer], names: Sequence[str]) -> None:
    short = short_names(names)
    used = [mark for standing, mark in MARKS.items() if any(answer.standing == standing for answer in answers)]
    if used:
        console.print(Text(", ".join(" ".join(mark) for mark in used), style="dim"))
    if summary := tally(answers):
        console.print(Text(summary[:1].upper() + summary[1:] + " (✓ agrees, ✗ differs)."))
    for text in differences(answers, short):
        console.print(Padding(Text.assemble(("✗ ", "bold red"), text), (0, 0, 0, 2)))
    failures = dict.fromkeys((answer.net, answer.text) for answer in answers if answer.standing == "failed")
    for net, reason in failures:
        console.print(Padding(Text.assemble(("! ", "magenta"), f"{short[net]} failed: {reason}"), (0, 0, 0, 2)))
