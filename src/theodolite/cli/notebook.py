"""What a notebook shows: of a result what its command prints and its pictures, of a run one line while it goes on."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from rich.markup import escape as escape_markup

from theodolite.cli.progress import Pace, spoken
from theodolite.cli.terminal import recording, terminal

_WIDTH = 100  # letters
_MOST = 10  # rows of a long table
_EVERY = 0.3  # seconds between two drawings of a line
_PRE = "white-space:pre;overflow-x:auto;line-height:1.35;font-family:Menlo,'DejaVu Sans Mono',consolas,monospace"


def html(kind: str, result: Any) -> str:
    """The words that a terminal would get, in its colours, and pictures as SVG."""
    show, draw = _VIEWS[kind]
    with recording(_WIDTH) as console:
        show(result)
    words = console.export_html(inline_styles=True, code_format="{code}")
    return f'<div><pre style="{_PRE}">{words}</pre>{"".join(_picture(svg) for svg in draw(result))}</div>'


class Line:
    """One line that is drawn anew as work goes on, and is gone at its end; `display` is IPython's module."""

    def __init__(self, display: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._display, self._clock, self._pace = display, clock, Pace(clock)
        self._handle: Any = None
        self._drawn = -_EVERY

    def __call__(self, done: float, total: float, label: str) -> None:
        over = total > 0 and done >= total
        left = self._pace.left(done, total)
        if not over and self._clock() - self._drawn < _EVERY:
            return
        self._drawn = self._clock()
        share = f"{done / total:.0%}, {spoken(left)}: " if total else ""
        shown = self._display.HTML("" if over else f"<span>{escape(share + label)}</span>")
        if self._handle is not None:
            self._handle.update(shown)
        elif not over:
            self._handle = self._display.display(shown, display_id=True)


def _picture(svg: str) -> str:
    """As an image: its styles and names are its own."""
    code = base64.b64encode(svg[svg.index("<svg") :].encode()).decode()
    return f'<img style="max-width:100%;display:block" alt="" src="data:image/svg+xml;base64,{code}">'


def _rank(result: Any) -> None:
    from theodolite.cli.rank import show

    show(result)


def _verified(result: Any) -> None:
    from theodolite.cli.verify import show

    show(result)


def _express(result: Any) -> None:
    from theodolite.cli.express import show

    show(result)


def _signal(result: Any) -> None:
    from theodolite.cli.signal import show

    show(result)


def _fixed_points(result: Any) -> None:
    from theodolite.cli.fixed_points import show

    show(result)


def _learning(result: Any) -> None:
    from theodolite.cli.learn import show

    show(result)


def _runs(result: Any) -> None:
    from theodolite.cli.runs import show

    show(result)


def _comparison(result: Any) -> None:
    from theodolite.cli.views.compare import print_comparison

    print_comparison(terminal(), result)


def _advice(result: Any) -> None:
    from theodolite.cli.views.advise import print_advice

    print_advice(terminal(), result)


def _degrees(rows: Any) -> None:
    from theodolite.cli.views.degree import print_degrees

    print_degrees(terminal(), rows)


def _discovery(result: Any) -> None:
    from theodolite.cli.views.discover import print_discovery

    print_discovery(terminal(), result)


def _predictions(result: Any) -> None:
    from theodolite.report import Column, Table
    from theodolite.report.terminal.tables import rich_table

    columns = result.columns()
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*(c[:_MOST].tolist() for c in columns.values()), strict=True)
    ]
    count = len(result.value)
    caption = "; ".join([f"the first {_MOST} of {count} rows" if count > _MOST else f"{count} rows", *result.notes])
    table = Table("", [Column(name, name) for name in columns], rows, caption)
    terminal().print(rich_table(table, _WIDTH))


def _scaling(result: Any) -> None:
    from theodolite.cli.views.scale import print_scaling

    print_scaling(terminal(), result)


def _survey(result: Any) -> None:
    from theodolite.cli.views.survey import print_survey

    print_survey(terminal(), result, plain=False)


def _nets(entries: Any) -> None:
    from theodolite.cli.listing import show_nets

    show_nets(entries)


def _tasks(entries: Any) -> None:
    from theodolite.cli.listing import show_tasks

    show_tasks(entries)


def _claims(entries: Any) -> None:
    from theodolite.cli.claims import show_claims

    show_claims(entries)


def _verdicts(entries: Any) -> None:
    from theodolite.cli.claims import show_verdicts

    show_verdicts(entries)


def _reproduced(entries: Any) -> None:
    from theodolite.cli.reproduce import show

    show(entries.about, entries)


def _measured(result: Any) -> None:
    from theodolite.cli.options import labelled
    from theodolite.report.numbers import format_value

    interval = "" if result.interval is None else " ({} to {})".format(*map(format_value, result.interval))
    grid = labelled()
    grid.add_row(result.quantity, f"[bold]{format_value(result.value)}[/bold]{interval}{', exact' * result.exact}")
    grid.add_row("method", escape_markup(result.method))
    for name, value in result.diagnostics.items():
        grid.add_row(name.replace("_", " "), escape_markup(format_value(value)))
    grid.add_row("time", f"{result.seconds:.2f} s on {result.provenance.device}")
    terminal().print(grid)


