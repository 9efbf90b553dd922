"""From a configuration to the shape of its model: by its family's reader, by building it, or by its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from theodolite.advice.building.library import available
from theodolite.advice.described.count import count
from theodolite.advice.described.read import find_description, read_described
from theodolite.advice.described.table import Description, type_of_class
from theodolite.advice.families import FAMILIES
from theodolite.advice.fields import DEPTH, HEADS, VOCAB, WIDTH, Fields
from theodolite.advice.other_networks import kind_of, refuse_other_networks
from theodolite.advice.quantised import quantised
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import text_part
from theodolite.advice.unknown import read_unknown
from theodolite.advice.unread import structural, unread_fields
from theodolite.errors import BadInput

SHOWN = 6  # fields named in a sentence
ORDINARY = 0.05  # of a type's parameters, by which common names may miss them


def read_config(config: Mapping[str, Any], name: str, *, build: bool = True) -> ModelShape:
    """The shape of the model a configuration describes; of one that also sees or hears, its language model.

    The families in `FAMILIES` are counted by hand where each field of the configuration is understood. Everything else
    is built by transformers where that is installed and `build` is not switched off, or else counted by the description
    of its type. What is left is counted as an ordinary Transformer and said to be so, or refused.
    """
    by_hand = _by_hand(config, name)
    if by_hand is not None and by_hand.exact:
        return _stored(by_hand, config)
    reason = ""
    if build and available():
        from theodolite.advice.building.read import CannotBuild, read_built

        try:
            return read_built(config, name)
        except CannotBuild as error:
            reason = f"transformers cannot build it ({error})"
    known = find_description(Fields(config, name))
    about: ModelShape | None = by_hand
    if known is not None:
        shape, unread = read_described(config, name, known)
        if not unread:
            return shape
        about = about or (None if structural(unread) else _about(shape, unread))
        reason = reason or f"{_listed(unread)} {_are(unread)} not read"
    if about is None:
        about = _by_common_names(config, name, known, reason)
    return _stored(replace(about, notes=(*about.notes, reason) if reason else about.notes), config)


def _by_hand(config: Mapping[str, Any], name: str, *, inside: bool = False) -> ModelShape | None:
    """By the reader of its family, if it has one; not exact where fields of the configuration were not read."""
    inner, key = text_part(config, name)
    if key is not None:
        shape = _by_hand(inner, f"{key} of {name}", inside=True)
        if shape is None:
            return None
        note = f"read: the language model in {key}; the other parts are not counted"
        ties = {one["tie_word_embeddings"] for one in (config, inner) if one.get("tie_word_embeddings") is not None}
        unclear = not _holds_it_whole(config, shape, name)
        notes: tuple[str, ...] = ()
        if unclear:
            notes = (f"what the whole model changes in the language model of its {key} is not described",)
            if len(ties) > 1:
                notes = (*notes, f"tie_word_embeddings of {name} and of its {key} differ")
        return replace(shape, name=name, exact=shape.exact and not unclear, notes=(note, *shape.notes, *notes))
    fields = Fields(config, name)
    family = _family(fields)
    reader = FAMILIES.get(family)
    if reader is None:
        return None
    known = find_description(Fields({**config, "model_type": family}, name))
    if _wanted(fields, family) and inside and known is not None:  # the type's defaults are meant
        shape, unread = read_described(config, name, known)
        return _about(shape, unread) if unread else shape
    _require_sizes(fields, family, known)
    if kind_of(config, family) != "Transformer":
        return None
    shape = reader(fields, family)
    unread = unread_fields(config, fields.read, known)
    notes = (f"counted: the parameters of {shape.counted}", *shape.notes)
    if family != fields.text("model_type", ""):
        notes = (*notes, f"read as a '{family}', which is what its architectures name")
    shape = replace(shape, notes=notes)
    return _about(shape, unread) if unread else shape


def _holds_it_whole(config: Mapping[str, Any], shape: ModelShape, name: str) -> bool:
    """Whether the outer model is known to have just this language model: some tie, cut or extend it."""
    known = find_description(Fields(config, name))
    if known is None:
        return False
    found = count(config, name, known)
    return not found.unread and sum(found.parts.values()) == shape.params


def _family(fields: Fields) -> str:
    """The model type; where that is foreign, the type of the class in `architectures`."""
    family, architecture = fields.text("model_type", ""), fields.architecture()
    if family in FAMILIES or find_description(Fields({"model_type": family}, fields.name)) is not None:
        return family
    return (type_of_class(architecture) if architecture else None) or family


def _by_common_names(config: Mapping[str, Any], name: str, known: Description | None, reason: str) -> ModelShape:
    """As an ordinary Transformer, or not at all."""
    inner, key = text_part(config, name)
    if key is not None:
        shape = _by_common_names(inner, f"{key} of {name}", None, reason)
        note = f"read: the language model in {key}; the other parts are not counted"
        return replace(shape, name=name, notes=(note, *shape.notes))
    fields = Fields(config, name)
    family = fields.text("model_type", "")
    refuse_other_networks(fields, family)
    _require_sizes(fields, family, known)
    shape = read_unknown(fields, family or "unnamed")
    unread = unread_fields(config, fields.read, known)
    if known is not None and not structural(unread) and not _ordinary(known, name):
        unread = count(config, name, known).unread
        raise BadInput(
            f"{name}, a '{family}', states {_listed(unread)} as it is not described here, and its layers are not "
            "ordinary ones: install a transformers that knows it, so that its parameters can be counted"
        )
    if structural(unread):
        why = f" ({reason})" if reason.startswith("transformers") else ""
        raise BadInput(
            f"{name}, a '{family}', states {_listed(structural(unread))}, which {_are(structural(unread))} not read "
            f"here{why}: install a transformers that knows it, so that its parameters can be counted"
        )
    return _about(shape, unread) if unread else shape


def _ordinary(known: Description, name: str) -> bool:
    """Whether a type's own defaults are counted right, within some percent, by common names alone."""
    try:
        guessed = read_unknown(Fields(known.defaults, name), known.model_type).params
    except BadInput:
        return False
    return abs(guessed / max(1, sum(count(known.defaults, name, known).parts.values())) - 1) < ORDINARY


