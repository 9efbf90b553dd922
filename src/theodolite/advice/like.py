"""Public families at another size: the published model that is nearest in size gives the proportions."""

from __future__ import annotations

import math
from typing import Any

from theodolite.advice.catalogue import PublicModel, models
from theodolite.errors import UnknownName

# Which models of the catalogue, and what the configurations there leave out because it has no parameters.
LIKE: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "llama": (
        ("Llama 3.2 1B", "Llama 3.2 3B", "Llama 3.1 8B", "Llama 3.1 70B", "Llama 3.1 405B"),
        {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0},
    ),
    "qwen3": (
        ("Qwen3 0.6B", "Qwen3 1.7B", "Qwen3 4B", "Qwen3 8B", "Qwen3 14B", "Qwen3 32B"),
        {"architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0},
    ),
    "moe": (
        ("Qwen3 30B-A3B", "Qwen3 235B-A22B"),
        {
            "architectures": ["Qwen3MoeForCausalLM"],
            **{"hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "norm_topk_prob": True},
            "decoder_sparse_step": 1,
        },
    ),
}


def like(family: str, budget: int, vocab: int | None = None) -> tuple[dict[str, Any], PublicModel]:
    """A complete configuration of the family, and the public model whose proportions it has."""
    if family not in LIKE:
        raise UnknownName(f"there is no family '{family}' for --like: use {', '.join(LIKE)}")
    names, fields = LIKE[family]
    known = {model.name: model for model in models()}
    nearest = min((known[name] for name in names), key=lambda model: abs(math.log(model.shape.params / budget)))
    config = {**nearest.config, **fields}
    if vocab is not None:
        config["vocab_size"] = vocab
    return config, nearest
