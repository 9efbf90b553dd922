"""Where a token stands: the sinusoidal table that is added to it, and the turns of its queries and keys."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

_LONGEST = 10000.0


def angles(tokens: int, pairs: int, width: int, like: Tensor) -> Float[Tensor, "token pair"]:
    """t / 10000^(2i / width) for token t and pair i."""
    steps = torch.arange(tokens, dtype=like.dtype, device=like.device)
    pair = torch.arange(pairs, dtype=like.dtype, device=like.device)
    return steps[:, None] * _LONGEST ** (pair * (-2 / width))


def sinusoidal(tokens: int, width: int, like: Tensor) -> Float[Tensor, "token width"]:
    """Entry 2i is the sine of the pair's angle, entry 2i + 1 its cosine."""
    turned = angles(tokens, (width + 1) // 2, width, like)
    return torch.stack((turned.sin(), turned.cos()), dim=-1).flatten(-2)[:, :width]


def rotation(
    tokens: int, width: int, like: Tensor
) -> tuple[Float[Tensor, "token 1 pair"], Float[Tensor, "token 1 pair"]]:
    """Cosine and sine of the turns for vectors of `width` numbers; an odd number's last entry is in no pair."""
    turned = angles(tokens, width // 2, width, like).unsqueeze(1)
    return turned.cos(), turned.sin()


def rotate(
    x: Float[Tensor, "batch token head attention_width"],
    turns: tuple[Float[Tensor, "token 1 pair"], Float[Tensor, "token 1 pair"]],
) -> Float[Tensor, "batch token head attention_width"]:
    """Entry i and entry i + pairs turned together, so that products of two depend on their distance only."""
    cosine, sine = turns
    pairs = cosine.shape[-1]
    first, second = x[..., :pairs], x[..., pairs : 2 * pairs]
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    return torch.cat((*turned, x[..., 2 * pairs :]), dim=-1)
