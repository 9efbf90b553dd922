"""The section on exact separation rank: how strongly two halves of a polynomial network's input interact."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.measurement import canonical
from theodolite.nets import nets
from theodolite.report import Answer, Column, Figure, Panel, Series, Standing, Summary, Table
from theodolite.report.numbers import format_value
from theodolite.surveys.answers import Ability, by_net, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

_PARTITIONS = ("left-right", "interleaved")
_ARGUMENTS = ("depth", "width", "heads", "degree", "tokens", "features")
_MEANING = (
    "The separation rank is the least number of products f(A)·g(B) that sum to the network's output, A and B being the "
    "two sides of the input: one product has 1, a sum f(A) + g(B), whose sides do not interact either, at most 2; the "
    "larger it is, the more strongly the sides can interact."
)
_ABILITY = Ability(
    "separation rank (exact)",
    "Do the two halves of the input interact, exactly?",
    "least number of products f(A)·g(B) that sum to the output, A and B the halves of the input; above 2 they interact",
)
_MOST_POINTS = {"quick": 1024, "standard": 4096, "full": 12288}
_COLUMNS = (
    Column("left_right", "left-right", "separation rank, first half of the input against the second"),
    Column("interleaved", "inter- leaved", "separation rank, even places against odd ones"),
    Column("cap", "cap", "a rank no weights can exceed, proven (left-right)"),
    Column("cap_interleaved", "cap int.", "the same for the interleaved partition"),
    Column("lower", "theory ≥", "published lower bound for almost all weights"),
    Column("upper", "theory ≤", "published upper bound"),
    Column("total_degree", "total degree", "degree of the output as a polynomial in the input"),
    Column(
        "status", "status", "proven: equals the cap; exact: surplus points and repeats agree; ≥: lower bound", False
    ),
    Column("agrees", "theory", "whether the ranks lie within cap and bounds", False, "agreement"),
)


def _grid(fixed: Mapping[str, int], **ranges: Sequence[int]) -> list[dict[str, int]]:
    """Every combination of the ranges, with the fixed arguments."""
    return [{**dict(zip(ranges, values, strict=True)), **fixed} for values in itertools.product(*ranges.values())]


# What is swept for each net: depth with the sides wide enough that the rank is more than the size of a small space
# (more tokens a side than the width), and tokens for the nets whose partitions differ.
_SWEEPS: dict[str, dict[str, dict[str, list[dict[str, int]]]]] = {
    "quick": {
        "depth": {
            "self-attention": [
                *_grid({"tokens": 10}, width=(2, 3, 4), depth=(1, 2)),
                {"width": 2, "depth": 3, "tokens": 10},
                {"width": 4, "depth": 2, "heads": 2, "tokens": 10},
            ],
            "degree-attention": _grid({"width": 2, "tokens": 8}, degree=(2, 3, 4), depth=(1, 2)),
            "polynomial-mlp": _grid({"width": 4, "features": 8}, degree=(2, 3), depth=(1, 2)),
            "polynomial-mixer": _grid({"tokens": 8}, width=(2, 3), depth=(1, 2)),
            "recurrent-circuit": _grid({"tokens": 8}, width=(2, 3), depth=(1, 2)),
        },
        "tokens": {
            "self-attention": _grid({"width": 2, "depth": 2}, tokens=(4, 8, 16)),
            "conv-circuit": [*_grid({}, width=(2, 3), tokens=(4, 8)), {"width": 2, "tokens": 16}],
            "recurrent-circuit": _grid({"width": 2, "depth": 1}, tokens=(4, 8, 16)),
        },
    },
    "standard": {
        "depth": {
            "self-attention": _grid({"tokens": 14}, width=(2, 3, 4, 5, 6), depth=(1, 2))
            + _grid({"width": 6, "depth": 2, "tokens": 14}, heads=(2, 3, 6))
            + _grid({"tokens": 14, "depth": 3}, width=(2, 3)),
            "degree-attention": _grid({"tokens": 8}, degree=(2, 3, 4, 5), width=(2, 3), depth=(1, 2)),
            "polynomial-mlp": _grid({"features": 8}, degree=(2, 3, 4), width=(4, 8), depth=(1, 2)),
            "polynomial-mixer": _grid({"tokens": 8}, width=(2, 3, 4), depth=(1, 2)),
            "recurrent-circuit": _grid({"tokens": 8}, width=(2, 3, 4), depth=(1, 2, 3)),
        },
        "tokens": {
            "self-attention": _grid({"depth": 2}, width=(2, 3), tokens=(4, 8, 16)),
            "conv-circuit": [*_grid({}, width=(2, 3, 4), tokens=(4, 8)), {"width": 2, "tokens": 16}],
            "recurrent-circuit": _grid({"depth": 1}, width=(2, 3), tokens=(4, 8, 16)),
        },
    },
}
_SWEEPS["full"] = _SWEEPS["standard"]  # the same nets with more points, so that fewer ranks stay lower bounds


class SeparationRankSection(Section):
    id = "separation-rank"
    title = "Separation rank, exact"

    def applies(self, net: Candidate, /) -> str | None:
        if not net.polynomial:
            return f"'{net.name}' is not polynomial, so its rank is measured to within ε"
        return None

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        swept = [shape for sweep in _SWEEPS[preset].values() for shape in sweep.get(net.name, [])]
        shapes = [dict(net.given)] if net.given or not swept else swept
        distinct = {canonical(shape): shape for shape in shapes}.values()
        return [
            Cell(
                "separation-rank",
                {
                    **net.named(),
                    "shape": shape,
                    "partition": partition,
                    "max_points": _MOST_POINTS[preset],
                    "repeats": 2 if preset == "quick" else 3,
                },
            )
            for shape in distinct
            for partition in _PARTITIONS
        ]

    def seconds(self, cell: Cell) -> float:
        return 0.4 if cell.config["max_points"] <= _MOST_POINTS["quick"] else 4.0

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        of_nets = by_net(good)
        tables = [_table(net, found, setting) for net, found in of_nets.items()]
        figures = [figure for axis in ("depth", "tokens") if (figure := _figure(axis, of_nets))]
        return Summary(_headline(good), tables, figures, (_MEANING, *failures(rows, setting)), _answers(rows, setting))


def _answers(rows: Sequence[Row], setting: Setting) -> list[Answer]:
    """Of every net, its largest rank; theory agrees if every rank of it does."""
    answers = [_ABILITY.failed(net, why) for net, why in setting.troubles.items()]
    for net, found in by_net(rows).items():
        good = [row for row in found if not row.error]
        if not good:
            answers.append(_ABILITY.failed(net, found[0].error or ""))
            continue
        top = max(good, key=lambda row: row["rank"])
        verdicts = [verdict for row in good if (verdict := agrees(row)) is not None]
        text = f"rank {_value(top)} ({_shape(top.cell.config['shape'])}, {top['partition']})"
        cap = "" if top["cap"] is None else f"at most {format_rank(top['cap'])}"
        agreed = all(verdicts) if verdicts else None
        answers.append(
            _ABILITY.answer(
                net,
                _standing(top),
                text,
                predicted=cap,
                agrees=agreed,
                value=format_value(_value(top)),
                number=float(top["rank"]) if top["exact"] and top["rank"] < 2**53 else None,
                setting=spelt({"points": top.cell.config.get("max_points"), "partition": top["partition"]}),
            )
        )
    return answers


def _standing(row: Row) -> Standing:
    """A sum f(A) + g(B), whose sides do not interact, has rank 2."""
    if row["rank"] > 2:
        return "yes"
    return "no" if row["exact"] else "unknown"


def agrees(row: Row) -> bool | None:
    """Whether a rank lies within what theory says of it: not above the cap or the upper bound, and, where it is exact,
    not below the lower bound. None where theory says nothing that could be wrong here."""
    cap, lower, upper = row["cap"], row["bounds"]["lower"], row["bounds"]["upper"]
    above = [most for most in (cap, upper) if most is not None]
    checks = [row["rank"] <= most for most in above]
    if row["exact"] and lower is not None and lower > 1:
        checks.append(row["rank"] >= lower)
    return all(checks) if checks else None


def _headline(rows: Sequence[Row]) -> str:
    exact, proven = sum(bool(row["exact"]) for row in rows), sum(bool(row["saturated"]) for row in rows)
    text = f"{len(rows)} ranks measured over GF(p): {exact} exact, {proven} of them proven by the cap."
    pairs = _pairs(rows)
    if not pairs:
        return text
    nets_seen = dict.fromkeys(net for net, *_ in pairs)
    different = {net for net, _, left, inter in pairs if left["rank"] != inter["rank"]}
    equal = [net for net in nets_seen if net not in different]
    text += f" The same rank for both partitions: {', '.join(equal) or 'none'}."
    net, _, left, inter = max(pairs, key=lambda pair: pair[3]["rank"] / max(1, pair[2]["rank"]))
    if inter["rank"] > left["rank"]:
        gap = (
            f"{left['rank']:,} left-right against {'' if inter['exact'] else 'at least '}{inter['rank']:,} interleaved"
        )
        text += f" The largest gap: {net} ({_shape(left.cell.config['shape'])}), {gap}."
    return text


def _table(net: str, rows: Sequence[Row], setting: Setting) -> Table:
    """One line per shape; arguments that never change stand in the title."""
    pairs = _pairs(rows)
    shapes = [left.cell.config["shape"] for _, _, left, _ in pairs]
    named = [name for name in _ARGUMENTS if any(name in shape for shape in shapes)]
    varied = [name for name in named if len({shape.get(name) for shape in shapes}) > 1]
    fixed = {name: shapes[0][name] for name in named if name not in varied} if shapes else {}
    body = [
        {
            **{name: left["shape"].get(name) for name in varied},
            "left_right": _value(left),
            "interleaved": _value(inter),
            "cap": left["cap"],
            "cap_interleaved": inter["cap"],
            "lower": left["bounds"]["lower"],
            "upper": left["bounds"]["upper"],
            "total_degree": left["degree"],
            "status": " / ".join(dict.fromkeys((_status(left), _status(inter)))),
            "agrees": _both(agrees(left), agrees(inter)),
        }
        for _, _, left, inter in pairs
    ]
    columns = [Column(name, name, f"the net's {name}") for name in varied]
    for column in _COLUMNS:
        repeated = column.key == "cap_interleaved" and all(row["cap"] == row["cap_interleaved"] for row in body)
        empty = all(row[column.key] is None for row in body)
        if not (repeated or (empty and column.key != "cap")):
            columns.append(column)
    caption = nets[net].summary if net in nets else "a network of your own"
    title = f"{net} ({_shape(fixed)})" if fixed else net
    return Table(
        title,
        columns,
        body,
        caption[:1].upper() + caption[1:] + ".",
        _command(setting.spelt.get(net, net), shapes[-1] if shapes and net in nets else {}),
    )


def _both(left: bool | None, right: bool | None) -> bool | None:
    known = [one for one in (left, right) if one is not None]
    return all(known) if known else None


def _command(net: str, shape: Mapping[str, Any]) -> str:
    arguments = "".join(f" --{name} {value}" for name, value in shape.items())
    return f"theodolite rank {net}{arguments} --partition interleaved"


def _figure(axis: str, of_nets: Mapping[str, Sequence[Row]]) -> Figure | None:
    panels = [panel for net, rows in of_nets.items() if (panel := _panel(axis, net, rows))]
    if not panels:
        return None
    return Figure(
        title=f"Rank over {axis}",
        alt=f"Separation rank against {axis}, one panel per network, left-right solid and interleaved dashed.",
        x_label=axis,
        y_label="separation rank",
        panels=panels,
        log_y=True,
        caption="Solid: left-right. Dashed: interleaved; where only one line shows, the two coincide.",
    )


def _panel(axis: str, net: str, rows: Sequence[Row]) -> Panel | None:
    """The shapes of this axis's sweep, one colour per other argument that varies; a net of the user's as it is built,
    at depth 1 where depth is no argument of it."""
    swept = {canonical(s) for preset in _SWEEPS.values() for s in preset[axis].get(net, [])}
    own = net not in nets and axis == "depth"
    rows = [row for row in rows if own or canonical(row.cell.config["shape"]) in swept]
    shapes = [row.cell.config["shape"] for row in rows]
    varied = [n for n in _ARGUMENTS if n != axis and len({shape.get(n) for shape in shapes}) > 1]
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        shape = row.cell.config["shape"]
        name = _shape({n: shape[n] for n in varied if n in shape}) if varied else net
        lines.setdefault((name, row["partition"]), []).append(row)
    series = []
    for (name, partition), found in lines.items():
        found = sorted(found, key=lambda row: row["shape"].get(axis, 1))
        series.append(
            Series(
                name=f"{name}, {partition}",
                x=[row["shape"].get(axis, 1) for row in found],
                y=[row["rank"] for row in found],
                dashed=partition == "interleaved",
                hover=[f"{_shape(row.cell.config['shape'])}: {_value(row)} ({_status(row)})" for row in found],
                group=name,
            )
        )
    return Panel(net, series) if series else None


def _pairs(rows: Sequence[Row]) -> list[tuple[str, str, Row, Row]]:
    """(net, shape, left-right row, interleaved row) for every shape measured both ways."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        key = (row.cell.config["net"], canonical(row.cell.config["shape"]))
        found.setdefault(key, {})[row.cell.config["partition"]] = row
    return [
        (net, shape, both["left-right"], both["interleaved"])
        for (net, shape), both in found.items()
        if len(both) == len(_PARTITIONS)
    ]


def _shape(shape: Mapping[str, Any]) -> str:
    return " ".join(f"{name} {value}" for name, value in shape.items()) or "as built"


def _value(row: Row) -> int | str:
    return row["rank"] if row["exact"] else f"≥ {row['rank']:,}"


def format_rank(value: int) -> str:
    return f"{value:,}" if value < 10**12 else f"about 10^{len(str(value)) - 1}"


def _status(row: Row) -> str:
    return "proven" if row["saturated"] else "exact" if row["exact"] else "≥"


section = SeparationRankSection()
