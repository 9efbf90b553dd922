"""A configuration of the same family in another depth, width and number of heads."""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Mapping
from typing import Any

from theodolite.advice.families import FAMILIES
from theodolite.advice.fields import DEPTH, HEAD_WIDTH, HEADS, KEY_VALUE_HEADS, MLP_WIDTH, WIDTH, Fields
from theodolite.advice.reading import read_config
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import text_part
from theodolite.errors import BadInput

ENCODER_DECODERS = ("t5", "mt5", "umt5")
STACK_HEADS = ("encoder_attention_heads", "decoder_attention_heads")
# Sizes in proportion to the width.
PROPORTIONAL = (
    *MLP_WIDTH,
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "pooler_output_size",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
)
# Where the MLP is four times the width unless stated otherwise; elsewhere its default is a fixed number.
FOUR_TIMES = ("gpt2", "gpt_neo", "gptj", "bloom", "falcon")
MLP_NAME = {
    "opt": "ffn_dim",
    "chatglm": "ffn_hidden_size",
    "distilbert": "hidden_dim",
    "t5": "d_ff",
    "mt5": "d_ff",
    "umt5": "d_ff",
}
# Where key-value heads that are not stated are a fixed number, not as many as heads.
FIXED_KEY_VALUE_HEADS = (
    "mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "gemma", "gemma2", "gemma3_text",
)  # fmt: skip
# Numbers of layers in proportion to the depth.
LAYER_COUNTS = ("max_window_layers", "first_k_dense_replace")
PER_LAYER = ("layer_types", "no_rope_layers", "attention_layers", "mlp_layer_types")


def reshape(
    config: Mapping[str, Any], depth: int, width: int, heads: int, old: ModelShape | None = None
) -> dict[str, Any]:
    """The configuration with these sizes, every field that depends on them changed along.

    The MLP keeps its ratio to the width (a multiple of 8), key-value heads their ratio to the heads, a stated head
    width stays, an encoder and a decoder share the depth as before, and lists with an entry for each layer are cut or
    repeated. `old` is the shape of the configuration, where that is known already.
    """
    wanted = Fields({"depth": depth, "width": width, "heads": heads}, "the new shape")
    depth, width, heads = wanted.depth(("depth",)), wanted.size("width"), wanted.size("heads")
    inner, key = text_part(config, "the configuration")
    new = copy.deepcopy(dict(config))
    if key is None:
        return _reshaped(new, depth, width, heads, old)
    new[key] = _reshaped(copy.deepcopy(dict(inner)), depth, width, heads, old)
    return new


