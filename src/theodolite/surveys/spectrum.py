"""The section on ε-rank: how many products approximate a net of any kind, and how fast the rest dies away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.nets.load import blueprint
from theodolite.nets.size import own_name
from theodolite.report import Answer, Column, Figure, Panel, Series, Standing, Summary, Table
from theodolite.statistics.intervals import mean_interval
from theodolite.surveys.answers import Ability, by_net, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

_PARTITIONS = ("left-right", "interleaved")
_EPSILON = 0.01
_RANK = Ability(
    "separation rank",
    "Do the two halves of the input interact?",
    f"least number of products f(A)·g(B) that come within {_EPSILON:.0%} of the output, A and B the halves of the "
    "input; above 2 the halves interact",
)
_DEEPER = Ability(
    "separation rank over depth",
    "Does the separation rank grow with depth?",
    "whether more layers of the same width raise the separation rank",
)
_PARTITION = Ability(
    "partition-independent rank",
    "Is the separation rank the same for long- and short-range partitions?",
    "the same rank for left against right half (long range) as for even against odd places (short range)",
)
_DEPTHS = {"quick": (1, 2, 3), "standard": (1, 2, 3, 4), "full": (1, 2, 3, 4, 6, 8, 12)}
_POINTS = {"quick": 64, "standard": 128, "full": 512}
_DRAWS = {"quick": 6, "standard": 8, "full": 16}
_ALIKE_WITHIN = 1.25  # ranks under two partitions are alike if their ratio is surely below this
_MEANING = (
    f"The ε-rank is the least number of products f(A)·g(B) that come within {_EPSILON:.0%} of the network's output "
    "(root mean square error relative to the output's standard deviation, at points that were not used to find them), "
    "at random initial weights. A sum f(A) + g(B), in which the two sides A and B of the input do not interact, has at "
    "most 2. Means are geometric over draws of the weights, with 95 % intervals."
)
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("depth", "depth", "number of layers; the width stays"),
    Column("parameters", "para- meters"),
    Column("left_right", "left-right", "geometric mean ε-rank, first half of the input against the second"),
    Column("left_right_interval", "95 % interval"),
    Column("interleaved", "inter- leaved", "geometric mean ε-rank, even places against odd ones"),
    Column("interleaved_interval", "95 % interval"),
    Column("effective", "effective rank", "exp of the entropy of the squared singular values, left-right"),
    Column("predicted", "predicted", "what theory says of the two partitions", False),
    Column("agrees", "theory", "whether the measurement is as predicted", False, "agreement"),
)


class SpectrumSection(Section):
    id = "spectrum"
    title = "Separation rank within ε"

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        shape = net.measured()
        plan = blueprint(net.net, **shape)
        depth = own_name("depth", plan.known)
        own = None if depth is None or depth in net.given else plan.shape.get(depth)
        layers = [] if own is None else sorted({*_DEPTHS[preset], own})
        shapes = [{**shape, depth: each} for each in layers] or [shape]
        return [
            Cell(
                "spectrum",
                {
                    **net.named(),
                    "shape": one,
                    "partitions": list(_PARTITIONS),
                    "draws": _DRAWS[preset],
                    "epsilon": _EPSILON,
                    "points": _POINTS[preset],
                    "repeats": 1,
                    "relative_to": "spread",
                    "dtype": "float32",  # errors of a percent do not need more
                },
            )
            for one in shapes
        ]

    def seconds(self, cell: Cell) -> float:
        of_point = 1e-4 if "tokens" in cell.config["shape"] else 2e-5
        return of_point * cell.config["points"] ** 2 * cell.config["draws"]

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        found = by_net(good)
        broken = {row.cell.config["net"]: row.error or "" for row in rows if row.error}
        answers = [_RANK.failed(net, why) for net, why in {**broken, **setting.troubles}.items() if net not in found]
        for net, of_net in found.items():
            answers += _answers(net, of_net, setting)
        return Summary(
            _headline(found, setting),
            [_table(good)] if good else [],
            [_over_depth(found), _spectra(found, setting)] if good else [],
            (_MEANING, *failures(rows, setting)),
            answers,
        )


def _depth(row: Row) -> int | None:
    """The layers of a shape, whatever the net calls them."""
    shape = row.cell.config["shape"]
    name = own_name("depth", shape)
    return None if name is None else shape[name]


def _ranks(row: Row, partition: str) -> list[float]:
    return [max(1.0, float(draw[partition]["rank"])) for draw in row["draws"]]


def _mean(values: Sequence[float]) -> float:
    """Geometric: ranks of different draws differ by factors."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _resolved(row: Row, partitions: Sequence[str] = _PARTITIONS) -> bool:
    return all(draw[partition]["resolved"] for draw in row["draws"] for partition in partitions)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % for the geometric mean."""
    logs = [math.log(value) for value in values]
    low, high = mean_interval(logs) or (min(logs), max(logs))
    return math.exp(low), math.exp(high)


def _alike(row: Row) -> Standing:
    """Whether the ratio of the two partitions' ranks, draw by draw, is surely near 1, surely not 1, or neither."""
    if not _resolved(row):
        return "unknown"  # lower bounds can be equal where ranks are not
    pairs = zip(_ranks(row, "left-right"), _ranks(row, "interleaved"), strict=True)
    low, high = _interval([right / left for left, right in pairs])
    if low >= 1 / _ALIKE_WITHIN and high <= _ALIKE_WITHIN:
        return "yes"
    return "no" if low > 1 or high < 1 else "unknown"


