"""Residual convolution over the tokens, whose windows may grow from layer to layer."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import positive, register


class Window(nn.Module):
    """A convolution as one matrix product with shifted copies: grouped convolutions are slow under vmap.

    The window's taps stand `dilation` apart; it ends at the token itself, or is centred on it. Tokens that do not
    exist are zero. `taps.weight` holds one width × width matrix per tap, the earliest first, side by side.
    """

    def __init__(self, width: int, kernel: int, dilation: int, causal: bool) -> None:
        super().__init__()
        last = 0 if causal else kernel // 2
        self.offsets = [(tap - kernel + 1 + last) * dilation for tap in range(kernel)]
        self.taps = nn.Linear(kernel * width, width)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        tokens = x.shape[1]
        # A shift by more than all tokens leaves zeros only, so padding by the number of tokens is enough.
        offsets = [max(-tokens, min(tokens, offset)) for offset in self.offsets]
        padded = nn.functional.pad(x, (0, 0, -offsets[0], offsets[-1]))
        starts = [offset - offsets[0] for offset in offsets]
        return self.taps(torch.cat([padded[:, start : start + tokens] for start in starts], dim=-1))


class ConvolutionBlock(nn.Module):
    """x + W gelu(window(x)), with absent tokens zero where the window reads them."""

    def __init__(self, width: int, kernel: int, dilation: int, causal: bool) -> None:
        super().__init__()
        self.window = Window(width, kernel, dilation, causal)
        self.combine = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch token width"], absent: Bool[Tensor, "batch token 1"] | None
    ) -> Float[Tensor, "batch token width"]:
        entering = x if absent is None else x.masked_fill(absent, 0)
        return x + self.combine(nn.functional.gelu(self.window(entering)))


@register(
    name="convolution",
    summary="residual convolution over the tokens, with growing dilation",
    kind="sequence",
    polynomial=False,
    defaults={"features": 4, "tokens": 8},
)
class Convolution(nn.Module):
    """Layer l has windows of `kernel` tokens that stand dilationˡ apart (dilation 1: plain windows)."""

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
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width, kernel=kernel, dilation=dilation)
        if not causal and kernel % 2 == 0:
            raise BadInput(f"a window centred on its token has an odd kernel, not {kernel}: choose {kernel + 1}")
        self.causal = causal
        self.embed = nn.Linear(features, width)
        self.blocks = nn.ModuleList(ConvolutionBlock(width, kernel, dilation**layer, causal) for layer in range(depth))
        self.read = nn.Linear(width, outputs)

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        absent = None if present is None or self.causal else ~present.unsqueeze(-1)
        x = self.embed(x)
        for block in self.blocks:
            x = block(x, absent)
        return self.read(x)
