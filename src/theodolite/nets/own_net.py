"""From a user's class, factory, function or module to its blueprint: sizes by whichever name the constructor has for
them, values of a small net for what else it needs, and what it reads."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.assumed import assumed
from theodolite.nets.blueprint import Blueprint
from theodolite.nets.calling import Calling
from theodolite.nets.constructor import REQUIRED, Constructor, constructor, is_config
from theodolite.nets.contract import ALIASES, positive
from theodolite.nets.first_layer import look
from theodolite.registry import unknown

SIZES = {"features": 4, "vocab": 8, "outputs": 1, "tokens": 8}
_VECTOR_FEATURES = 8


def own_blueprint(net: Any, name: str, given: dict[str, Any]) -> Blueprint:
    """A module, a function of the input, or what builds a module from the arguments it names."""
    if isinstance(net, nn.Module) or _computes(net, given):
        plan = _built(net, name, given)
    elif callable(net):
        plan = _constructed(constructor(net, name), name, given)
    else:
        raise BadInput(f"'{name}' is a {type(net).__name__}: pass an nn.Module, its class or a factory")
    return look(plan, given_features=_given_size("features", given), named=_names_its_input(plan))


def meaning(name: str) -> str:
    """Our name for an argument."""
    return ALIASES.get(name, name)


def _given_size(size: str, given: Mapping[str, Any]) -> int | None:
    return next((value for name, value in given.items() if meaning(name) == size), None)


def _names_its_input(plan: Blueprint) -> bool:
    return any(meaning(name) in ("features", "vocab") for name in plan.known)


def _built(net: Any, name: str, given: dict[str, Any]) -> Blueprint:
    given = {meaning(k) if meaning(k) in SIZES else k: v for k, v in given.items()}
    rest = [k for k in given if k not in SIZES]
    if rest:
        raise BadInput(f"'{name}' is built already, so '{rest[0]}' cannot be set: pass its class instead")
    vocabulary = "vocab" in given
    sequence = vocabulary or "tokens" in given
    sizes = _sizes(given, sequence)
    return Blueprint(
        name=name,
        factory=lambda: copy.deepcopy(net) if isinstance(net, nn.Module) else _Function(net),
        arguments={},
        known={},
        kind="sequence" if sequence else "vector",
        shape=_shape(given, sizes, sequence, vocabulary),
        vocab=sizes["vocab"] if vocabulary else None,
        built=True,
        calling=Calling(),
    )


def _constructed(make: Constructor, name: str, given: dict[str, Any]) -> Blueprint:
    own = {size: [n for n in make.arguments if meaning(n) == size] for size in SIZES}
    chosen, alone = _resolved(make, name, given)
    sizes = _sizes(_known_sizes(make, own, {**_by_meaning(chosen), **alone}), _reads_tokens(own, chosen, alone))
    vocabulary = bool(own["vocab"])
    sequence = _reads_tokens(own, chosen, alone)
    arguments = {**_size_arguments(make, own, sizes, alone), **chosen}
    missing = [k for k, default in make.arguments.items() if default is REQUIRED and k not in arguments]
    asked = [size for one, size in alone.items() if one in ("features", "outputs") and not own[one]]
    filled = assumed(missing, arguments, least_width=max((a for a in asked if type(a) is int), default=0))
    _complete(name, [k for k in missing if k not in filled])
    arguments |= filled
    told = [f"{k}={v}" for k, v in filled.items()]
    defaults = {k: d for k, d in make.arguments.items() if isinstance(d, int | float | str) and _own_argument(k)}
    return Blueprint(
        name=name,
        factory=_translating(make, own),
        arguments=arguments,
        known=_known(make, own),
        kind="sequence" if sequence else "vector",
        shape=_shape({**defaults, **arguments, **alone}, sizes, sequence, vocabulary),
        vocab=sizes["vocab"] if vocabulary else None,
        calling=Calling(),
        assumed=tuple(
            ([f"built with a {make.form}"] if make.form else []) + ([f"assumed {', '.join(told)}"] if told else [])
        ),
    )


def _own_argument(name: str) -> bool:
    """Not the size of a task under another name: those are in a shape only where they were set."""
    return name not in ALIASES or ALIASES[name] not in SIZES


def _resolved(make: Constructor, name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was given, by the constructor's own names; and sizes by ours, where it has no argument of that name."""
    chosen: dict[str, Any] = {}
    alone: dict[str, Any] = {}
    for key, value in given.items():
        meant = meaning(key)
        targets = [key] if key in make.arguments else [n for n in make.arguments if meaning(n) == meant]
        if any(target in chosen for target in targets) or meant in alone:
            raise BadInput(f"for the net '{name}': '{meant}' is given twice (as '{key}' too): give it once")
        if targets and (key in targets or meant not in SIZES):
            chosen |= dict.fromkeys(targets, value)
        elif meant in SIZES:
            alone[meant] = value
        elif make.any_name:
            chosen[key] = value
        else:
            raise BadInput(f"for the net '{name}': {unknown('argument', key, {**make.arguments, **SIZES})}")
    return chosen, alone


