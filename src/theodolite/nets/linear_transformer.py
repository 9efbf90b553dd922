"""The linear Transformer: attention whose weights are products of features, so that the past is one matrix per head."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.nets.parts.dense import Linear
from theodolite.nets.parts.norm import LayerNorm
from theodolite.nets.parts.positions import sinusoidal
from theodolite.nets.transformer import TransformerBlock, attention_symmetries, check_blocks
from theodolite.theory.cost import CHUNK
from theodolite.theory.sensitivity import InfluenceLaw, attention_law


def feature_map(x: Tensor) -> Tensor:
    """elu(x) + 1, written so that it stays above 0 where −1 + 1 would round to it."""
    return torch.exp(x.clamp(max=0)) + torch.relu(x)


def linear_attention(
    query: Float[Tensor, "batch head token attention_width"],
    key: Float[Tensor, "batch head token attention_width"],
    value: Float[Tensor, "batch head token attention_width"],
    present: Bool[Tensor, "batch token"] | None = None,
    causal: bool = True,
    chunk: int = CHUNK,
) -> Float[Tensor, "batch head token attention_width"]:
    """Σ_j ⟨φ(q_i), φ(k_j)⟩ v_j / Σ_j ⟨φ(q_i), φ(k_j)⟩, φ = elu + 1 (Katharopoulos et al. 2020), over j ≤ i if causal.

    Inside a chunk the sum is taken over pairs of tokens; from chunk to chunk Σ φ(k) (v, 1)ᵀ is carried.
    Padding stands on the right, so a causal sum does not meet it.
    """
    query, key = feature_map(query), feature_map(key)
    value = torch.cat((value, torch.ones_like(value[..., :1])), dim=-1)  # the last entry collects the weights
    if causal:
        summed = _causal(query, key, value, min(chunk, query.shape[2]))
    else:
        if present is not None:
            key = key.masked_fill(~present[:, None, :, None], 0)
        summed = query @ (key.transpose(-1, -2) @ value)
    total = summed[..., -1:]
    return summed[..., :-1] / total.masked_fill(total == 0, 1)  # nothing is seen: a row of padding only


def _causal(query: Tensor, key: Tensor, value: Tensor, chunk: int) -> Tensor:
    tokens = query.shape[2]
    missing = -tokens % chunk
    query, key, value = (
        nn.functional.pad(each, (0, 0, 0, missing)).unflatten(2, (-1, chunk)) for each in (query, key, value)
    )
    summed = torch.tril(query @ key.transpose(-1, -2)) @ value
    if query.shape[2] > 1:
        carried = (key[:, :, :-1].transpose(-1, -2) @ value[:, :, :-1]).cumsum(dim=2)
        later = summed[:, :, 1:] + query[:, :, 1:] @ carried
        summed = torch.cat((summed[:, :, :1], later), dim=2)
    return summed.flatten(2, 3)[:, :, :tokens]


@register_trained(
    "linear-transformer", "Transformer with linear attention (elu + 1), pre-norm, with or without a causal mask"
)
class LinearTransformer(nn.Module):
    """The blocks of `transformer`; a causal one carries heads·a·(a + 1) numbers per layer, a = width / heads."""

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 32,
        heads: int = 4,
        block: str = "serial",
        positions: str = "none",
        causal: bool = True,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs)
        check_blocks(depth, width, heads, block)
        choice("positions", positions, ("none", "sinusoidal"))
        self.width, self.depth = width, depth
        self.positions, self.causal = positions, causal
        self.embed = Linear(features, width)
        mix = partial(linear_attention, causal=causal)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, block == "parallel", mix) for _ in range(depth))
        self.read = nn.Sequential(LayerNorm(width), Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        x = self.embed(x)
        if self.positions == "sinusoidal":
            x = x + sinusoidal(x.shape[1], self.width, x)
        for block in self.blocks:
            x = block(x, present)
        return self.read(x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries(self.positions, self.causal)

    def influence(self) -> InfluenceLaw:
        return attention_law(self.depth, self.causal, softmax=False)
