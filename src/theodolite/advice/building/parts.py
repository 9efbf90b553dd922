"""The part of a model that a tensor belongs to, by its name in `transformers`."""

from __future__ import annotations

import re

# The first that matches decides. A block is what is numbered.
_IN_BLOCKS = (
    ("positions", r"relative_attention_bias|rel_pos|relative_position_bias"),
    ("norms", r"(^|[._])(norm|ln|layernorm|layer_norm|rmsnorm)\w*\.(weight|bias)$|norm\d*\.(weight|bias)$"),
    ("router", r"router|mlp\.gate\.|moe\.gate\.|gate\.weight$|\.gate\.wg\."),
    (
        "mlp",
        r"mlp|ffn|feed_?forward|experts|moe|intermediate|\bfc\d?\b|densereludense|(^|\.)(w1|w2|w3|ff)\.|output\.dense",
    ),
    ("attention", r"att(n|ention)|[qkvo]_proj|qkv|(^|\.)(query|key|value|mixer|mamba|ssm|conv)"),
)
_OUTSIDE = (
    ("positions", r"position|wpe|pos_embed"),
    ("head", r"lm_head|embed_out|predictions|cls\.|classifier|generator_|score|output_projection|final_logits"),
    ("embedding", r"embed|wte|shared|patch|tok"),
)
_ENCODER = re.compile(r"(^|\.)encoder\.")
_CROSSED = re.compile(r"(encoder_attn|cross_?attn|cross_?attention|EncDecAttention|encoder_decoder_attn)\w*\.")
_KEYS_AND_VALUES = re.compile(r"\.(k|v|k_proj|v_proj|key|value|k_lin|v_lin)\.")
_EXPERTS = re.compile(r"(^|\.)experts?(\.|_|$)|sparse_moe\.(input|output)_linear")
_ALWAYS = re.compile(r"shared_expert|shared_mlp")


def part_of(name: str) -> str:
    """One of the parts of a shape; what is not recognised inside a block is `mlp`'s neighbour, `other` outside."""
    lowered = name.lower()
    numbered = re.search(r"\.\d+\.", lowered) is not None
    if "self_output.dense" in lowered or "attention.output" in lowered:
        return "norms" if "norm" in lowered else "attention"
    for part, pattern in _IN_BLOCKS if numbered else _OUTSIDE:
        if re.search(pattern, lowered):
            return part
    return "mlp" if numbered else "other"


def is_expert(name: str) -> bool:
    """Whether a token uses only some of such tensors, or of the rows of such a one."""
    return _EXPERTS.search(name) is not None and _ALWAYS.search(name) is None


def is_encoders(name: str) -> bool:
    """Whether a token of the encoder multiplies it: its stack, and the keys and values of cross-attention."""
    if _CROSSED.search(name):
        return _KEYS_AND_VALUES.search(name) is not None
    return _ENCODER.search(name) is not None
