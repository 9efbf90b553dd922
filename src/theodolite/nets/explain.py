"""One line on how a net is built, fed and read: what the user said, and what nobody did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.blueprint import Blueprint, seeded
from theodolite.nets.calling import what
from theodolite.nets.load import blueprint
from theodolite.nets.reading import kind_of


def explain(net: str | nn.Module | Callable[..., Any], **shape: Any) -> str:
    """How a net is built and called.

    Parameters:
        net: a registered name, `file.py:Name`, `hf:FOLDER`, a module or what builds one
        shape: its arguments

    Examples:
        >>> explain("lstm", width=4)
        'lstm(width=4) reads numbers, 4 a token'
        >>> class Tagger(nn.Module):
        ...     def __init__(self, vocab_size, d_model, num_classes):
        ...         super().__init__()
        ...         self.table, self.read = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, num_classes)
        ...     def forward(self, ids):
        ...         return self.read(self.table(ids)), None
        >>> explain(Tagger)
        'Tagger(vocab_size=8, num_classes=1, d_model=32) reads ids of 8 symbols; assumed d_model=32; of the 2 things \
it returns the first tensor that has the rows of the input is read'
    """
    plan = blueprint(net, **shape)
    kind = plan.kind
    if not plan.registered and kind == "vector":
        try:
            kind = kind_of(net, shape)
        except BadInput:
            kind = plan.kind
    arguments = {name: value for name, value in plan.arguments.items() if name not in ("features", "tokens")}
    built = ", ".join(f"{name}={value}" for name, value in arguments.items())
    parts = [f"{plan.name}({built}) reads {_input(plan, kind, shape)}", *plan.assumed]
    if plan.calling is not None:
        parts += plan.calling.words()
        parts += [told] if (told := _answer(plan, kind)) else []
    return "; ".join(parts)


def assumptions(net: str | nn.Module | Callable[..., Any], **shape: Any) -> str | None:
    """What nobody said of a net and was assumed, in one line; None where that is nothing."""
    plan = blueprint(net, **shape)
    told = [*plan.assumed, *(plan.calling.words() if plan.calling else ())]
    return f"{plan.name}: {'; '.join(told)}" if told else None


def _input(plan: Blueprint, kind: str, shape: Mapping[str, Any]) -> str:
    if plan.vocab is not None:
        return f"ids of {plan.vocab} symbols"
    features = plan.shape.get("features", shape.get("features"))
    if kind == "vector":
        return f"a vector of {features} numbers"
    return f"numbers, {features} a token"


def _answer(plan: Blueprint, kind: str) -> str | None:
    """Which part of its output is read, seen in one pass."""
    seen: list[Any] = []
    try:
        with seeded(0), torch.no_grad():
            module = plan.build().eval()
            module.register_forward_hook(lambda _m, _x, output: seen.append(output), prepend=True)
            features, tokens = int(plan.shape.get("features", 1)), int(plan.shape.get("tokens", 8))
            if plan.vocab is not None:
                module(torch.randint(plan.vocab, (2, tokens)))
            else:
                module(torch.randn(2, tokens, features) if kind == "sequence" else torch.randn(2, features))
    except Exception:  # what measures it will say why
        return None
    return what(seen[0]) if seen else None
