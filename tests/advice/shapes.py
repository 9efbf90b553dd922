"""Configurations of well-known models, and shapes by hand, for the tests of the advice."""

from __future__ import annotations

from typing import Any

from theodolite.advice.shape import ModelShape

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
GPT3 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 2048, "n_embd": 12288, "n_layer": 96, "n_head": 96}
T5_11B = {
    "model_type": "t5",
    **{"d_model": 1024, "d_kv": 128, "d_ff": 65536, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 128},
    "vocab_size": 32128,
}
ALBERT = {
    "model_type": "albert",
    **{"hidden_size": 4096, "embedding_size": 128, "num_hidden_layers": 12, "num_attention_heads": 64},
    **{"intermediate_size": 16384, "vocab_size": 30000},
}
LLAMA3 = {
    "model_type": "llama",
    **{"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192},
}
VIT_H = {
    "model_type": "vit",
    **{"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "intermediate_size": 5120},
    **{"patch_size": 14, "image_size": 224},
}


def dense(depth: int = 12, width: int = 768, heads: int = 12, vocab: int = 50257, **changed: Any) -> ModelShape:
    """12·d² parameters a block and a tied table, nothing else."""
    parts = {"embedding": vocab * width, "attention": 4 * depth * width**2, "mlp": 8 * depth * width**2}
    fields: dict[str, Any] = {
        **{"name": "dense", "family": "gpt2", "modality": "language", "depth": depth, "width": width, "heads": heads},
        **{"head_width": width // heads, "key_value_heads": heads, "mlp_width": 4 * width, "gated": False},
        **{"vocab": vocab, "embedding_rank": None, "tied": True, "parts": parts, "active": sum(parts.values())},
        **changed,
    }
    return ModelShape(**fields)
