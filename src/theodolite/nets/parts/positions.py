"""Where a token stands: the sinusoidal table that is added to it, the turns of its queries and keys, or what their
product loses with distance."""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.kernels.launch import declare
from theodolite.nets.contract import choice, positive

KINDS = ("none", "sinusoidal", "rotary", "alibi", "random-offset")

_LONGEST = 10000.0
_OCTAVES = 8.0  # ALiBi's slopes go down to 2^−8

Turns = tuple[Float[Tensor, "token 1 pair"], Float[Tensor, "token 1 pair"]]


class Places(nn.Module):
    """What tells tokens their places: a table added to them, turns of queries and keys, or a bias of the logits."""

    def __init__(self, kind: str, width: int, heads: int, offset_range: int) -> None:
        super().__init__()
        choice("positions", kind, KINDS)
        positive(offset_range=offset_range)
        if kind == "rotary" and width < 2 * heads:
            raise BadInput(f"rotary positions turn pairs of numbers and {heads} heads of width {width} have one each")
        self.kind, self.width, self.heads = kind, width, heads
        self.offset = RandomOffset(width, offset_range) if kind == "random-offset" else None

    def table(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "*batch token width"] | None:
        if self.offset is not None:
            return self.offset(x)
        return sinusoidal(x.shape[1], self.width, x) if self.kind == "sinusoidal" else None

    def turns(self, x: Float[Tensor, "batch token width"]) -> Turns | None:
        return rotation(x.shape[1], self.width // self.heads, x) if self.kind == "rotary" else None

    def bias(
        self, x: Float[Tensor, "batch token width"], hidden: Float[Tensor, "*seen token token"] | None
    ) -> Float[Tensor, "*biased token token"] | None:
        """With what hides keys, which is −∞."""
        if self.kind != "alibi":
            return hidden
        far = distance_bias(x.shape[1], self.heads, x)
        return far if hidden is None else far + hidden


def angles(
    tokens: int, pairs: int, width: int, like: Tensor, start: Shaped[Tensor, "batch 1"] | None = None
) -> Float[Tensor, "*batch token pair"]:
    """t / 10000^(2i / width) for token t, counted from 0 or from `start`, and pair i."""
    steps = _counted(tokens, like)
    steps = steps if start is None else start + steps
    pair = _counted(pairs, like)
    return steps[..., None] * _LONGEST ** (pair * (-2 / width))


def _counted(count: int, like: Tensor) -> Float[Tensor, " count"]:
    """0, 1, 2, …; at least in float32, since bfloat16 knows no 257."""
    few = like.dtype in (torch.bfloat16, torch.float16)
    return torch.arange(count, dtype=torch.float32 if few else like.dtype, device=like.device)


def sinusoidal(
    tokens: int, width: int, like: Tensor, start: Shaped[Tensor, "batch 1"] | None = None
) -> Float[Tensor, "*batch token width"]:
    """Entry 2i is the sine of the pair's angle, entry 2i + 1 its cosine."""
    turned = angles(tokens, (width + 1) // 2, width, like, start)
    return torch.stack((turned.sin(), turned.cos()), dim=-1).flatten(-2)[..., :width].to(like.dtype)


class RandomOffset(nn.Module):
    """Sinusoidal positions counted from a number that is drawn for every row while training, and from 0 otherwise.

    Positions up to `most` are thus met in training however short its inputs are (Dehghani et al. 2019, Section 3.2),
    and what is learnt about one stretch of them is tried on all others. `most` itself is drawn too. The draw
    is torch's own, as dropout's is: batched over an ensemble, every member has its own.
    """

    def __init__(self, width: int, most: int) -> None:
        super().__init__()
        self.width, self.most = width, most

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "*batch token width"]:
        start = None
        if self.training:
            start = torch.randint(self.most + 1, (x.shape[0], 1), device=x.device)
        return sinusoidal(x.shape[1], self.width, x, start)


def distance_bias(tokens: int, heads: int, like: Tensor) -> Float[Tensor, "head token token"]:
    """ALiBi (Press, Smith & Lewis 2022): −m·|i − j|, where m = 2^(−8h/H) for head h of H, whatever H is."""
    place, head = _counted(tokens, like), _counted(heads, like) + 1
    return -(2 ** (head * (-_OCTAVES / heads)))[:, None, None] * (place[:, None] - place).abs()


def rotation(tokens: int, width: int, like: Tensor) -> Turns:
    """Cosine and sine of the turns for vectors of `width` numbers; an odd number's last entry is in no pair.

    On a GPU one operation of its own: a compiler would compute the angles again for every row.
    """
    if like.is_cuda:
        return _rotation(torch.empty(0, dtype=like.dtype, device=like.device), tokens, width)
    return _turned(like, tokens, width)


def _turned(like: Tensor, tokens: int, width: int) -> Turns:
    turned = angles(tokens, width // 2, width, like).unsqueeze(1)
    return turned.cos().to(like.dtype), turned.sin().to(like.dtype)


_rotation = declare(
    "rotation(Tensor like, int tokens, int width) -> (Tensor, Tensor)",
    _turned,
    lambda like, tokens, width: (like.new_empty(tokens, 1, width // 2), like.new_empty(tokens, 1, width // 2)),
)


def rotate(
    x: Float[Tensor, "batch token head attention_width"],
    turns: Turns,
) -> Float[Tensor, "batch token head attention_width"]:
    """Entry i and entry i + pairs turned together, so that products of two depend on their distance only."""
    cosine, sine = turns
    pairs = cosine.shape[-1]
    first, second = x[..., :pairs], x[..., pairs : 2 * pairs]
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    return torch.cat((*turned, x[..., 2 * pairs :]), dim=-1)
