"""What forward keeps for backward, in bytes: by batch, sequence and how much is computed again.

After Korthikanti et al. 2022, *Reducing activation recomputation in large Transformer models*, section 4, in bfloat16,
with flash attention, grouped key-value heads and gated MLPs, and without dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from theodolite.advice.budget.kernels import Kernels, Writing, writing
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

Recompute = Literal["none", "selective", "full"]
BYTES, FULL_BYTES = 2, 4  # bfloat16, float32


@dataclass(frozen=True)
class Activations:
    """Bytes of one pass over `batch` sequences of `sequence` tokens each, not yet divided among GPUs."""

    blocks: int  # kept by all blocks
    outside: int  # by the last norm and the output layer
    logits: int  # there at most at once while the loss is differentiated; 0 without a vocabulary
    block: int  # there at most at once, beyond what is kept, while one block is differentiated

    @property
    def kept(self) -> int:
        return self.blocks + self.outside


def activations(
    shape: ModelShape,
    batch: int,
    sequence: int,
    recompute: Recompute = "none",
    kernels: Kernels = "eager",
) -> Activations:
    """Per token of one block of width d, with a = H·d_a, k = (key-value heads)·d_a, MLP width m:

    none: (n + 2)·d a norm, 4·a + 4·k + 4·H for attention, 2·t·m for the MLP, where n and t are the kernels'
    selective: matrix products and attention are kept: 6·d + 4·a + 4·k + 4·H + 2·m (4·m where gated)
    full: the block's input, 2·d

    Parameters:
        shape: of the model
        batch: sequences in one pass
        sequence: tokens in each
        recompute: none, selective or full
        kernels: how the operations are written, eager or fused

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        >>> activations(read_config(gpt2, "gpt2"), 1, 1024, kernels="fused").blocks // (12 * 768 * 1024)  # 34 − 2
        32
    """
    tokens, how = batch * sequence, writing(shape, kernels)
    block = _block(shape, how)
    kept = {"none": block, "selective": _selective(shape), "full": BYTES * shape.width * shape.depth}[recompute]
    logits = 0 if shape.vocab is None or shape.headless else tokens * shape.vocab * how.loss_bytes
    again = (block - kept) // shape.depth  # what one block did not keep
    return Activations(
        blocks=tokens * kept,
        outside=tokens * (how.norm_bytes + BYTES) * shape.width,
        logits=logits,
        block=tokens * (again + _gradients(shape, again > 0)),
    )


def recompute_named(name: str) -> Recompute:
    if name not in get_args(Recompute):
        raise BadInput(f"--recompute '{name}' is none of {', '.join(get_args(Recompute))}: write one of them")
    return name  # type: ignore[return-value]


def mlp_numbers(shape: ModelShape) -> float:
    """Of the MLPs' width that one token passes, over all blocks.

    Of a mixture by its parameters, since experts, shared experts and dense blocks have widths of their own: those of
    the idle experts are what one token does not use.
    """
    if shape.experts > 1 and shape.parts.get("mlp") and not shape.two_stacks:
        used = shape.parts["mlp"] - (shape.params - shape.active)
        return used / ((3 if shape.gated else 2) * shape.width)
    return shape.depth * shape.mlp_width


def _block(shape: ModelShape, how: Writing) -> int:
    """All blocks, a token."""
    attentions = shape.depth + (shape.decoder_depth if shape.two_stacks else 0)
    norms = how.norms * shape.depth + (shape.decoder_depth if shape.two_stacks else 0)
    total = norms * (how.norm_bytes + BYTES) * shape.width
    total += attentions * _attention(shape)
    total += attentions * how.attention_bytes * shape.attention_width
    if how.head_norms:
        total += attentions * how.norm_bytes * shape.head_width * (shape.heads + shape.key_value_heads)
    if shape.experts > 1:  # each expert of a token gets a copy of it, and its output is kept to be weighed
        total += 2 * BYTES * shape.active_experts * shape.width * shape.depth
    return round(total + BYTES * how.activations * mlp_numbers(shape))


def _selective(shape: ModelShape) -> int:
    attentions = shape.depth + (shape.decoder_depth if shape.two_stacks else 0)
    products = attentions * (_attention(shape) + BYTES * shape.width)
    up = BYTES * (2 if shape.gated else 1) * mlp_numbers(shape)
    return round(products + up + 2 * BYTES * shape.width * shape.depth)


def _attention(shape: ModelShape) -> int:
    """Queries, keys, values and output of one, and the logarithm of each head's sum in float32."""
    both = (shape.score_width or shape.head_width) + shape.head_width
    return BYTES * both * (shape.heads + shape.key_value_heads) + FULL_BYTES * shape.heads


def _gradients(shape: ModelShape, again: bool) -> int:
    """Of one block's own numbers while it is differentiated: those of the MLP are the widest.

    In a gated one there are two of them, unless they take the room of what was computed again for them.
    """
    wide = mlp_numbers(shape) / shape.depth
    return round(BYTES * ((2 if shape.gated and not again else 1) * wide + 2 * shape.width))
