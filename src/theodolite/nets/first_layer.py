"""What a user's net reads where its constructor does not say: ids or numbers, how many, which axis first. Told by its
layers, and by a small forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.blueprint import Blueprint, seeded
from theodolite.nets.calling import Calling, further_arguments

_ROWS, _TOKENS = 3, 5
_WIDTHS = ("in_features", "in_channels", "input_size", "embed_dim")


def look(plan: Blueprint, given_features: int | None, named: bool) -> Blueprint:
    """The plan with how its module is called. `named`: the constructor says what it reads."""
    try:
        layers = _layers(plan)
    except BadInput:  # whoever builds it will say why
        return plan
    calling = Calling(further=further_arguments(layers))
    tables = _table_sizes(layers)
    features = int(plan.shape.get("features", 0))
    if plan.vocab is None and (features in tables or (tables and not named)):
        size = features if features in tables else tables[0]
        module = _built(plan)
        if not _runs(module, calling, _numbers(features)) and _runs(module, calling, _ids(size)):
            plan = _reading_ids(plan, size)
    if plan.vocab is None and not named:
        plan, calling = _with_its_own_features(plan, _widths(layers), calling, given_features)
    if _may_be_token_first(layers):
        x = _ids(plan.vocab) if plan.vocab is not None else _numbers(int(plan.shape["features"]))
        calling = replace(calling, token_first=_is_token_first(_built(plan), calling, x))
    return replace(plan, calling=calling)


def _layers(plan: Blueprint) -> nn.Module:
    """The module without memory for its weights, where it can be built so."""
    try:
        with torch.device("meta"):
            return _built(plan)
    except BadInput:
        return _built(plan)


def _built(plan: Blueprint) -> nn.Module:
    with seeded(0):
        return replace(plan, calling=None).build().eval()


def _reading_ids(plan: Blueprint, size: int) -> Blueprint:
    shape = {name: value for name, value in plan.shape.items() if name != "features"}
    shape = {"tokens": 8, **shape}
    told = f"an embedding of {size} comes first, so it reads ids"
    return replace(plan, kind="sequence", vocab=size, shape=shape, assumed=(*plan.assumed, told))


def _with_its_own_features(
    plan: Blueprint, sizes: list[int], calling: Calling, given: int | None
) -> tuple[Blueprint, Calling]:
    """A net whose input has one size: that of its first layer which lets a forward pass through."""
    asked = int(plan.shape["features"])
    if not sizes or (asked in sizes and asked == sizes[0]):
        return plan, calling
    module = _built(plan)
    runs = lambda size: any(_runs(module, calling, x) for x in (_numbers(size), _numbers(size)[:, 0]))
    if given is not None and runs(given):
        return plan, calling
    fitting = next((size for size in sizes if runs(size)), None)
    if fitting is None:
        return plan, calling
    if given is None:
        return replace(plan, shape={**plan.shape, "features": fitting}), calling
    if given > fitting:
        raise BadInput(f"'{plan.name}' reads {fitting} numbers, not {given}: choose a smaller input, or a wider net")
    return plan, replace(calling, features=fitting)


def _table_sizes(module: nn.Module) -> list[int]:
    return [m.num_embeddings for m in module.modules() if isinstance(m, nn.Embedding)]


def _widths(module: nn.Module) -> list[int]:
    """Numbers that layers read, the first layer first."""
    found: dict[int, None] = {}
    for layer in module.modules():
        sizes: Iterator[Any] = (getattr(layer, name, None) for name in _WIDTHS)
        found |= dict.fromkeys(size for size in sizes if type(size) is int)
    return list(found)


def _ids(vocab: int) -> Tensor:
    return torch.randint(vocab, (_ROWS, _TOKENS), generator=torch.Generator().manual_seed(0))


def _numbers(features: int) -> Tensor:
    return torch.randn(_ROWS, _TOKENS, features, generator=torch.Generator().manual_seed(0))


def _runs(module: nn.Module, calling: Calling, x: Tensor) -> bool:
    return _output(module, calling, x) is not None


def _output(module: nn.Module, calling: Calling, x: Tensor) -> Any:
    """What a pass gives, read as every pass is; None where it fails."""
    hooks = calling.attach(module)
    try:
        with torch.no_grad(), seeded(0):
            found = module(x)
    except Exception:
        return None
    finally:
        for hook in hooks:
            hook.remove()
    return found if isinstance(found, Tensor) else None


def _may_be_token_first(module: nn.Module) -> bool:
    """Torch's own recurrent and attention layers take tokens first unless they are told otherwise."""
    return any(getattr(layer, "batch_first", True) is False for layer in module.modules())


def _is_token_first(module: nn.Module, calling: Calling, x: Tensor) -> bool:
    """Whether a change in one place is felt in other rows, and in no other token of its own."""
    before = _output(module, calling, x)
    changed = x.clone()
    changed[0, 2] = (changed[0, 2] + 1) % max(2, int(x.max()) + 1) if not x.is_floating_point() else changed[0, 2] + 1.0
    after = _output(module, calling, changed)
    if before is None:  # a state that it is handed says how many rows there are
        return _output(module, replace(calling, token_first=True), x) is not None
    if after is None or before.shape[:2] != x.shape[:2]:
        return False
    felt = (before != after).flatten(2).any(dim=2)
    return bool(felt[1:].any()) and not bool(felt[0, [0, 1, 3, 4]].any())
