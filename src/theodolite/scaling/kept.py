"""Valleys of what `scale` has kept in a store, read back from its rows alone: no text, and nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from theodolite.errors import BadInput
from theodolite.lab.cell import Row
from theodolite.measurement import canonical
from theodolite.nets.contract import nets
from theodolite.scaling.shapes import SizedShape, inner_parameters
from theodolite.scaling.valley import Valley, points, valley

_ALIKE = 1.03  # parameters within this factor are of one size
_BYTES = 256  # symbols of a vocabulary of bytes, whose losses are bits a byte without the text


def kept_valleys(rows: Iterable[Row]) -> list[Valley]:
    """One for every size that has two depths or more, of registered nets on bytes of one text; the largest group where
    a store holds several texts, nets or settings."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        config = row.cell.config
        if config.get("task") == "text" and config["task_args"].get("vocabulary") == _BYTES and config["net"] in nets:
            about = [config["net"], config["task_args"], config["schedule"]["batch"], config["optimiser"]]
            groups.setdefault(canonical(about), []).append(row)
    if not groups:
        return []
    largest = max(groups.values(), key=len)
    shapes = _sized(largest)
    found = points([row for row in largest if row.cell.key in shapes], shapes, lambda loss: loss / math.log(2))
    of_sizes = [list(own) for _, own in groupby(found, key=lambda point: point.shape.size)]
    return [valley(own) for own in of_sizes if len(own) > 1 and len({len(p.curve) for p in own}) == 1]


def _sized(rows: Sequence[Row]) -> dict[str, SizedShape]:
    """By key; sizes are called by the parameters that their shapes have on average, in two digits."""
    counted: dict[str, int] = {}
    for row in rows:
        arguments = dict(row.cell.config["shape"])
        name = canonical(arguments)
        if name not in counted and {"depth", "width"} <= set(arguments):
            inner = {key: value for key, value in arguments.items() if key not in ("features", "outputs", "tokens")}
            try:
                counted[name] = inner_parameters(row.cell.config["net"], **inner)
            except BadInput:  # a shape of another version's
                continue
    sizes: dict[int, int] = {}
    own: list[int] = []
    for count in sorted(set(counted.values())):
        if own and count > _ALIKE * own[-1]:
            sizes |= dict.fromkeys(own, _two_digits(own))
            own = []
        own.append(count)
    sizes |= dict.fromkeys(own, _two_digits(own)) if own else {}
    return {
        row.cell.key: SizedShape(sizes[count], shape["depth"], shape["width"], shape, count)
        for row in rows
        for shape in [row.cell.config["shape"]]
        if (count := counted.get(canonical(dict(shape)))) is not None
    }


def _two_digits(counts: Sequence[int]) -> int:
    return int(float(f"{sum(counts) / len(counts):.1e}"))
