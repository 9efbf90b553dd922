"""Configurations that transformers builds, and how many parameters it makes of them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import torch

from theodolite.advice.building.classes import candidates
from theodolite.advice.building.library import quiet, transformers
from theodolite.advice.fields import DEPTH, HEADS, KEY_VALUE_HEADS, MLP_WIDTH, VOCAB, WIDTH

TEXT = ("text_config", "language_config", "llm_config")
T5 = ("t5", "mt5", "umt5")
WIDE = (*WIDTH, *MLP_WIDTH, "encoder_ffn_dim", "decoder_ffn_dim", "moe_intermediate_size", "embed_dim")
DEEP = (*DEPTH, "encoder_layers", "decoder_layers")
MANY = (*HEADS, "encoder_attention_heads", "decoder_attention_heads")


def cases(names: list[str], draws: int, seed: int) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    for name in names:
        draw = random.Random(f"{seed} {name}")
        try:
            with quiet():
                default = json.loads(transformers().CONFIG_MAPPING[name]().to_json_string(use_diff=False))
        except Exception:
            continue
        default.pop("architectures", None)
        default.pop("transformers_version", None)
        found = truth(default)
        if found is not None:
            yield name, "default", default, found[0]
        made = 0
        for _ in range(6 * draws):
            if made == draws:
                break
            config = changed(default, draw)
            found = truth(config)
            if found is not None:
                made += 1
                yield name, "changed", config, found[0]


def truth(config: dict[str, Any]) -> tuple[int, str] | None:
    """The parameters that transformers makes of this configuration, and the class; None where it makes none."""
    with quiet():
        try:
            read = transformers().CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        except Exception:
            return None
        kind: Any = next(candidates(read, None), None)
        try:
            with torch.device("meta"):
                model = kind(read)
        except Exception:
            return None
        count = _language_parameters(model, read)
    untied = config["model_type"] in T5 and config.get("tie_word_embeddings") is False
    if untied and model.lm_head.weight is model.shared.weight:
        count += model.lm_head.weight.numel()  # untied in the published weights; advise says so
    return count, kind.__name__


def _language_parameters(model: Any, config: Any) -> int:
    inner = next((getattr(config, key) for key in TEXT if getattr(config, key, None) is not None), None)
    heard = [module for module in model.modules() if inner is not None and getattr(module, "config", None) is inner]
    heard = [module for module in heard if isinstance(module, transformers().PreTrainedModel) and module is not model]
    if not heard:
        return sum(parameter.numel() for parameter in model.parameters())
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    found = {
        id(p): p.numel() for module in (*heard, *([head] if head is not None else [])) for p in module.parameters()
    }
    return sum(found.values())


def changed(default: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Some of the sizes changed, so that heads still divide widths more often than not."""
    config = copy.deepcopy(default)
    place = next((config[key] for key in TEXT if isinstance(config.get(key), dict)), config)
    times = draw.choice((0.5, 1, 1, 1.5, 2))
    for name in WIDE:
        if type(place.get(name)) is int:
            place[name] = max(8, int(place[name] * times) // 8 * 8)
    if draw.random() < 0.4:
        for name in MLP_WIDTH:
            if type(place.get(name)) is int:
                place[name] = 8 * draw.randint(4, 2000)
    if draw.random() < 0.6:
        _deepen(place, draw)
    if draw.random() < 0.4:
        share = draw.choice((2, 4))
        for name in MANY:
            if type(place.get(name)) is int and place[name] % share == 0:
                place[name] //= share
        for name in KEY_VALUE_HEADS:
            if type(place.get(name)) is int:
                place[name] = max(1, place[name] // share)
    if draw.random() < 0.4:
        for name in KEY_VALUE_HEADS:
            if type(place.get(name)) is int and place[name] % 2 == 0:
                place[name] //= 2
    for name in VOCAB:
        if type(place.get(name)) is int and draw.random() < 0.5:
            place[name] = draw.randint(100, 300_000)
    if type(config.get("tie_word_embeddings")) is bool and draw.random() < 0.3:
        config["tie_word_embeddings"] = not config["tie_word_embeddings"]
    return config


def _deepen(place: dict[str, Any], draw: random.Random) -> None:
    """Another depth; lists with an entry a layer are left to the configuration class."""
    old = {place[name] for name in DEEP if type(place.get(name)) is int}
    factor = draw.choice((0.5, 0.75, 1.25, 1.5, 2))
    for name in DEEP:
        if type(place.get(name)) is int:
            place[name] = max(1, round(place[name] * factor))
    for name in [name for name, value in place.items() if isinstance(value, list) and len(value) in old]:
        del place[name]
