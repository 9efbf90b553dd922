"""Networks that are not Transformers, or only in some of their layers: theorems and fit do not speak of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.advice.fields import Fields
from theodolite.advice.shape import Kind
from theodolite.errors import BadInput

# By the beginning of their model_type.
RECURRENT = (
    *("mamba", "falcon_mamba", "codestral_mamba", "rwkv", "s4", "s5", "h3", "hyena", "stripedhyena", "evo", "retnet"),
    *("xlstm", "lstm", "gru", "ssm", "gla", "delta_net", "gated_deltanet", "hgrn"),
)
CONVOLUTIONAL = (
    *("resnet", "convnext", "efficientnet", "mobilenet", "regnet", "densenet", "vgg", "unet", "poolformer", "bit"),
)
HYBRID = (
    *("jamba", "zamba", "bamba", "samba", "hymba", "nemotron_h", "falcon_h1", "granitemoehybrid", "granitemoe_hybrid"),
    *("recurrent_gemma", "griffin", "lfm2", "qwen3_next", "qwen3_5", "kimi_linear", "plamo2", "phi4flash"),
    *("olmo_hybrid", "bailing_hybrid"),
)
ONLY_SO_NAMED = ("minimax",)  # later versions are Transformers
# Fields that only such networks have, and kinds of layers other than attention.
STATE = (
    "ssm_cfg",
    "state_size",
    "time_step_rank",
    "mamba_d_state",
    "mamba_d_conv",
    "ssm_state_size",
    "attn_layer_period",
)
OTHER_LAYERS = ("mamba", "linear_attention", "recurrent", "conv", "ssm", "rwkv")


WORDS: dict[Kind, str] = {
    "hybrid": "not a Transformer in all of its layers",
    "recurrent": "a recurrent network, not a Transformer",
    "convolutional": "a convolutional network, not a Transformer",
    "other": "no Transformer of text or images whose depth, width and heads are known",
}


def refuse_other_networks(fields: Fields, family: str) -> None:
    """Where nothing else is known of them."""
    kind = kind_of(fields.config, family)
    if kind != "Transformer":
        called = f"{fields.name}, a '{family}'," if family else fields.name
        raise BadInput(
            f"{called} is {WORDS[kind]}, and it is not described here: pass a Transformer's configuration, or install "
            "a transformers that knows it"
        )


def kind_of(config: Mapping[str, Any], family: str) -> Kind:
    name = family.lower().replace("-", "_")
    layers = config.get("layer_types") or config.get("layers_block_type")
    mixed = isinstance(layers, list) and any(
        isinstance(layer, str) and layer.startswith(OTHER_LAYERS) for layer in layers
    )
    state = any(config.get(field) is not None for field in STATE)
    if (
        _is_one_of(name, HYBRID)
        or name in ONLY_SO_NAMED
        or mixed
        or (state and config.get("num_attention_heads") is not None and not _is_one_of(name, RECURRENT))
    ):
        return "hybrid"
    if _is_one_of(name, RECURRENT) or state:
        return "recurrent"
    return "convolutional" if _is_one_of(name, CONVOLUTIONAL) else "Transformer"


def _is_one_of(name: str, known: tuple[str, ...]) -> bool:
    """The name itself, or one of its versions: rwkv7, mamba2, s4_lm."""
    return any(name.startswith(word) and not name[len(word) :][:1].isalpha() for word in known)
