"""A configuration as one level of fields: `text_config.hidden_size`, `depths.0`; names and aliases sorted out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Flat = dict[str, Any]

# What sees or hears in a model of which the language part is described.
OTHER_PARTS = re.compile(r"^(?!text_config)\w*(vision|audio|speech|vq|qformer|perceiver|backbone|codec|projector)\w*\.")
_DEEPEST = 6


def flatten(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Flat:
    """Nested objects and short lists of whole numbers opened; everything else as it stands."""
    flat: Flat = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping) and item and depth < _DEEPEST and all(str(one).isidentifier() for one in item):
            flat |= flatten(item, f"{name}.", depth + 1)
        elif isinstance(item, list) and 0 < len(item) <= 8 and all(type(one) is int for one in item):
            flat |= {f"{name}.{index}": one for index, one in enumerate(item)}
        else:
            flat[name] = item
    return flat


def labelled(flat: Flat) -> Flat:
    """As many classes as there are labels; their names do not matter."""
    names = flat.get("id2label")
    if isinstance(names, Mapping) and names:
        flat["num_labels"] = len(names)
    return {name: value for name, value in flat.items() if not name.startswith(("id2label", "label2id"))}
