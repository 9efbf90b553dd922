"""A table in a terminal whose rows have notes below them, over the whole width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

GAP = 2
_FIRST = 24  # a longer first cell gets a line of its own


@dataclass(frozen=True)
class NotedRow:
    """Cells of plain text, notes to print below them (dim, unless styled), and the style of a cell by its place."""

    cells: Sequence[str]
    notes: Sequence[str | Text] = ()
    styles: Sequence[str] = ()


def widths(headers: Sequence[str], rows: Sequence[NotedRow]) -> list[int]:
    """So wide that nothing is cut; tables with the same widths stand below each other."""
    found = [
        max(cell_len(text) for text in (header, *(row.cells[i] for row in rows))) for i, header in enumerate(headers)
    ]
    lengths = [cell_len(row.cells[0]) for row in rows]
    found[0] = max([cell_len(headers[0]), *(n for n in lengths if n <= _FIRST)])
    return found


def print_noted(console: Console, headers: Sequence[str], rows: Sequence[NotedRow], sizes: Sequence[int]) -> None:
    """The first column stands left, the others right."""
    console.print(_line(headers, sizes, ["bold"] * len(headers)), soft_wrap=True)
    for row in rows:
        cells, styles = list(row.cells), [*row.styles, *[""] * (len(row.cells) - len(row.styles))]
        if cell_len(cells[0]) > sizes[0]:
            console.print(Text(cells[0], style=styles[0]), soft_wrap=True)
            cells[0] = ""
        console.print(_line(cells, sizes, styles), soft_wrap=True)
        for note in row.notes:
            shown = note if isinstance(note, Text) else Text(note, style="dim")
            console.print(Padding(shown, (0, 0, 0, 2), expand=False))


def _line(cells: Sequence[str], sizes: Sequence[int], styles: Sequence[str]) -> Text:
    line = Text()
    for place, (cell, size, style) in enumerate(zip(cells, sizes, styles, strict=True)):
        blanks = " " * (size - cell_len(cell))
        line.append(" " * GAP if place else "")
        line.append("" if place == 0 else blanks)
        line.append(cell, style=style)
        line.append(blanks if place == 0 else "")
    line.rstrip()
    return line
