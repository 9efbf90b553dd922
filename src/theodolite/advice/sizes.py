"""A family at other sizes: for every number of parameters the shape that is advised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from theodolite.advice.recommend import Family, recommend
from theodolite.advice.reshaped import Reshaped
from theodolite.advice.shape import Modality, ModelShape


def shapes_by_size(
    config: Mapping[str, Any], name: str, start: ModelShape, modality: Modality
) -> Callable[[int], ModelShape]:
    """Parameters → shape, counted as shapes are while they are searched.

    Parameters:
        config: of the family
        name: what messages call it
        start: the shape in `config`
        modality: which fit to take
    """
    family: list[Family] = []

    def shape_at(params: int) -> ModelShape:
        if not family:
            family.append(Family.of(start, Reshaped(config, name, start, modality).near))
        return recommend(family[0], params, modality, min(start.depth, 1000)).shape

    return shape_at
