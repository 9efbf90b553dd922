"""Anything that is drawn, as one SVG for a file or a notebook: in colours on white, with its title and legend."""

from __future__ import annotations

from theodolite.report.chart import Chart
from theodolite.report.figure import Figure
from theodolite.report.multiples import Multiples
from theodolite.report.svg.chart import chart_svg
from theodolite.report.svg.figure import figure_svg
from theodolite.report.svg.multiples import multiples_svg


def picture_svg(picture: Figure | Chart | Multiples) -> str:
    if isinstance(picture, Figure):
        return figure_svg(picture)
    return chart_svg(picture, alone=True) if isinstance(picture, Chart) else multiples_svg(picture, alone=True)
