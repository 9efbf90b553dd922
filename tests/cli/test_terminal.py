"""Plain printing for logs, and what a command says of how long it will take."""

from __future__ import annotations

import json

import pytest
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from theodolite.cli.progress import Bar, Pace, _Log, spoken
from theodolite.cli.terminal import PlainConsole


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_plain_table_is_a_line_a_row_with_tabs_and_nothing_cut(capsys):
    table = Table("name", "rank", title="Ranks", caption="measured")
    table.add_row(Text("self-attention", style="red"), "[bold]≥ 12,345[/bold]")
    table.add_row("a\nb", "x" * 300)
    console = PlainConsole()
    console.print(table)
    console.print()
    console.print(Padding("  indented [dim]remark[/dim]", (1, 4)))
    console.print("[kept]", markup=False, end=" ")
    console.rule(Text("title", style="bold"), style="dim")
    rows = ["Ranks", "name\trank", "self-attention\t≥ 12,345", "a b\t" + "x" * 300, "measured"]
    assert capsys.readouterr().out == "\n".join([*rows, "  indented remark", "[kept] title", ""])


def test_time_left_is_told_from_what_was_measured_here_and_only_once_it_is_known():
    clock = Clock()
    pace = Pace(clock)
    assert pace.left(50, 100) is None  # was done before: no rate
    clock.now += 1
    assert pace.left(60, 100) is None  # a second is no measurement
    clock.now += 9
    assert pace.left(60, 100) == 10 * 40 / 10
    assert pace.left(50.5, 100) is None  # half a percent is none either
    assert pace.left(100, 100) == 0
    assert [spoken(seconds) for seconds in (None, 0.2, 99.6, 3725)] == [
        "estimating", "0:00 left", "1:40 left", "1:02:05 left",
    ]  # fmt: skip


def test_a_log_has_a_line_at_the_start_and_then_one_in_ten_seconds(capsys):
    clock = Clock()
    bar = Bar(_Log(PlainConsole(), clock))
    bar.count(0, 8, "first [of] all")
    for _ in range(30):
        clock.now += 1
        bar.count(4, 8, "more")
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "progress: 0% after 0 s, estimating: first [of] all"
    assert len(told) == 1 + 3
    assert told[1].startswith("progress: 50% after 10 s")


def test_a_log_says_once_a_minute_that_the_same_goes_on(capsys):
    now = [0.0]
    log = _Log(PlainConsole(), lambda: now[0])
    log(1.0, 4.0, "a long one", None)
    for now[0] in (30.0, 59.0, 61.0, 100.0, 122.0):
        log.beat()
    told = capsys.readouterr().out.splitlines()
    assert told[1:] == ["progress: 25% after 61 s, still a long one", "progress: 25% after 122 s, still a long one"]
    with log.beating():
        pass  # ends at once


def test_plain_holds_for_one_command_only(theodolite, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    shaped = ("rank", "self-attention", "--depth", 1, "--width", 2, "--tokens", 4, "--repeats", 1)
    plain = theodolite(*shaped, "--plain")
    assert "partition\tleft-right\n" in plain.out
    assert "\x1b" not in plain.out + plain.err
    assert plain.err.startswith("progress: after 0 s, estimating: getting ready\n")
    usual = theodolite(*shaped)
    assert "\t" not in usual.out
    assert "\x1b" in usual.err  # a bar


@pytest.mark.parametrize("command", ["nets", "tasks", "claims list"])
def test_a_plain_list_is_a_line_an_entry(theodolite, command):
    listed = json.loads(theodolite(*command.split(), "--json").out)
    lines = theodolite(*command.split(), "--plain").out.splitlines()
    key = "id" if command.startswith("claims") else "name"
    assert [line.split("\t")[0] for line in lines] == [entry[key] for entry in listed]
    for line, entry in zip(lines, listed, strict=True):
        about = entry["statement"] if command.startswith("claims") else entry["summary"]
        assert " ".join(about.split()) in line


def test_a_plain_verdict_is_a_line(theodolite):
    (line,) = theodolite("claims", "check", "T8", "--plain").out.splitlines()
    assert line.split("\t")[:2] == ["T8", "holds"]
