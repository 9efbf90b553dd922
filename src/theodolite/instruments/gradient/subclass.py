"""Which of the 2^d parities are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.instruments.gradient.walsh import degrees, number_of


@dataclass(frozen=True)
class Subclass:
    """`degree` where all parities of one degree are meant, `numbers` where they are listed, else all of them."""

    name: str
    bits: int
    degree: int | None = None
    numbers: tuple[int, ...] | None = None

    @property
    def members(self) -> int:
        return int(self.mask(torch.device("cpu")).sum())

    def mask(self, device: torch.device) -> Bool[Tensor, " parities"]:
        """True for the members."""
        if self.degree is not None:
            return degrees(self.bits, device) == self.degree
        mask = torch.full((1 << self.bits,), self.numbers is None, device=device)
        if self.numbers is not None:
            mask[list(self.numbers)] = True
        return mask


def read_subclass(subclass: str | Sequence[Sequence[int]], bits: int) -> Subclass:
    """`all`, `degree=k`, `prefixes` (the first 1, 2, … bits), subsets as `0,1|2,4,5`, or a list of them."""
    if not isinstance(subclass, str):
        name = "|".join(",".join(map(str, subset)) for subset in subclass)
        return Subclass(name, bits, numbers=_numbers([list(subset) for subset in subclass], bits))
    if subclass == "all":
        return Subclass(subclass, bits)
    if subclass == "prefixes":
        return Subclass(subclass, bits, numbers=_numbers([list(range(k)) for k in range(1, bits + 1)], bits))
    if subclass.startswith("degree="):
        text = subclass.removeprefix("degree=")
        if not text.isdigit() or int(text) > bits:
            raise BadInput(f"no parity of {bits} bits has degree '{text}': use degree=0 to degree={bits}")
        return Subclass(subclass, bits, degree=int(text))
    try:
        subsets = [[int(place) for place in part.split(",") if place.strip()] for part in subclass.split("|")]
    except ValueError:
        raise BadInput(
            f"the subclass '{subclass}' is unknown: use all, degree=3, prefixes, or subsets of bits such as 0,1|2,4,5"
        ) from None
    return Subclass(subclass, bits, numbers=_numbers(subsets, bits))


def _numbers(subsets: Sequence[Sequence[int]], bits: int) -> tuple[int, ...]:
    for subset in subsets:
        for place in subset:
            if not 0 <= place < bits:
                raise BadInput(f"bit {place} is not there: bits are counted from 0 to {bits - 1}")
    numbers = [number_of(tuple(set(subset))) for subset in subsets]
    if not numbers:
        raise BadInput("a subclass without a parity has no variance: name at least one subset of bits")
    if len(set(numbers)) < len(numbers):
        raise BadInput("a parity is named twice in the subclass: name each once")
    return tuple(numbers)
