"""The shape of a model that was built: its tensors counted one by one, its sizes as it was configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.building.build import Built, CannotBuild, build
from theodolite.advice.building.language_part import parameters
from theodolite.advice.building.library import quiet
from theodolite.advice.building.parts import is_encoders, is_expert, part_of
from theodolite.advice.counted_shape import EXPERTS, counted_shape
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import KEYS

__all__ = ["CannotBuild", "counted_parameters", "read_built"]


def read_built(config: Mapping[str, Any], name: str) -> ModelShape:
    """Exact: each tensor once, tied ones too; of a model that also sees or hears, the language model's."""
    try:
        return _shape(build(config, name), config, name, ())
    except CannotBuild as error:
        inner = _inner(config)
        if inner is None:
            raise
        note = f"transformers cannot build the whole model ({error}): its language model was built alone"
        return _shape(build(inner, name), config, name, (note,))


def counted_parameters(built: Built) -> int:
    """Of the language model, where the model also sees or hears."""
    with quiet():
        return sum(parameter.numel() for parameter in parameters(built.model, _text(built.config)).values())


def _inner(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The language model's own configuration, with its usual class."""
    inner = next((config[key] for key in KEYS if isinstance(config.get(key), Mapping)), None)
    if inner is None or not inner.get("model_type"):
        return None
    alone = {key: value for key, value in inner.items() if key != "architectures"}
    if "tie_word_embeddings" in config:
        alone.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
    return alone


def _shape(built: Built, config: Mapping[str, Any], name: str, notes: tuple[str, ...]) -> ModelShape:
    with quiet():
        text = _text(built.config)
        named = parameters(built.model, text)
        read = built.config if text is None else text
        fields = {**read.to_dict(), **_usual(read)}
    whole = sum(parameter.numel() for parameter in built.model.parameters())
    routed = next((fields[one] for one in EXPERTS if type(fields.get(one)) is int), 0)
    parts: dict[str, int] = {}
    of_encoder: dict[str, int] = {}
    of_experts = 0
    for tensor, parameter in named.items():
        part, size = part_of(tensor), parameter.numel()
        parts[part] = parts.get(part, 0) + size
        if is_encoders(tensor):
            of_encoder[part] = of_encoder.get(part, 0) + size
        stacked = parameter.dim() == 3 and routed > 1 and parameter.shape[0] == routed
        of_experts += size if is_expert(tensor) or stacked else 0
    counted = sum(parts.values())
    first = f"counted: the parameters of {built.counted}, built by transformers"
    if counted != whole:
        first = (
            f"counted: the language model in {built.counted}, built by transformers; the whole has {whole:,} parameters"
        )
    if "quantization_config" in config:
        fields["quantization_config"] = config["quantization_config"]
    if text is not None and built.config.to_dict().get("tie_word_embeddings") is not None:
        fields["tie_word_embeddings"] = "head" not in parts
    shape = counted_shape(
        fields,
        name,
        read.model_type,
        built.counted,
        parts,
        of_experts,
        exact=True,
        notes=(first, *notes),
        whole=whole if counted != whole else None,
        of_encoder=of_encoder,
    )
    mostly = 2 * _in_stacks(named, shape) >= counted - shape.parts["embedding"] - shape.parts["head"]
    return shape if mostly or shape.kind != "Transformer" else replace(shape, kind="other")


def _in_stacks(named: Mapping[str, Any], shape: ModelShape) -> int:
    """Parameters in stacks of as many numbered blocks as the model is deep."""
    stacks: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for tensor, parameter in named.items():
        found = re.match(r"(.*?)\.(\d+)\.", tensor)
        if found:
            stacks.setdefault(found[1], set()).add(found[2])
            sizes[found[1]] = sizes.get(found[1], 0) + parameter.numel()
    depths = {shape.depth, shape.decoder_depth, shape.depth - shape.decoder_depth, shape.distinct_layers}
    shared = "albert" in shape.family
    return sum(size for stack, size in sizes.items() if len(stacks[stack]) in depths or shared)


def _text(config: Any) -> Any | None:
    return next((getattr(config, key) for key in KEYS if getattr(config, key, None) is not None), None)


def _usual(config: Any) -> dict[str, Any]:
    """Sizes under the names that all configurations answer to, where they are whole numbers."""
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
    found = {one: _attribute(config, one) for one in names}
    nested = {}
    for key in ("attn_config", "ffn_config"):  # DBRX
        inner = getattr(config, key, None)
        if inner is not None:
            nested |= {k: v for k, v in inner.to_dict().items() if isinstance(v, int)}
    renamed = {"num_key_value_heads": nested.get("kv_n_heads"), "intermediate_size": nested.get("ffn_hidden_size")}
    renamed |= {key: nested.get(key) for key in ("moe_num_experts", "moe_top_k")}
    found |= {key: value for key, value in renamed.items() if value is not None}
    return {key: value for key, value in found.items() if type(value) is int}


def _attribute(config: Any, name: str) -> Any:
    try:
        return getattr(config, name, None)
    except Exception:  # some refuse to name one value for layers that differ
        return None