def _target_signal(result: Any) -> None:
    from theodolite.cli.options import labelled

    interval = "" if result.interval is None else " (95 %: {:.3g} to {:.3g})".format(*result.interval)
    grid = labelled()
    grid.add_row("share of the gradient", f"[bold]{result.share:.3g}[/bold]{interval}")
    grid.add_row("that speaks of", escape_markup(f"{result.task}, in {result.net}"))
    if result.baseline is not None:
        grid.add_row("a parity drawn at random", f"{result.baseline:.3g} on average")
    if not result.resolved:
        grid.add_row("", "the noise of the drawn inputs hides it")
    terminal().print(grid)


def _basin(result: Any) -> None:
    for name, attractor in zip(result.names, result.attractors, strict=True):
        terminal().print(f"{name}: {attractor.share:.0%} of starts", markup=False)


def _sketch(graph: Any) -> None:
    from theodolite.report.svg.graph import sketch_graph

    terminal().print(sketch_graph(graph), markup=False)


def _served(page: Any) -> None:
    terminal().print(f"{page.address}\nreads {page.out}", markup=False, soft_wrap=True)


def _nothing(_result: Any) -> Iterator[str]:
    yield from ()


def _curves(result: Any) -> Iterator[str]:
    from theodolite.cli.views.length_curves import length_curves

    if any(not row.error and row.result.get("by_length") for row in result.rows):
        yield length_curves(result.rows)


def _plane(advice: Any) -> Iterator[str]:
    from theodolite.advice.plane.drawing import draw_plane

    if advice.judged.shape.speaks:
        yield draw_plane(advice, html=False)


def _degree_plot(rows: Any) -> Iterator[str]:
    from theodolite.cli.views.degree_plot import draw_degrees

    yield draw_degrees(rows)


def _graph(found: Any) -> Iterator[str]:
    from theodolite.cli.views.effects import effect_figures
    from theodolite.report.svg.graph import draw_graph

    yield draw_graph(found.graph, found.confidence or None)
    yield from (one.drawing for one in effect_figures(found))


def _graph_alone(graph: Any) -> Iterator[str]:
    from theodolite.report.svg.graph import draw_graph

    yield draw_graph(graph)


def _spectrum(found: Any) -> Iterator[str]:
    from theodolite.instruments.gradient.shown import degrees_figure

    yield from _drawn([degrees_figure(found.by_degree)] if found.by_degree else [])


def _errors(found: Any) -> Iterator[str]:
    from theodolite.instruments.rank.shown import error_figure

    told = found.details
    yield from _drawn(
        [error_figure(told["held_out_curve"], told["epsilon"], found.rank)] if "held_out_curve" in told else []
    )


def _differences(found: Any) -> Iterator[str]:
    from theodolite.bench.shown import difference_figure

    figure = difference_figure(found)
    yield from _drawn([] if figure is None else [figure])


def _basins(plane: Any) -> Iterator[str]:
    from theodolite.report.svg.basin import draw_basin

    yield draw_basin(plane.label, plane.names, plane.within, "Where starts end")


def _tables(entries: Any) -> Iterator[str]:
    from theodolite.cli.views.table_pictures import pictures

    if entries.about != "failures":
        yield from _drawn(pictures(entries))


def _sections(result: Any) -> Iterator[str]:
    for section in result.sections:
        yield from _drawn([*section.summary.charts, *section.summary.figures])


def _valleys(found: Any) -> Iterator[str]:
    from theodolite.scaling.shown import valley_figure

    yield from _drawn([valley_figure(found.valleys)] if found.valleys else [])


def _drawn(pictures: Sequence[Any]) -> Iterator[str]:
    from theodolite.report.svg.picture import picture_svg

    yield from map(picture_svg, pictures)


# By the name of a result's class, or by what entries are `of`: how it is printed and which pictures it has.
_VIEWS: dict[str, tuple[Callable[[Any], None], Callable[[Any], Iterator[str]]]] = {
    "RankResult": (_rank, _errors),
    "Verified": (_verified, _nothing),
    "GradedVerified": (_verified, _nothing),
    "GrowthVerified": (_verified, _nothing),
    "Expression": (_express, _nothing),
    "Signal": (_signal, _spectrum),
    "FixedPoints": (_fixed_points, _nothing),
    "Basin": (_basin, _basins),
    "TargetSignal": (_target_signal, _nothing),
    "Measurement": (_measured, _nothing),
    "CompositionalGraph": (_sketch, _graph_alone),
    "Served": (_served, _nothing),
    "Learning": (_learning, _curves),
    "Runs": (_runs, _curves),
    "Comparison": (_comparison, _differences),
    "Advice": (_advice, _plane),
    "degrees": (_degrees, _degree_plot),
    "Discovery": (_discovery, _graph),
    "Predictions": (_predictions, _nothing),
    "Scaling": (_scaling, _valleys),
    "Survey": (_survey, _sections),
    "nets": (_nets, _nothing),
    "tasks": (_tasks, _nothing),
    "claims": (_claims, _nothing),
    "verdicts": (_verdicts, _nothing),
    "table": (_reproduced, _tables),
}
