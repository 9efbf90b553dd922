"""From what a user names, a registered net, `file.py:Name` or a module at hand, to the subject of a measurement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.blueprint import Blueprint as Blueprint
from theodolite.nets.blueprint import Planned
from theodolite.nets.blueprint import seeded as seeded
from theodolite.nets.contract import LISTS, canonical_arguments, nets, number_list
from theodolite.nets.from_file import is_file, named_in_file
from theodolite.nets.hugging_face import hugging_face_blueprint, is_hugging_face
from theodolite.nets.own_net import own_blueprint


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
    if isinstance(net, Planned):
        return net.plan(**given)
    if not isinstance(net, str):
        return own_blueprint(net, getattr(net, "__name__", type(net).__name__), given)
    if is_hugging_face(net):
        return hugging_face_blueprint(net, given)
    if is_file(net):
        named = named_in_file(net)
        with named.neighbours():
            plan = own_blueprint(named.found, named.name, given)
        return replace(plan, source=named.digest, code=named.code, beside=named.neighbours)
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
