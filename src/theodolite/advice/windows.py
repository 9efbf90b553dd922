"""Layers that attend to the last tokens only: how many, and to how many tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Without a list of layer types: every n-th layer attends to all tokens, by model_type.
_EVERY = {"gemma2": 2, "gemma3_text": 6, "gemma3n_text": 5, "cohere2": 4, "gpt_oss": 2, "llama4_text": 4, "olmo3": 4}
_ALL_LAYERS = ("mistral", "mixtral", "phi3", "starcoder2", "ministral", "gemma4_assistant", "phimoe")
_DEFAULT = {"mistral": 4096, "gemma2": 4096, "gemma3_text": 4096, "cohere2": 4096, "gpt_oss": 128, "olmo3": 4096}


def windows(config: Mapping[str, Any], family: str, depth: int) -> dict[int, int]:
    """Window → number of layers that have it; layers that attend to everything are left out."""
    size = config.get("sliding_window", _DEFAULT.get(family))
    chunk = config.get("attention_chunk_size", 8192 if family == "llama4_text" else None)
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        sizes = {"sliding_attention": size, "chunked_attention": chunk}
        found = [sizes.get(kind) for kind in kinds[:depth] if isinstance(kind, str)]
    elif family == "gpt_neo":
        found = [_size(config.get("window_size", 256))] * (depth // 2)
    elif family in _EVERY:
        pattern = config.get("sliding_window_pattern", config.get("_sliding_window_pattern", _EVERY[family]))
        pattern = pattern if type(pattern) is int and pattern > 0 else _EVERY[family]
        if family == "cohere2" or family == "gemma2" or pattern > 1:
            local = [layer for layer in range(depth) if (layer + 1) % pattern]
        else:
            local = []
        found = [chunk if family == "llama4_text" else size] * len(local)
    elif family in _ALL_LAYERS:
        found = [size] * depth
    elif config.get("use_sliding_window") is True:
        first = config.get("max_window_layers")
        found = [size] * max(0, depth - (first if type(first) is int else depth))
    else:
        found = []
    counted: dict[int, int] = {}
    for one in found:
        if _size(one):
            counted[_size(one)] = counted.get(_size(one), 0) + 1
    return counted


def _size(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
