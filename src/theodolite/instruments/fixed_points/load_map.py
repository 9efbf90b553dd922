"""From what a user names, a built-in map or `file.py:Name`, to a map that can be iterated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.instruments.fixed_points.maps import named_map
from theodolite.nets.from_file import is_file, named_in_file
from theodolite.nets.load import seeded
from theodolite.registry import unknown

_WHOLE_SPACE = (-1.0, 1.0)


def load_map(
    name: str | Callable[..., Any] | nn.Module, size: int | None, arguments: Mapping[str, Any], seed: int = 0
) -> tuple[Callable[..., Any], int, tuple[float, float]]:
    """The map, the numbers in its z and the range its starts are drawn from.

    `file.py:Name` is a function of z, or of z and x, whose further arguments are given by name; an nn.Module; or a
    class of one, which is built with those arguments, and with `size` if it asks for it. A map itself is taken as is.
    """
    if not isinstance(name, str):
        if size is None or arguments:
            raise BadInput("a map that is not named has its arguments already: give size, how many numbers it takes")
        return name, size, _WHOLE_SPACE
    if not is_file(name):
        return named_map(name, size, **arguments)
    if size is None:
        raise BadInput(f"how many numbers '{name}' takes is not known: give --size")
    found = named_in_file(name).found
    if isinstance(found, nn.Module):
        if arguments:
            raise BadInput(f"'{name}' is built already, so '{next(iter(arguments))}' cannot be set: name its class")
        return found, size, _WHOLE_SPACE
    if not callable(found):
        raise BadInput(f"'{name}' is a {type(found).__name__}: name a function of z or an nn.Module")
    known = _parameters(name, found)
    if not (inspect.isclass(found) and issubclass(found, nn.Module)):
        required = [k for k, p in known.items() if p.default is p.empty and k not in arguments]
        if not required:
            raise BadInput(f"'{name}' does not take z: give it a first argument for the state")
        _refuse_foreign(name, known, arguments)
        return functools.partial(found, **arguments), size, _WHOLE_SPACE
    offered = {"size": size} if "size" in known else {}
    _refuse_foreign(name, known, arguments)
    with seeded(seed):
        try:
            return found(**{**offered, **arguments}), size, _WHOLE_SPACE
        except TheodoliteError:
            raise
        except Exception as error:
            raise BadInput(f"'{name}' could not be built: {type(error).__name__}: {error}") from error


def _parameters(name: str, found: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):
        raise BadInput(f"the arguments of '{name}' cannot be read: name a function or class of Python") from None


def _refuse_foreign(name: str, known: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> None:
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return
    for key in arguments:
        if key not in known:
            raise BadInput(f"for the map '{name}': {unknown('argument', key, list(known))}")
