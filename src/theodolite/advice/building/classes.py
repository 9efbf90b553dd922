"""Which class of `transformers` a configuration is of, and which model class counts it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from theodolite.advice.building.library import transformers

# What a model is for, in the order in which a configuration without `architectures` is counted.
_PURPOSES = (
    "SEQ_TO_SEQ_CAUSAL_LM",
    "SPEECH_SEQ_2_SEQ",
    "MASKED_LM",
    "MULTIMODAL_LM",
    "IMAGE_TEXT_TO_TEXT",
    "CAUSAL_LM",
    "IMAGE_CLASSIFICATION",
)
_NOT_BY_THEMSELVES = ("PreTrainedModel", "Layer", "Block")


def configuration_class(model_type: str, architecture: str | None) -> type | None:
    """By `model_type`, and where that is foreign by the class that `architectures` names."""
    mapping = transformers().CONFIG_MAPPING
    if model_type in mapping:
        return mapping[model_type]
    named = model_class(architecture)
    return getattr(named, "config_class", None)


def model_class(name: str | None) -> type | None:
    """The class of this name, if it is a model that can be built."""
    library = transformers()
    found = getattr(library, name, None) if name and name.isidentifier() else None
    if isinstance(found, type) and issubclass(found, library.PreTrainedModel):
        return found
    return None


def candidates(config: Any, architecture: str | None) -> Iterator[type]:
    """Best first: the class that is named, or else those of the automatic mappings, or whatever takes it."""
    named = model_class(architecture)
    if named is not None and _takes(named, config):
        yield named
        return
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    purposes = [
        purpose for purpose in _PURPOSES if purpose != "IMAGE_CLASSIFICATION" or not hasattr(config, "text_config")
    ]
    for purpose in (*(f"MODEL_FOR_{purpose}_MAPPING_NAMES" for purpose in purposes), "MODEL_MAPPING_NAMES"):
        mapping: Mapping[str, Any] = getattr(auto, purpose, {})
        names = mapping.get(config.model_type, ())
        for name in (names,) if isinstance(names, str) else names:
            found = model_class(name)
            if found is not None and _takes(found, config):
                yield found
    yield from _of_the_same_file(config)


def _takes(model: type, config: Any) -> bool:
    return getattr(model, "config_class", None) is type(config)


def _of_the_same_file(config: Any) -> Iterator[type]:
    """Parts that no automatic mapping knows, such as the text model of a pair of encoders."""
    place = type(config).__module__.replace("configuration_", "modeling_")
    try:
        module = importlib.import_module(place)
    except ImportError:
        return
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, transformers().PreTrainedModel)
        and value.__module__ == place
        and not value.__name__.endswith(_NOT_BY_THEMSELVES)
        and _takes(value, config)
    ]
    yield from sorted(found, key=lambda one: ("For" in one.__name__, not one.__name__.endswith("Model"), one.__name__))
