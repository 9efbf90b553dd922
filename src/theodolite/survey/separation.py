"""The section on separation rank: how strongly a network ties two halves of its input together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.nets import nets
from theodolite.survey.section import Column, Figure, Panel, Preset, Series, Summary, Table, sections

_PARTITIONS = ("left-right", "interleaved")

# Shapes per preset. Sides hold more tokens than the width, so that the rank is not just the size of a small space.
_SHAPES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "quick": {
        "self-attention": [
            *({"depth": depth, "width": width, "tokens": 10} for depth in (1, 2) for width in (2, 3, 4)),
            {"depth": 2, "width": 4, "heads": 2, "tokens": 10},
            {"depth": 3, "width": 2, "tokens": 10},
        ],
        "degree-attention": [
            {"depth": depth, "width": 2, "degree": degree, "tokens": 8} for degree in (2, 3, 4) for depth in (1, 2)
        ],
        "conv-circuit": [{"tokens": tokens, "width": width} for width in (2, 3) for tokens in (4, 8)]
        + [{"tokens": 16, "width": 2}],
        "recurrent-circuit": [{"depth": depth, "width": width, "tokens": 8} for depth in (1, 2) for width in (2, 3)],
        "polynomial-mlp": [
            {"depth": depth, "width": 4, "degree": degree, "features": 8} for degree in (2, 3) for depth in (1, 2)
        ],
        "polynomial-mixer": [{"depth": depth, "width": width, "tokens": 8} for width in (2, 3) for depth in (1, 2)],
    },
    "standard": {
        "self-attention": [
            *({"depth": depth, "width": width, "tokens": 14} for depth in (1, 2) for width in (2, 3, 4, 5, 6)),
            *({"depth": 2, "width": 6, "heads": heads, "tokens": 14} for heads in (2, 3, 6)),
            *({"depth": 3, "width": width, "tokens": 8} for width in (2, 3)),
        ],
        "degree-attention": [
            {"depth": depth, "width": width, "degree": degree, "tokens": 8}
            for degree in (2, 3, 4, 5)
            for depth in (1, 2)
            for width in (2, 3)
        ],
        "conv-circuit": [{"tokens": tokens, "width": width} for width in (2, 3, 4) for tokens in (4, 8)]
        + [{"tokens": 16, "width": 2}],
        "recurrent-circuit": [
            {"depth": depth, "width": width, "tokens": 8} for depth in (1, 2, 3) for width in (2, 3, 4)
        ],
        "polynomial-mlp": [
            {"depth": depth, "width": width, "degree": degree, "features": 8}
            for degree in (2, 3, 4)
            for width in (4, 8)
            for depth in (1, 2)
        ],
        "polynomial-mixer": [{"depth": depth, "width": width, "tokens": 8} for width in (2, 3, 4) for depth in (1, 2)],
    },
}
_MOST_POINTS = {"quick": 1024, "standard": 4096, "full": 12288}

_COLUMNS = (
    Column("shape", "shape", "the net's arguments", numeric=False),
    Column("left_right", "left-right", "separation rank, first half of the input against the second"),
    Column("interleaved", "inter-leaved", "separation rank, even places against odd ones"),
    Column("cap", "cap", "a rank no weights can exceed, proven (left-right)"),
    Column("cap_interleaved", "cap int.", "the same for the interleaved partition"),
    Column("lower", "theory ≥", "published lower bound for almost all weights"),
    Column("upper", "theory ≤", "published upper bound"),
    Column("degree", "degree", "total degree of the output in the input"),
    Column(
        "status", "status", "proven: equals the cap; exact: surplus points and repeats agree; ≥: lower bound", False
    ),
)


class SeparationRankSection:
    id = "separation-rank"
    title = "Separation rank"

    def applies(self, net: str) -> str | None:
        if net in nets and not nets[net].polynomial:
            return f"'{net}' is not polynomial, so its rank is not exact"
        return None

    def plan(self, net: str, preset: Preset) -> Sequence[Cell]:
        shapes = _SHAPES["standard" if preset == "full" else preset].get(net, [{}])
        return [
            Cell(
                "separation-rank",
                {
                    "net": net,
                    "shape": shape,
                    "partition": partition,
                    "max_points": _MOST_POINTS[preset],
                    "repeats": 2 if preset == "quick" else 3,
                },
            )
            for shape in shapes
            for partition in _PARTITIONS
        ]

    def summarise(self, rows: Sequence[Row]) -> Summary:
        by_net: dict[str, list[Row]] = {}
        for row in rows:
            by_net.setdefault(row.cell.config["net"], []).append(row)
        tables = [self._table(net, found) for net, found in by_net.items()]
        panels = [panel for net, found in by_net.items() if (panel := self._panel(net, found))]
        figure = Figure(
            title="Rank over depth and width",
            alt="Separation rank against depth or number of tokens, one panel per network, left-right and interleaved.",
            x_label="depth (tokens for the convolutional circuit)",
            y_label="separation rank",
            panels=panels,
            log_y=True,
            caption="Solid: left-right. Dashed: interleaved. Attention's two lines coincide: it does not care which "
            "tokens stand on which side; circuits of convolutions and recurrences do.",
            command="theodolite survey --preset quick --out survey",
        )
        errors = [f"{row.cell.config['net']}: {row.error}" for row in rows if row.error]
        return Summary(self._headline(rows), tables, (figure,) if panels else (), tuple(dict.fromkeys(errors)))

    def _headline(self, rows: Sequence[Row]) -> str:
        good = [row for row in rows if not row.error]
        exact = sum(bool(row["exact"]) for row in good)
        proven = sum(bool(row["saturated"]) for row in good)
        pairs = _pairs(good)
        equal = sorted({net for net, *_ in pairs} - {net for net, _, a, b in pairs if a["rank"] != b["rank"]})
        text = f"{len(good)} ranks measured over GF(p): {exact} exact, {proven} of them proven by the cap."
        if pairs:
            net, _, a, b = max(pairs, key=lambda p: p[3]["rank"] / max(1, p[2]["rank"]))
            text += f" The same rank for both partitions: {', '.join(equal) or 'none'}."
            if b["rank"] > a["rank"]:
                text += f" The largest gap: {net}, {a['rank']:,} left-right against {b['rank']:,} interleaved."
        return text

    def _table(self, net: str, rows: Sequence[Row]) -> Table:
        body = []
        for _, shape, left, inter in _pairs([row for row in rows if not row.error]):
            body.append(
                {
                    "shape": shape,
                    "left_right": _value(left),
                    "interleaved": _value(inter),
                    "cap": left["cap"],
                    "cap_interleaved": inter["cap"],
                    "lower": left["bounds"]["lower"],
                    "upper": left["bounds"]["upper"],
                    "degree": left["degree"],
                    "status": _status(left)
                    if _status(left) == _status(inter)
                    else f"{_status(left)} / {_status(inter)}",
                }
            )
        shape = rows[0].cell.config["shape"]
        arguments = " ".join(f"--{k.replace('_', '-')} {v}" for k, v in shape.items() if k in _FLAGS)
        command = f"theodolite rank {net} {arguments} --partition interleaved".replace("  ", " ")
        caption = nets[net].summary if net in nets else "a network of your own"
        used = [c for c in _COLUMNS if any(row[c.key] is not None for row in body) or c.key == "cap"]
        return Table(net, used, body, caption[:1].upper() + caption[1:] + ".", command)

    def _panel(self, net: str, rows: Sequence[Row]) -> Panel | None:
        """Rank over depth, one colour per other argument; over tokens where the net has no depth."""
        lines: dict[tuple[str, str], list[tuple[int, Row]]] = {}
        for row in rows:
            if row.error:
                continue
            shape = dict(row.cell.config["shape"])
            axis = "depth" if "depth" in shape else "tokens"
            if axis not in shape:
                return None
            x = shape.pop(axis)
            shape.pop("tokens" if axis == "depth" else "features", None)
            lines.setdefault((_shape(shape), row["partition"]), []).append((x, row))
        series = [
            Series(
                name=f"{shape}, {partition}",
                x=[x for x, _ in points],
                y=[row["rank"] for _, row in points],
                dashed=partition == "interleaved",
                hover=[f"{_shape(row.cell.config['shape'])}: {_value(row)} ({_status(row)})" for _, row in points],
                group=shape,
            )
            for (shape, partition), points in lines.items()
        ]
        return Panel(net, series) if series else None


_FLAGS = ("depth", "width", "heads", "tokens", "attention_width", "embedding_rank", "degree", "features")


def _pairs(rows: Sequence[Row]) -> list[tuple[str, str, Row, Row]]:
    """(net, shape, left-right row, interleaved row) for every shape measured both ways."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        key = (row.cell.config["net"], _shape(row.cell.config["shape"]))
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


def _status(row: Row) -> str:
    return "proven" if row["saturated"] else "exact" if row["exact"] else "≥"


sections.add("separation-rank", SeparationRankSection())
