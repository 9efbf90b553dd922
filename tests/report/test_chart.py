"""Charts of squares: what stands where, in the page and alone in a file."""

from __future__ import annotations

import io
from xml.etree import ElementTree

from rich.console import Console

from theodolite.report import Board, Chart, Column, Square, Summary, Table
from theodolite.report.page.page import RenderedSection, render_page
from theodolite.report.svg.chart import board_svgs, chart_svg
from theodolite.report.terminal.tables import print_summary

SVG = "{http://www.w3.org/2000/svg}"
CHART = Chart(
    "What is learnt",
    "two tasks by two nets",
    ["copy & paste", "parity"],
    ["mlp", "lstm"],
    [
        Board("Expressible", "parameters", [[Square(1, "12", "all <256> inputs"), Square(None, "?")]] * 2),
        Board("Learnt", "seeds", [[Square(0.5, "2/4"), Square(0, "0/4")], [Square(1, "4/4"), Square(0, "0/4")]]),
    ],
    caption="Fuller is better.",
)


def drawn(alone: bool) -> ElementTree.Element:
    return ElementTree.fromstring(chart_svg(CHART, alone))


def test_every_word_and_square_is_there_and_inside_the_picture():
    for alone in (False, True):
        picture = drawn(alone)
        width, height = (float(n) for n in picture.get("viewBox", "").split()[2:])
        words = [text.text for text in picture.iter(f"{SVG}text")]
        assert {"copy & paste", "parity", "mlp", "lstm", "Expressible", "Learnt", "2/4", "12", "?"} <= set(words)
        squares = [rect for rect in picture.iter(f"{SVG}rect") if rect.get("rx")]
        assert len(squares) == 8
        assert len({(rect.get("x"), rect.get("y")) for rect in squares}) == 8
        assert all(float(r.get("x", 0)) + float(r.get("width", 0)) <= width for r in squares)
        assert all(float(r.get("y", 0)) + float(r.get("height", 0)) <= height for r in squares)


def test_a_fuller_share_is_a_fuller_colour_and_nothing_known_is_dotted():
    squares = [rect for rect in drawn(True).iter(f"{SVG}rect") if rect.get("rx")]
    fullness = {rect.get("fill-opacity"): rect.get("stroke-dasharray") for rect in squares}
    assert [dash for opacity, dash in fullness.items() if opacity == "0.00"] == ["2 3"]
    assert [opacity for opacity, dash in fullness.items() if dash is None] == ["0.60", "0.32", "0.04"]


def test_boards_that_stand_alone_keep_their_squares_and_colours():
    whole, boards = chart_svg(CHART), board_svgs(CHART)
    fills = lambda drawing: [r.get("fill") for r in ElementTree.fromstring(drawing).iter(f"{SVG}rect") if r.get("rx")]
    assert [fill for board in boards for fill in fills(board)] == fills(whole)
    assert all("copy &amp; paste" in board for board in boards)


def test_only_a_file_of_its_own_has_its_own_colours():
    assert "var(--" in chart_svg(CHART)
    assert "var(--" not in chart_svg(CHART, alone=True)


def test_the_page_holds_the_drawing_its_caption_and_its_command():
    page = render_page(
        "t", "s", [RenderedSection("m", "Matrix", Summary("Head.", charts=[CHART]))], {}, (), command="theodolite x"
    )
    assert "all &lt;256&gt; inputs" in page
    assert all(drawing in page for drawing in board_svgs(CHART))
    assert "Fuller is better." in page
    assert page.count("theodolite x") >= 1


def test_a_terminal_shows_the_boards_of_a_chart_instead_of_its_wide_table():
    console = Console(file=io.StringIO(), width=80, color_system=None)
    wide = Table("All of it", [Column(f"c{i}", f"column {i}") for i in range(20)], [])
    print_summary(console, "Matrix", Summary("Head.", [wide], charts=[CHART]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "All of it" not in text
    lines = [line.split() for line in text.splitlines()]
    assert ["parity", "12", "?"] in lines
    assert ["parity", "4/4", "0/4"] in lines


def test_an_edge_marks_what_is_open_or_contradicts_and_one_scale_has_one_colour():
    board = Board(
        "A", "per cent", [[Square(0.5, "1", edge="open"), Square(0.5, "2", edge="against"), Square(0.5, "3")]]
    )
    chart = Chart("t", "a", ["row"], ["x", "y", "z"], [board, board], one_scale=True)
    squares = [r for r in ElementTree.fromstring(chart_svg(chart, True)).iter(f"{SVG}rect") if r.get("rx")]
    assert [(r.get("stroke-dasharray"), r.get("stroke-width")) for r in squares[:3]] == [
        ("3 3", None),
        (None, "2.5"),
        (None, None),
    ]
    assert len({r.get("fill") for r in squares}) == 1


def test_groups_of_rows_stand_apart_and_a_long_note_has_room():
    board = Board("A", "a note far longer than its one column", [[Square(0.5, "1")]] * 3)
    chart = Chart("t", "a", ["a", "b", "c"], ["x"], [board, board], gaps=[1])
    picture = ElementTree.fromstring(chart_svg(chart, True))
    squares = [r for r in picture.iter(f"{SVG}rect") if r.get("rx")]
    first, second, third = (float(r.get("y", "nan")) for r in squares[:3])
    assert second - first > third - second
    left, right = (float(t.get("x", "nan")) for t in picture.iter(f"{SVG}text") if t.text == board.note)
    assert right - left > 5.5 * len(board.note)
