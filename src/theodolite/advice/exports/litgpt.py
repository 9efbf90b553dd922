"""LitGPT's `model_config.yaml`."""

from __future__ import annotations

from theodolite.advice.exports.blueprint import Blueprint, Mixture
from theodolite.advice.exports.flat_yaml import read_yaml, write_yaml
from theodolite.advice.hardware import Hardware
from theodolite.errors import BadInput

FILE = "model_config.yaml"
NAME = "advised"  # without the names of families by which it changes norms


def write(made: Blueprint, hardware: Hardware) -> str:  # noqa: ARG001 - a run's devices are not in this file
    _check(made)
    mix = made.mixture
    content = {
        "name": NAME,
        "block_size": made.positions,
        "n_layer": made.depth,
        "n_embd": made.width,
        "vocab_size": made.vocab,
        "padded_vocab_size": made.vocab,
        "norm_class_name": "RMSNorm" if made.rms_norm else "LayerNorm",
        "norm_eps": made.norm_eps,
        "norm_qk": made.head_norm,
        "parallel_residual": made.parallel,
        "shared_attention_norm": made.one_norm,
        "n_head": made.heads,
        "head_size": made.head_width,
        "n_query_groups": made.key_value_heads,
        "bias": made.mlp_bias,
        "attn_bias": made.qkv_bias,
        "rope_base": round(made.rope_theta),
        "rotary_percentage": made.rotary_share,
        "mlp_class_name": "LLaMAMoE" if mix else "LLaMAMLP" if made.gated else "GptNeoxMLP",
        "intermediate_size": mix.width if mix else made.mlp_width,
        "lm_head_bias": made.head_bias,
    }
    if made.activation == "gelu_tanh":
        content["gelu_approximate"] = "tanh"
    if mix:
        content |= {"moe_intermediate_size": mix.width, "n_expert": mix.experts, "n_expert_per_token": mix.active}
    return write_yaml(content)


def read(text: str) -> Blueprint:
    fields = read_yaml(text)
    if "n_embd" not in fields:
        raise BadInput("the text states no n_embd: pass what --export litgpt wrote")
    gated, bias = fields["mlp_class_name"] != "GptNeoxMLP", fields["bias"]
    mixture = None
    if fields["mlp_class_name"] == "LLaMAMoE":
        mixture = Mixture(fields["n_expert"], fields["n_expert_per_token"], fields["moe_intermediate_size"])
    gelu = "gelu_tanh" if fields.get("gelu_approximate") == "tanh" else "gelu"
    return Blueprint(
        depth=fields["n_layer"],
        width=fields["n_embd"],
        heads=fields["n_head"],
        key_value_heads=fields["n_query_groups"],
        head_width=fields["head_size"],
        mlp_width=fields["intermediate_size"],
        vocab=fields["padded_vocab_size"],
        positions=fields["block_size"],
        tied=False,
        gated=gated,
        activation="silu" if gated else gelu,
        rms_norm=fields["norm_class_name"] == "RMSNorm",
        norm_eps=fields["norm_eps"],
        qkv_bias=bias or fields["attn_bias"],
        output_bias=bias,
        mlp_bias=bias,
        head_bias=fields["lm_head_bias"],
        head_norm=fields["norm_qk"],
        rope_theta=float(fields["rope_base"]),
        rotary_share=fields["rotary_percentage"],
        parallel=fields["parallel_residual"],
        one_norm=fields["shared_attention_norm"],
        mixture=mixture,
    )


def _check(made: Blueprint) -> None:
    mix = made.mixture
    other = {
        "table that input and output share": made.tied,
        "learned positions": made.learned_positions,
        "latent attention": made.latent is not None,
        "shared experts": mix is not None and mix.shared > 0,
        "layers without experts among others": mix is not None and mix.dense_first > 0,
        "biases as this model has them": made.output_bias != made.mlp_bias or (made.mlp_bias and not made.qkv_bias),
        "MLP as this model has it": made.gated != (made.activation == "silu"),
    }
    found = [name for name, there in other.items() if there]
    if found:
        raise BadInput(f"LitGPT has no {', no '.join(found)}: this shape is not exported to it")