def _by_meaning(chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {meaning(name): value for name, value in chosen.items() if meaning(name) in SIZES}


def _reads_tokens(own: Mapping[str, list[str]], chosen: Mapping[str, Any], alone: Mapping[str, Any]) -> bool:
    return bool(own["vocab"] or own["tokens"] or "tokens" in alone or "tokens" in _by_meaning(chosen))


def _known_sizes(make: Constructor, own: Mapping[str, list[str]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that were given, and the constructor's own defaults; a default for the longest input is none of its own."""
    defaults = {size: make.arguments[n] for size, names in own.items() for n in names if n == size or size != "tokens"}
    return {**{size: d for size, d in defaults.items() if type(d) is int and d > 0}, **given}  # -1: to be set


def _size_arguments(
    make: Constructor, own: Mapping[str, list[str]], sizes: Mapping[str, int], alone: Mapping[str, Any]
) -> dict[str, Any]:
    found = {name: sizes[size] for size, names in own.items() for name in names}
    for name in own["tokens"]:  # a table that is long enough stays as it is
        default = make.arguments[name]
        if name != "tokens" and type(default) is int and default >= sizes["tokens"]:
            found[name] = default
    outputs = alone.get("outputs", 0)
    if not own["outputs"] and type(outputs) is int:  # the vocabulary is what it answers with
        found |= {name: max(sizes["vocab"], outputs) for name in own["vocab"]}
    return found


def _translating(make: Constructor, own: Mapping[str, list[str]]) -> Callable[..., Any]:
    """The constructor, which also takes sizes by our names."""

    def build(**given: Any) -> Any:
        meant: dict[str, Any] = {}
        for name, value in given.items():
            meant |= dict.fromkeys([name] if name in make.arguments or name not in own else own[name], value)
        return make(**meant)

    return build


def _known(make: Constructor, own: Mapping[str, list[str]]) -> dict[str, Any]:
    known = {k: None if default is REQUIRED else default for k, default in make.arguments.items()}
    return {**{size: known[names[0]] for size, names in own.items() if names}, **known}


def _shape(given: Mapping[str, Any], sizes: Mapping[str, int], sequence: bool, vocabulary: bool) -> dict[str, Any]:
    """All that was chosen, and the input's extent; sizes by our names."""
    named = {meaning(k) if meaning(k) in SIZES else k: v for k, v in given.items()}
    extent = ["tokens"] if sequence else []
    extent.append("vocab" if vocabulary and "vocab" in named else "features")
    return {**named, **{size: sizes[size] for size in extent if size != "features" or not vocabulary}}


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
    sizes = {*SIZES, *ALIASES, *ALIASES.values(), *given}
    return len(required) == 1 and required[0] not in sizes and not is_config(required[0])


def _complete(name: str, missing: list[str]) -> None:
    """Refuse a net whose constructor asks for more than it is given, and say how to give it."""
    if missing:
        quoted = " and ".join(f"'{k}'" for k in missing)
        options = " ".join(f"--arg {k}=VALUE" for k in missing)
        raise BadInput(f"'{name}' needs {quoted} to be built: give {options}, or {missing[0]}=VALUE in Python")


def _sizes(given: Mapping[str, Any], sequence: bool) -> dict[str, int]:
    """What a net is offered: the sizes that were given, and defaults for the others."""
    default = {**SIZES, "features": SIZES["features"] if sequence else _VECTOR_FEATURES}
    sizes = {name: given.get(name, value) for name, value in default.items()}
    positive(**sizes)
    return sizes
