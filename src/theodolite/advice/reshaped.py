"""Other shapes of a configuration's model: counted fast while they are searched, exactly before they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.families import FAMILIES
from theodolite.advice.interpolated import Interpolated
from theodolite.advice.reading import read_config
from theodolite.advice.rescale import reshape
from theodolite.advice.shape import Modality, ModelShape
from theodolite.errors import BadInput


class Reshaped:
    """(depth, width, heads) → the shape.

    A family counted by hand, and one whose description counts the given model right, is counted by that. Any other is
    built in a few sizes, and interpolated between them while shapes are searched.
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
        self._interpolated: Interpolated | None = None
        self.by_hand = start.family in FAMILIES and start.exact
        self._described = self.by_hand or self._counts_alike()

    def config(self, shape: ModelShape) -> dict[str, Any]:
        return self._made((shape.depth, shape.width, shape.heads))

    def exact(self, shape: ModelShape) -> ModelShape:
        """The shape as it is shown: built where that is possible."""
        if self.by_hand:
            return shape
        key = (shape.depth, shape.width, shape.heads)
        if self._adjust is None and key == (self._start.depth, self._start.width, self._start.heads):
            return self._start
        return self._read(*key, build=self._start.exact)

    def near(self, depth: int, width: int, heads: int) -> ModelShape:
        """The shape while it is searched."""
        key = (depth, width, heads)
        if key not in self._known:
            if self._described:
                self._known[key] = self._read(*key, build=False)
            else:
                self._interpolated = self._interpolated or Interpolated(self._start, self._read)
                self._known[key] = self._interpolated.at(*key)
        return self._known[key]

    def _read(self, depth: int, width: int, heads: int, *, build: bool = True) -> ModelShape:
        new = self._made((depth, width, heads))
        return replace(read_config(new, self._name, build=build), modality=self._modality)

    def _made(self, key: tuple[int, int, int]) -> dict[str, Any]:
        new = reshape(self._config, *key, self._start)
        return new if self._adjust is None else self._adjust(new, key[1], key[2])

    def _counts_alike(self) -> bool:
        """The description counts the given shape right, and reads one of another depth too."""
        start = self._start
        try:
            deeper = self._read(start.depth + 2, start.attention_width, start.heads, build=False)
            same = read_config(self._config, self._name, build=False)
        except BadInput:  # not described
            return False
        return same.params == start.params and deeper.exact == start.exact
