"""One HTML page with every table and figure of a survey, which asks nothing of any network."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from markupsafe import Markup

from theodolite.report.answer import agreement, own
from theodolite.report.chart import Chart
from theodolite.report.figure import Figure
from theodolite.report.multiples import Multiples
from theodolite.report.numbers import exact_value, format_value, json_value
from theodolite.report.page.first_screen import first_screen
from theodolite.report.page.template import content_policy, environment, verbatim
from theodolite.report.summary import Summary
from theodolite.report.svg.chart import board_svgs
from theodolite.report.svg.figure import legend, panel_svgs
from theodolite.report.svg.multiples import multiples_svg
from theodolite.report.table import Table, joined
from theodolite.version import __version__

_BROAD_TABLE, _BROAD_FIGURE = 7, 3  # columns, and panels, from which an item has the whole width
_HALF = 70  # letters of a table that fit in half of it
_MOST_BESIDE = 6  # panels beside another item
_MANY_ROWS = 11  # a longer table is folded below what is drawn of it
_SCROLLED_ROWS = 20  # a longer one that stands alone scrolls in its own frame


@dataclass(frozen=True)
class RenderedSection:
    """A section of the survey as the page needs it; `id` becomes the anchor of its heading."""

    id: str
    title: str
    summary: Summary


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[RenderedSection],
    provenance: Mapping[str, Any],
    not_applicable: Sequence[str],
    *,
    nets: Sequence[str] = (),
    command: str = "",
    sentences: Sequence[str] = (),
) -> str:
    """The page as one text: every drawing is in it as SVG, and complete without its script.

    `nets` orders the verdicts and names nets that no section could ask; `command` makes the whole survey again, and
    belongs to every table and figure that has none of its own; `sentences` say it in short, beside the first picture.
    """
    shown, data = [], []
    numbers = itertools.count(1), itertools.count(1), itertools.count(1)
    for section in sections:
        summary = section.summary
        tables = [
            _shown_table(replace(table, command=table.command or command), f"table-{next(numbers[0])}")
            for table in summary.tables
        ]
        figures = [
            _shown_figure(replace(figure, command=figure.command or command, order=nets), f"figure-{next(numbers[1])}")
            for figure in summary.figures
        ]
        charts = [
            _shown_chart(replace(chart, command=chart.command or command), f"chart-{next(numbers[2])}")
            for chart in summary.charts
        ]
        anchor = "section-" + re.sub(r"[^A-Za-z0-9_-]+", "-", section.id)
        for table in tables:
            table["folded"] = len(table["rows"]) > _MANY_ROWS and bool(figures or charts)
        _fill_rows([*figures, *(table for table in tables if not table["folded"])])
        parts = {"tables": tables, "figures": figures, "charts": charts, "failures": _failures(summary)}
        shown.append({"anchor": anchor, "section": section, **parts})
        data.append(_section_data(section, tables, figures))
    verdicts = first_screen(
        [(section.id, answer) for section in sections for answer in section.summary.answers],
        {item["section"].id: (item["anchor"], item["section"].title) for item in shown},
        nets,
        command,
        sentences,
    )
    document = {
        "title": title,
        "subtitle": subtitle,
        "provenance": json_value(provenance),
        "command": command,
        "not_applicable": list(not_applicable),
        "verdicts": _table_data("verdicts", verdicts.table) if verdicts else None,
        "sections": data,
    }
    templates = environment()
    style = verbatim(templates, "colours.css", "page.css", "verdicts.css")
    theme, script = verbatim(templates, "theme.js"), verbatim(templates, "page.js")
    page = templates.get_template("page.html.j2").render(
        title=title,
        subtitle=subtitle,
        sections=shown,
        verdicts=verdicts,
        answers=_shown_table(verdicts.table, "verdicts") if verdicts else None,
        command=command,
        provenance={str(key): exact_value(value) for key, value in provenance.items()},
        not_applicable=not_applicable,
        version=__version__,
        policy=content_policy(style, theme, script),
        style=style,
        theme=theme,
        script=script,
        data=Markup(_script_json(document)),
    )
    return page.lstrip() + "\n"


def _shown_table(table: Table, ident: str) -> dict[str, Any]:
    rows = []
    for row in table.rows:
        cells = []
        for column in table.columns:
            value = row.get(column.key)
            if column.kind == "agreement":
                told = {"text": agreement(value), "exact": "", "agrees": value, "own": False}
                cells.append({"column": column, "none": value is None, **told})
                continue
            known = {"column": column, "none": value is None or value == ""}
            text, exact = format_value(value), exact_value(value)
            rounded = text != exact and value is not None and text.replace(",", "") != exact
            mine = not column.numeric and isinstance(value, str) and own(value)
            cells.append({"text": text, "exact": exact if rounded and column.numeric else "", "own": mine, **known})
        rows.append({"cells": cells, "own": any(cell["own"] for cell in cells)})
    return {
        "id": ident,
        "table": table,
        "rows": rows,
        "headed": bool(table.columns) and not table.columns[0].numeric,
        "notes": [column for column in table.columns if column.note],
        "broad": len(table.columns) >= _BROAD_TABLE or _letters(rows) > _HALF,
        "long": len(table.rows) > _SCROLLED_ROWS,
    }


def _letters(rows: Sequence[Mapping[str, Any]]) -> int:
    """Of a line that has the longest text of every column; long ones are broken."""
    columns = zip(*(row["cells"] for row in rows), strict=True)
    return sum(min(24, max(len(cell["text"]) for cell in column)) + 2 for column in columns)


def _shown_figure(figure: Figure, ident: str) -> dict[str, Any]:
    drawings = [Markup(drawing) for drawing in panel_svgs(figure)]
    entries = [(style, Markup(drawing)) for style, drawing in legend(figure)]
    broad = len(drawings) >= _BROAD_FIGURE
    return {"id": ident, "figure": figure, "legend": entries, "drawings": drawings, "broad": broad}


def _shown_chart(chart: Chart | Multiples, ident: str) -> dict[str, Any]:
    drawings = board_svgs(chart) if isinstance(chart, Chart) else [multiples_svg(chart)]
    return {"id": ident, "chart": chart, "drawings": [Markup(drawing) for drawing in drawings]}


def _fill_rows(items: Sequence[dict[str, Any]]) -> None:
    """Where an item of half the width would stand alone, a broad one stands beside it: a figure whose panels then stand
    in more rows, or a table that scrolls in its frame."""
    if sum(not item["broad"] for item in items) % 2:
        broad = [item for item in items if item["broad"]]
        fitting = [item for item in broad if len(item.get("drawings", ())) <= _MOST_BESIDE]
        for item in sorted(fitting, key=lambda item: "table" in item)[:1]:
            item["broad"] = False


def _failures(summary: Summary) -> list[str]:
    """Why an instrument could not be used on a net, unless the section's notes say so already."""
    found = dict.fromkeys((answer.net, answer.text) for answer in summary.answers if answer.standing == "failed")
    return [f"{net}: {text}" for net, text in found if not any(net in note and text in note for note in summary.notes)]


