"""Any feed-forward network as one layer that is applied again and again: weight-tied, and as an equilibrium.

Source: Bai, Kolter & Koltun 2019, "Deep equilibrium models". Theorem 3: σ(W_z z + W_x x + b̃), applied L times, computes
an L-layer perceptron, with a hidden size of the sum of its widths; W_z holds the weights below the diagonal, so each
application moves every layer's value one block on. The same holds of any computation graph: put every intermediate
value into one vector z, and let f(z, x) compute each of them from the values it reads in z. No value depends on itself,
so that the Jacobian in z is nilpotent: from any start the iteration stands still after as many steps as the graph is
deep, at the equilibrium z* = f(z*, x) that holds all intermediate values.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.fx.node import map_arg

from theodolite.errors import BadInput
from theodolite.witness.traced import slots_of

ELEMENTWISE = (
    *(nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.SELU, nn.LeakyReLU, nn.Softplus, nn.Softsign),
    *(nn.Hardtanh, nn.Hardsigmoid, nn.Hardswish, nn.Mish, nn.Identity, nn.ReLU6, nn.CELU, nn.LogSigmoid),
)


def weight_tied(module: nn.Module, example: Tensor | None = None) -> TiedChain | TiedGraph:
    """One layer that computes the module when it is applied `steps` times.

    A `nn.Sequential` of linear layers and elementwise activations becomes theorem 3's σ(W_z z + W_x x + b̃). Any other
    module is traced on `example`, a batch of inputs, whose shape beyond the batch it then keeps.
    """
    if example is None:
        return TiedChain(module)
    return TiedChain(module) if _is_chain(module) else TiedGraph(module, example)


def equilibrium(module: nn.Module, example: Tensor | None = None) -> Equilibrium:
    """One-layer deep equilibrium model of the module: its output is read from the z* that solves z* = f(z*, x)."""
    return Equilibrium(weight_tied(module, example))


class TiedChain(nn.Module):
    """Theorem 3: z ← σ(W_z z + W_x x + b̃) with one activation per block, `steps` times from z = 0."""

    def __init__(self, chain: nn.Module) -> None:
        super().__init__()
        layers, activations = _layers(chain)
        self.widths = [layer.out_features for layer in layers]
        self.size, self.steps = sum(self.widths), len(layers)
        weight = layers[0].weight.detach()
        entering = weight.new_zeros(self.size, layers[0].in_features)
        entering[: self.widths[0]] = weight
        tied, bias = weight.new_zeros(self.size, self.size), weight.new_zeros(self.size)
        ends = torch.tensor([0, *self.widths]).cumsum(0).tolist()
        for number, layer in enumerate(layers):
            rows = slice(ends[number], ends[number + 1])
            if number:
                tied[rows, ends[number - 1] : ends[number]] = layer.weight.detach()
            if layer.bias is not None:
                bias[rows] = layer.bias.detach()
        self.weight_z, self.weight_x, self.bias = nn.Parameter(tied), nn.Parameter(entering), nn.Parameter(bias)
        self.activations = nn.ModuleList(activations)

    def start(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch size"]:
        return x.new_zeros(x.shape[0], self.size)

    def step(self, z: Float[Tensor, "batch size"], x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch size"]:
        before = z @ self.weight_z.T + x @ self.weight_x.T + self.bias
        blocks = before.split(self.widths, dim=-1)
        return torch.cat([act(block) for act, block in zip(self.activations, blocks, strict=True)], dim=-1)

    def read(self, z: Float[Tensor, "batch size"]) -> Float[Tensor, "batch output"]:
        return z[:, -self.widths[-1] :]

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        z = self.start(x)
        for _ in range(self.steps):
            z = self.step(z, x)
        return self.read(z)


class TiedGraph(nn.Module):
    """f(z, x) of any computation graph: one slot of z per intermediate value, each computed from the slots it reads.

    The graph is that of one input, recorded while it is computed; a batch is mapped over it. What is only another view
    of a value, or does not depend on the input, has no slot.
    """

    def __init__(self, module: nn.Module, example: Tensor) -> None:
        super().__init__()
        self.graph, self.slots, self.output = slots_of(module, example)
        self.widths = [slot.size for slot in self.slots]
        self.size, self.steps = sum(self.widths), max(slot.depth for slot in self.slots)

    def start(self, x: Tensor) -> Float[Tensor, "batch size"]:
        return x.new_zeros(x.shape[0], self.size)

    def step(self, z: Float[Tensor, "batch size"], x: Tensor) -> Float[Tensor, "batch size"]:
        return torch.func.vmap(self._one)(z, x)

    def read(self, z: Float[Tensor, "batch size"]) -> Tensor:
        start = sum(self.widths[: self.output])
        slot = self.slots[self.output]
        return z[:, start : start + slot.size].reshape(z.shape[0], *slot.shape)

    def forward(self, x: Tensor) -> Tensor:
        z = self.start(x)
        for _ in range(self.steps):
            z = self.step(z, x)
        return self.read(z)

    def _one(self, z: Tensor, x: Tensor) -> Tensor:
        """Every slot's next value from the slots as they stand: an interpreter whose wires are read from z."""
        held = {slot.node: part.view(slot.shape) for slot, part in zip(self.slots, z.split(self.widths), strict=True)}
        fresh: list[Tensor] = []
        wires: dict[Any, Any] = {}
        for node in self.graph.graph.nodes:
            if node.op == "output":
                break
            if node.op == "placeholder":
                wires[node] = x
            elif node.op == "get_attr":
                wires[node] = getattr(self.graph, node.target)
            else:
                args, kwargs = map_arg((node.args, node.kwargs), wires.__getitem__)
                made = node.target(*args, **kwargs)
                if node in held:
                    fresh.append(made.reshape(-1))
                wires[node] = held.get(node, made)
        return torch.cat(fresh)


