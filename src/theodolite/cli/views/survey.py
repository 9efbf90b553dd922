"""A survey in a terminal: cards, three sentences, and what changed since an earlier one; or a line a finding."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from theodolite.cli.terminal import tabbed
from theodolite.report.answer import MARKS, agreement, differences, short_names, tally
from theodolite.report.numbers import format_value
from theodolite.report.terminal.cards import print_cards
from theodolite.surveys.against import Against, cost_line, said
from theodolite.surveys.run import Survey


def print_survey(console: Console, found: Survey, plain: bool) -> None:
    if plain:
        _print_lines(console, found)
    else:
        print_cards(console, found.answers, found.nets, found.facts)
    for net in found.nets:
        if not any(answer.net == net for answer in found.answers):
            why = next((why for why in found.not_applicable if f"'{net}'" in why), ": no section applies to it")
            console.print(f"{net}: {why.partition(': ')[2]}", markup=False)  # behind the sections' titles
    for sentence in found.conclusions:
        console.print(Text(f"summary: {sentence}" if plain else sentence))
    if found.against is not None:
        _print_against(console, found.against)


def _print_lines(console: Console, found: Survey) -> None:
    """network, ability, answer, what was measured, theory, whether it agrees, what was published: with tabs between."""
    for net, known in found.facts.items():
        for name, value in known.items():
            console.print(tabbed(net, name, format_value(value)))
    for answer in found.answers:
        theory = (answer.predicted, agreement(answer.agrees) if answer.agrees is not None else "")
        cells = (answer.net, answer.ability, MARKS[answer.standing][1], answer.text, *theory, answer.published)
        console.print(tabbed(*cells))
    if words := tally(found.answers):
        console.print(Text(f"summary: {words}"))
    for text in differences(found.answers, short_names(found.nets)):
        console.print(Text(f"theory differs: {text}"))


def _print_against(console: Console, found: Against) -> None:
    console.print()
    console.print(Text(f"Against {found.old}", style="bold"))
    console.print(Text(found.counted))
    for change in found.of("changed"):
        was = "" if change.net == change.was else f" (was {change.was})"
        line = Text.assemble((f"{change.net}{was}, {change.after.ability}: ", "bold"), said(change))
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    for cost in found.costs:
        if cost[2] != cost[3]:
            console.print(Padding(Text(cost_line(cost), style="dim"), (0, 0, 0, 2), expand=False))
