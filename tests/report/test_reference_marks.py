"""Reference lines, shaded ranges and dot plots: where things lie, computed again from the drawing."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest

from theodolite.report import Band, Figure, Line, Panel, Series
from theodolite.report.svg.figure import panel_svgs

from .survey_example import TASKS, learning_section
from .test_figure_svg import SVG, groups, paths, points


def drawn(*series: Series, **more: Any) -> ElementTree.Element:
    return ElementTree.fromstring(panel_svgs(Figure("f", "alt", "x", "y", [Panel("", series)], **more))[0])


def labels(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [text for text in picture.iter(f"{SVG}text") if text.get("class") == "label"]


def rules(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [path for path in picture.iter(f"{SVG}path") if path.get("class") == "reference"]


def at(text: ElementTree.Element) -> tuple[float, float]:
    return float(text.get("x", "nan")), float(text.get("y", "nan"))


@pytest.mark.parametrize("log", [False, True])
def test_a_band_covers_its_range_and_says_its_name_above_the_plot(log: bool) -> None:
    picture = drawn(Series("s", [5, 40, 500], [1, 2, 3]), bands=[Band(0, 40, "trained")], log_x=log)
    band = next(rect for rect in picture.iter(f"{SVG}rect"))
    spots = points(groups(picture)["0"])
    left, right = float(band.get("x", "nan")), float(band.get("x", "nan")) + float(band.get("width", "nan"))
    assert left < spots[0][0]
    assert right == pytest.approx(spots[1][0], abs=0.2)
    (label,) = labels(picture)
    assert label.text == "trained"
    assert left <= at(label)[0] <= right
    assert at(label)[1] < float(band.get("y", "nan"))


def test_two_labels_above_a_plot_stand_on_rows_of_their_own() -> None:
    lines = [Line(3, "a", "x"), Line(3.1, "b", "x")]
    picture = drawn(Series("s", [1, 2, 9], [1, 2, 3]), lines=lines)
    assert len({at(label)[1] for label in labels(picture)}) == 2


@pytest.mark.parametrize("rising", [True, False])
def test_the_label_of_a_line_keeps_away_from_the_points(rising: bool) -> None:
    ys = [1, 4, 7, 10] if rising else [10, 7, 4, 1]
    (high,) = labels(drawn(Series("s", [1, 2, 3, 4], ys), lines=[Line(9.9, "chance")]))
    assert high.get("text-anchor") == ("start" if rising else "end")
    (low,) = labels(drawn(Series("s", [1, 2, 3, 4], ys), lines=[Line(1, "chance")]))
    assert low.get("text-anchor") == ("end" if rising else "start")


def test_two_lines_close_together_have_labels_apart() -> None:
    lines = [Line(0.50, "chance"), Line(0.505, "majority")]
    one, other = labels(drawn(Series("s", [1, 2], [0, 1]), lines=lines))
    apart = abs(at(one)[1] - at(other)[1]) >= 12
    assert apart or one.get("text-anchor") != other.get("text-anchor")


def test_the_axis_reaches_a_line_that_lies_beyond_the_data() -> None:
    picture = drawn(Series("s", [1, 2], [10, 20]), lines=[Line(1000, "cap")], log_y=True)
    (rule,) = rules(picture)
    height = float(rule.get("d", "").split(",")[1].split("L")[0])
    assert 0 < height < min(y for _, y in points(groups(picture)["0"]))
    assert rules(drawn(Series("s", [1], [1]), lines=[Line(0, "x")], log_y=True)) == []


def test_a_panel_has_its_own_lines_beside_those_of_the_figure() -> None:
    panels = [Panel(str(i), [Series("s", [1, 2], [0, 1])], lines=[Line(i / 4, f"chance {i}")]) for i in (1, 2)]
    pictures = panel_svgs(Figure("f", "alt", "x", "y", panels, lines=[Line(0.9, "solved")]))
    texts = [[label.text for label in labels(ElementTree.fromstring(picture))] for picture in pictures]
    assert texts == [["solved", "chance 1"], ["solved", "chance 2"]]


def test_dots_list_names_downwards_and_never_lie_on_each_other() -> None:
    figure = learning_section().summary.figures[0]
    (drawing,) = panel_svgs(figure)
    picture = ElementTree.fromstring(drawing)
    named = [text for text in picture.iter(f"{SVG}text") if text.get("text-anchor") == "end" and text.text in TASKS]
    assert [text.text for text in named] == list(TASKS)
    found = groups(picture)
    heights = sorted(y for group in found.values() for _, y in points(group))
    assert len(heights) == len(TASKS) * len(figure.panels[0].series) == 40
    assert min(b - a for a, b in itertools.pairwise(heights)) > 5
    for i, series in enumerate(figure.panels[0].series):
        spots = points(found[str(i)])
        nearest = [min(named, key=lambda text: abs(at(text)[1] - 4 - y)).text for _, y in spots]
        assert nearest == list(TASKS)
        order = sorted(range(len(spots)), key=lambda j: spots[j][0])
        values = [series.y[j] for j in order]
        assert values == sorted(values)  # type: ignore[type-var]
        assert paths(found[str(i)])[0].get("d", "").count("H") == len(TASKS)  # a bar for each interval
