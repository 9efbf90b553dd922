"""What a report is made of (tables, figures, charts, small plots, answers) and how: as a page, in a terminal, as SVG.

It stands right above the foundation and knows no instrument: what it draws is its own vocabulary, plain values, or a
graph. What knows the fields of one command's result is that command's view and stands in `cli/views/`.
"""

from theodolite.report.answer import Answer, Standing
from theodolite.report.chart import Board, Chart, Square
from theodolite.report.figure import Band, Figure, Line, Panel, Series
from theodolite.report.multiples import Curve, Multiples, Plot
from theodolite.report.summary import Summary
from theodolite.report.table import Column, Table

__all__ = [
    "Answer",
    "Band",
    "Board",
    "Chart",
    "Column",
    "Curve",
    "Figure",
    "Line",
    "Multiples",
    "Panel",
    "Plot",
    "Series",
    "Square",
    "Standing",
    "Summary",
    "Table",
]
