"""From a Hugging Face configuration to the words that trainers share, for the families that they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.advice.exports.blueprint import Blueprint, LatentAttention, Mixture
from theodolite.advice.fields import Fields
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import text_part
from theodolite.errors import BadInput

_BIASES = {"qkv_bias": True, "output_bias": True, "mlp_bias": True}
_PLAIN = {"gated": False, "rms_norm": False, **_BIASES}
# What a family has that its configuration need not state: of the blueprint, and the defaults of fields read below.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"rms_norm_eps": 1e-6},
    "mistral": {"rms_norm_eps": 1e-6},
    "qwen2": {"rms_norm_eps": 1e-6, "qkv_bias": True},
    "qwen3": {"rms_norm_eps": 1e-6, "head_norm": True},
    "phi3": {"rms_norm_eps": 1e-5},
    "mixtral": {"rms_norm_eps": 1e-5, "rope_theta": 1e6},
    "qwen2_moe": {"rms_norm_eps": 1e-6, "qkv_bias": True},
    "qwen3_moe": {"rms_norm_eps": 1e-6, "head_norm": True},
    "deepseek_v2": {"rms_norm_eps": 1e-6},
    "deepseek_v3": {"rms_norm_eps": 1e-6},
    "gpt2": {**_PLAIN, "learned_positions": True, "act": "gelu_new"},
    "gpt_neox": {**_PLAIN, "rotary": 0.25, "act": "gelu"},
    "phi": {**_PLAIN, "rotary": 0.5, "act": "gelu_new", "parallel": True, "one_norm": True, "head_bias": True},
}
_OF_THE_BLOCK = (*_PLAIN, "head_norm", "learned_positions", "parallel", "one_norm", "head_bias")
# Why others are not, where it can be said in a few words.
REASONS = {
    "bloom": "its positions are ALiBi's",
    "falcon": "its norms and biases are its own",
    "opt": "its table of positions starts at 2",
    "gptj": "its biases are its own",
    "gpt_neo": "its local attention and biases are its own",
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "its embeddings are scaled and its norms shifted"),
    **dict.fromkeys(("t5", "mt5", "umt5"), "it has an encoder and a decoder"),
}
NORM_EPS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon")
ACTIVATIONS = {
    **dict.fromkeys(("silu", "swish"), "silu"),
    "gelu": "gelu",
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), "gelu_tanh"),
}


def blueprint(config: Mapping[str, Any], shape: ModelShape) -> tuple[Blueprint, tuple[str, ...]]:
    """The words, and what of the configuration they leave out; a sentence where they cannot say it."""
    inner, _ = text_part(config, shape.name)
    fields = Fields(inner, shape.name)
    family = fields.text("model_type", "")
    known = FAMILIES.get(family)
    if known is None:
        why = f" ({REASONS[family]})" if family in REASONS else ""
        raise BadInput(
            f"a '{family}'{why} is not exported: export a model of {', '.join(FAMILIES)}, or write config.json with "
            "--out alone"
        )
    if shape.headless:
        raise BadInput(f"{shape.name} is the model without its output layer: trainers' files have one, so none is made")
    rope = _rope(inner)
    own = {key: value for key, value in known.items() if key in _OF_THE_BLOCK}
    if "attention_bias" in inner and family in ("llama", "qwen3", "qwen3_moe", "gpt_neox"):
        own |= dict.fromkeys(("qkv_bias", "output_bias"), fields.flag("attention_bias", False))
    if family == "qwen2_moe":
        own["qkv_bias"] = fields.flag("qkv_bias", True)
    if family == "llama":
        own["mlp_bias"] = fields.flag("mlp_bias", False)
    if family == "phi":
        own["head_norm"] = fields.flag("qk_layernorm", False)
    if family == "gpt_neox":
        own["parallel"] = fields.flag("use_parallel_residual", True)
    latent = _latent(fields) if family.startswith("deepseek") else None
    made = Blueprint(
        depth=shape.depth,
        width=shape.width,
        heads=shape.heads,
        key_value_heads=shape.key_value_heads,
        head_width=shape.head_width,
        mlp_width=fields.optional("intermediate_size") or shape.mlp_width,
        vocab=_vocab(shape),
        positions=shape.positions or 2048,
        tied=shape.tied,
        activation=_activation(inner, shape.name, str(known.get("act", "silu"))),
        norm_eps=_number(inner, NORM_EPS, known.get(NORM_EPS[0], 1e-5)),
        rope_theta=_number(rope, ("rope_theta", "rotary_emb_base"), known.get("rope_theta", 10000.0)),
        rotary_share=_number(rope, ("partial_rotary_factor", "rotary_pct"), known.get("rotary", 1.0)),
        mixture=_mixture(fields, family, shape),
        latent=latent,
        **own,
    )
    if made.shape(shape.name).params != shape.params:
        raise BadInput(
            f"{shape.name} has {shape.params:,} parameters and what trainers' files can say of it "
            f"{made.shape(shape.name).params:,}: it is not exported"
        )
    return made, _left_out(inner, rope, made)


def _vocab(shape: ModelShape) -> int:
    if shape.vocab is None:
        raise BadInput(f"{shape.name} has no vocabulary: trainers' files are of language models, so none is made")
    return shape.vocab


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of rotary positions, wherever this version of the library keeps them."""
    parameters = config.get("rope_parameters")
    return {**config, **(parameters if isinstance(parameters, Mapping) else {})}


