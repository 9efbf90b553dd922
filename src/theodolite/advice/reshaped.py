"""Other shapes of a configuration's model: counted fast while they are searched, exactly before they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.families import FAMILIES
from theodolite.advice.reading import read_config
from theodolite.advice.rescale import reshape
from theodolite.advice.shape import Modality, ModelShape
from theodolite.errors import BadInput

FEW = 4
"""Layers of the smallest model that is built to see what a further layer adds."""


class Reshaped:
    """(depth, width, heads) → the shape.

    A family counted by hand, and one whose description counts the given model right, is counted by that. Any other is
    built with few layers and with twice as many: every further layer adds as much, which the exact count then checks.
    `adjust` changes each configuration once more, given its width and heads.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        name: str,
        start: ModelShape,
        modality: Modality,
        adjust: Callable[[dict[str, Any], int, int], dict[str, Any]] | None = None,
    ) -> None:
        self._adjust = adjust
        self._config = dict(config)
        self._name = name
        self._start = start
        self._modality: Modality = modality
        self._known: dict[tuple[int, int, int], ModelShape] = {}
        self.by_hand = start.family in FAMILIES and start.exact
        self._described = self.by_hand or _counts_alike(config, name, start)

    def config(self, shape: ModelShape) -> dict[str, Any]:
        return self._made((shape.depth, shape.width, shape.heads))

    def exact(self, shape: ModelShape) -> ModelShape:
        """The shape as it is shown: built where that is possible."""
        if self.by_hand:
            return shape
        key = (shape.depth, shape.width, shape.heads)
        if self._adjust is None and key == (self._start.depth, self._start.width, self._start.heads):
            return self._start
        return self._read(key, build=True)

    def near(self, depth: int, width: int, heads: int) -> ModelShape:
        """The shape while it is searched."""
        key = (depth, width, heads)
        if key not in self._known:
            self._known[key] = self._read(key, build=False) if self._described else self._by_few_layers(key)
        return self._known[key]

    def _read(self, key: tuple[int, int, int], build: bool) -> ModelShape:
        return replace(read_config(self._made(key), self._name, build=build), modality=self._modality)

    def _made(self, key: tuple[int, int, int]) -> dict[str, Any]:
        new = reshape(self._config, *key, self._start)
        return new if self._adjust is None else self._adjust(new, key[1], key[2])

    def _by_few_layers(self, key: tuple[int, int, int]) -> ModelShape:
        depth, width, heads = key
        if depth <= 2 * FEW:
            return self._read(key, build=True)
        one, two = self.near(FEW, width, heads), self.near(2 * FEW, width, heads)

        def grown(small: int, large: int) -> int:
            return small + (large - small) * (depth - FEW) // FEW

        parts = {part: grown(one.parts[part], two.parts.get(part, 0)) for part in one.parts}
        decoder = round(depth * two.decoder_depth / two.depth)
        return replace(two, depth=depth, decoder_depth=decoder, parts=parts, active=grown(one.active, two.active))


def _counts_alike(config: Mapping[str, Any], name: str, start: ModelShape) -> bool:
    try:
        return read_config(config, name, build=False).params == start.params
    except BadInput:  # not described: it is built
        return False
