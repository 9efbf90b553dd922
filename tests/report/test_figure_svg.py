"""Figures as SVG: what is drawn where, computed again from the drawing."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import pytest

from theodolite.report import Figure, Panel, Series
from theodolite.report.colours import OWN, PALETTE
from theodolite.report.svg.axes import x_axis, y_axis
from theodolite.report.svg.figure import figure_svg, legend, panel_svgs
from theodolite.report.svg.series_style import styles

SVG = "{http://www.w3.org/2000/svg}"


def figure(*series: Series, log_x: bool = False, log_y: bool = False) -> Figure:
    return Figure("f", "alt", "x", "y", [Panel("p", series)], log_x=log_x, log_y=log_y)


def drawn(spec: Figure, panel: int = 0) -> ElementTree.Element:
    return ElementTree.fromstring(panel_svgs(spec)[panel])


def groups(picture: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {g.get("data-series", ""): g for g in picture.iter(f"{SVG}g") if g.get("class") == "series"}


def place(point: ElementTree.Element) -> tuple[float, float]:
    if point.tag == f"{SVG}circle":
        return float(point.get("cx", "nan")), float(point.get("cy", "nan"))
    x, y = re.findall(r"-?[\d.]+", point.get("transform", ""))[:2]
    return float(x), float(y)


def points(group: ElementTree.Element) -> list[tuple[float, float]]:
    return [place(one) for one in group.iter() if one.get("class") == "point"]


def paths(group: ElementTree.Element) -> list[ElementTree.Element]:
    return list(group.findall(f"{SVG}path"))


def test_every_value_is_at_its_place_on_linear_and_log_axes() -> None:
    xs, ys = [1, 2, 4, 8], [10.0, 100.0, 1000.0, 20.0]
    for log in (False, True):
        found = points(groups(drawn(figure(Series("s", xs, ys), log_x=log, log_y=log)))["0"])
        scale = math.log if log else float
        for values, places in ((xs, [x for x, _ in found]), (ys, [-y for _, y in found])):
            span = scale(max(values)) - scale(min(values))
            for value, at in zip(values, places, strict=True):
                share = (scale(value) - scale(min(values))) / span
                assert (at - min(places)) / (max(places) - min(places)) == pytest.approx(share, abs=0.002)


def test_a_point_says_its_series_its_values_and_its_interval() -> None:
    series = Series("lstm <1>", [8, 16], [0.5, 0.75], low=[0.4, 0.7], high=[0.6, 0.8], hover=["4 seeds", "2 seeds"])
    told = [title.text for title in drawn(figure(series)).iter(f"{SVG}title")]
    assert told == [
        "lstm <1>\nx: 8\ny: 0.5 [0.4, 0.6]\n4 seeds",
        "lstm <1>\nx: 16\ny: 0.75 [0.7, 0.8]\n2 seeds",
    ]


def test_a_group_shares_its_colour_and_predictions_are_dashed_and_open(rank_figure: Figure) -> None:
    looks = {style.name: style for style in styles(rank_figure)}
    attention = looks["self-attention, measured"], looks["self-attention, predicted"]
    recurrent = looks["recurrent, measured"], looks["recurrent, predicted"]
    assert attention[0].colour == attention[1].colour != recurrent[0].colour == recurrent[1].colour
    assert attention[0].symbol == attention[1].symbol != recurrent[0].symbol
    found = groups(drawn(rank_figure))
    assert [paths(found[str(i)])[-1].get("stroke-dasharray") for i in range(4)] == [None, "6 4", None, "6 4"]
    assert [found[str(i)].find(f"{SVG}g").get("fill") for i in (1, 3)] == ["var(--page)"] * 2  # type: ignore[union-attr]


def test_many_series_never_look_the_same() -> None:
    spec = figure(
        *(Series(f"s{i}", [1], [1]) for i in range(50)),
        *(Series(f"bound {i}", [1], [1], dashed=True, group="s0") for i in range(3)),
    )
    looks = [(style.colour, style.symbol, style.dash) for style in styles(spec)]
    assert len(set(looks)) == len(looks)
    assert all(0 <= colour < len(PALETTE) for colour, _, _ in looks)
    assert len({drawing for _, drawing in legend(spec)}) == len(looks)


def test_the_users_network_has_a_colour_of_its_own_and_lies_on_top() -> None:
    spec = figure(Series("a.py:Mine", [1, 2], [1, 2]), Series("lstm", [1, 2], [1, 2]))
    assert OWN not in PALETTE
    found = list(groups(drawn(spec)).items())
    assert [name for name, _ in found] == ["1", "0"]
    assert found[-1][1].get("stroke") == "var(--own)"
    assert [style.own for style, _ in legend(spec)] == [True, False]
    titled = drawn(Figure("f", "alt", "x", "y", [Panel("a.py:Mine", [Series("width 2", [1], [1])])]))
    assert [t.get("fill") for t in titled.iter(f"{SVG}text") if t.text == "a.py:Mine (yours)"] == ["var(--own)"]


def test_panels_share_their_heights_unless_they_measure_different_things(rank_figure: Figure) -> None:
    heights = {str(y_axis(rank_figure, panel)) for panel in rank_figure.panels}
    assert len(heights) == 1
    axis = y_axis(rank_figure, rank_figure.panels[0])
    values = [v for p in rank_figure.panels for s in p.series for v in (*s.y, *(s.low or ()), *(s.high or ())) if v]
    assert 10**axis.low < min(values) <= max(values) < 10**axis.high
    panels = [Panel(str(top), [Series("s", [1, 2], [0, top])]) for top in (1, 1000)]
    apart = Figure("f", "alt", "x", "y", panels, shared=False)
    assert [round(y_axis(apart, panel).high) for panel in panels] == [1, 1060]


@pytest.mark.parametrize("top", [2.5, 3, 30, 1000, 10**6, 10**12, 10**40, 10**200])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_few_different_and_inside_the_range(top: float, log: bool) -> None:
    spec = figure(Series("s", [1, 2], [2, top]), log_y=log)
    axis = y_axis(spec, spec.panels[0])
    texts = [text for _, text in axis.ticks]
    assert 2 <= len(texts) <= 9
    assert len(set(texts)) == len(texts)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share, _ in axis.ticks)


def test_ticks_at_the_points_have_room() -> None:
    lengths = [5, 10, 20, 40, 60, 80, 120, 200]
    axis = x_axis(Figure("f", "alt", "x", "y", [Panel("p", [Series("s", lengths, lengths)])], log_x=True), 230)
    shares = [share for share, _ in axis.ticks]
    assert [axis.ticks[0][1], axis.ticks[-1][1]] == ["5", "200"]
    assert min(b - a for a, b in itertools.pairwise(shares)) * 230 > 20


def test_what_has_no_place_is_left_out_and_breaks_the_line() -> None:
    wild = groups(drawn(figure(Series("s", [1, 2, 3, 4, 5, 6], [5, 6, None, 10**400, 7, 8]), log_y=True)))["0"]
    assert len(points(wild)) == 4
    assert paths(wild)[-1].get("d", "").count("M") == 2
    nothing = drawn(figure(Series("s", [1, 2], [None, 0]), log_y=True))
    assert points(groups(nothing)["0"]) == []


def test_intervals_are_bars_for_few_points_and_a_band_for_many() -> None:
    few = groups(drawn(figure(Series("s", [1, 2], [5, 6], low=[4, None], high=[7, 8]))))["0"]
    assert paths(few)[0].get("d", "").count("V") == 2
    assert not [path for path in paths(few) if path.get("fill-opacity")]
    xs = list(range(20))
    many = groups(drawn(figure(Series("s", xs, xs, low=xs, high=[x + 1 for x in xs]))))["0"]
    band = next(path for path in paths(many) if path.get("fill-opacity"))
    assert band.get("d", "").count(",") == 40
    assert len(points(many)) == 20


def test_points_that_would_lie_on_each_other_are_left_to_the_line() -> None:
    xs = list(range(1, 1001))
    curve = groups(drawn(figure(Series("s", xs, [1 / x for x in xs]), log_x=True, log_y=True)))["0"]
    spots = points(curve)
    assert 20 < len(spots) < 120
    assert min(math.dist(a, b) for a, b in itertools.pairwise(spots[:-1])) > 4.3
    assert paths(curve)[-1].get("d", "").count("L") == 999


def test_names_on_an_axis_are_whole_and_slant_where_they_would_meet() -> None:
    long = [f"a task with a rather long name {i}" for i in range(8)]
    for names, slanted in ((["a", "b"], False), (long, True)):
        picture = drawn(figure(Series("s", names, list(range(len(names))))))
        ticks = {t.text: t for t in picture.iter(f"{SVG}text") if t.text in names}
        assert list(ticks) == names
        assert all(("rotate" in t.get("transform", "")) is slanted for t in ticks.values())


def test_a_file_of_its_own_holds_all_panels_and_names_and_no_variable(rank_figure: Figure) -> None:
    text = figure_svg(rank_figure)
    assert "var(--" not in text
    picture = ElementTree.fromstring(text)
    words = [t.text for t in picture.iter(f"{SVG}text")]
    assert {
        rank_figure.title,
        "width 8",
        "width 16",
        "width 32",
        "recurrent, predicted",
        "separation rank (log scale)",
    } <= {*words}
    assert len(picture.findall(f"{SVG}svg")) == 3
    width, height = (float(n) for n in picture.get("viewBox", "").split()[2:])
    for panel in picture.findall(f"{SVG}svg"):
        assert float(panel.get("x", "nan")) + float(panel.get("width", "nan")) <= width
        assert float(panel.get("y", "nan")) + float(panel.get("height", "nan")) <= height + 1


def test_names_stay_names() -> None:
    evil = '<a href="http://x">&</a>'
    spec = Figure(evil, evil, evil, evil, [Panel(evil, [Series(evil, [evil], [1], hover=[evil])])])
    for text in (*panel_svgs(spec), figure_svg(spec)):
        picture = ElementTree.fromstring(text)
        assert not [one for one in picture.iter() if one.tag.endswith("}a")]
        assert evil in [t.text for t in picture.iter(f"{SVG}text")]
