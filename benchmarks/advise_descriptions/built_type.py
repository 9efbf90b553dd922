"""One model type, built in variations of its default configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from benchmarks.advise_descriptions.effort import Effort

from theodolite.advice.building.build import build
from theodolite.advice.building.language_part import parameters
from theodolite.advice.building.library import quiet, transformers
from theodolite.advice.described.flat import Flat, flatten, labelled

Shapes = Mapping[str, tuple[int, ...]]  # of the tensors, by name
Sample = tuple[Flat, Shapes]


class BuiltType:
    """`counted` is the class that its default is built as: others of the type are not described."""

    def __init__(self, model_type: str) -> None:
        self.model_type = model_type
        self.kind = transformers().CONFIG_MAPPING[model_type]
        with quiet():
            self.default = labelled(flatten(self.kind().to_dict()))
        self.counted = ""
        self.effort = Effort()

    def build(self, flat: Flat) -> Shapes | None:
        """None where transformers refuses these fields."""
        self.effort.build()
        content = {**nest(flat), "model_type": self.model_type}
        if self.counted:
            content["architectures"] = [self.counted]
        try:
            built = build(content, "it")
        except Exception:  # whatever a configuration that makes no sense meets in the library
            return None
        if self.counted and built.counted != self.counted:
            return None
        self.counted = built.counted
        text = getattr(built.config, "text_config", None)
        return {name: tuple(p.shape) for name, p in parameters(built.model, text).items()}

    def filled(self, flat: Flat) -> Flat:
        """What the configuration class makes of these fields."""
        with quiet():
            return labelled(flatten(self.kind.from_dict(nest(flat)).to_dict()))


def number_of(shapes: Shapes) -> int:
    return sum(int(np.prod(shape, dtype=object)) for shape in shapes.values())


def nest(flat: Flat) -> dict[str, Any]:
    """`flatten` undone."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        place = nested
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return _lists(nested)


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    numbered = all(isinstance(key, str) and key.isdigit() for key in value)
    if value and numbered and sorted(map(int, value)) == list(range(len(value))):
        return [value[str(index)] for index in range(len(value))]
    return {key: _lists(item) for key, item in value.items()}
