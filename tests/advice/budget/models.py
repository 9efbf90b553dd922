"""Small real models of transformers, and their shapes."""

from __future__ import annotations

from typing import Any

import torch

from theodolite.advice.configs import read_config
from theodolite.advice.shape import ModelShape

_GATED = {"num_hidden_layers": 3, "hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 2}
_GATED |= {"intermediate_size": 352, "head_dim": 16}
_PLAIN = {"num_hidden_layers": 3, "hidden_size": 96, "num_attention_heads": 6, "intermediate_size": 384}
_QUIET = {"attention_dropout": 0.0, "hidden_dropout": 0.0}

FAMILIES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), _GATED),
    "gpt2": {"n_layer": 3, "n_embd": 96, "n_head": 6, "n_positions": 256}
    | {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0},
    "gpt_neox": _PLAIN | _QUIET,
    "opt": {"num_hidden_layers": 3, "hidden_size": 96, "num_attention_heads": 6, "ffn_dim": 384}
    | {"word_embed_proj_dim": 96, "dropout": 0.0},
}


def built(family: str, vocab: int = 64, **changed: Any) -> tuple[Any, ModelShape]:
    """In bfloat16 on the CPU, with flash attention."""
    import transformers

    sizes = {**FAMILIES[family], "vocab_size": vocab, **changed}
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = transformers.AutoConfig.for_model(family, **sizes, **special)
    config._attn_implementation = "sdpa"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).train()
    return model, read_config({"model_type": family, **sizes}, family)


def rows(batch: int, sequence: int, vocab: int = 64) -> torch.Tensor:
    return torch.randint(0, vocab, (batch, sequence), generator=torch.Generator().manual_seed(0))
