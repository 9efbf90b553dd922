"""A network with the weights of a file, and the sizes that these have: what every instrument can be turned on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.measurement import canonical
from theodolite.nets.blueprint import Blueprint, seeded
from theodolite.nets.load import blueprint
from theodolite.nets.own_net import SIZES, meaning
from theodolite.nets.weights import fitting, read_checkpoint, renamed

_FITTED = ("width", *SIZES)  # arguments that can be read off the shapes of tensors


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """`net` with the arguments `given`, which are all that its tensors do not show, such as its depth. `trained`: with
    the weights of the file; without, as it is built anew at the same sizes."""

    net: Any
    file: str
    given: Mapping[str, Any] = field(default_factory=dict)
    trained: bool = True

    def __post_init__(self) -> None:
        tensors, metadata = read_checkpoint(self.file)
        own = blueprint(self.net, **self.given)
        if metadata.get("net", own.name) != own.name:
            raise BadInput(f"'{self.file}' holds weights of '{metadata['net']}', not of '{own.name}': name that net")
        found = sizes_in(self.net, tensors, self.given)
        object.__setattr__(self, "given", {**self.given, **found})
        with seeded(0):
            fitting(own.name, blueprint(self.net, **self.given).build(), tensors, self.file)

    @property
    def name(self) -> str:
        own = blueprint(self.net, **self.given).name
        return f"{own} + {Path(self.file).name}" if self.trained else own

    @property
    def source(self) -> str:
        """Which code, sizes and weights these are."""
        code = blueprint(self.net, **self.given).code
        weights = hashlib.sha256(Path(self.file).read_bytes()).hexdigest() if self.trained else "drawn"
        return hashlib.sha256(canonical([code, dict(self.given), weights]).encode()).hexdigest()

    def __call__(self) -> nn.Module:
        return self.plan().build()

    def plan(self, **shape: Any) -> Blueprint:
        """Of a net that is built already: no argument is left to be set but how many tokens it is given."""
        own = blueprint(self.net, **self.given)
        asked = {meaning(name): value for name, value in shape.items() if value is not None}
        most = own.shape.get("tokens") if any(meaning(name) == "tokens" for name in self.given) else None
        tokens = asked.get("tokens", SIZES["tokens"])
        extent = {"tokens": tokens if most is None else min(tokens, most)} if own.kind == "sequence" else {}
        factory = lambda: self._module(own)
        shape = {**own.shape, **extent}
        return replace(
            own, name=self.name, factory=factory, arguments={}, known={}, shape=shape, built=True, registered=False
        )

    def _module(self, own: Blueprint) -> nn.Module:
        with seeded(0):
            module = replace(own, calling=None).build()
        if self.trained and not _on_meta(module):
            tensors, _ = read_checkpoint(self.file)
            module.load_state_dict(fitting(own.name, module, tensors, self.file))
        return module


def sizes_in(net: Any, tensors: Mapping[str, Tensor], given: Mapping[str, Any]) -> dict[str, int]:
    """Sizes and width of a net at which its tensors have the shapes of these, as far as shapes tell: each is changed
    alone, and the entries of shapes that move with it say which value those of the file have."""
    found: dict[str, int] = {}
    for size in _FITTED:
        plan = blueprint(net, **given, **found)
        own = [one for one in plan.known if meaning(one) == size]
        name = own[-1] if own else None  # the constructor's own, where it has another
        if name is None or any(meaning(one) == size for one in given):
            continue
        here = plan.arguments.get(name, plan.known.get(name))
        here = here if type(here) is int and here > 0 else SIZES.get(size)
        if here is None:
            continue
        before, after = (_shapes(net, {**given, **found, name: value}) for value in (here, 2 * here))
        there = {n: tuple(t.shape) for n, t in renamed(tensors, before).items()}
        value = _told(before, after, there, here)
        if value is not None and value != here:
            found[name] = value
    return found


def _told(before: Mapping[str, Any], after: Mapping[str, Any], there: Mapping[str, Any], here: int) -> int | None:
    for name, shape in before.items():
        if len(after.get(name, ())) == len(shape) == len(there.get(name, ())):
            for old, new, wanted in zip(shape, after[name], there[name], strict=True):
                step = (new - old) / here
                value = here + (wanted - old) / step if step else 0
                if value >= 1 and float(value).is_integer():
                    return int(value)
    return None


def _shapes(net: Any, arguments: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    try:
        plan = replace(blueprint(net, **arguments), calling=None)
        with seeded(0):
            try:
                with torch.device("meta"):
                    module = plan.build()
            except TheodoliteError:
                module = plan.build()
    except TheodoliteError:
        return {}
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _on_meta(module: nn.Module) -> bool:
    return any(tensor.is_meta for tensor in module.state_dict().values())
