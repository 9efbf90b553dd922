"""From what a user names, a registered net, `file.py:Name` or a module at hand, to the subject of a measurement."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.nets import fingerprint
from theodolite.nets.contract import ALIASES, LISTS, canonical_arguments, nets, number_list, positive
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


@dataclass(frozen=True)
class Blueprint:
    """What `load` builds a subject from. `known` are the arguments of the factory with their defaults."""

    name: str
    factory: Callable[..., Any]
    arguments: Mapping[str, Any]
    known: Mapping[str, Any]
    kind: Literal["sequence", "vector"]
    shape: Mapping[str, Any]
    vocab: int | None = None
    version: int = 1
    source: str | None = None
    code: str | None = None  # of a user's file: with all that it imports, see `fingerprint`
    registered: bool = False
    built: bool = False  # a module or a function at hand: it takes no arguments

    def build(self, **changed: Any) -> nn.Module:
        """The module, from torch's global generator as it stands; `changed` arguments replace those planned."""
        try:
            module = self.factory(**{**self.arguments, **changed})
        except TheodoliteError as error:
            if not self.registered:
                raise
            raise type(error)(f"for the net '{self.name}': {error}") from error
        except Exception as error:
            if self.registered:
                raise
            raise BadInput(f"'{self.name}' could not be built: {type(error).__name__}: {error}") from error
        if not isinstance(module, nn.Module):
            raise BadInput(f"'{self.name}' built a {type(module).__name__} instead of an nn.Module: return a module")
        return module


def load(net: str | nn.Module | Callable[..., Any], seed: int = 0, **shape: Any) -> Subject:
    """The subject a user means. Arguments that are None count as not given; unknown ones are refused."""
    plan = blueprint(net, **shape)
    with seeded(seed):
        module = plan.build()
    # A registered net may choose its own number of features, such as its width, when none is given.
    own = getattr(module, "features", None) if plan.registered else None
    features = int(own or plan.shape.get("features", 1))
    sequence = plan.kind == "sequence"
    return Subject(
        name=plan.name,
        module=module.eval(),
        kind=plan.kind,
        sites=int(plan.shape["tokens"]) if sequence else features,
        features=features if sequence and plan.vocab is None else 1,
        shape=plan.shape,
        vocab=plan.vocab,
        version=plan.version,
        source=plan.source,
        registered=plan.registered,
    )


def blueprint(net: str | nn.Module | Callable[..., Any], **shape: Any) -> Blueprint:
    """What `load` would build, not built yet: the factory, its arguments resolved and checked, the input's shape."""
    given = {name: value for name, value in shape.items() if value is not None}
    if not isinstance(net, str):
        return _of_object(net, getattr(net, "__name__", type(net).__name__), given)
    if ":" in net or net.endswith(".py"):
        named = named_in_file(net)
        return replace(_of_object(named.found, named.name, given), source=named.digest, code=named.code)
    entry = nets[net]
    known = entry.arguments
    arguments = canonical_arguments(net, given, known)
    arguments = {**{k: v for k, v in entry.defaults.items() if k in known}, **arguments}
    for name, value in arguments.items():
        if name in LISTS:
            arguments[name] = list(number_list(name, value))  # plain JSON, as a shape is
        elif isinstance(known[name], bool):
            if not isinstance(value, bool):
                raise BadInput(f"{name} of '{net}' is switched on or off: use true or false, not {value!r}")
        elif isinstance(known[name], str):
            if not isinstance(value, str):
                raise BadInput(f"{name} of '{net}' is a word, such as {known[name]}, not {value!r}")
        elif isinstance(known[name], float):
            if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
                raise BadInput(f"{name} of '{net}' is a number, such as {known[name]}, not {value!r}")
            arguments[name] = float(value)
        else:
            least = 0 if known[name] == 0 else 1  # what is 0 unless given may be given as 0
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise BadInput(f"{name} of '{net}' must be a whole number of at least {least}, not {value!r}")
    return Blueprint(
        name=net,
        factory=entry.factory,
        arguments=arguments,
        known=known,
        kind=entry.kind,
        shape={k: v for k, v in {**known, **arguments, **_replaced(arguments)}.items() if v is not None},
        version=entry.version,
        registered=True,
    )


