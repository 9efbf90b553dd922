"""From what a user names, a registered net, `file.py:Name` or a module at hand, to the subject of a measurement."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.nets.contract import ALIASES, canonical_arguments, nets, positive
from theodolite.registry import unknown

_SUPPLIED = {"features": 4, "vocab": 8, "outputs": 1, "tokens": 8}
_VECTOR_FEATURES = 8


@dataclass(frozen=True)
class Subject:
    """A net with the shape of its input: `sites` tokens of `features` numbers, or a vector of `sites` entries."""

    name: str
    module: nn.Module
    kind: Literal["sequence", "vector"]
    sites: int
    features: int
    shape: Mapping[str, Any]
    vocab: int | None = None
    version: int = 1
    source: str | None = None  # SHA-256 of the user's file
    registered: bool = False


def load(net: str | nn.Module | Callable[..., Any], seed: int = 0, **shape: Any) -> Subject:
    """The subject a user means. Arguments that are None count as not given; unknown ones are refused."""
    given = {name: value for name, value in shape.items() if value is not None}
    if not isinstance(net, str):
        return _from_object(net, getattr(net, "__name__", type(net).__name__), given, seed, source=None)
    if ":" in net or net.endswith(".py"):
        return _from_file(net, given, seed)
    entry = nets[net]
    arguments = canonical_arguments(net, given, entry.arguments)
    arguments = {**{k: v for k, v in entry.defaults.items() if k in entry.arguments}, **arguments}
    for name, value in arguments.items():
        if isinstance(entry.arguments[name], bool):
            if not isinstance(value, bool):
                raise BadInput(f"{name} of '{net}' is switched on or off: use true or false, not {value!r}")
        else:
            positive(**{name: value})
    module = _seeded(lambda: entry.factory(**arguments), seed)
    features = int(getattr(module, "features", 0) or arguments["features"])
    sites = int(arguments["tokens"]) if entry.kind == "sequence" else features
    described = {k: v for k, v in {**entry.arguments, **arguments}.items() if v is not None}
    return Subject(
        name=net,
        module=module.eval(),
        kind=entry.kind,
        sites=sites,
        features=features if entry.kind == "sequence" else 1,
        shape=described,
        version=entry.version,
        registered=True,
    )


def _from_file(text: str, given: dict[str, Any], seed: int) -> Subject:
    path_text, _, name = text.rpartition(":")
    path = Path(path_text)
    if not name or not path_text:
        raise BadInput(f"'{text}' names no class or function: write file.py:Name")
    if not path.is_file():
        raise BadInput(f"there is no file '{path_text}': give the path of a Python file as file.py:Name")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    module_name = f"theodolite_user_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"'{path_text}' is not a Python file: give file.py:Name")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = loaded
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        raise BadInput(f"'{path_text}' could not be imported: {type(error).__name__}: {error}") from error
    if not hasattr(loaded, name):
        public = [n for n, v in vars(loaded).items() if not n.startswith("_") and callable(v)]
        raise BadInput(f"in '{path_text}': {unknown('class or function', name, public)}")
    return _from_object(getattr(loaded, name), f"{path.name}:{name}", given, seed, source=digest)


def _from_object(net: Any, name: str, given: dict[str, Any], seed: int, source: str | None) -> Subject:
    """A module, a function of the input, or what builds a module from the arguments it names."""
    if isinstance(net, nn.Module) or _computes(net, given):
        rest = [k for k in given if k not in _SUPPLIED]
        if rest:
            raise BadInput(f"'{name}' is built already, so '{rest[0]}' cannot be set: pass its class instead")
        module = copy.deepcopy(net) if isinstance(net, nn.Module) else _Function(net)
        sequence, vocabulary = "tokens" in given, "vocab" in given
        sizes = _sizes(given, sequence or vocabulary)
    elif callable(net):
        parameters = _parameters(net, name)
        arguments = canonical_arguments(name, given, {**dict.fromkeys(parameters), **_SUPPLIED})
        foreign = [k for k in arguments if k not in parameters and k not in _SUPPLIED]
        if foreign:
            raise BadInput(f"for the net '{name}': {unknown('argument', foreign[0], parameters)}")
        vocabulary = "vocab" in parameters
        sequence = vocabulary or "tokens" in parameters or "tokens" in arguments
        own = {k: parameters[k].default for k in _SUPPLIED if k in parameters}
        sizes = _sizes({**{k: v for k, v in own.items() if type(v) is int}, **arguments}, sequence)
        passed = {k: v for k, v in {**sizes, **arguments}.items() if k in parameters}
        module = _seeded(lambda: net(**passed), seed, name)
        if not isinstance(module, nn.Module):
            raise BadInput(f"'{name}' built a {type(module).__name__} instead of an nn.Module: return a module")
        defaults = {k: p.default for k, p in parameters.items() if isinstance(p.default, int | float | str)}
        given = {**defaults, **passed, **arguments}
    else:
        raise BadInput(f"'{name}' is a {type(net).__name__}: pass an nn.Module, its class or a factory")
    sequence = sequence or vocabulary
    per_token = 1 if vocabulary else sizes["features"]
    extent = {"tokens": sizes["tokens"]} if sequence else {}
    return Subject(
        name=name,
        module=module.eval(),
        kind="sequence" if sequence else "vector",
        sites=sizes["tokens"] if sequence else sizes["features"],
        features=per_token if sequence else 1,
        shape={**given, **extent, **({} if vocabulary else {"features": sizes["features"]})},
        vocab=sizes["vocab"] if vocabulary else None,
        source=source,
    )


class _Function(nn.Module):
    """A plain function of the input as a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _computes(net: Any, given: Mapping[str, Any]) -> bool:
    """A function whose one required argument is neither a size nor given is the net itself, not what builds it."""
    if not inspect.isfunction(net):
        return False
    required = [p.name for p in inspect.signature(net).parameters.values() if p.default is p.empty]
    sizes = {*_SUPPLIED, *ALIASES, *ALIASES.values(), *given}
    return len(required) == 1 and required[0] not in sizes


def _parameters(net: Callable[..., Any], name: str) -> Mapping[str, Any]:
    try:
        return inspect.signature(net).parameters
    except (TypeError, ValueError):
        raise BadInput(f"the arguments of '{name}' cannot be read: pass a class or function of Python") from None


def _sizes(given: Mapping[str, Any], sequence: bool) -> dict[str, int]:
    """What a net is offered: the sizes that were given, and defaults for the others."""
    default = {**_SUPPLIED, "features": _SUPPLIED["features"] if sequence else _VECTOR_FEATURES}
    sizes = {name: given.get(name, value) for name, value in default.items()}
    positive(**sizes)
    return sizes


def _seeded(build: Callable[[], Any], seed: int, name: str | None = None) -> Any:
    """Build with torch's global generator set for the while and put back after."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return build()
        except TheodoliteError:
            raise
        except Exception as error:
            if name is None:
                raise
            raise BadInput(f"'{name}' could not be built: {type(error).__name__}: {error}") from error
