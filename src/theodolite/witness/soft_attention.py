"""PARITY and FIRST in soft attention: two layers with explicit weights that are right at every length.

Source: Chiang & Cholak 2022, "Overcoming a theoretical limitation of self-attention", whose constructions these follow
(one marker, two layers, ReLU, residuals, logits over √(width of a head)). Written out here from what they compute:

- PARITY. Uniform attention over the marker and n bits gives every token k/N and 1/N (k ones, N = n + 1 tokens). With
  its place i/N, a token finds the hat max(k−i−1, 0) − 2·max(k−i, 0) + max(k−i+1, 0), over N: 1/N at i = k, 0 elsewhere.
  The marker's two heads prefer even and odd places by the logits ±(−1)^i; their difference has the sign of the parity
  and the size 2·tanh(1/√5)/N².
- FIRST. max(first − zero − marker, 0) is 1 at the first bit if it is one and 0 at every other token; the marker prefers
  the first place by a logit of 1/√6 and reads ±1/2 there, so that the answer has the size 1/(2·(1 + n·e^(−1/√6))).

Without layer norm the answer fades and the cross-entropy tends to one bit. Layer norm on (x, −x), whose mean is 0,
enlarges it again once the last perceptron has removed all else: to √width for ε = 0, whatever n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.registry import unknown

Language = Literal["parity", "first"]
Entries = Mapping[tuple[int, int], float]

ZERO, ONE, MARKER = 0, 1, 2  # features of a token: what stands there
PLACE, SIGN, COUNT, SHARE, HERE, PARITY = 3, 4, 5, 6, 7, 8  # of PARITY: i/N, (−1)^i, k/N, 1/N, the hat, the answer
FIRST, BOTH, ANSWER = 3, 4, 5  # of FIRST: the first place, a one at the first place, the answer


class EncoderLayer(nn.Module):
    """Attention and a ReLU perceptron with residuals, and a layer norm after each of them unless `epsilon` is None.

    Every head has `width / heads` dimensions, as the logits are divided by its root, and uses the first of them.
    """

    def __init__(
        self,
        query: Float[Tensor, "head width"],
        key: Float[Tensor, "head width"],
        value: Float[Tensor, "head width width"],
        inner: Float[Tensor, "inner width"],
        outer: Float[Tensor, "width inner"],
        epsilon: float | None,
    ) -> None:
        super().__init__()
        self.query, self.key = nn.Parameter(query), nn.Parameter(key)
        self.value = nn.Parameter(value)  # W^O·W^V of each head
        self.inner, self.outer = nn.Parameter(inner), nn.Parameter(outer)
        self.epsilon = epsilon

    def forward(
        self, x: Float[Tensor, "batch token width"], reader: Float[Tensor, "batch reader width"]
    ) -> Float[Tensor, "batch reader width"]:
        """What the `reader` tokens, some or all of x, become."""
        heads, width = self.query.shape
        if self.query.any():
            asked, offered = ((part @ w.T).transpose(1, 2) for part, w in ((reader, self.query), (x, self.key)))
            scores = asked.unsqueeze(-1) * offered.unsqueeze(-2) / math.sqrt(width / heads)
            attended = torch.softmax(scores, dim=-1) @ x.unsqueeze(1)
        else:  # all logits 0: the mean, without n² equal weights
            attended = x.mean(dim=1, keepdim=True).unsqueeze(1).expand(-1, heads, reader.shape[1], -1)
        y = self.normed(reader + torch.einsum("bhrw,hvw->brv", attended, self.value))
        return self.normed(y + torch.relu(y @ self.inner.T) @ self.outer.T)

    def normed(self, x: Tensor) -> Tensor:
        return x if self.epsilon is None else F.layer_norm(x, x.shape[-1:], eps=self.epsilon)


class SoftAttention(nn.Module):
    """Bits (batch, n) to one logit (batch,): positive for odd parity, or for a first bit of one."""

    def __init__(self, language: Language, epsilon: float | None = None) -> None:
        super().__init__()
        if language not in _LAYERS:
            raise BadInput(unknown("language", language, list(_LAYERS)))
        if epsilon is not None and epsilon < 0:
            raise BadInput(f"the ε of a layer norm is 0 or more, not {epsilon}: use None for no layer norm")
        self.language, self.epsilon = language, epsilon
        self.features, self.answer, build = _LAYERS[language]
        first, second = build(self.features)
        mirrored = epsilon is not None
        self.first, self.second = (
            EncoderLayer(*(_mirrored(layer) if mirrored else layer), epsilon).double() for layer in (first, second)
        )
        if mirrored:  # remove all but the answer, so that the last norm makes it as large as can be
            width = 2 * self.features
            keep = torch.eye(width)
            keep[self.answer, self.answer] = keep[self.features + self.answer, self.features + self.answer] = 0
            self.second.inner = nn.Parameter(torch.cat((torch.eye(width), -torch.eye(width))).double())
            self.second.outer = nn.Parameter(torch.cat((-keep, keep), dim=1).double())

    def forward(self, bits: Int[Tensor, "batch n"]) -> Float[Tensor, " batch"]:
        x = self.embed(bits)
        x = self.first(x, x)
        return self.second(x, x[:, -1:])[:, 0, self.answer]

    def embed(self, bits: Int[Tensor, "batch n"]) -> Float[Tensor, "batch token width"]:
        """One-hot symbols with the marker last, and positions."""
        if bits.dim() != 2 or not 0 <= int(bits.min()) <= int(bits.max()) <= 1:
            raise BadInput(f"bits are zeros and ones of shape (batch, n), not {tuple(bits.shape)} with other values")
        dtype = self.first.query.dtype
        symbols = F.pad(bits, (0, 1), value=MARKER)
        x = F.one_hot(symbols.long(), self.features).to(dtype)
        place = torch.arange(symbols.shape[1], device=bits.device)
        if self.language == "parity":
            x[..., PLACE] = place.to(dtype) / symbols.shape[1]
            x[..., SIGN] = (1 - 2 * (place % 2)).to(dtype)
        else:
            x[..., FIRST] = (place == 0).to(dtype)
        return x if self.epsilon is None else torch.cat((x, -x), dim=-1)


Layer = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # query, key, value, inner, outer


def _parity(width: int) -> tuple[Layer, Layer]:
    count = _filled((width, width), {(COUNT, ONE): 1, (SHARE, MARKER): 1})
    hat = torch.zeros(3, width)
    hat[:, COUNT], hat[:, PLACE] = 1, -1
    hat[:, SHARE] = torch.tensor([-1.0, 0.0, 1.0])
    outer = _filled((width, 3), {(HERE, 0): 1, (HERE, 1): -2, (HERE, 2): 1})
    first = (torch.zeros(2, width), torch.zeros(2, width), torch.stack((count, torch.zeros_like(count))), hat, outer)
    query = _filled((2, width), {(0, MARKER): 1, (1, MARKER): 1})
    key = _filled((2, width), {(0, SIGN): 1, (1, SIGN): -1})
    even, odd = (_filled((width, width), {(PARITY, HERE): sign}) for sign in (-1, 1))
    return first, (query, key, torch.stack((even, odd)), torch.zeros(1, width), torch.zeros(width, 1))


def _first(width: int) -> tuple[Layer, Layer]:
    nothing, still = torch.zeros(1, width), torch.zeros(1, width, width)
    both = _filled((1, width), {(0, FIRST): 1, (0, ZERO): -1, (0, MARKER): -1})
    first = (nothing, nothing, still, both, _filled((width, 1), {(BOTH, 0): 1}))
    query, key = _filled((1, width), {(0, MARKER): 1}), _filled((1, width), {(0, FIRST): 1})
    value = _filled((width, width), {(ANSWER, FIRST): -0.5, (ANSWER, BOTH): 1})
    return first, (query, key, value.unsqueeze(0), nothing, nothing.T)


_LAYERS = {"parity": (10, PARITY, _parity), "first": (6, ANSWER, _first)}


def _filled(shape: tuple[int, int], entries: Entries) -> Tensor:
    matrix = torch.zeros(shape)
    for (row, column), number in entries.items():
        matrix[row, column] = number
    return matrix


def _mirrored(layer: Layer) -> Layer:
    """The same layer on (x, −x): it reads the first half and writes what it adds into both, with opposite signs."""
    query, key, value, inner, outer = layer
    read = torch.cat((torch.eye(query.shape[1]), torch.zeros(query.shape[1], query.shape[1])), dim=1)
    write = torch.cat((torch.eye(query.shape[1]), -torch.eye(query.shape[1])))
    return query @ read, key @ read, write @ value @ read, inner @ read, write @ outer


def target(language: Language, bits: Int[Tensor, "batch n"]) -> Tensor:
    """What the language says: true for odd parity, or for a first bit of one."""
    return bits.sum(dim=1) % 2 == 1 if language == "parity" else bits[:, 0] == 1


def predicted_logit(language: Language, n: int, answer: bool, epsilon: float | None = None) -> float | None:
    """The size of the logit by the formulas above; None for 0 < ε, of which they say nothing."""
    if epsilon is not None:
        return math.sqrt(_LAYERS[language][0]) if epsilon == 0 else None
    if language == "first":
        return 0.5 / (1 + n * math.exp(-1 / math.sqrt(6)))
    high, low = math.exp(1 / math.sqrt(5)), math.exp(-1 / math.sqrt(5))
    alike = n // 2 + 1 if not answer else (n + 1) // 2  # places 0 … n of the answer's own parity
    other = n + 1 - alike
    return (high / (alike * high + other * low) - low / (alike * low + other * high)) / (n + 1)