def _answers(net: str, rows: Sequence[Row], setting: Setting) -> list[Answer]:
    first, last = rows[0], rows[-1]
    middle = _reference(rows, setting)
    ranks = _ranks(middle, "left-right")
    low, high = _interval(ranks)
    at = "" if _depth(middle) is None else f" at depth {_depth(middle)}"
    text = f"{_spelt(middle, 'left-right')} ({low:.3g}–{high:.3g}){at}"
    standing: Standing = "yes" if low > 2 else "no" if high <= 2 else "unknown"
    measured_with = spelt({"draws": len(middle["draws"]), "points": middle.cell.config["points"], "ε": _EPSILON})
    numbers = {"value": _spelt(middle, "left-right"), "number": _mean(ranks), "interval": (low, high)}
    answers = [_RANK.answer(net, standing, text, **numbers, setting=measured_with)]
    if len(rows) > 1:
        before, after = _ranks(first, "left-right"), _ranks(last, "left-right")
        grew = _interval(after)[0] > _interval(before)[1] and _resolved(first, ["left-right"])
        shrank = _interval(after)[1] < _interval(before)[0] and _resolved(last, ["left-right"])
        text = f"{_spelt(first, 'left-right')} at depth {_depth(first)}, {_spelt(last, 'left-right')} at {_depth(last)}"
        value = f"{_spelt(first, 'left-right')} → {_spelt(last, 'left-right')}"
        standing = "yes" if grew else "no" if shrank else "unknown"
        depths = f"{measured_with}, depths {_depth(first)}–{_depth(last)}"
        answers.append(_DEEPER.answer(net, standing, text, value=value, setting=depths))
    if "tokens" in middle.cell.config["shape"]:
        text = ", ".join(f"{_spelt(middle, partition)} {partition}" for partition in _PARTITIONS)
        predicted = "equal (Prop. 7.1)" if middle["alike"] else ""
        value = " | ".join(_spelt(middle, partition) for partition in _PARTITIONS)
        theory = {"predicted": predicted, "agrees": _agrees(rows)}
        answers.append(_PARTITION.answer(net, _alike(middle), text, value=value, setting=measured_with, **theory))
    return answers


def _agrees(rows: Sequence[Row]) -> bool | None:
    """Where theory says that both partitions are alike, no row may show that they surely are not."""
    verdicts = [_alike(row) for row in rows if row["alike"]]
    if "no" in verdicts:
        return False
    return True if verdicts and "unknown" not in verdicts else None


def _reference(rows: Sequence[Row], setting: Setting) -> Row:
    """The net as the other sections measure it, so that nets of equal size are compared with each other."""
    own = setting.shapes.get(rows[0].cell.config["net"], {})
    name = own_name("depth", own)
    return next((row for row in rows if name is not None and _depth(row) == own[name]), rows[0])


