"""Model arguments of torchtitan 0.2: those of its Llama 3, Qwen3 or DeepSeek-V3."""

from __future__ import annotations

import ast
from typing import Any

from theodolite.advice.exports.blueprint import Blueprint, LatentAttention, Mixture
from theodolite.advice.hardware import Hardware
from theodolite.errors import BadInput

FILE = "torchtitan.py"
LLAMA = "TransformerModelArgs"
PLACES = {
    LLAMA: "torchtitan.models.llama3",
    "Qwen3ModelArgs": "torchtitan.models.qwen3",
    "DeepSeekV3ModelArgs": "torchtitan.models.deepseek_v3",
    "MoEArgs": "torchtitan.models.moe",
}
_MOST_DECIMALS = 15


def write(made: Blueprint, hardware: Hardware) -> str:  # noqa: ARG001 - a run's devices are not among these arguments
    _check(made)
    if made.latent is not None:
        kind, fields = "DeepSeekV3ModelArgs", _deepseek(made, made.latent)
    elif made.mixture or made.head_norm or made.tied or made.heads * made.head_width != made.width:
        kind, fields = "Qwen3ModelArgs", _qwen3(made)
    else:
        kind, fields = LLAMA, _llama3(made)
    used = [kind, *(["MoEArgs"] if "moe_args" in fields else [])]
    imports = "".join(f"from {PLACES[name]} import {name}\n" for name in used)
    lines = "".join(f"    {name}={value},\n" for name, value in fields.items())
    scaled = "# rotary positions are scaled as rope_scaling_args says by default\n" if kind == LLAMA else ""
    return f"{imports}\n{scaled}model_args = {kind}(\n{lines})\n"


def _common(made: Blueprint) -> dict[str, Any]:
    return {
        "dim": made.width,
        "n_layers": made.depth,
        "n_heads": made.heads,
        "vocab_size": made.vocab,
        "norm_eps": made.norm_eps,
        "rope_theta": made.rope_theta,
        "max_seq_len": made.positions,
    }


def _llama3(made: Blueprint) -> dict[str, Any]:
    multiple = made.mlp_width & -made.mlp_width  # the largest power of two that divides it
    middle = (made.mlp_width + 1 - multiple / 2) / int(8 * made.width / 3)  # of the ratios that lead to it
    ratios = (round(middle, digits) for digits in range(1, _MOST_DECIMALS))
    ratio = next(ratio for ratio in ratios if _llama3_mlp(made.width, multiple, ratio) == made.mlp_width)
    own = {"n_kv_heads": made.key_value_heads, "multiple_of": multiple, "ffn_dim_multiplier": ratio}
    return _common(made) | own


def _llama3_mlp(width: int, multiple: int, ratio: float) -> int:
    """The MLP's width is not stated: two thirds of four times the width, times a ratio, up to the next multiple."""
    hidden = int(ratio * int(8 * width / 3))
    return multiple * -(-hidden // multiple)


def _qwen3(made: Blueprint) -> dict[str, Any]:
    own: dict[str, Any] = {
        "n_kv_heads": made.key_value_heads,
        "head_dim": made.head_width,
        "hidden_dim": made.mlp_width,
        "qk_norm": made.head_norm,
        "enable_weight_tying": made.tied,
    }
    mix = made.mixture
    if mix:
        if mix.dense_first:
            raise BadInput("torchtitan's Qwen3 has experts in all layers: this shape is not exported to it")
        own |= {"moe_enabled": True, "moe_inter_dim": mix.width, "moe_args": _moe(mix)}
    return _common(made) | own


def _deepseek(made: Blueprint, latent: LatentAttention) -> dict[str, Any]:
    mix = made.mixture
    if made.tied or mix is None:
        raise BadInput(
            "torchtitan's DeepSeek-V3 has experts and a table for the output: this shape is not exported to it"
        )
    return _common(made) | {
        "inter_dim": made.mlp_width,
        "moe_inter_dim": mix.width,
        "n_dense_layers": mix.dense_first,
        "moe_args": _moe(mix),
        "q_lora_rank": latent.query_rank or 0,
        "kv_lora_rank": latent.kv_rank,
        "qk_nope_head_dim": latent.plain,
        "qk_rope_head_dim": latent.rotary,
        "v_head_dim": latent.value,
    }


def _moe(mix: Mixture) -> str:
    if mix.shared % mix.width or mix.shared_gate:
        raise BadInput(
            "torchtitan's shared experts are as wide as the others and have no gate: it is not exported to it"
        )
    return f"MoEArgs(num_experts={mix.experts}, num_shared_experts={mix.shared // mix.width}, top_k={mix.active})"


def read(text: str) -> Blueprint:
    """What torchtitan would make of these arguments."""
    calls = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    call = calls[0] if calls else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in PLACES:
        raise BadInput("the text makes no model arguments: pass what --export torchtitan wrote")
    given = {one.arg: _literal(one.value) for one in call.keywords if one.arg}
    moe = given.get("moe_args")
    width, heads, kind = given["dim"], given["n_heads"], call.func.id
    latent = None
    if kind == "DeepSeekV3ModelArgs":
        names = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        latent = LatentAttention(given["q_lora_rank"] or None, *(given[name] for name in names))
        hidden = given["inter_dim"]
    elif kind == "Qwen3ModelArgs":
        hidden = given["hidden_dim"]
    else:
        hidden = _llama3_mlp(width, given["multiple_of"], given["ffn_dim_multiplier"])
    mixture = None
    if moe:
        expert = given["moe_inter_dim"]
        shared = moe["num_shared_experts"] * expert
        mixture = Mixture(moe["num_experts"], moe["top_k"], expert, shared, dense_first=given.get("n_dense_layers", 0))
    return Blueprint(
        depth=given["n_layers"],
        width=width,
        heads=heads,
        key_value_heads=given.get("n_kv_heads", heads),
        head_width=latent.value if latent else given.get("head_dim", width // heads),
        mlp_width=hidden,
        vocab=given["vocab_size"],
        positions=given["max_seq_len"],
        tied=given.get("enable_weight_tying", False),
        norm_eps=given["norm_eps"],
        head_norm=given.get("qk_norm", False),
        rope_theta=float(given["rope_theta"]),
        mixture=mixture,
        latent=latent,
    )


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        return {one.arg: ast.literal_eval(one.value) for one in node.keywords if one.arg}
    return ast.literal_eval(node)


def _check(made: Blueprint) -> None:
    other = {
        "biases": made.qkv_bias or made.output_bias or made.mlp_bias or made.head_bias,
        "layer norms": not made.rms_norm,
        "MLP other than SwiGLU": not made.gated or made.activation != "silu",
        "positions other than rotary ones of whole heads": made.learned_positions or made.rotary_share != 1,
        "attention and MLP side by side": made.parallel,
    }
    found = [name for name, there in other.items() if there]
    if found:
        raise BadInput(f"torchtitan's language models have no {', no '.join(found)}: this shape is not exported to it")
