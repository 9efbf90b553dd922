"""The shape of a model by the description of its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.counted_shape import counted_shape
from theodolite.advice.described.count import count
from theodolite.advice.described.table import Description, description, type_of_class
from theodolite.advice.fields import DEPTH, HEADS, WIDTH, Fields
from theodolite.advice.shape import ModelShape

_INNER = "text_config."


def find_description(fields: Fields) -> Description | None:
    """Of the model type, or of the class that `architectures` names where the type is foreign."""
    family, architecture = fields.text("model_type", ""), fields.architecture()
    known = description(family)
    if known is None and architecture:
        known = description(type_of_class(architecture) or "")
    if known is None or architecture in (None, known.counted):
        return known
    return _without_head(known, architecture)


def _without_head(known: Description, architecture: str) -> Description | None:
    """The bare model of a language model is all but its head; other classes are not described."""
    language = known.counted.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"))
    prefix = known.counted.partition("For")[0].removesuffix("LMHeadModel")
    if architecture == known.counted or not language or architecture != f"{prefix}Model" or known.language_part:
        return None
    return replace(known, counted=architecture, terms=tuple(term for term in known.terms if term.part != "head"))


def read_described(config: Mapping[str, Any], name: str, known: Description) -> tuple[ModelShape, tuple[str, ...]]:
    """The shape, and the fields that were not read: exact where there are none."""
    found = count(config, name, known)
    fields, family = dict(found.fields), known.model_type
    notes = [f"counted: the parameters of {known.counted}, by the description of its type"]
    if known.language_part:
        notes = [f"counted: the language model in {known.counted}; the other parts are not counted"]
        inner = {key.removeprefix(_INNER): value for key, value in fields.items() if key.startswith(_INNER)}
        family = str(inner.get("model_type") or family)
        outer = {key: value for key, value in fields.items() if "." not in key and key not in inner}
        fields = {**outer, **inner, "tie_word_embeddings": not found.parts.get("head", 0)}
    notes += _filled_in(config, known, fields)
    fields |= {alias: fields[actual] for alias, actual in known.aliases.items() if actual in fields}
    if isinstance(config.get("layer_types"), list):
        fields["layer_types"] = config["layer_types"]
    if "quantization_config" in config:
        fields["quantization_config"] = config["quantization_config"]
    shape = counted_shape(
        fields, name, family, known.counted, found.parts, found.of_experts, exact=not found.unread, notes=tuple(notes)
    )
    return shape, found.unread


def _filled_in(config: Mapping[str, Any], known: Description, fields: Mapping[str, Any]) -> list[str]:
    """Depth, width and heads that the configuration leaves to its type."""
    place = config.get("text_config") if known.language_part else config
    stated = {known.aliases.get(field, field) for field in (place if isinstance(place, Mapping) else {})}
    names = [name for name in (*DEPTH, *WIDTH, *HEADS) if type(fields.get(name)) is int and name not in stated]
    listed = ", ".join(f"{name} {fields[name]}" for name in names)
    return [f"not stated, so the type's own: {listed}"] if listed else []
