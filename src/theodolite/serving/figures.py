"""A figure of `report/` as drawings for the page."""

from __future__ import annotations

from theodolite.report.figure import Figure
from theodolite.report.svg.figure import legend, panel_svgs
from theodolite.serving.shown import Drawing


def drawn(figure: Figure) -> list[Drawing]:
    """A drawing for each panel; the first has the legend."""
    entries = [(style.name, swatch) for style, swatch in legend(figure)]
    return [
        Drawing(svg, figure.alt, legend=entries if place == 0 else ()) for place, svg in enumerate(panel_svgs(figure))
    ]
