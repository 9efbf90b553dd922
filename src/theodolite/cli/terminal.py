"""Where commands print: on the terminal as it is, or plainly, for logs: no colour, no boxes, a line a finding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_WIDE = 100_000  # letters: nothing is folded or cut
_NEAR = dict(zip("✓✗◐○–—−·×…‖’‘“”εσµ⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ", "+x~o---.x.|''\"\"esu0123456789-T", strict=True))
_NEAR |= {"≥": ">=", "≤": "<=", "→": "->", "←": "<-", "≈": "~", "≠": "!=", "√": "sqrt", "∞": "inf"}
_asked: ContextVar[bool] = ContextVar("plain", default=False)
_recorded: ContextVar[Console | None] = ContextVar("recorded", default=None)


def speak_plainly(asked: bool) -> None:
    """Once for every command, before it prints."""
    _asked.set(asked)


def plainly() -> bool:
    return _asked.get()


def on_one_line(text: str) -> str:
    """Names of files may hold ends of lines, and orders to a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def near(error: UnicodeError) -> tuple[str, int]:
    """For letters that a terminal of ASCII or Latin-1 does not have: marks stay apart, and numbers what they are."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_NEAR.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def tabbed(*cells: str) -> Text:
    """An entry of a list as one line of a log."""
    return Text("\t".join(" ".join(cell.split()) for cell in cells).rstrip())


def terminal(stderr: bool = False) -> Console:
    """The console of results, or of remarks."""
    recorded = _recorded.get()
    if recorded is not None:
        return recorded
    return PlainConsole(stderr) if plainly() else Console(stderr=stderr, highlight=False)


@contextmanager
def recording(width: int) -> Iterator[Console]:
    """What is printed in here goes nowhere, and can be exported from the console afterwards."""
    console = Console(
        file=StringIO(), record=True, width=width, highlight=False, force_terminal=True, force_jupyter=False
    )
    before = _recorded.set(console)
    try:
        yield console
    finally:
        _recorded.reset(before)


class PlainConsole(Console):
    """Prints rows of tables with tabs between their cells, and everything else on one line without decoration."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(
            stderr=stderr, width=_WIDE, color_system=None, force_terminal=False, highlight=False, emoji=False
        )

    def print(self, *objects: Any, markup: bool | None = None, end: str = "\n", **_options: Any) -> None:
        for one in objects:
            lines = self._lines(one.renderable if isinstance(one, Padding) else one, markup is not False)
            if lines:
                self.file.write("\n".join(lines) + end)  # rich would make blanks of tabs

    def rule(self, title: str | Text = "", **_options: Any) -> None:
        self.print(title)

    def _lines(self, one: Any, markup: bool) -> list[str]:
        """Without the empty ones, and without blanks at their ends."""
        if isinstance(one, Table):
            return self._rows(one)
        lines = self._text(one, markup).splitlines()
        return [line.rstrip() for line in lines if line.strip()]

    def _rows(self, table: Table) -> list[str]:
        cells = [[self._text(cell) for cell in column.cells] for column in table.columns]
        head = [[self._text(column.header) for column in table.columns]] if table.show_header else []
        rows = [tabbed(*row).plain for row in (*head, *zip(*cells, strict=True))]
        around = [self._text(text) for text in (table.title, table.caption)]
        return [line for line in (around[0], *rows, around[1]) if line]

    def _text(self, one: Any, markup: bool = True) -> str:
        if isinstance(one, Text):
            return one.plain
        if isinstance(one, str):
            return self.render_str(one, markup=markup, emoji=False, highlight=False).plain
        return "" if one is None else "\n".join(_joined(line) for line in self.render_lines(one, pad=False))


def _joined(segments: Any) -> str:
    return "".join(segment.text for segment in segments)
