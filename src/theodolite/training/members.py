"""The weights of many members of one shape, stacked along a first axis."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from theodolite.training.pairing import Pairing
from theodolite.training.precision import full


class Members:
    """Parameters, buffers and the module they belong to. Slices share memory with the stack.

    With `batched`, matrices are kept transposed in memory: that is how their gradients come out of a batched product,
    and the optimiser needs both in one order.
    """

    def __init__(self, pairing: Pairing, modules: Sequence[nn.Module], device: torch.device, batched: bool) -> None:
        self.pairing = pairing
        self.batched = batched
        self.trained = [n for n, p in modules[0].named_parameters() if p.requires_grad]
        frozen = [n for n, p in modules[0].named_parameters() if not p.requires_grad]
        states = [dict(m.named_parameters()) | dict(m.named_buffers()) for m in modules]
        stack = lambda name: torch.stack([s[name].detach() for s in states]).to(device)
        self.parameters = {n: self._laid(stack(n)) for n in self.trained}
        self.buffers = {n: stack(n) for n in [*frozen, *dict(modules[0].named_buffers())]}
        self.module = modules[0].to(device)

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    @property
    def parameter_count(self) -> int:
        return sum(p[0].numel() for p in self.parameters.values())

    def outputs(
        self, weights: dict[str, Tensor], start: int, stop: int, inputs: Tensor, present: Tensor | None
    ) -> Tensor:
        """All members of the range in one batched call; `inputs` are (member, row, …) as the net reads them."""
        buffers = {n: b[start:stop] for n, b in self.buffers.items()}

        def one(weights: dict[str, Tensor], buffers: dict[str, Tensor], *inputs: Tensor) -> Tensor:
            return functional_call(self.module, (weights, buffers), inputs)

        arguments = (inputs,) if present is None or not self.pairing.takes_present else (inputs, present)
        return full(vmap(one, randomness="different")(weights, buffers, *arguments))

    @contextmanager
    def alone(self, member: int) -> Iterator[nn.Module]:
        """The module with this member's own weights in it, sharing their memory: what is trained is the member."""
        own = dict(self.module.named_parameters())
        kept = {n: own[n].data for n in self.trained}
        try:
            for n in self.trained:
                own[n].data = self.parameters[n][member]
            with _buffers(self.module, {n: b[member] for n, b in self.buffers.items()}):
                yield self.module
        finally:
            for n, data in kept.items():
                own[n].data = data
                own[n].grad = None

    def with_buffers(self, buffers: dict[str, Tensor]) -> Members:
        """The same members with other buffers."""
        other = copy.copy(self)
        other.buffers = buffers
        return other

    def select(self, members: Tensor) -> Members:
        """Copies of these members, on the same module."""
        chosen = copy.copy(self)
        chosen.keep(members)
        return chosen

    def keep(self, members: Tensor) -> None:
        """Only these members go on."""
        self.parameters = {n: self._laid(p[members]) for n, p in self.parameters.items()}
        self.buffers = {n: b[members] for n, b in self.buffers.items()}

    def _laid(self, stacked: Tensor) -> Tensor:
        return stacked.mT.contiguous().mT if self.batched and stacked.dim() == 3 else stacked.contiguous()

    def state(self, member: int) -> dict[str, Tensor]:
        """One member's weights by name, as its module's `state_dict` names them."""
        with self.alone(member) as module:
            return {n: t.detach().clone() for n, t in module.state_dict().items() if isinstance(t, Tensor)}


@contextmanager
def _buffers(module: nn.Module, values: dict[str, Tensor]) -> Iterator[None]:
    """Buffers and frozen parameters replaced for the while."""
    before = {}
    for name, value in values.items():
        path, _, last = name.rpartition(".")
        owner = module.get_submodule(path)
        if last in owner._buffers:
            before[name] = (owner._buffers, last, owner._buffers[last])
            owner._buffers[last] = value
        else:
            parameter = getattr(owner, last)
            before[name] = (parameter, None, parameter.data)
            parameter.data = value
    try:
        yield
    finally:
        for name, (place, key, value) in before.items():
            if key is None:
                place.data = value
            else:
                _take_over(place[key], values[name])
                place[key] = value


def _take_over(now: Tensor | None, held: Tensor) -> None:
    """A net may replace a buffer instead of writing into it; the member's own memory follows."""
    if now is not None and now is not held and now.shape == held.shape:
        held.copy_(now.detach())
