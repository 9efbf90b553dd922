"""The `model_config` of a nanotron run, which has Llama's blocks."""

from __future__ import annotations

from typing import Any

from theodolite.advice.exports.blueprint import Blueprint
from theodolite.advice.exports.flat_yaml import read_yaml, write_yaml
from theodolite.advice.hardware import Hardware
from theodolite.errors import BadInput

FILE = "nanotron.yaml"


def write(made: Blueprint, hardware: Hardware) -> str:
    _check(made)
    fields = {
        "is_llama_config": True,
        "hidden_act": "silu",
        "hidden_size": made.width,
        "intermediate_size": made.mlp_width,
        "max_position_embeddings": made.positions,
        "num_attention_heads": made.heads,
        "num_hidden_layers": made.depth,
        "num_key_value_heads": made.key_value_heads,
        "rms_norm_eps": made.norm_eps,
        "rope_interleaved": False,
        "rope_theta": made.rope_theta,
        "tie_word_embeddings": made.tied,
        "vocab_size": made.vocab,
    }
    content: dict[str, dict[str, Any]] = {"model": {"model_config": fields}}
    if hardware.tp > 1 or hardware.pp > 1:
        content["parallelism"] = {"pp": hardware.pp, "tp": hardware.tp}
    return write_yaml(content)


def read(text: str) -> Blueprint:
    fields = read_yaml(text).get("model", {}).get("model_config", {})
    if not fields.get("is_llama_config"):
        raise BadInput("the text holds no model_config of a Llama: pass what --export nanotron wrote")
    heads = fields["num_attention_heads"]
    return Blueprint(
        depth=fields["num_hidden_layers"],
        width=fields["hidden_size"],
        heads=heads,
        key_value_heads=fields["num_key_value_heads"],
        head_width=fields["hidden_size"] // heads,
        mlp_width=fields["intermediate_size"],
        vocab=fields["vocab_size"],
        positions=fields["max_position_embeddings"],
        tied=fields["tie_word_embeddings"],
        norm_eps=fields["rms_norm_eps"],
        rope_theta=fields["rope_theta"],
    )


def _check(made: Blueprint) -> None:
    other = {
        "experts": made.mixture is not None,
        "latent attention": made.latent is not None,
        "biases": made.qkv_bias or made.output_bias or made.mlp_bias or made.head_bias,
        "layer norms": not made.rms_norm,
        "MLP other than SwiGLU": not made.gated or made.activation != "silu",
        "normalised queries and keys": made.head_norm,
        "positions other than rotary ones of whole heads": made.learned_positions or made.rotary_share != 1,
        "heads that do not share the width equally": made.heads * made.head_width != made.width,
        "attention and MLP side by side": made.parallel,
    }
    found = [name for name, there in other.items() if there]
    if found:
        raise BadInput(f"nanotron's Llama has no {', no '.join(found)}: this shape is not exported to it")
