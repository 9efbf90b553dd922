import pytest

from theodolite.report import Figure, Panel, Series
from theodolite.report.colours import PALETTE
from theodolite.report.page.plotly_json import panel_plots, styles


def figure(*series: Series, log_x: bool = False, log_y: bool = False) -> Figure:
    return Figure("f", "alt", "x", "y", [Panel("p", series)], log_x=log_x, log_y=log_y)


def test_plotly_accepts_every_plot(rank_figure: Figure) -> None:
    go = pytest.importorskip("plotly.graph_objects")
    many = list(range(1, 40))
    band = figure(Series("b", many, many, low=[v - 1 for v in many], high=[v + 1 for v in many]), log_x=True)
    words = figure(Series("w", ["a<b", "c"], [1, None], low=[0, None], high=[2, None]))
    for spec in (rank_figure, band, words):
        for plot in panel_plots(spec):
            go.Figure(plot)


def test_a_group_shares_its_colour_and_predictions_are_dashed_and_open(rank_figure: Figure) -> None:
    looks = {style.name: style for style in styles(rank_figure)}
    attention = looks["self-attention, measured"], looks["self-attention, predicted"]
    recurrent = looks["recurrent, measured"], looks["recurrent, predicted"]
    assert attention[0].colour == attention[1].colour != recurrent[0].colour == recurrent[1].colour
    assert attention[0].symbol == attention[1].symbol != recurrent[0].symbol
    assert [style.dash for style in (*attention, *recurrent)] == ["solid", "dash", "solid", "dash"]
    traces = panel_plots(rank_figure)[0]["data"]
    assert [trace["line"]["dash"] for trace in traces] == ["solid", "dash", "solid", "dash"]
    assert [trace["marker"]["symbol"].endswith("-open") for trace in traces] == [False, True, False, True]


def test_many_series_never_look_the_same() -> None:
    spec = figure(
        *(Series(f"s{i}", [1], [1]) for i in range(50)),
        *(Series(f"bound {i}", [1], [1], dashed=True, group="s0") for i in range(3)),
    )
    looks = [(style.colour, style.symbol, style.dash) for style in styles(spec)]
    assert len(set(looks)) == len(looks)
    assert all(0 <= colour < len(PALETTE) for colour, _, _ in looks)


def test_panels_share_both_axes(rank_figure: Figure) -> None:
    plots = panel_plots(rank_figure)
    assert len({str(plot["layout"]["yaxis"]) for plot in plots}) == 1
    low, high = plots[0]["layout"]["yaxis"]["range"]
    points = [v for p in rank_figure.panels for s in p.series for v in (*s.y, *(s.low or ()), *(s.high or ())) if v]
    assert 10**low < min(points) <= max(points) < 10**high


def test_log_ticks_are_round_numbers_inside_the_range() -> None:
    for top in (30, 1000, 10**6, 10**12, 10**40, 10**200):
        axis = panel_plots(figure(Series("s", [1, 2], [2, top]), log_y=True))[0]["layout"]["yaxis"]
        assert 3 <= len(axis["tickvals"]) <= 9
        assert len(set(axis["ticktext"])) == len(axis["ticktext"]) == len(axis["tickvals"])
    wild = panel_plots(figure(Series("s", [1, 2, 3, 4], [0, 10**400, None, 5]), log_y=True))[0]
    assert wild["data"][0]["y"] == [None, None, None, 5]


def test_intervals_are_bars_for_few_points_and_a_band_for_many() -> None:
    few = panel_plots(figure(Series("s", [1, 2], [5, 6], low=[4, None], high=[7, 8])))[0]["data"]
    assert len(few) == 1
    assert few[0]["error_y"]["array"] == [2, 2]
    assert few[0]["error_y"]["arrayminus"] == [1, None]
    xs = list(range(20))
    many = panel_plots(figure(Series("s", xs, xs, low=xs, high=[x + 1 for x in xs])))[0]["data"]
    assert [trace["meta"]["role"] for trace in many] == ["band", "band", "line"]
    assert many[1]["fill"] == "tonexty"


def test_names_are_inert_in_plotly_and_whole_in_the_data() -> None:
    evil = '<a href="http://x">%{x}</a>'
    trace = panel_plots(figure(Series(evil, [evil], [1], hover=[evil])))[0]["data"][0]
    assert trace["meta"]["name"] == evil
    assert trace["meta"]["x"] == [evil]
    for text in (trace["name"], *trace["x"], *trace["text"]):
        assert "<a" not in text
        assert "%{" not in text