def _section_data(section: RenderedSection, tables: list[dict[str, Any]], figures: list[dict[str, Any]]) -> Any:
    return {
        "id": section.id,
        "title": section.title,
        "headline": section.summary.headline,
        "notes": list(section.summary.notes),
        "tables": [_table_data(shown["id"], shown["table"]) for shown in tables],
        "figures": [_figure_data(shown["id"], shown["figure"]) for shown in figures],
    }


def _table_data(ident: str, table: Table) -> dict[str, Any]:
    return {
        "id": ident,
        "title": table.title,
        "caption": table.caption,
        "command": table.command,
        "columns": [asdict(column) | {"label": joined(column.label)} for column in table.columns],
        "rows": [[json_value(row.get(column.key)) for column in table.columns] for row in table.rows],
    }


def _figure_data(ident: str, figure: Figure) -> dict[str, Any]:
    return {
        "id": ident,
        "title": figure.title,
        "alt": figure.alt,
        "caption": figure.caption,
        "command": figure.command,
        "x_label": figure.x_label,
        "y_label": figure.y_label,
        "series": [
            {
                "panel": panel.title,
                "name": series.name,
                "prediction": series.dashed,
                **{key: json_value(getattr(series, key)) for key in ("x", "y", "low", "high")},
            }
            for panel in figure.panels
            for series in panel.series
        ],
    }


def _script_json(document: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
