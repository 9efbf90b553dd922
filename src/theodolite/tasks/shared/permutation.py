"""Random orders, one in each row."""

from __future__ import annotations

import torch
from torch import Tensor


def permutations(rows: tuple[int, ...], count: int, generator: torch.Generator) -> Tensor:
    """(*rows, count) int64: each row its own uniformly random order of 0 … count − 1.

    A number is carried in the low bits of a random sort key, so that the sorted keys hold the order and no array of
    indices is needed. Of the 31 random bits, two keys of a row of 64 agree once in a million rows.
    """
    bits = (count - 1).bit_length()
    noise = torch.empty((*rows, count), dtype=torch.int32, device=generator.device).random_(generator=generator)
    keys = noise.long()
    keys.bitwise_left_shift_(bits).bitwise_or_(torch.arange(count, device=generator.device))
    if keys.device.type == "cpu":
        keys.numpy().sort(axis=-1)  # in place; torch's own sort of short rows is ten times slower on a CPU
    else:
        keys = keys.sort(dim=-1).values
    return keys.bitwise_and_((1 << bits) - 1)
