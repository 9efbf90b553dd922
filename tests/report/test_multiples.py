"""Many small plots: where curves, shades and levels stand, in the page and alone in a file."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from theodolite.report import Curve, Multiples, Plot, Summary
from theodolite.report.page.page import RenderedSection, render_page
from theodolite.report.svg.multiples import multiples_svg

SVG = "{http://www.w3.org/2000/svg}"
PLOT = Plot(
    [Curve([1, 10, 100], [1.0, 0.5, 0.0]), Curve([1, 100], [0.5, 0.5], faint=True)], (1, 10), 0.25, "n", "a & b"
)
GRID = Multiples(
    "By length",
    "plots",
    ["copy", "reverse"],
    ["rnn", "lstm"],
    [[PLOT, None], [PLOT, PLOT]],
    (1, 100),
    (0, 1),
    "x",
    "y",
    True,
)


def points(path: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+),([\d.]+)", path.get("d", ""))]


def curves(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [path for path in picture.iter(f"{SVG}path") if path.get("stroke-linecap")]


def boxes(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [rect for rect in picture.iter(f"{SVG}rect") if rect.get("fill") == "none"]


@pytest.mark.parametrize("log", [True, False])
def test_a_value_stands_at_its_share_of_the_axes(log):
    picture = ElementTree.fromstring(multiples_svg(replace(GRID, log_x=log), alone=True))
    box = boxes(picture)[0]
    left, top, wide, high = (float(box.get(name, "nan")) for name in ("x", "y", "width", "height"))
    thick = next(path for path in curves(picture) if path.get("stroke-opacity") == "1.0")
    middle = 0.5 if log else 9 / 99
    expected = [(left, top), (left + middle * wide, top + high / 2), (left + wide, top + high)]
    for found, wanted in zip(points(thick), expected, strict=True):
        assert found == pytest.approx(wanted, abs=0.06)
    shade = next(rect for rect in picture.iter(f"{SVG}rect") if rect.get("fill") == "#e9ebee")
    assert float(shade.get("width", "nan")) == pytest.approx(middle * wide, abs=0.06)


def test_there_is_a_plot_for_every_place_that_has_one_and_every_word():
    picture = ElementTree.fromstring(multiples_svg(GRID))
    assert len(boxes(picture)) == 3
    assert {text.text for text in picture.iter(f"{SVG}text")} >= {
        "copy",
        "reverse",
        "rnn",
        "lstm",
        "n",
        "x",
        "y",
        "100",
    }
    assert [title.text for title in picture.iter(f"{SVG}title")] == ["a & b"] * 3
    faint = [path.get("stroke-opacity") for path in curves(picture)]
    assert faint == ["0.45", "1.0"] * 3, "what is faint stands behind"


def test_a_curve_breaks_where_nothing_is_known_and_a_value_alone_is_a_dot():
    plot = Plot([Curve([1, 2, 4, 8, 16], [1.0, None, 0.5, None, 2.0])])
    (path,) = curves(ElementTree.fromstring(multiples_svg(replace(GRID, plots=[[plot, None], [None, None]]))))
    assert path.get("d", "").count("M") == 3
    found = points(path)
    assert found[0] == found[1]
    assert found[-1][1] == found[0][1], "what is above the axis is drawn at its end"
    assert not any(math.isnan(value) for point in found for value in point)


def test_only_a_file_of_its_own_has_its_own_colours_and_the_page_holds_it():
    assert "var(--" in multiples_svg(GRID)
    assert "var(--" not in multiples_svg(GRID, alone=True)
    page = render_page("t", "s", [RenderedSection("m", "M", Summary("Head.", charts=[GRID]))], {}, ())
    assert multiples_svg(GRID) in page
