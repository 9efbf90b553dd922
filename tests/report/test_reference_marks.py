"""Reference lines, shaded ranges and dot plots: where things lie, computed again from the drawn layout."""

import itertools
import math
from typing import Any

import pytest

from theodolite.report import Band, Figure, Line, Panel, Series
from theodolite.report.page.plotly_json import panel_plots

from .survey_example import TASKS, learning_section


def drawn(*series: Series, **more: Any) -> dict[str, Any]:
    return panel_plots(Figure("f", "alt", "x", "y", [Panel("p", series)], **more))[0]


@pytest.mark.parametrize("log", [False, True])
def test_a_band_covers_its_range_and_says_its_name_inside_the_axis(log: bool) -> None:
    layout = drawn(Series("s", [5, 50, 500], [1, 2, 3]), bands=[Band(0, 40, "trained")], log_x=log)["layout"]
    (shape,), (note,) = layout["shapes"], layout["annotations"]
    left = 10 ** layout["xaxis"]["range"][0] if log else layout["xaxis"]["range"][0]
    assert (shape["x0"], shape["x1"]) == (pytest.approx(max(0, left)), 40)  # shapes take values on a log axis
    least, most = layout["xaxis"]["range"]  # annotations take logarithms
    assert least <= note["x"] <= most
    assert note["text"] == "trained"
    assert layout["margin"]["t"] >= 20


def test_two_labels_above_a_plot_stand_on_rows_of_their_own() -> None:
    lines = [Line(3, "a", "x"), Line(3.1, "b", "x")]
    layout = drawn(Series("s", [1, 2, 9], [1, 2, 3]), lines=lines)["layout"]
    assert len({note["yshift"] for note in layout["annotations"]}) == 2


@pytest.mark.parametrize("rising", [True, False])
def test_the_label_of_a_line_keeps_away_from_the_points(rising: bool) -> None:
    ys = [1, 4, 7, 10] if rising else [10, 7, 4, 1]
    note = drawn(Series("s", [1, 2, 3, 4], ys), lines=[Line(9.9, "chance")])["layout"]["annotations"][0]
    assert note["xanchor"] == ("left" if rising else "right")
    low = drawn(Series("s", [1, 2, 3, 4], ys), lines=[Line(1, "chance")])["layout"]["annotations"][0]
    assert low["xanchor"] == ("right" if rising else "left")


def test_two_lines_close_together_have_labels_apart() -> None:
    lines = [Line(0.50, "chance"), Line(0.505, "majority")]
    notes = drawn(Series("s", [1, 2], [0, 1]), lines=lines)["layout"]["annotations"]
    assert (notes[0]["xanchor"], notes[0]["yanchor"]) != (notes[1]["xanchor"], notes[1]["yanchor"])


def test_the_axis_reaches_a_line_that_lies_beyond_the_data() -> None:
    layout = drawn(Series("s", [1, 2], [10, 20]), lines=[Line(1000, "cap")], log_y=True)["layout"]
    assert layout["yaxis"]["range"][1] > 3
    assert layout["annotations"][0]["y"] == 3
    assert "annotations" not in drawn(Series("s", [1], [1]), lines=[Line(0, "x")], log_y=True)["layout"]


def test_a_panel_has_its_own_lines_beside_those_of_the_figure() -> None:
    panels = [Panel(str(i), [Series("s", [1, 2], [0, 1])], lines=[Line(i / 4, f"chance {i}")]) for i in (1, 2)]
    plots = panel_plots(Figure("f", "alt", "x", "y", panels, lines=[Line(0.9, "solved")]))
    texts = [[note["text"] for note in plot["layout"]["annotations"]] for plot in plots]
    assert texts == [["solved", "chance 1"], ["solved", "chance 2"]]


def test_dots_list_names_downwards_and_never_lie_on_each_other() -> None:
    figure = learning_section().summary.figures[0]
    (plot,) = panel_plots(figure)
    assert plot["layout"]["yaxis"]["ticktext"] == list(TASKS)
    assert plot["layout"]["yaxis"]["tickvals"] == [-i for i in range(len(TASKS))]
    heights = sorted(y for trace in plot["data"] for y in trace["y"])
    gaps = [b - a for a, b in itertools.pairwise(heights)]
    assert len(heights) == len(TASKS) * len(figure.panels[0].series) == 40
    assert min(gaps) > 0.1
    for trace, series in zip(plot["data"], figure.panels[0].series, strict=True):
        assert [round(-y) for y in trace["y"]] == list(range(len(TASKS)))
        assert trace["meta"]["x"] == list(TASKS)
        assert trace["meta"]["y"] == trace["x"] == list(series.y)
        assert series.low is not None
        for value, low, reach in zip(series.y, series.low, trace["error_x"]["arrayminus"], strict=True):
            assert value is not None
            assert low is not None
            assert math.isclose(value - reach, low, abs_tol=1e-9)


def test_plotly_accepts_bands_lines_and_dots() -> None:
    go = pytest.importorskip("plotly.graph_objects")
    for figure in learning_section().summary.figures:
        for plot in panel_plots(figure):
            go.Figure(plot)


def test_ticks_at_the_points_have_room() -> None:
    lengths = [5, 10, 20, 40, 60, 80, 120, 200]
    panels = [Panel(str(i), [Series("s", lengths, lengths)]) for i in range(4)]
    axis = panel_plots(Figure("f", "alt", "x", "y", panels, log_x=True))[0]["layout"]["xaxis"]
    kept = [math.log(tick) for tick in axis["tickvals"]]
    assert axis["tickvals"][0] == 5
    assert axis["tickvals"][-1] == 200
    assert min(b - a for a, b in itertools.pairwise(kept)) >= (kept[-1] - kept[0]) / 9