def _headline(found: dict[str, list[Row]], setting: Setting) -> str:
    if not found:
        return "No network could be measured."
    measured = {net: _reference(rows, setting) for net, rows in found.items()}
    means = {net: _mean(_ranks(row, "left-right")) for net, row in measured.items()}
    best, worst = max(means, key=lambda net: means[net]), min(means, key=lambda net: means[net])
    ranks = {net: _spelt(row, "left-right") for net, row in measured.items()}
    if best == worst:
        halves = "of functions of either half of its input"
        return f"To come within {_EPSILON:.0%} of {best} takes a sum of {ranks[best]} products {halves}."
    return (
        f"Products f(A)·g(B) whose sum comes within {_EPSILON:.0%} of a network, A and B being halves of its input: "
        f"most for {best} ({ranks[best]}), fewest for {worst} ({ranks[worst]})."
    )


def _spelt(row: Row, partition: str) -> str:
    """The mean rank, marked where it is only a bound from below."""
    return f"{'' if _resolved(row, [partition]) else '≥ '}{_mean(_ranks(row, partition)):.3g}"


def _table(rows: Sequence[Row]) -> Table:
    body = []
    for row in rows:
        cells: dict[str, Any] = {"net": row.cell.config["net"], "depth": _depth(row), "parameters": row["parameters"]}
        for partition in _PARTITIONS:
            key, ranks = partition.replace("-", "_"), _ranks(row, partition)
            cells[key] = _mean(ranks) if _resolved(row, [partition]) else f"≥ {_mean(ranks):.3g}"
            cells[f"{key}_interval"] = "{:.3g}–{:.3g}".format(*_interval(ranks))
        cells["effective"] = _mean([draw["left-right"]["effective_rank"] for draw in row["draws"]])
        cells["predicted"] = "equal" if row["alike"] else None
        cells["agrees"] = _agrees([row])
        body.append(cells)
    caption = (
        f"{len(rows[0]['draws'])} draws of the weights, {rows[0].cell.config['points']} points a side. ≥: some draw "
        f"did not come within {_EPSILON:.0%} at this many points."
    )
    return Table("ε-rank by depth", _COLUMNS, body, caption)


def _over_depth(found: dict[str, list[Row]]) -> Figure:
    panels = []
    fixed = [net for net, rows in found.items() if _depth(rows[0]) is None]
    for partition in _PARTITIONS:
        series = []
        for net, rows in found.items():
            values = [_ranks(row, partition) for row in rows]
            low, high = zip(*map(_interval, values), strict=True)
            depths = [_depth(row) or 1 for row in rows]
            series.append(Series(net, depths, [_mean(ranks) for ranks in values], low, high))
        panels.append(Panel(partition, series))
    return Figure(
        "ε-rank over depth",
        "Geometric mean of the ε-rank against depth, one line per network, one panel per partition.",
        "depth",
        "ε-rank",
        panels,
        log_y=True,
        caption="At random initial weights, equal width at all depths. "
        + (f"A point at 1: as it is built, since depth is no argument of {', '.join(fixed)}." if fixed else ""),
    )


def _spectra(found: dict[str, list[Row]], setting: Setting) -> Figure:
    panels = []
    for partition in _PARTITIONS:
        series = []
        for net, rows in found.items():
            draws = [draw[partition]["spectrum"] for draw in _reference(rows, setting)["draws"]]
            length = min(len(draw) for draw in draws)
            mean = [math.fsum(draw[k] for draw in draws) / len(draws) for k in range(length)]
            kept = [k for k in range(length) if mean[k] > 1e-6]
            series.append(Series(net, [k + 1 for k in kept], [mean[k] for k in kept]))
        panels.append(Panel(partition, series))
    return Figure(
        "Spectrum",
        "Singular values of the network as an operator between functions of its two sides, relative to their norm.",
        "number k of the singular value",
        "σ_k / ‖σ‖",
        panels,
        log_x=True,
        log_y=True,
        caption="What is lost by keeping k products only; a line that falls fast means that few products suffice.",
    )


section = SpectrumSection()