def _replaced(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A list of degrees stands in the place of one degree and of the depth."""
    return {"depth": len(arguments["degrees"]), "degree": None} if "degrees" in arguments else {}


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Torch's global generators, of the CPU and of a CUDA device, set for the while and put back after."""
    cuda = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # not `torch.manual_seed`, which reaches every GPU
        for one in cuda:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(seed)
        yield


@dataclass(frozen=True)
class FromFile:
    """What `file.py:Name` stands for, and the name to show for it. `digest` is the file's alone, `code` also of all it
    imports."""

    found: Any
    name: str
    digest: str
    code: str


def named_in_file(text: str) -> FromFile:
    """Runs the file. Nets, maps and classes of functions are all named so."""
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
    fingerprint.forget_changed()
    loaded = importlib.util.module_from_spec(spec)
    before = {*sys.modules, module_name}
    sys.modules[module_name] = loaded
    try:
        exec(compile(content, path, "exec"), vars(loaded))  # the text whose hash it is, not a bytecode file of before
    except (Exception, SystemExit) as error:
        raise BadInput(f"'{path_text}' could not be imported: {type(error).__name__}: {error}") from error
    finally:
        fingerprint.remember(sys.modules.keys() - before)
    if not hasattr(loaded, name):
        public = [n for n, v in vars(loaded).items() if not n.startswith("_") and callable(v)]
        raise BadInput(f"in '{path_text}': {unknown('class or function', name, public)}")
    return FromFile(getattr(loaded, name), f"{path.name}:{name}", digest, fingerprint.of_file(loaded, content))


def _of_object(net: Any, name: str, given: dict[str, Any]) -> Blueprint:
    """A module, a function of the input, or what builds a module from the arguments it names."""
    factory, known, arguments, built = net, {}, {}, False
    if isinstance(net, nn.Module) or _computes(net, given):
        rest = [k for k in given if k not in _SUPPLIED]
        if rest:
            raise BadInput(f"'{name}' is built already, so '{rest[0]}' cannot be set: pass its class instead")
        factory, built = (lambda: copy.deepcopy(net) if isinstance(net, nn.Module) else _Function(net)), True
        vocabulary = "vocab" in given
        sequence = vocabulary or "tokens" in given
        sizes = _sizes(given, sequence)
    elif callable(net):
        parameters = _parameters(net, name)
        known = {k: None if p.default is p.empty else p.default for k, p in parameters.items()}
        chosen = canonical_arguments(name, given, {**dict.fromkeys(parameters), **_SUPPLIED})
        foreign = [k for k in chosen if k not in parameters and k not in _SUPPLIED]
        if foreign:
            raise BadInput(f"for the net '{name}': {unknown('argument', foreign[0], parameters)}")
        vocabulary = "vocab" in parameters
        sequence = vocabulary or "tokens" in parameters or "tokens" in chosen
        own = {k: parameters[k].default for k in _SUPPLIED if k in parameters}
        sizes = _sizes({**{k: v for k, v in own.items() if type(v) is int}, **chosen}, sequence)
        arguments = {k: v for k, v in {**sizes, **chosen}.items() if k in parameters}
        _complete(name, parameters, arguments)
        defaults = {k: p.default for k, p in parameters.items() if isinstance(p.default, int | float | str)}
        given = {**defaults, **arguments, **chosen}
    else:
        raise BadInput(f"'{name}' is a {type(net).__name__}: pass an nn.Module, its class or a factory")
    extent = {"tokens": sizes["tokens"]} if sequence else {}
    return Blueprint(
        name=name,
        factory=factory,
        arguments=arguments,
        known=known,
        kind="sequence" if sequence else "vector",
        shape={**given, **extent, **({} if vocabulary else {"features": sizes["features"]})},
        vocab=sizes["vocab"] if vocabulary else None,
        built=built,
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


def _parameters(net: Callable[..., Any], name: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(net).parameters
    except (TypeError, ValueError):
        raise BadInput(f"the arguments of '{name}' cannot be read: pass a class or function of Python") from None


def _complete(name: str, parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> None:
    """Refuse a net whose constructor asks for more than it is given, and say how to give it."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    missing = [k for k, p in parameters.items() if p.kind in named and p.default is p.empty and k not in arguments]
    if missing:
        quoted = " and ".join(f"'{k}'" for k in missing)
        options = " ".join(f"--arg {k}=VALUE" for k in missing)
        raise BadInput(f"'{name}' needs {quoted} to be built: give {options}, or {missing[0]}=VALUE in Python")


def _sizes(given: Mapping[str, Any], sequence: bool) -> dict[str, int]:
    """What a net is offered: the sizes that were given, and defaults for the others."""
    default = {**_SUPPLIED, "features": _SUPPLIED["features"] if sequence else _VECTOR_FEATURES}
    sizes = {name: given.get(name, value) for name, value in default.items()}
    positive(**sizes)
    return sizes
