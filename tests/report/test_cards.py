import io
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from theodolite.report import Answer
from theodolite.report.answer import MARKS
from theodolite.report.terminal.cards import print_cards

from .survey_example import MINE, NETS, REASON, survey_sections

ANSWERS = [answer for section in survey_sections() for answer in section.summary.answers]


def printed(
    answers: list[Answer],
    width: int = 80,
    nets: tuple[str, ...] = NETS,
    colour: bool = False,
    facts: Mapping[str, Any] = MappingProxyType({"parameters": 12_345}),
) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=colour, color_system="truecolor" if colour else None
    )
    print_cards(console, answers, nets, dict.fromkeys(nets, facts))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def cards(text: str, nets: tuple[str, ...] = NETS) -> dict[str, list[str]]:
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return {net: next(b[b.index(net) :] for b in blocks if net in b) for net in nets}


@pytest.mark.parametrize("width", [80, 132])
def test_every_answer_has_its_line_with_mark_word_theory_and_agreement(width: int) -> None:
    found = cards(printed(ANSWERS, width))
    for net, lines in found.items():
        given = [answer for answer in ANSWERS if answer.net == net]
        assert len(given) >= 6
        assert len(given) <= 14
        assert "12,345" in lines[1]
        heads = [line for line in lines[2:] if not line.startswith("   ")]  # a line that goes on has no mark
        for line, answer in zip(heads, given, strict=True):
            assert line.split()[0] == MARKS[answer.standing][0]
            assert width < 100 or f" {MARKS[answer.standing][1]} " in line
            assert answer.predicted[:8] in line
            mark = {True: "✓", False: "✗", None: ""}[answer.agrees]
            assert not mark or mark in line[line.index(answer.predicted[:8]) :]


@pytest.mark.parametrize("width", [20, 30, 46, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_the_verdict_survives(width: int) -> None:
    text = printed(ANSWERS, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    for standing in {answer.standing for answer in ANSWERS}:
        assert text.count(f"  {MARKS[standing][0]} ") >= sum(a.standing == standing for a in ANSWERS)
        assert " ".join(MARKS[standing]) in " ".join(text.split())  # the words stand below where lines have no room


def test_no_number_is_cut_at_any_width() -> None:
    facts = {"parameters": 12_345, "operations per token": 1_234_567, "training": "12.3 µs per token"}
    some = [answer for answer in ANSWERS if answer.net in NETS[3:]]
    for width in range(60, 201):
        text = printed(some, width, NETS[3:], facts=facts)
        assert max(cell_len(line) for line in text.splitlines()) <= width
        whole = set(text.split())
        for answer in some:
            if answer.standing != "failed":
                assert set(f"{answer.text} {answer.predicted}".split()) <= whole
        assert {"12,345,", "1,234,567,", "12.3"} <= whole


def test_every_answer_is_printed_and_a_wider_terminal_shows_more() -> None:
    many = [Answer("lstm", f"Can it do {i}?", "yes", "4/4", published="0.54 (Author 2020)") for i in range(30)]
    narrow, wide = (printed(many, width, nets=("lstm",)) for width in (40, 160))
    for text in (narrow, wide):
        assert len(cards(text, ("lstm",))["lstm"]) == 2 + len(many)
        assert "do 29" in text
    assert "Author" not in narrow
    assert "0.54 (Author 2020)" in wide


def test_disagreements_and_failures_are_spelt_out_below_the_cards() -> None:
    text = " ".join(printed(ANSWERS, 46).split())
    predicted = [answer for answer in ANSWERS if answer.agrees is not None]
    agreed = sum(answer.agrees is True for answer in predicted)
    assert f"{agreed} of {len(predicted)} predictions of theory agree" in text
    wrong = [answer for answer in ANSWERS if answer.agrees is False]
    assert len(wrong) == 3
    for answer in wrong:
        assert f"{answer.question} Measured: {answer.text}. Theory: {answer.predicted}." in text
    assert f"MyGatedThing failed: {REASON}" in text


def test_colour_only_repeats_what_the_text_says() -> None:
    plain, coloured = printed(ANSWERS), printed(ANSWERS, colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_a_net_without_answers_and_hostile_markup_are_printed_as_they_are() -> None:
    text = printed([Answer("[red]x", "Can it [bold]?", "yes", "[/]")], nets=("[red]x", MINE))
    assert "[red]x" in text
    assert "[bold]" in text
    assert "not measured" in cards(text, (MINE,))[MINE][-1]
