"""Residual convolution over the tokens, whose windows may grow from layer to layer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.theory.sensitivity import InfluenceLaw, convolution_law


class Window(nn.Module):
    """A convolution as one matrix product with shifted copies: grouped convolutions are slow under vmap.

    The window's taps stand `dilation` apart; it ends at the token itself, or is centred on it. Tokens that do not
    exist are zero, or those at the other end (`circular`). `taps.weight` holds one width × width matrix per tap, the
    earliest first, side by side.
    """

    def __init__(self, width: int, kernel: int, dilation: int, causal: bool, circular: bool = False) -> None:
        super().__init__()
        last = 0 if causal else kernel // 2
        self.circular = circular
        self.offsets = [(tap - kernel + 1 + last) * dilation for tap in range(kernel)]
        self.taps = nn.Linear(kernel * width, width)

    def forward(
        self, x: Float[Tensor, "batch token width"], absent: Bool[Tensor, "batch token 1"] | None = None
    ) -> Float[Tensor, "batch token width"]:
        tokens = x.shape[1]
        if self.circular:
            return self.taps(torch.cat([_around(x, offset, absent) for offset in self.offsets], dim=-1))
        # A shift by more than all tokens leaves zeros only, so padding by the number of tokens is enough.
        offsets = [max(-tokens, min(tokens, offset)) for offset in self.offsets]
        padded = nn.functional.pad(x, (0, 0, -offsets[0], offsets[-1]))
        starts = [offset - offsets[0] for offset in offsets]
        return self.taps(torch.cat([padded[:, start : start + tokens] for start in starts], dim=-1))


def _around(
    x: Float[Tensor, "batch token width"], offset: int, absent: Bool[Tensor, "batch token 1"] | None
) -> Float[Tensor, "batch token width"]:
    """Every token's neighbour `offset` further, counted around the tokens that are present."""
    if absent is None:
        return x.roll(-offset, dims=1)
    length = (~absent).sum(dim=1, keepdim=True).clamp(min=1)
    place = torch.arange(x.shape[1], device=x.device)[None, :, None]
    return torch.take_along_dim(x, (place + offset) % length, dim=1)


class ConvolutionBlock(nn.Module):
    """x + W gelu(window(x)), with absent tokens zero where the window reads them."""

    def __init__(self, width: int, kernel: int, dilation: int, causal: bool, circular: bool = False) -> None:
        super().__init__()
        self.window = Window(width, kernel, dilation, causal, circular)
        self.combine = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch token width"], absent: Bool[Tensor, "batch token 1"] | None
    ) -> Float[Tensor, "batch token width"]:
        entering = x if absent is None else x.masked_fill(absent, 0)
        return x + self.combine(nn.functional.gelu(self.window(entering, absent)))


@register_trained("convolution", "residual convolution over the tokens, with growing dilation")
class Convolution(nn.Module):
    """Layer l has windows of `kernel` tokens that stand dilationˡ apart (dilation 1: plain windows).

    `padding` says what stands beyond the ends: zeros, or the other end (circular).
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 4,
        width: int = 32,
        kernel: int = 5,
        dilation: int = 2,
        causal: bool = True,
        padding: str = "zeros",
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width, kernel=kernel, dilation=dilation)
        if not causal and kernel % 2 == 0:
            raise BadInput(f"a window centred on its token has an odd kernel, not {kernel}: choose {kernel + 1}")
        choice("padding", padding, ("zeros", "circular"))
        if causal and padding == "circular":
            raise BadInput("a window that reads on at the other end is not causal: use padding zeros, or causal false")
        self.causal, self.padding = causal, padding
        self.depth, self.kernel, self.dilation = depth, kernel, dilation
        self.embed = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            ConvolutionBlock(width, kernel, dilation**layer, causal, padding == "circular") for layer in range(depth)
        )
        self.read = nn.Linear(width, outputs)

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        absent = None if present is None or self.causal else ~present.unsqueeze(-1)
        x = self.embed(x)
        for block in self.blocks:
            x = block(x, absent)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        blind = self.kernel == 1
        circular = self.padding == "circular"
        if blind:
            translated = Symmetry(True, "windows of one token see no other")
        elif circular:
            translated = Symmetry(True, "the same window at every place of a circle of tokens")
        else:
            translated = Symmetry(False, "zeros beyond the ends tell where the ends are")
        if blind or self.causal:
            shifted = Symmetry(True, "the same window at every place, and zeros before the first")
        elif circular:
            shifted = Symmetry(False, "zero tokens come between the two ends that the circle joins")
        elif self.depth == 1:
            shifted = Symmetry(True, "the same window at every place, and zeros before the first")
        else:
            shifted = Symmetry(False, "what a centred window gives left of the first token is cut off")
        return {
            "translation": translated,
            "permutation": Symmetry(blind, translated.reason if blind else "the taps of a window are in order"),
            "time-shift": shifted,
        }

    def influence(self) -> InfluenceLaw:
        return convolution_law(self.depth, self.kernel, self.dilation, self.causal, self.padding == "circular")
