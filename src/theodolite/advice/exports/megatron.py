"""Arguments of Megatron-LM's `pretrain_gpt.py`, as a shell array."""

from __future__ import annotations

import math
import re
import shlex

from theodolite.advice.exports.blueprint import Blueprint, LatentAttention, Mixture
from theodolite.advice.hardware import Hardware
from theodolite.errors import BadInput

FILE = "megatron.sh"
_PADDING = 128  # what it pads a vocabulary to a multiple of, unless told otherwise


def write(made: Blueprint, hardware: Hardware) -> str:
    words = [*_sizes(made), *_block(made), *_positions(made), *_tables(made, hardware), *_sparse(made), *_latent(made)]
    if hardware.tp > 1:
        words.append(f"--tensor-model-parallel-size {hardware.tp}")
    if hardware.pp > 1:
        words.append(f"--pipeline-model-parallel-size {hardware.pp}")
    lines = "".join(f"    {word}\n" for word in words)
    return f'# source this file and pass "${{MODEL_ARGS[@]}}" to pretrain_gpt.py\nMODEL_ARGS=(\n{lines})\n'


def _sizes(made: Blueprint) -> list[str]:
    words = [
        f"--num-layers {made.depth}",
        f"--hidden-size {made.width}",
        f"--ffn-hidden-size {made.mlp_width}",
        f"--num-attention-heads {made.heads}",
        f"--kv-channels {made.head_width}",
    ]
    if made.key_value_heads != made.heads:
        words += ["--group-query-attention", f"--num-query-groups {made.key_value_heads}"]
    return words


def _block(made: Blueprint) -> list[str]:
    if made.parallel or made.head_bias:
        raise BadInput(
            "Megatron-LM has no argument for attention and MLP side by side: this shape is not exported to it"
        )
    words = []
    if made.rms_norm:
        words.append("--normalization RMSNorm")
    words.append(f"--norm-epsilon {made.norm_eps:g}")
    if made.gated and made.activation == "silu":
        words.append("--swiglu")
    elif made.gated or made.activation == "silu":
        raise BadInput("Megatron-LM has SwiGLU and GELU: a model with another MLP is not exported to it")
    biases = (made.qkv_bias, made.output_bias, made.mlp_bias)
    if biases in ((False, False, False), (True, False, False)):
        words.append("--disable-bias-linear")
        words += ["--add-qkv-bias"] if made.qkv_bias else []
    elif biases != (True, True, True):
        raise BadInput(
            "Megatron-LM has biases everywhere, nowhere, or of queries, keys and values: not as in this model"
        )
    if made.head_norm or made.latent:
        words.append("--qk-layernorm")
    return words


def _positions(made: Blueprint) -> list[str]:
    kind = ["--position-embedding-type learned_absolute"]
    if not made.learned_positions:
        kind = ["--position-embedding-type rope", f"--rotary-base {round(made.rope_theta)}"]
        kind += [f"--rotary-percent {made.rotary_share:g}"]
    return [f"--max-position-embeddings {made.positions}", *kind]


def _tables(made: Blueprint, hardware: Hardware) -> list[str]:
    if made.vocab % hardware.tp:
        raise BadInput(
            f"Megatron-LM pads the vocabulary of {made.vocab:,} symbols so that --tp {hardware.tp} divides it: state "
            "one that it divides"
        )
    multiple = math.gcd(made.vocab // hardware.tp, _PADDING)
    words = [f"--vocab-size {made.vocab}", f"--make-vocab-size-divisible-by {multiple}"]
    return words if made.tied else [*words, "--untie-embeddings-and-output-weights"]


def _sparse(made: Blueprint) -> list[str]:
    mix = made.mixture
    if mix is None:
        return []
    words = [f"--num-experts {mix.experts}", f"--moe-router-topk {mix.active}", f"--moe-ffn-hidden-size {mix.width}"]
    if mix.dense_first:
        words.append(f"--moe-layer-freq '([0]*{mix.dense_first}+[1]*{made.depth - mix.dense_first})'")
    if mix.shared:
        words.append(f"--moe-shared-expert-intermediate-size {mix.shared}")
    return [*words, "--moe-shared-expert-gate"] if mix.shared_gate else words


def _latent(made: Blueprint) -> list[str]:
    latent = made.latent
    if latent is None:
        return []
    words = ["--multi-latent-attention"]
    words += [] if latent.query_rank is None else [f"--q-lora-rank {latent.query_rank}"]
    words += [f"--kv-lora-rank {latent.kv_rank}", f"--qk-head-dim {latent.plain}"]
    return [*words, f"--qk-pos-emb-head-dim {latent.rotary}", f"--v-head-dim {latent.value}"]


def read(text: str) -> Blueprint:
    """What Megatron-LM would make of these arguments, its defaults filled in."""
    found = re.search(r"MODEL_ARGS=\(\n(.*?)^\)$", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise BadInput("the text holds no array MODEL_ARGS: pass what --export megatron wrote")
    given: dict[str, str] = {}
    name = ""
    for word in shlex.split(found[1], comments=True):
        name = word.removeprefix("--") if word.startswith("--") else name
        given[name] = "" if word.startswith("--") else word

    def size(name: str, default: int = 0) -> int:
        return int(given.get(name, default))

    width, heads, depth = size("hidden-size"), size("num-attention-heads"), size("num-layers")
    hidden = size("ffn-hidden-size", 4 * width)
    biased, latent = "disable-bias-linear" not in given, "multi-latent-attention" in given
    unit = size("make-vocab-size-divisible-by", _PADDING) * size("tensor-model-parallel-size", 1)
    mixture = None
    if "num-experts" in given:
        pattern = re.fullmatch(r"\(\[0\]\*(\d+)\+\[1\]\*(\d+)\)", given.get("moe-layer-freq", ""))
        mixture = Mixture(
            size("num-experts"),
            size("moe-router-topk", 2),
            size("moe-ffn-hidden-size", hidden),
            size("moe-shared-expert-intermediate-size"),
            "moe-shared-expert-gate" in given,
            int(pattern[1]) if pattern else 0,
        )
    ranks = LatentAttention(
        size("q-lora-rank") or None,
        size("kv-lora-rank", 32),
        size("qk-head-dim", 128),
        size("qk-pos-emb-head-dim", 64),
        size("v-head-dim", 128),
    )
    gated = "swiglu" in given
    return Blueprint(
        depth=depth,
        width=width,
        heads=heads,
        key_value_heads=size("num-query-groups", heads) if "group-query-attention" in given else heads,
        head_width=size("kv-channels", width // heads),
        mlp_width=hidden,
        vocab=-(-size("vocab-size") // unit) * unit,
        positions=size("max-position-embeddings"),
        tied="untie-embeddings-and-output-weights" not in given,
        gated=gated,
        activation="silu" if gated else "gelu",
        rms_norm=given.get("normalization") == "RMSNorm",
        norm_eps=float(given.get("norm-epsilon", 1e-5)),
        qkv_bias=biased or "add-qkv-bias" in given,
        output_bias=biased,
        mlp_bias=biased,
        head_norm="qk-layernorm" in given and not latent,
        learned_positions=given.get("position-embedding-type", "learned_absolute") == "learned_absolute",
        rope_theta=float(given.get("rotary-base", 10000)),
        rotary_share=float(given.get("rotary-percent", 1.0)),
        mixture=mixture,
        latent=ranks if latent else None,
    )
