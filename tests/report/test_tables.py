import io

import pytest
from rich.console import Console

from theodolite.report import Column, Summary, Table
from theodolite.report.numbers import format_value
from theodolite.report.page.page import RenderedSection
from theodolite.report.terminal.tables import print_summary, rich_table


def printed(table: Table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(rich_table(table, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def nine_columns(table: Table) -> Table:
    return Table(table.title, table.columns[:9], table.rows, table.caption, table.command)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nine_columns_fit_with_every_number_on_one_line(rank_table: Table, width: int) -> None:
    table = nine_columns(rank_table)
    lines = printed(table, width)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    words = {word for line in lines for word in line.split()}
    numbers = {format_value(row[c.key]) for row in table.rows for c in table.columns if c.numeric}
    assert numbers <= words


def test_a_hopelessly_narrow_terminal_folds_values_but_loses_no_digit() -> None:
    columns = [Column(f"k{i}", f"quantity {i}") for i in range(6)]
    table = Table("", columns, [{f"k{i}": 111_111_111 * (i + 1) for i in range(6)}])
    lines = printed(table, 30)
    assert max(map(len, lines)) <= 30
    text = "".join(lines)
    assert "…" not in text
    for i in range(1, 7):
        # nine digits in the row; the header adds one for columns 1 to 5
        assert text.count(str(i)) == 9 + (i < 6)


def test_a_missing_key_and_no_rows_are_dashes_and_a_bare_header() -> None:
    columns = [Column("a", "first", numeric=False), Column("b", "second")]
    assert printed(Table("t", columns, [{"a": "x"}]), 80)[-1].split() == ["x", "–"]
    assert any("second" in line for line in printed(Table("t", columns, []), 80))


def test_agreement_is_printed_as_a_mark_and_a_word() -> None:
    columns = [Column("a", "n"), Column("b", "agreement", kind="agreement")]
    lines = printed(Table("t", columns, [{"a": 1, "b": True}, {"a": 2, "b": False}, {"a": 3}]), 80)
    assert [" ".join(line.split()) for line in lines[-3:]] == ["1 ✓ agrees", "2 ✗ differs", "3 –"]


def test_a_summary_prints_as_text_and_never_as_markup(sections: list[RenderedSection]) -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_summary(console, "Rank [red]", sections[0].summary)
    print_summary(console, "Odd", Summary("[bold]x[/bold] [/]", notes=["[link=a]b"]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    table = sections[0].summary.tables[0]
    assert "Rank [red]" in text
    assert "[bold]x[/bold] [/]" in text
    assert "[link=a]b" in text
    assert f"$ {table.command}" in text.splitlines()  # unbroken, so that it can be copied
    assert table.title in text
    assert sections[0].summary.figures[0].title in text
