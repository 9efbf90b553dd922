"""Which tensors of a built model are its language model: all of them, unless it also sees or hears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def parameters(model: Any, text: Any | None) -> dict[str, Any]:
    """Parameters by name, a tied one once; of the language model alone where `text` is its own configuration."""
    named = _unique(model)
    if text is None:
        return named
    modules = dict(model.named_modules())
    roots = [name for name, module in modules.items() if name and _is_of(module, text)]
    roots = [name for name in roots if not any(name.startswith(f"{other}.") for other in roots)]
    if not roots:
        return named
    found = {name: p for name, p in named.items() if any(name.startswith(f"{root}.") for root in roots)}
    for name, parameter in _output_map(model, modules):
        found.setdefault(name, parameter)
    seen: dict[int, str] = {}
    return {name: p for name, p in found.items() if seen.setdefault(id(p), name) == name}


def _unique(model: Any) -> dict[str, Any]:
    return dict(model.named_parameters())  # leaves out what came before


def _is_of(module: Any, text: Any) -> bool:
    own = getattr(module, "config", None)
    return own is text and hasattr(module, "base_model_prefix")


def _output_map(model: Any, modules: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    try:
        head = model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return
    if head is None:
        return
    place = next((name for name, module in modules.items() if module is head), "lm_head")
    for name, parameter in head.named_parameters():
        yield f"{place}.{name}", parameter
