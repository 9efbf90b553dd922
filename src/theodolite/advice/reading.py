"""From a configuration to the shape of its model: each family by its own reader, others by their common names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.families import FAMILIES
from theodolite.advice.fields import DEPTH, HEADS, VOCAB, WIDTH, Fields
from theodolite.advice.other_networks import refuse_other_networks
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import text_part
from theodolite.advice.unknown import read_unknown
from theodolite.errors import BadInput


def read_config(config: Mapping[str, Any], name: str) -> ModelShape:
    """The shape of the model a configuration describes; of a model of text and images, its text part."""
    inner, key = text_part(config, name)
    if key is not None:
        note = f"read: the language model in {key}; the other parts are not counted"
        shape = read_config(inner, f"{key} of {name}")
        return replace(shape, name=name, notes=(note, *shape.notes))
    fields = Fields(config, name)
    family = fields.text("model_type", "")
    refuse_other_networks(fields, family)
    _require_sizes(fields, family)
    reader = FAMILIES.get(family)
    if reader is None:
        return read_unknown(fields, family or "unnamed")
    shape = reader(fields, family)
    return replace(shape, notes=(f"counted: the parameters of {shape.counted}", *shape.notes))


def _require_sizes(fields: Fields, family: str) -> None:
    """Every size that is missing, in one sentence."""
    wanted = [("depth", (*DEPTH, "encoder_layers")), ("width", WIDTH)]
    if family != "gemma3_text":  # its published configurations leave the usual heads out
        wanted.append(("heads", (*HEADS, "encoder_attention_heads")))
    if family not in FAMILIES and not fields.has("image_size", "patch_size"):
        wanted.append(("vocabulary", VOCAB))
    missing = [f"{what} ({' or '.join(names)})" for what, names in wanted if not fields.has(*names)]
    if missing:
        fault = f"{fields.name} does not state its {', '.join(missing)}"
        if family and family not in FAMILIES:
            raise BadInput(
                f"{fault}: the family '{family}' is not described here, so add these fields if it is a Transformer"
            )
        raise BadInput(f"{fault}: add these fields to the configuration")