def _reshaped(new: dict[str, Any], depth: int, width: int, heads: int, old: ModelShape | None) -> dict[str, Any]:
    fields = Fields(dict(new), "the configuration")
    family = fields.text("model_type", "")
    old = old or read_config(new, "the configuration")
    if family not in ENCODER_DECODERS and width % heads:
        raise BadInput(f"{heads} heads do not divide the width {width}: pass a width that is a multiple of the heads")
    _set(new, WIDTH, width)
    _set(new, HEADS, heads)
    new.update({name: heads for name in STACK_HEADS if fields.has(name)})
    _set_depth(new, fields, family, old, depth)
    _set_in_proportion(new, fields, family, old, width, heads)
    if fields.optional("word_embed_proj_dim") == old.width:
        new["word_embed_proj_dim"] = width
    if family == "electra" and fields.optional("embedding_size") == old.width:
        new["embedding_size"] = width
    for name in LAYER_COUNTS:
        if fields.has(name):
            new[name] = min(depth, round(fields.count(name, 0) * depth / old.depth))
    if fields.has("mlp_only_layers"):
        new["mlp_only_layers"] = [layer for layer in fields.indices("mlp_only_layers") if layer < depth]
    for name in PER_LAYER:
        if isinstance(new.get(name), list) and new[name]:
            new[name] = _cycled(new[name], depth)
    if family == "gpt_neo":
        _write_out_attention(new, depth)
    if family == "albert" and fields.has("num_hidden_groups"):
        new["num_hidden_groups"] = min(fields.size("num_hidden_groups"), depth // fields.size("inner_group_num", 1))
    return new


def _set_in_proportion(
    new: dict[str, Any], fields: Fields, family: str, old: ModelShape, width: int, heads: int
) -> None:
    """The MLP's width with the model's, key-value heads with the heads, what belongs to a head with the head."""
    for name in PROPORTIONAL:
        value = fields.optional(name)
        if value is not None:
            new[name] = _multiple_of_eight(value * width / old.width)
    name = MLP_NAME.get(family, MLP_WIDTH[0])
    if not fields.has(name) and family in FAMILIES and family not in FOUR_TIMES and old.experts == 1:
        new[name] = _multiple_of_eight(old.mlp_width * width / old.width)
    stated = [name for name in KEY_VALUE_HEADS if fields.has(name)]
    if not stated and family in FIXED_KEY_VALUE_HEADS and KEY_VALUE_HEADS[0] not in new:
        stated = [KEY_VALUE_HEADS[0]]
    for name in stated:
        new[name] = dividing(heads, fields.size(name, old.key_value_heads) * heads / old.heads)
    _set_nested(new, old, width, heads)
    share = width // heads
    if fields.config.get("query_pre_attn_scalar") == old.width / old.heads:
        new["query_pre_attn_scalar"] = share
    if not fields.has(*HEAD_WIDTH):
        _set_in_a_head(new, fields, old.head_width, share)


def _set_nested(new: dict[str, Any], old: ModelShape, width: int, heads: int) -> None:
    """DBRX keeps its key-value heads and its MLP in objects of their own."""
    attention, ffn = new.get("attn_config"), new.get("ffn_config")
    if isinstance(attention, dict) and type(attention.get("kv_n_heads")) is int:
        attention["kv_n_heads"] = dividing(heads, attention["kv_n_heads"] * heads / old.heads)
    if isinstance(ffn, dict) and type(ffn.get("ffn_hidden_size")) is int:
        ffn["ffn_hidden_size"] = _multiple_of_eight(ffn["ffn_hidden_size"] * width / old.width)


def _set_in_a_head(new: dict[str, Any], fields: Fields, old: int, share: int) -> None:
    """Rotary positions turn pairs of a head's coordinates: as many as there are, with a factor for each pair."""
    if fields.has("rotary_dim"):
        new["rotary_dim"] = max(2, min(fields.size("rotary_dim"), share) // 2 * 2)
    for scaling in (new.get("rope_scaling"), new.get("rope_parameters")):
        for name in ("short_factor", "long_factor"):
            factors = scaling.get(name) if isinstance(scaling, dict) else None
            if isinstance(scaling, dict) and isinstance(factors, list) and factors:
                scaling[name] = _resampled(factors, max(1, len(factors) * share // old))


def _set(new: dict[str, Any], names: tuple[str, ...], value: int) -> None:
    """Every alias that is stated; the first where none is."""
    stated = [name for name in names if new.get(name) is not None]
    for name in stated or names[:1]:
        new[name] = value


def _set_depth(new: dict[str, Any], fields: Fields, family: str, old: ModelShape, depth: int) -> None:
    """The depth of one stack, or of encoder and decoder in proportion."""
    if old.decoder_depth and family in ENCODER_DECODERS:
        first, second = ("num_layers", "num_hidden_layers"), "num_decoder_layers"
    elif old.decoder_depth:
        first, second = ("encoder_layers", *DEPTH), "decoder_layers"
    else:
        inner = fields.size("inner_group_num", 1) if family == "albert" else 1
        if depth % inner:
            raise BadInput(
                f"the layers come in groups of {inner}, and the depth is {depth}: pass a multiple of {inner}"
            )
        return _set(new, DEPTH, depth // inner)
    if depth < 2:
        raise BadInput(f"an encoder and a decoder need a layer each, and the depth is {depth}: pass at least 2")
    encoder = fields.depth(first)
    decoder = fields.size(second, encoder)
    share = min(depth - 1, max(1, round(depth * encoder / (encoder + decoder))))
    _set(new, first, share)
    new[second] = depth - share
    return None


def _multiple_of_eight(value: float) -> int:
    return max(8, 8 * round(value / 8))


def dividing(heads: int, wanted: float) -> int:
    """The divisor of `heads` nearest to the wanted number."""
    divisors = [count for count in range(1, heads + 1) if heads % count == 0]
    return min(divisors, key=lambda count: (abs(count - wanted), -count))


def _cycled(values: list[Any], length: int) -> list[Any]:
    return [values[index % len(values)] for index in range(length)]


def _resampled(values: list[Any], length: int) -> list[Any]:
    return [values[index * len(values) // length] for index in range(length)]


def _write_out_attention(new: dict[str, Any], depth: int) -> None:
    """`attention_types` says for runs of layers which attention they use; written out for each layer."""
    runs = new.get("attention_types") or [[["global", "local"], 12]]
    try:
        each = [kind for kinds, times in runs for _ in range(times) for kind in kinds]
        new["attention_types"] = [[_cycled(each, depth), 1]]
    except (TypeError, ValueError, ZeroDivisionError):
        raise BadInput(
            f"attention_types of the configuration is {reprlib.repr(runs)}: write pairs such as "
            '[["global", "local"], 12]'
        ) from None
    if "attention_layers" in new:
        new["attention_layers"] = _cycled(each, depth)
