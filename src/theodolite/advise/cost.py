"""What a shape costs, computed: arithmetic and memory per token, and how many blocks come one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advise.shape import OUTSIDE_BLOCKS, ModelShape

BYTES = 2
"""Of a bfloat16 number."""

TRAINING_BYTES = 16
"""Per parameter with Adam in mixed precision: weight and gradient in bfloat16; weight and two moments in float32."""

_ENCODERS = ("albert", "bert", "deberta", "deit", "distilbert", "electra", "roberta", "vit")  # nothing to cache
_COMPRESSED_CACHE = ("deepseek_v2", "deepseek_v3")


@dataclass(frozen=True)
class Cost:
    """FLOPs are per token at `context` tokens, bytes are of bfloat16; `sequential_depth` is the proxy for latency.

    Of an encoder–decoder they are those of one input and one output token together.
    """

    context: int
    training_flops: int
    inference_flops: int
    cache_bytes: int | None  # per token kept; None where attention keeps something else
    weight_bytes: int
    training_bytes: int  # weights, gradients and optimiser; activations come on top
    sequential_depth: int


def cost(shape: ModelShape, context: int) -> Cost:
    """Training 6·M + 12·L·H·d_a·T, inference 2·M + 4·L·H·d_a·T, for M parameters that multiply.

    Each parameter of a matrix is one multiplication and one addition a token, and twice that again going back.
    Attention at context T multiplies T keys and T values of width H·d_a a block. Causal masks are not taken off.
    """
    attention = shape.depth * shape.attention_width * context
    multiplied = multiplied_parameters(shape)
    return Cost(
        context=context,
        training_flops=6 * multiplied + 12 * attention,
        inference_flops=2 * multiplied + 4 * attention,
        cache_bytes=_cache(shape),
        weight_bytes=BYTES * shape.params,
        training_bytes=TRAINING_BYTES * shape.params,
        sequential_depth=shape.depth,
    )


def multiplied_parameters(shape: ModelShape) -> int:
    """Parameters that one token multiplies: tables that are only looked up left out, shared layers once a pass."""
    outside = sum(shape.parts.get(part, 0) for part in OUTSIDE_BLOCKS)
    blocks = shape.active - outside
    if shape.distinct_layers and shape.distinct_layers < shape.depth:
        blocks = blocks * shape.depth // shape.distinct_layers
    looked_up = shape.parts.get("positions", 0) + (0 if shape.tied else shape.parts.get("embedding", 0))
    if shape.vocab is None:  # patches are projected, not looked up
        looked_up = shape.parts.get("positions", 0)
    return blocks + outside - looked_up


def _cache(shape: ModelShape) -> int | None:
    if shape.family in _COMPRESSED_CACHE:
        return None
    if shape.family in _ENCODERS or (shape.modality == "image" and shape.vocab is None):
        return 0
    return 2 * (shape.decoder_depth or shape.depth) * shape.key_value_heads * shape.head_width * BYTES
