"""Tables and headlines in a terminal, through rich."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import rich.table
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from theodolite.report.answer import agreement
from theodolite.report.chart import Board, Chart
from theodolite.report.multiples import Multiples
from theodolite.report.numbers import format_value
from theodolite.report.summary import Summary
from theodolite.report.table import Column, Table

_TEXT_FLOOR = 12  # a column of words may wrap to this width when the terminal is narrow
_LEAST = 3


def rich_table(table: Table, width: int = 80) -> rich.table.Table:
    """`table` in at most `width` columns of text: headers and words wrap first, and no value is ever cut."""
    grid = _grid(table, width)
    grid.title = Text(table.title) if table.title else None
    grid.caption = Text(table.caption) if table.caption else None
    return grid


def print_summary(console: Console, section_title: str, summary: Summary) -> None:
    """A section as its title, its headline, its notes, its charts or tables, and the commands that make them again.

    Where there is a chart it stands for the table, which has more columns than a terminal.
    """
    console.print()
    console.rule(Text(section_title, style="bold"), align="left", style="dim")
    console.print(Text(summary.headline))
    for note in summary.notes:
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))
    for chart in summary.charts:
        if isinstance(chart, Multiples):
            console.print(Text.assemble(("Figure in the report: ", "dim"), (chart.title, "bold")))
            continue
        for board in chart.boards:
            console.print()
            console.print(Text.assemble((board.title, "bold"), (f": {board.note}", "dim")))
            console.print(_grid(_squares(chart, board), console.width))
        _aside(console, chart.caption)
        _command(console, chart.command)
    for table in summary.tables if not summary.charts else ():
        console.print()
        console.print(Text(table.title, style="bold"))
        console.print(_grid(table, console.width))
        _aside(console, table.caption)
        _command(console, table.command)
    for figure in summary.figures:
        console.print()
        console.print(Text.assemble(("Figure in the report: ", "dim"), (figure.title, "bold")))
        _command(console, figure.command)


def _squares(chart: Chart, board: Board) -> Table:
    columns = [Column("row", "", numeric=False), *(Column(name, name) for name in chart.columns)]
    rows = [
        {"row": row, **{name: square.text for name, square in zip(chart.columns, squares, strict=True)}}
        for row, squares in zip(chart.rows, board.squares, strict=True)
    ]
    return Table("", columns, rows)


def _grid(table: Table, width: int) -> rich.table.Table:
    texts = [[_text(column, row.get(column.key)) for column in table.columns] for row in table.rows]
    gap, sizes = _widths(table.columns, texts, width)
    grid = rich.table.Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        header_style="bold",
    )
    for column, size in zip(table.columns, sizes, strict=True):
        grid.add_column(
            Text(column.label),
            justify="right" if column.numeric and column.kind == "value" else "left",
            width=size,
            overflow="fold",
        )
    for row in texts:
        grid.add_row(*(Text(_broken(text, size)) for text, size in zip(row, sizes, strict=True)))
    return grid


def _text(column: Column, value: Any) -> str:
    return agreement(value) if column.kind == "agreement" else format_value(value)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> tuple[int, list[int]]:
    """The gap between columns and their widths.

    Room is given out in three rounds: numbers unbroken, then the longest word of each header, then everything.
    """
    values = [max((cell_len(row[i]) for row in rows), default=1) for i in range(len(columns))]
    pieces = [max((_longest(_pieces(row[i])) for row in rows), default=1) for i in range(len(columns))]
    unbroken = [
        max(value if column.numeric else min(piece, _TEXT_FLOOR), _LEAST)
        for column, value, piece in zip(columns, values, pieces, strict=True)
    ]
    headers = [max(_longest(column.label.split()), least) for column, least in zip(columns, unbroken, strict=True)]
    whole = [
        max(cell_len(column.label), value, least) for column, value, least in zip(columns, values, headers, strict=True)
    ]
    gap = 2 if sum(headers) + 2 * (len(columns) - 1) <= width else 1
    room = max(width - gap * (len(columns) - 1), len(columns))
    sizes = unbroken
    while sum(sizes) > room:  # nothing fits: fold the widest, so that every digit is still printed
        widest = max(range(len(sizes)), key=lambda i: (not columns[i].numeric and sizes[i] > _LEAST, sizes[i]))
        sizes[widest] -= 1
    for i in sorted(range(len(sizes)), key=lambda i: headers[i] - sizes[i]):
        if headers[i] - sizes[i] <= room - sum(sizes):
            sizes[i] = headers[i]
    for goal in (headers, whole):
        while sum(sizes) < room and any(size < most for size, most in zip(sizes, goal, strict=True)):
            neediest = min((i for i in range(len(sizes)) if sizes[i] < goal[i]), key=lambda i: (sizes[i], i))
            sizes[neediest] += 1
    return gap, sizes


def _broken(text: str, width: int) -> str:
    """`text` on lines of `width`, broken after blanks, underscores and slashes where that is possible."""
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _pieces(text: str) -> list[str]:
    return re.findall(r"[^\s_/:]*[\s_/:]+|[^\s_/:]+", text)


def _longest(words: Sequence[str]) -> int:
    return max((cell_len(word.rstrip()) for word in words), default=1)


def _aside(console: Console, text: str) -> None:
    if text:
        console.print(Text(text, style="dim"))


def _command(console: Console, command: str) -> None:
    if command:
        console.print(Text(f"$ {command}", style="dim"), soft_wrap=True)  # one line, so that it can be copied
