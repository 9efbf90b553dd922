"""The section on sensitivity: how far one changed symbol still moves the output of a long input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer, Column, Figure, Panel, Series, Standing, Summary, Table
from theodolite.statistics.laws import FEWEST
from theodolite.surveys.answers import Ability, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

LADDER = (8, 16, 32, 64, 128, 256, 512)
_ABILITY = Ability(
    "one-symbol sensitivity",
    "Does one changed symbol still change the output of a long input?",
    "how much the output changes when one symbol of the input does, as the input grows longer",
)
_LONGEST = {"quick": 128, "standard": 256, "full": 512}
_DRAWS = {"quick": 8, "standard": 16, "full": 32}
_FLAT, _STEEP = -0.25, -1.5  # slopes: above the first a symbol counts at any length, below the second it is lost
_MEANING = (
    "One token is changed and the output at the last token is compared, at random weights. The change is the median "
    "over places and inputs, relative to how much the output varies; its slope over the length n on logarithmic scales "
    "is −1 if it falls like 1/n. A law is told where it foretells lengths held out of its fit: a power of the length, "
    "an exponential, or neither. Intervals are over draws of the weights, 95 %."
)
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("slope", "exponent", "slope of log change over log length"),
    Column("interval", "95 % interval"),
    Column("reach", "reach", "tokens back that the output still depends on at all"),
    Column("law", "law", "of the length: a power, exponential, a window; a dash if neither", False),
    Column("profile", "fall with distance", "flat, a power of the distance, exponential, or a window", False),
    Column("logits", "logit range", "largest difference of attention's logits for one query"),
    Column("predicted", "predicted", numeric=False),
    Column("agrees", "theory", "whether measurement and prediction meet", False, "agreement"),
    Column("reason", "why", numeric=False),
)


class SensitivitySection(Section):
    id = "sensitivity"
    title = "One-symbol sensitivity"

    def applies(self, net: Candidate, /) -> str | None:
        return None if net.kind == "sequence" else f"'{net.name}' reads a vector, which has no length"

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        shape = net.measured()
        lengths = [n for n in LADDER if n <= _LONGEST[preset]]
        config = {**net.named(), "shape": shape, "lengths": lengths, "draws": _DRAWS[preset]}
        return [Cell("sensitivity", config)]

    def seconds(self, cell: Cell) -> float:
        return 4e-4 * max(cell.config["lengths"]) * cell.config["draws"]

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        answers = _ABILITY.failures(rows, setting) + [_answer(row) for row in good]
        return Summary(
            _headline(good),
            [Table("How one symbol's effect falls with length", _COLUMNS, [_line(row) for row in good])]
            if good
            else [],
            _figures(good) if good else [],
            (_MEANING, *failures(rows, setting)),
            answers,
        )


def _standing(row: Row) -> Standing:
    slope, diagnostics = row["value"], row["diagnostics"]
    if slope is not None:
        return "yes" if slope > _FLAT else "no" if slope < _STEEP else "partly"
    if _law(row) is not None:
        return "no"  # a window, or an exponential
    if len(diagnostics["fitted_lengths"]) < FEWEST:
        return "no" if diagnostics["reach"] is not None else "unknown"  # nothing but zeros, or rounding
    left = diagnostics["curve"][-1]["change"] / diagnostics["curve"][0]["change"]
    spans = diagnostics["curve"][-1]["tokens"] / diagnostics["curve"][0]["tokens"]
    return "yes" if left > spans**_FLAT else "no" if left < spans**_STEEP else "partly"


def _law(row: Row) -> str | None:
    """Of the change over the length: one, or none."""
    return row["diagnostics"].get("over_length", {}).get("shape")


def _text(row: Row) -> str:
    diagnostics = row["diagnostics"]
    if row["value"] is None:
        told = diagnostics["no_slope"].removeprefix("the ").removesuffix(" of the length")
        if _law(row) is not None or len(diagnostics["fitted_lengths"]) < FEWEST:
            return told
        first, last = diagnostics["curve"][0], diagnostics["curve"][-1]
        return f"{told}: {first['change']:.1g} at {first['tokens']}, {last['change']:.1g} at {last['tokens']} tokens"
    low, high = row["interval"]
    return f"change ~ n^{_two_digits(row['value'])} ({_two_digits(low)} to {_two_digits(high)})"


def _value(row: Row) -> str:
    law, diagnostics = _law(row), row["diagnostics"]
    if row["value"] is not None:
        return f"n^{_two_digits(row['value'])}"
    if law == "exponential":
        return f"half-life {diagnostics['over_length']['half_life']:.2g}"
    return f"0 beyond {diagnostics['reach']}" if law == "window" else ""


def _predicted(row: Row) -> str:
    diagnostics = row["diagnostics"]
    if diagnostics.get("predicted_reach") is not None:
        return f"0 beyond {diagnostics['predicted_reach']}"
    return "" if diagnostics["predicted"] is None else f"n^{diagnostics['predicted']:.0f}"


def _answer(row: Row) -> Answer:
    lengths, draws = row.cell.config["lengths"], row.cell.config["draws"]
    slope = row["value"]
    return _ABILITY.answer(
        row.cell.config["net"],
        _standing(row),
        _text(row),
        predicted=_predicted(row),
        agrees=row["diagnostics"]["agrees"],
        value=_value(row),
        number=slope,
        interval=None if slope is None else tuple(row["interval"]),
        setting=spelt({"lengths": f"{lengths[0]}–{lengths[-1]}", "draws": draws}),
    )


def _line(row: Row) -> dict[str, Any]:
    diagnostics = row["diagnostics"]
    return {
        "net": row.cell.config["net"],
        "slope": row["value"],
        "interval": "{:.2f} to {:.2f}".format(*row["interval"]) if row["interval"] else None,
        "reach": diagnostics["reach"],
        "law": _law(row),
        "profile": diagnostics["profile"].get("shape"),
        "logits": diagnostics["logit_range"],
        "predicted": _predicted(row) or None,
        "agrees": diagnostics["agrees"],
        "reason": diagnostics["reason"],
    }


def _headline(rows: Sequence[Row]) -> str:
    if not rows:
        return "No network could be measured."
    told = "; ".join(f"{row.cell.config['net']}: {_text(row)}" for row in rows)
    return f"How far one changed symbol of n moves the output. {told}."


def _figures(rows: Sequence[Row]) -> list[Figure]:
    over_length, over_distance = [], []
    for row in rows:
        net, diagnostics = row.cell.config["net"], row["diagnostics"]
        curve, profile = diagnostics["curve"], diagnostics["profile"]
        change, low, high = ([point[name] or None for point in curve] for name in ("change", "low", "high"))
        over_length.append(Series(net, [point["tokens"] for point in curve], change, low, high))
        if "distance" in profile:
            over_distance.append(Series(net, profile["distance"], [change or None for change in profile["change"]]))
    figures = [
        Figure(
            "Change of the output over length",
            "Median change of the output when one token is changed, against the length, one line per network.",
            "length n",
            "change",
            [Panel("", over_length)],
            log_x=True,
            log_y=True,
            caption="A straight line of slope −1 is 1/n. A line that ends has reached exactly 0.",
        )
    ]
    if over_distance:
        tokens = rows[0]["diagnostics"]["profile"]["tokens"]
        figures.append(
            Figure(
                "Change of the output over distance",
                f"Change of the last output when the token at a distance is changed, at {tokens} tokens.",
                "distance from the last token",
                "change",
                [Panel("", over_distance)],
                log_x=True,
                log_y=True,
                caption=f"At {tokens} tokens. A line that ends has reached exactly 0; one that bends down on these "
                "axes falls faster than any power of the distance.",
            )
        )
    return figures


section = SensitivitySection()


def _two_digits(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no −0.00
