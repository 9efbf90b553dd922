"""The effects and the importance of what was found, as figures and rows of the page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from theodolite.report.svg.effect import curve_svg, map_svg
from theodolite.structure.explain.effects import Effect
from theodolite.structure.explain.explanation import Explained
from theodolite.structure.explain.importance import Importance
from theodolite.structure.result import Discovery


@dataclass(frozen=True)
class EffectFigure:
    title: str
    part: str
    drawing: Markup
    importance: str
    formula: str
    latex: str
    code: str
    missed: str


@dataclass(frozen=True)
class ImportanceRow:
    """Places of the bar and of the interval in per cent of the largest."""

    name: str
    of: str
    text: str
    range_text: str
    width: float
    span: tuple[float, float]
    group: bool


def effect_figures(found: Discovery) -> list[EffectFigure]:
    """What matters most first; nothing without an explanation."""
    return [] if found.explanation is None else [_figure(one, found) for one in found.explanation.effects]


def importance_rows(found: Discovery) -> list[ImportanceRow]:
    """Variables, then constituents, on one axis."""
    told = found.explanation
    if told is None:
        return []
    most = max([one.interval[1] for one in (*told.variables, *told.constituents)], default=0.0) or 1.0
    rows = [_row(one, most, False) for one in told.variables if one.value or one.name in found.graph.used]
    return rows + [_row(one, most, True) for one in told.constituents]


def _row(one: Importance, most: float, group: bool) -> ImportanceRow:
    low, high = (min(100.0, max(0.0, 100 * end / most)) for end in one.interval)
    words = f"{_number(one.interval[0])} to {_number(one.interval[1])}"
    of = f"of {', '.join(one.variables)}" if group else ""
    width = max(0.0, 100 * one.value / most)
    return ImportanceRow(one.name, of, _number(one.value), words, width, (low, high), group)


def _figure(one: Explained, found: Discovery) -> EffectFigure:
    effect, formula = one.effect, one.formula
    return EffectFigure(
        title=" and ".join(effect.variables),
        part=_part(effect, found),
        drawing=Markup(_drawing(effect, found)),
        importance=_number(one.importance),
        formula="" if formula is None else formula.text,
        latex="" if formula is None else formula.latex,
        code="" if formula is None else formula.code,
        missed="" if formula is None else f"{100 * formula.error:.2g} %",
    )


def _part(effect: Effect, found: Discovery) -> str:
    """Where in the graph this function stands."""
    if effect.constituent is None:
        return "one of several variables of a constituent: the mean over the others"
    node = found.graph.node.get(effect.constituent)
    if node is None:
        return ""
    if len(effect.variables) == 1 and node.kind != "general":
        return f"a function of its own in the {node.kind} {node.name}"
    return f"the constituent {node.name}"


def _drawing(effect: Effect, found: Discovery) -> str:
    if len(effect.variables) == 1:
        (name,), (values,) = effect.variables, effect.values
        words = _words(name, values.tolist(), found)
        curves = (effect.mean.tolist(), effect.low.tolist(), effect.high.tolist())
        return curve_svg(name, values.tolist(), *curves, effect.seen[:, 0].tolist(), words)
    x, y = effect.variables
    values = (effect.values[0].tolist(), effect.values[1].tolist())
    words = (_words(x, values[0], found), _words(y, values[1], found))
    return map_svg((x, y), values, effect.mean.tolist(), effect.seen.tolist(), words)


def _words(name: str, values: list[float], found: Discovery) -> list[str] | None:
    """The categories behind numbers; several of one number share a place."""
    column = next((one for one in found.coding.columns if one.name == name), None) if found.coding is not None else None
    if column is None or column.kind != "category":
        return None
    named: dict[float, list[str]] = {}
    for word, number in column.categories.items():
        named.setdefault(number, []).append(word)
    return [", ".join(named.get(value, ["others"])) for value in values]


def _number(value: float) -> str:
    return f"{value:.2g}" if abs(value) >= 5e-4 else "0"