def _about(shape: ModelShape, unread: tuple[str, ...]) -> ModelShape:
    return replace(shape, exact=False, notes=(*shape.notes, f"not read: {_listed(unread)}"))


def _stored(shape: ModelShape, config: Mapping[str, Any]) -> ModelShape:
    return shape if shape.quantised is not None else replace(shape, quantised=quantised(config))


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more fields"


def _are(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"


def _wanted(fields: Fields, family: str) -> list[str]:
    wanted = [("depth", (*DEPTH, "encoder_layers")), ("width", WIDTH)]
    if family != "gemma3_text":  # its published configurations leave the usual heads out
        wanted.append(("heads", (*HEADS, "encoder_attention_heads")))
    if family not in FAMILIES and not fields.has("image_size", "patch_size"):
        wanted.append(("vocabulary", VOCAB))
    return [f"{what} ({' or '.join(names)})" for what, names in wanted if not fields.has(*names)]


def _require_sizes(fields: Fields, family: str, known: Description | None) -> None:
    """Every size that is missing, in one sentence; a type's own defaults fill in for some, not for all of them."""
    missing = _wanted(fields, family)
    if not missing or (known is not None and len(missing) < 3 and family not in FAMILIES):
        return
    fault = f"{fields.name} does not state its {', '.join(missing)}"
    if family and family not in FAMILIES:
        raise BadInput(
            f"{fault}: the family '{family}' is not described here, so add these fields if it is a Transformer"
        )
    raise BadInput(f"{fault}: add these fields to the configuration")
