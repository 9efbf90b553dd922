"""What a shape costs, computed: arithmetic and memory per token, and how many blocks come one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advice.shape import OUTSIDE_BLOCKS, ModelShape

BYTES = 2
"""Of a bfloat16 number."""

TRAINING_BYTES = 16
"""Per parameter with Adam in mixed precision: weight and gradient in bfloat16; weight and two moments in float32."""

# Nothing is written token by token, so nothing is kept.
_ENCODERS = (
    *("albert", "bert", "clip_text_model", "deberta", "deit", "distilbert", "electra", "roberta", "vit", "xlm-roberta"),
)


@dataclass(frozen=True)
class Cost:
    """FLOPs are per token at `context` tokens, bytes are of bfloat16; `sequential_depth` is the proxy for latency.

    Of an encoder–decoder, training is the mean of a token of the encoder and one of the decoder; inference, cache and
    `sequential_depth` are of a token that the decoder writes.
    """

    context: int
    training_flops: int
    inference_flops: int
    cache_bytes: int  # per token kept; 0 where nothing is written token by token
    weight_bytes: int
    training_bytes: int  # weights, gradients and optimiser; activations come on top
    sequential_depth: int


def cost(shape: ModelShape, context: int) -> Cost:
    """Training 6·M + 12·L·H·d_a·T, inference 2·M + 4·L·H·d_a·T, for M parameters that multiply.

    Each parameter of a matrix is one multiplication and one addition a token, and twice that again going back.
    Attention at context T multiplies T keys and T values of width H·d_a a block. Causal masks are not taken off.
    In an encoder–decoder both sides have T tokens, and a decoder's block attends twice.
    """
    forward = 2 * multiplied_parameters(shape)
    once = 4 * shape.attention_width * context
    if shape.two_stacks:
        forward += 2 * shape.decoder_depth * once
        encoder = 2 * encoder_multiplied_parameters(shape) + (shape.depth - shape.decoder_depth) * once
        training = 3 * (forward + encoder) // 2  # both are even
    else:
        forward += shape.depth * once
        training = 3 * forward
    return Cost(
        context=context,
        training_flops=training,
        inference_flops=forward,
        cache_bytes=_cache(shape),
        weight_bytes=BYTES * shape.params,
        training_bytes=TRAINING_BYTES * shape.params,
        sequential_depth=shape.decoder_depth if shape.two_stacks else shape.depth,
    )


def multiplied_parameters(shape: ModelShape) -> int:
    """Parameters that one token multiplies: tables that are only looked up left out, shared layers once a pass.

    Of an encoder–decoder, a token of the decoder: the keys and values of cross-attention are the encoder's tokens'.
    """
    outside = sum(shape.parts.get(part, 0) - shape.encoder_token.get(part, 0) for part in OUTSIDE_BLOCKS)
    blocks = shape.active - outside
    if shape.distinct_layers and shape.distinct_layers < shape.depth:
        blocks = blocks * shape.depth // shape.distinct_layers
    looked_up = shape.parts.get("positions", 0) - shape.encoder_token.get("positions", 0)
    if shape.vocab is not None and (shape.headless or not shape.tied):  # patches are projected, not looked up
        table = shape.vocab * (shape.embedding_rank or shape.width)  # what maps a factored one is multiplied
        looked_up += min(table, shape.parts.get("embedding", 0))
    return blocks + outside - looked_up


def encoder_multiplied_parameters(shape: ModelShape) -> int:
    """The same for a token of the encoder in an encoder–decoder."""
    return sum(count for part, count in shape.encoder_token.items() if part != "positions")


def _cache(shape: ModelShape) -> int:
    alone = shape.counted.endswith("EncoderModel")
    if shape.family in _ENCODERS or alone or (shape.modality == "image" and shape.vocab is None):
        return 0
    numbers = shape.cached_numbers or 2 * shape.key_value_heads * shape.head_width
    return (shape.decoder_depth or shape.depth) * numbers * BYTES
