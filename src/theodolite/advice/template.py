"""The configuration that a bare budget of parameters is advised in: dense blocks of 12·d² parameters."""

from __future__ import annotations

from typing import Any

from theodolite.advice.shape import Modality

BYTE_VOCAB = 256

# (from this many parameters on, head width, positions): neither may eat a small budget.
_SIZES = ((5 * 10**9, 128, 1024), (10**7, 64, 1024), (10**6, 32, 256), (5 * 10**4, 16, 128), (0, 8, 64))


def template(modality: Modality, budget: int, vocab: int | None, embedding_rank: int | None) -> dict[str, Any]:
    """GPT-2's blocks for symbols, OPT's where their embedding is factored, ViT's for patches of 16 × 16 pixels."""
    _, head_width, positions = next(sizes for sizes in _SIZES if budget >= sizes[0])
    if modality == "image" and vocab is None:
        return {
            "model_type": "vit",
            "architectures": ["ViTForImageClassification"],
            "hidden_size": 12 * head_width,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 48 * head_width,
            "image_size": 224,
            "patch_size": 16,
            "num_channels": 3,
            "id2label": {str(label): f"LABEL_{label}" for label in range(1000)},
            "label2id": {f"LABEL_{label}": label for label in range(1000)},
        }
    if embedding_rank is not None:
        return {
            "model_type": "opt",
            "architectures": ["OPTForCausalLM"],
            "vocab_size": vocab,
            "hidden_size": 12 * head_width,
            "word_embed_proj_dim": embedding_rank,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 48 * head_width,
            "max_position_embeddings": positions,
        }
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocab,
        "n_positions": positions,
        "n_embd": 12 * head_width,
        "n_layer": 12,
        "n_head": 12,
        "n_inner": None,
    }