class Equilibrium(nn.Module):
    """The fixed point of a tied layer, by iterating it until nothing changes any more; exact, never more than one step
    beyond the depth of the network it stands for."""

    def __init__(self, tied: TiedChain | TiedGraph) -> None:
        super().__init__()
        self.tied = tied

    def step(self, z: Float[Tensor, "batch size"], x: Tensor) -> Float[Tensor, "batch size"]:
        return self.tied.step(z, x)

    def solve(self, x: Tensor, start: Tensor | None = None) -> tuple[Tensor, int]:
        """The equilibrium and the number of steps after which it stood."""
        z = self.tied.start(x) if start is None else start
        for number in range(self.tied.steps + 1):
            following = self.tied.step(z, x)
            if torch.equal(following, z):
                return z, number
            z = following
        raise BadInput("the iteration did not stand still: the module answers one input with different outputs")

    def forward(self, x: Tensor) -> Tensor:
        return self.tied.read(self.solve(x)[0])


def _is_chain(module: nn.Module) -> bool:
    try:
        _layers(module)
    except BadInput:
        return False
    return True


def _layers(chain: nn.Module) -> tuple[list[nn.Linear], list[nn.Sequential]]:
    """Linear layers, each with the activations that follow it."""
    parts = _flat(chain)
    layers: list[nn.Linear] = []
    activations: list[list[nn.Module]] = []
    for part in parts:
        if isinstance(part, nn.Linear):
            layers.append(part)
            activations.append([])
        elif isinstance(part, ELEMENTWISE) or (isinstance(part, nn.Dropout) and not part.training):
            if not layers:
                raise BadInput(f"the chain begins with {type(part).__name__}: begin with a linear layer")
            activations[-1].append(part)
        else:
            raise BadInput(
                f"{type(part).__name__} is neither a linear layer nor an elementwise activation: pass an example input "
                "too, so that the module can be traced"
            )
    if not layers:
        raise BadInput("there is no linear layer in the chain: pass an example input too")
    for one, following in pairwise(layers):
        if one.out_features != following.in_features:
            raise BadInput(f"a layer gives {one.out_features} numbers and the next reads {following.in_features}")
    return layers, [nn.Sequential(*each) for each in activations]


def _flat(module: nn.Module) -> list[nn.Module]:
    if isinstance(module, nn.Sequential):
        return [part for child in module for part in _flat(child)]
    return [module]
