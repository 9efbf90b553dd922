"""A model's tensors with their numbers folded: `layers.#.mlp.weight`, how many there are, and their shape."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from benchmarks.advise_descriptions.built_type import Sample, Shapes
from benchmarks.advise_descriptions.fitting import Unexplained

Signature = dict[str, tuple[int, tuple[int, ...]]]
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_DEEPEST, _MOST = 3, 1500  # numbers kept in a name, and names of a model


def signatures(samples: list[Sample]) -> list[Signature]:
    """Of all samples alike: numbers stay in a name where the tensors that it would fold differ in shape."""
    kept: dict[str, int] = {}
    found: list[Signature] = []
    for _ in range(400):
        found = []
        for _, shapes in samples:
            made = _folded(shapes, kept)
            if isinstance(made, str):
                kept[made] = kept.get(made, 0) + 1
                if kept[made] > _DEEPEST:
                    raise Unexplained("")
                break
            found.append(made)
        else:
            break
    if len({name for signature in found for name in signature}) > _MOST:
        raise Unexplained("")
    return found


def _folded(shapes: Shapes, kept: Mapping[str, int]) -> Signature | str:
    """The signature, or the name whose tensors differ in shape."""
    found: Signature = {}
    for name, shape in shapes.items():
        folded = _fold(name, kept)
        count, first = found.get(folded, (0, shape))
        if first != shape:
            return _NUMBER.sub("#", name)
        found[folded] = (count + 1, shape)
    return found


def _fold(name: str, kept: Mapping[str, int]) -> str:
    folded = _NUMBER.sub("#", name)
    keep = kept.get(folded, 0)
    if not keep:
        return folded
    seen = itertools.count()
    return _NUMBER.sub(lambda found: found[0] if next(seen) < keep else "#", name)
