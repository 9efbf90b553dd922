"""A net that reads ids as one that reads vectors: what its embedding would have looked up is given in its place.

Ids have no derivatives and no zero. The vectors that stand for them have both, and all that the net knows of its input
goes through them, so that what is measured there is measured of the net.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.errors import NotApplicable
from theodolite.nets.load import Blueprint, seeded

Layout = Literal["rows", "columns", "steps"]
_ROWS, _TOKENS = 5, 2  # of the ids by which the embedding is found


def through_embedding(plan: Blueprint) -> Blueprint:
    """The plan of the net as its embedding feeds it; one that reads vectors stays as it is."""
    if plan.vocab is None:
        return plan

    def build(**arguments: Any) -> Fed:
        return Fed(replace(plan, arguments=arguments).build(), plan)

    with seeded(0):
        features = build(**plan.arguments).features
    shape: Mapping[str, Any] = {**plan.shape, "features": features}
    # How the net itself is called stays with the net inside.
    return replace(plan, factory=build, vocab=None, shape=shape, registered=False, calling=None)


class Fed(nn.Module):
    """`net` with (batch, token, features) in the place of what its embedding looks up."""

    def __init__(self, net: nn.Module, plan: Blueprint) -> None:
        super().__init__()
        self.net = net
        vocab = plan.vocab or 1
        self.known = 1 if vocab > 1 else 0  # an id that is not the first, which often stands for padding
        table, self.layout = _table(net, vocab, plan)
        self.features, self.fed, self.step = table.embedding_dim, None, 0
        table.register_forward_hook(self._feed)

    def forward(self, x: Tensor) -> Any:
        self.fed: Tensor | None = x
        self.step = 0
        try:
            return self.net(torch.full(x.shape[:2], self.known, device=x.device))
        finally:
            self.fed = None

    def _feed(self, _table: nn.Module, _ids: Any, looked_up: Tensor) -> Tensor:
        if self.fed is None:
            return looked_up
        fed = self.fed.to(looked_up.dtype)
        self.step += 1
        if self.layout == "steps":
            return fed[:, self.step - 1]
        return fed if self.layout == "rows" else fed.transpose(0, 1)


def _table(net: nn.Module, vocab: int, plan: Blueprint) -> tuple[nn.Embedding, Layout]:
    """The embedding that is given the ids themselves, and how they lie there; positions have another."""
    tokens = min(int(plan.shape.get("tokens", _TOKENS)), _TOKENS)
    ids = torch.randint(vocab, (_ROWS, tokens), generator=torch.Generator().manual_seed(0))
    found: list[nn.Embedding] = []
    layouts: set[Layout] = set()

    def look(table: nn.Module, args: tuple[Any, ...]) -> None:
        assert isinstance(table, nn.Embedding)
        given = args[0].cpu() if args and isinstance(args[0], Tensor) else None
        layout = None if given is None else _layout(given, ids, found.count(table))
        if layout is not None:
            found.append(table)
            layouts.add(layout)

    tables = [each for each in net.modules() if isinstance(each, nn.Embedding)]
    handles = [table.register_forward_pre_hook(look) for table in tables]
    was_training = net.training
    try:
        with torch.no_grad():
            net.eval()(ids)
    except Exception as error:
        raise NotApplicable(f"'{plan.name}' failed on ids of shape {tuple(ids.shape)}: {error}") from error
    finally:
        net.train(was_training)
        for handle in handles:
            handle.remove()
    if len(set(found)) != 1 or len(layouts) != 1:
        which = "no nn.Embedding" if not found else "several of them"
        raise NotApplicable(f"'{plan.name}' looks its ids up in {which}, where vectors cannot take their place")
    return found[0], layouts.pop()


def _layout(given: Tensor, ids: Tensor, before: int) -> Layout | None:
    """All ids, token by token first, or those of one token after those of `before` others."""
    if given.shape == ids.shape:
        return "rows" if torch.equal(given, ids) else None
    if given.shape == ids.T.shape:
        return "columns" if torch.equal(given, ids.T) else None
    if given.shape == ids.shape[:1] and before < ids.shape[1]:
        return "steps" if torch.equal(given, ids[:, before]) else None
    return None
