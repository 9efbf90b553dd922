"""Where a model of text and images keeps the configuration of its language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.advice.fields import DEPTH, WIDTH, Fields

KEYS = ("text_config", "language_config", "llm_config")
# What the inner configuration leaves out, by the outer model_type.
INNER_TYPE = {
    "clip": "clip_text_model",
    "gemma3": "gemma3_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
}


def text_part(config: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], str | None]:
    """The inner configuration and its key; the configuration itself and None where it has its own sizes."""
    fields = Fields(config, name)
    key = next((key for key in KEYS if config.get(key) is not None), None)
    if key is None or (fields.has(*DEPTH) and fields.has(*WIDTH)):
        return config, None
    inner = dict(fields.nested(key))
    outer = fields.text("model_type", "")
    if not inner.get("model_type") and outer in INNER_TYPE:
        inner["model_type"] = INNER_TYPE[outer]
    if "tie_word_embeddings" in config:
        inner.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
    return inner, key
