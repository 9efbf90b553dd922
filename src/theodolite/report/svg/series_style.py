"""Which colour, symbol and dash a series has: the same in every panel and in the legend."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from theodolite.report.answer import own
from theodolite.report.colours import PALETTE
from theodolite.report.figure import Figure, Series
from theodolite.report.svg.ink import Ink

SYMBOLS = ("circle", "square", "diamond", "triangle", "plus", "cross", "flipped", "hexagon")  # forms of `marker`
DASHES = ("6 4", "2 3", "7 3 2 3")  # several predictions for one group


@dataclass(frozen=True)
class Style:
    """How every series of one name looks in all panels; `own`: of the user's network, in its colour and bolder."""

    name: str
    colour: int  # index into PALETTE
    symbol: str
    dash: str  # empty for a line without gaps
    own: bool = False

    def paint(self, ink: Ink) -> str:
        return ink.own if self.own else ink.series[self.colour]


def styles(figure: Figure) -> list[Style]:
    """One style per name: a group shares its colour, and a prediction has the open symbol of what it predicts.

    Groups named in the figure's order look the same in every figure of that order.
    """
    drawn = [series for panel in figure.panels for series in panel.series]
    ordered = figure.order if any(_group(series) in figure.order for series in drawn) else ()
    colours: dict[str, int] = {group: i for i, group in enumerate(ordered)}
    symbols: dict[str, str] = {}
    found: dict[str, Style] = {}
    for series in drawn:
        colours.setdefault(_group(series), len(colours))
    dashes: Counter[str] = Counter()
    taken = len(ordered)
    for series in [*(s for s in drawn if not s.dashed), *(s for s in drawn if s.dashed)]:
        if series.name in found:
            continue
        group = _group(series)
        if series.dashed and group in symbols:
            symbol = symbols[group]
        else:
            known = group in ordered and group not in symbols
            symbol = SYMBOLS[(ordered.index(group) if known else taken) % len(SYMBOLS)]
            symbols.setdefault(group, symbol)
            taken += not known
        dash = DASHES[dashes[group] % len(DASHES)] if series.dashed else ""
        dashes[group] += series.dashed
        found[series.name] = Style(series.name, colours[group] % len(PALETTE), symbol, dash, own(group))
    return [found[name] for name in dict.fromkeys(series.name for series in drawn)]


def _group(series: Series) -> str:
    return series.name if series.group is None else series.group
