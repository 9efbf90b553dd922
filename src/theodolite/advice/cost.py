"""What a shape costs, computed: arithmetic and memory per token, and how many blocks come one after the other."""

from __future__ import annotations

import math
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
    `sequential_depth` are of a token that the decoder writes. None: not computed, as of networks that are no
    Transformers.
    """

    context: int
    training_flops: int | None
    inference_flops: int | None
    cache_bytes: int | None  # per token kept, the mean over the context; 0 where nothing is written token by token
    context_cache_bytes: int | None  # of the whole context: layers with a window keep no more than that
    weight_bytes: int  # as stored, where that is stated
    training_bytes: int  # weights, gradients and optimiser; activations come on top
    sequential_depth: int | None


def cost(shape: ModelShape, context: int) -> Cost:
    """Training 6·M + 12·L·H·d_a·T, inference 2·M + 4·L·H·d_a·T, for M parameters that multiply.

    Each parameter of a matrix is one multiplication and one addition a token, and twice that again going back.
    Attention at context T multiplies T keys and T values of width H·d_a a block, fewer where a window cuts them off;
    where a head's keys have another width than its values, each counts with its own. Causal masks are not taken off.
    In an encoder–decoder both sides have T tokens, and a decoder's block attends twice.
    """
    memory = {"weight_bytes": _stored(shape), "training_bytes": TRAINING_BYTES * shape.params}
    if not shape.speaks:
        return Cost(context, None, None, None, None, **memory, sequential_depth=shape.depth or None)
    forward = 2 * multiplied_parameters(shape)
    head = (shape.score_width or shape.head_width) + shape.head_width
    once = 2 * shape.heads * head
    if shape.two_stacks:
        forward += 2 * shape.decoder_depth * once * context
        encoder = 2 * encoder_multiplied_parameters(shape) + (shape.depth - shape.decoder_depth) * once * context
        training = 3 * (forward + encoder) // 2  # both are even
    else:
        forward += once * _attended(shape, context)
        training = 3 * forward
    whole = _cache(shape, context)
    return Cost(
        context=context,
        training_flops=training,
        inference_flops=forward,
        cache_bytes=-(-whole // context),
        context_cache_bytes=whole,
        **memory,
        sequential_depth=shape.decoder_depth if shape.two_stacks else shape.depth,
    )


def _attended(shape: ModelShape, context: int) -> int:
    """Tokens that one token attends to, all layers together."""
    cut = sum(layers * max(0, context - window) for window, layers in shape.windows.items())
    return shape.depth * context - cut


def _stored(shape: ModelShape) -> int:
    """Weights in memory: blocks in the bits they are stored in, tables and norms in bfloat16."""
    if shape.quantised is None or not shape.quantised.bits:
        return BYTES * shape.params
    small = sum(shape.parts.get(part, 0) for part in ("attention", "mlp"))
    return BYTES * (shape.params - small) + math.ceil(small * shape.quantised.bits / 8)


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


def _cache(shape: ModelShape, context: int) -> int:
    """Bytes kept for all tokens of the context."""
    alone = shape.counted.endswith("EncoderModel")
    encodes = shape.family in _ENCODERS or shape.counted.endswith(("ForMaskedLM", "ForPreTraining"))
    if encodes or alone or (shape.modality == "image" and shape.vocab is None):
        return 0
    numbers = shape.cached_numbers or 2 * shape.key_value_heads * shape.head_width
    if shape.two_stacks:
        return shape.decoder_depth * context * numbers * BYTES
    kept = _attended(shape, context)
    if shape.caching_layers is not None:
        kept = kept * shape.caching_layers // shape.depth
    return kept * numbers * BYTES