def _number(config: Mapping[str, Any], names: tuple[str, ...], default: float) -> float:
    found = next((config[name] for name in names if config.get(name) is not None), default)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise BadInput(f"{names[0]} of the configuration is {found!r}: write a number")
    return float(found)


def _activation(config: Mapping[str, Any], name: str, default: str) -> str:
    stated = next((config[key] for key in ("hidden_act", "activation_function") if config.get(key)), default)
    if stated not in ACTIVATIONS:
        raise BadInput(f"the activation of {name} is {stated!r}, which trainers' files do not have: it is not exported")
    return ACTIVATIONS[stated]


def _mixture(fields: Fields, family: str, shape: ModelShape) -> Mixture | None:
    if shape.experts == 1:
        return None
    if family.startswith("qwen") and (fields.size("decoder_sparse_step", 1) > 1 or fields.indices("mlp_only_layers")):
        raise BadInput(f"{shape.name} has experts in some layers only: trainers' files cannot say in which")
    shared, gate, first = 0, False, 0
    if family == "qwen2_moe":
        shared, gate = fields.size("shared_expert_intermediate_size", 5632), True
    if family.startswith("deepseek"):
        version = family.endswith("3")
        shared = fields.size("n_shared_experts", 1 if version else 2) * shape.mlp_width
        first = min(shape.depth, fields.count("first_k_dense_replace", 3 if version else 0))
    return Mixture(shape.experts, shape.active_experts, shape.mlp_width, shared, gate, first)


def _latent(fields: Fields) -> LatentAttention:
    if fields.flag("attention_bias", False):
        raise BadInput(f"{fields.name} has biases in its latent attention: trainers' files cannot say so")
    return LatentAttention(
        query_rank=fields.nullable("q_lora_rank", 1536),
        kv_rank=fields.size("kv_lora_rank", 512),
        plain=fields.size("qk_nope_head_dim", 128),
        rotary=fields.size("qk_rope_head_dim", 64),
        value=fields.size("v_head_dim", 128),
    )


def _left_out(config: Mapping[str, Any], rope: Mapping[str, Any], made: Blueprint) -> tuple[str, ...]:
    """What has no parameters and is not carried over."""
    found = []
    if config.get("rope_scaling") or rope.get("rope_type") not in (None, "default"):
        found.append("the scaling of rotary positions")
    if config.get("sliding_window") and config.get("use_sliding_window") is not False:
        found.append(f"the window of {config['sliding_window']} tokens")
    if made.mixture:
        found.append("how the router scores and balances experts")
    return tuple(found)
