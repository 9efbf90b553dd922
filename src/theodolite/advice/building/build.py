"""A configuration's model on the meta device: its tensors have names and sizes, and no memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from theodolite.advice.building.classes import candidates, configuration_class
from theodolite.advice.building.library import quiet
from theodolite.advice.fields import Fields
from theodolite.errors import BadInput

SECONDS = 30.0
MODULES = 200_000
LARGEST_NUMBER = 10**10


class CannotBuild(Exception):
    """The library does not know this model, or refuses its configuration; the text is its own reason."""


@dataclass(frozen=True)
class Built:
    model: Any
    config: Any

    @property
    def counted(self) -> str:
        return type(self.model).__name__


def build(config: Mapping[str, Any], name: str) -> Built:
    """The model of a configuration, of the class that it names or else of the usual one for its type."""
    fields = Fields(config, name)
    _check_numbers(config, name)
    with quiet():
        read = _configuration(fields)
        kind = next(candidates(read, fields.architecture()), None)
        if kind is None:
            raise CannotBuild(f"it has no class for the model_type '{read.model_type}'")
        try:
            return Built(_on_meta(kind, read), read)
        except _TooLarge as error:
            raise BadInput(f"{name} {error}: make it smaller") from None
        except Exception as error:  # whatever a constructor raises on sizes it did not expect
            raise CannotBuild(f"{kind.__name__}: {first_line(error)}") from None


def _configuration(fields: Fields) -> Any:
    family = fields.text("model_type", "")
    kind = configuration_class(family, fields.architecture())
    if kind is None:
        raise CannotBuild(f"it does not know the model_type '{family}'")
    content = {
        key: value
        for key, value in fields.config.items()
        if key not in ("auto_map", "quantization_config", "model_type")
    }
    try:
        return kind.from_dict(content)  # type: ignore[attr-defined]
    except Exception as error:
        raise CannotBuild(first_line(error)) from None


class _TooLarge(Exception):
    pass


def _on_meta(kind: Any, config: Any) -> Any:
    import torch

    with torch.device("meta"), _within_limits():
        return kind(config).eval()


@contextmanager
def _within_limits() -> Iterator[None]:
    """A configuration of a million layers is refused after some seconds, not built."""
    from torch.nn.modules.module import register_module_module_registration_hook

    started, registered = time.monotonic(), 0

    def look(*_: Any) -> None:
        nonlocal registered
        registered += 1
        if registered > MODULES or time.monotonic() - started > SECONDS:
            raise _TooLarge(
                f"has more than {registered:,} layers and parts of layers, too many to be counted one by one"
            )

    hook = register_module_module_registration_hook(look)
    try:
        yield
    finally:
        hook.remove()


def _check_numbers(value: Any, name: str, depth: int = 0) -> None:
    """Before a constructor sees them: numbers no model has."""
    if isinstance(value, Mapping) and depth < 8:
        for key, item in value.items():
            if isinstance(item, int) and abs(item) > LARGEST_NUMBER and "length" not in str(key):
                raise BadInput(f"{key} of {name} is {item}, larger than any model's: write a smaller number")
            _check_numbers(item, name, depth + 1)


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__
