"""Fields of a configuration that nobody read, and which of them may change what the model is made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from theodolite.advice.described.flat import flatten, labelled
from theodolite.advice.described.harmless import is_harmless
from theodolite.advice.described.table import Description
from theodolite.advice.fields import DEPTH, HEAD_WIDTH, KEY_VALUE_HEADS, MLP_WIDTH, VOCAB, WIDTH

_STRUCTURAL = re.compile(
    r"\.model_type$|moe|expert|sparse|lora|rank|latent|shared|per_layer|multi_query|altup|laurel|conv|ssm|state|mamba|cross|adapter"
    r"|(hidden|inter|ffn|mlp|embed|block|attn|head|key|value|query|feature)\w*_(size|sizes|dim|dims|width|config)|_layers$"
    r"|layer_types|_period|_freq|_step$|_ratio$|depths|stages|n_block|num_blocks|groups|memory|retriev|codebook"
)

_SIZES = frozenset(
    (*DEPTH, *WIDTH, *KEY_VALUE_HEADS, *HEAD_WIDTH, *MLP_WIDTH, *VOCAB, "encoder_layers", "decoder_layers")
)


def unread_fields(config: Mapping[str, Any], read: Collection[str], known: Description | None) -> tuple[str, ...]:
    """Those that were not asked for, are not harmless by name or by experiment, and say more than the default."""
    unread = []
    for field, value in labelled(flatten(config)).items():
        names = {field, field.partition(".")[0]}
        if value is None or value is False or value in ("", [], {}) or names & set(read):
            continue
        if is_harmless(field) or field == "num_labels":
            continue
        if known is not None:
            own = known.aliases.get(field, field)
            harmless = own in known.harmless or own.partition(".")[0] in known.harmless
            if harmless or (own in known.defaults and value == known.defaults[own]):
                continue
        unread.append(field)
    return tuple(unread)


def structural(fields: Collection[str]) -> tuple[str, ...]:
    """By their names: experts, ranks, sizes, lists and counts of layers."""
    return tuple(field for field in fields if field.rpartition(".")[2] in _SIZES or _STRUCTURAL.search(field))
