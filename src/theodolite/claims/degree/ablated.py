"""Transformers from which softmax, activations or both were taken out, trained beside the whole: equal parameters.

Without softmax a token meets the others by Σ_j ⟨q, k_j⟩ v_j / n over the n tokens it sees; without activations the
perceptron of every block is the product of its two matrices. With neither, a block is a polynomial of degree 3 in what
its layer norm gives; the norms stay, without which such blocks do not train.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.nets.contract import choice
from theodolite.nets.transformer import Transformer, TransformerBlock, logits

KINDS = ("nothing", "softmax", "activations", "both")
NET = f"{__file__}:ablated"  # as workers find it: no registry has it


def ablated(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 2,
    width: int = 32,
    heads: int = 4,
    without: str = "both",
) -> Transformer:
    """A causal `transformer` of this shape from which something was taken out; its parameters are the same."""
    choice("without", without, KINDS)
    net = Transformer(features, outputs, tokens, depth, width, heads)
    for block in (part for part in net.modules() if isinstance(part, TransformerBlock)):
        if without in ("softmax", "both"):
            block.mix = plain_attention
        if without in ("activations", "both"):
            block.mlp[1] = nn.Identity()
    return net


def plain_attention(
    query: Float[Tensor, "batch head query attention_width"],
    key: Float[Tensor, "batch head key attention_width"],
    value: Float[Tensor, "batch head key attention_width"],
    bias: Float[Tensor, "*any query key"] | None = None,
) -> Float[Tensor, "batch head query attention_width"]:
    """The mean of ⟨q, k_j⟩ v_j / √d over the keys that are not hidden by a bias of −∞."""
    scores = logits(query, key)
    if bias is None:
        return scores @ value / key.shape[-2]
    seen = torch.isfinite(bias).to(scores.dtype)
    return (scores * seen) @ value / seen.sum(dim=-1, keepdim=True)
