"""A network in the shape of a compositional graph: a small perceptron for every constituent function.

Poggio & Fraser 2024, "Compositional sparsity of learnable functions". Constituents of one stage are computed at once,
as one batched product per layer: the cost is that of the graph's own weights, not of a masked dense network.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from theodolite.errors import BadInput
from theodolite.files import json_fault
from theodolite.graphs.families import named_graph
from theodolite.graphs.graph import CompositionalGraph, Node
from theodolite.graphs.stages import Group, elementary, stages
from theodolite.nets.contract import Symmetry, choice, positive, register

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "silu": functional.silu,
}
_FEATURES = 8  # of a named graph, where no number is given
_POINTS = 256  # standard normal inputs that the first weights are scaled on
_BENT = 0.5  # of the hidden layers' first part in an output, beside the linear path's 1
_OFFSET = 0.5  # of the first factors of a product
_SPREAD = 1.5  # of the first biases: bends of the activation all over where the inputs lie


@register(
    name="graph-net",
    summary="a perceptron for every constituent of a compositional graph, with a linear path",
    kind="vector",
    polynomial=False,
)
class CompositionalNet(nn.Module):
    """`graph`: its name, or a CompositionalGraph, or that as JSON (an object or its text); `fan_in` is of a named one.

    A `general` node of the graph is a perceptron of `depth` hidden layers of `width` units, plus a linear map, from
    what its inputs say to `channels` numbers. A `sum` adds, a `product` multiplies what perceptrons of one input each
    make of its inputs. The last node has `outputs` numbers. Nodes of up to `shallow` inputs have one hidden layer,
    whatever the depth.
    """

    def __init__(
        self,
        graph: str | dict | CompositionalGraph = "binary-tree",
        features: int | None = None,
        outputs: int = 1,
        width: int = 16,
        depth: int = 1,
        activation: str = "gelu",
        channels: int = 1,
        fan_in: int = 2,
        shallow: int = 0,
    ) -> None:
        super().__init__()
        positive(outputs=outputs, width=width, depth=depth, channels=channels, fan_in=fan_in)
        choice("activation", activation, tuple(ACTIVATIONS))
        self.graph = _graph(graph, features, fan_in)
        self.features = len(self.graph.variables)
        computed = elementary(self.graph)
        rows = dict.fromkeys(computed.variables, 1) | dict.fromkeys(computed.node, channels)
        rows[computed.output.name] = outputs

        def entering(node: Node) -> tuple[int, ...]:  # blocks of rows of the same sizes can be computed at once
            return (len(node.inputs), sum(rows[name] for name in node.inputs))

        places, self.stages = _Places(computed.variables, rows), nn.ModuleList()
        self.groups = stages(computed, entering)
        for groups in self.groups:
            self.stages.append(
                _Stage(
                    [_block(group, rows, width, depth, activation, shallow) for group in groups],
                    [places.read(group) for group in groups],
                )
            )
            places.append([node.name for group in groups for node in group.nodes])
        self.scalar = channels == 1 and outputs == 1
        self.places = tuple(places.place[node.name] for node in self.graph.nodes)

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        return self._stages(x)[-1].mT

    def node_values(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch node"]:
        """What every node of the graph says, in its order, the output last."""
        if not self.scalar:
            raise BadInput("nodes say one number each only with channels=1 and outputs=1: build the network so")
        found = self._stages(x)
        return torch.stack([found[stage][row] for stage, row in self.places], dim=-1)

    def node_parameters(self) -> dict[str, Int[Tensor, " parameter"]]:
        """Where, in the vector of all parameters in their order, those of every perceptron, sum and product stand."""
        found: dict[str, list[Tensor]] = {}
        first = 0
        for stage, groups in zip(self.stages, self.groups, strict=True):
            assert isinstance(stage, _Stage)
            for block, group in zip(stage.blocks, groups, strict=True):
                for parameter in block.parameters():
                    count = parameter.numel()
                    parts = torch.arange(first, first + count).reshape(len(group.nodes), -1)
                    for node, part in zip(group.nodes, parts, strict=True):
                        found.setdefault(node.name, []).append(part)
                    first += count
        return {name: torch.cat(parts) for name, parts in found.items()}

    def _stages(self, x: Tensor) -> list[Tensor]:
        found = [x.mT]
        for stage in self.stages:
            found.append(stage(found))
        return found

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every constituent has weights of its own")
        return {"translation": own, "permutation": own}


def _graph(given: str | dict | CompositionalGraph, features: int | None, fan_in: int) -> CompositionalGraph:
    """The graph that is meant; a number of features that is not that of its variables is refused."""
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        positive(features=_FEATURES if features is None else features)
        if fan_in != 2 and given != "convolutional":
            raise BadInput(f"a fan-in of {fan_in} is for the graph 'convolutional', not for '{given}': leave it out")
        return named_graph(given, _FEATURES if features is None else features, fan_in)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise BadInput(
                f"the text of the graph is no JSON ({json_fault(error)}): give a name or a graph as JSON"
            ) from None
    graph = given if isinstance(given, CompositionalGraph) else CompositionalGraph.from_json(given)
    if features is not None and features != len(graph.variables):
        raise BadInput(
            f"features is {features} but the graph has {len(graph.variables)} variables: leave features out, or give a "
            f"graph of {features} variables"
        )
    return graph


class _Places:
    """Which rows of which earlier stage hold what a variable or a node says."""

    def __init__(self, variables: Sequence[str], rows: Mapping[str, int]) -> None:
        self.rows, self.place = rows, {}
        self.sizes: list[int] = []
        self.append(variables)

    def append(self, names: Sequence[str]) -> None:
        at = 0
        for name in names:
            self.place[name] = (len(self.sizes), at)
            at += self.rows[name]
        self.sizes.append(at)

    def read(self, group: Group) -> _Read:
        """The rows that the nodes of a group read, node by node."""
        wanted = [
            (stage, first + row)
            for node in group.nodes
            for name in node.inputs
            for stage, first in [self.place[name]]
            for row in range(self.rows[name])
        ]
        used = sorted({stage for stage, _ in wanted})
        start = {stage: sum(self.sizes[s] for s in used if s < stage) for stage in used}
        index = [start[stage] + row for stage, row in wanted]
        return _Read(used, index, len(group.nodes), sum(self.sizes[stage] for stage in used))


class _Read(nn.Module):
    """What a group of nodes reads, from the stages below it: a view where the rows stand side by side."""

    index: Tensor

    def __init__(self, stages: Sequence[int], index: Sequence[int], nodes: int, available: int) -> None:
        super().__init__()
        self.stages, self.nodes = tuple(stages), nodes
        self.first, self.count = index[0], len(index)
        self.together = list(index) == list(range(index[0], index[0] + len(index)))
        self.all = self.together and self.count == available
        if not self.together:
            self.register_buffer("index", torch.tensor(index), persistent=False)

    def forward(self, found: Sequence[Tensor]) -> Float[Tensor, "node row batch"]:
        rows = found[self.stages[0]] if len(self.stages) == 1 else torch.cat([found[s] for s in self.stages])
        if not self.together:
            rows = rows.index_select(0, self.index)
        elif not self.all:
            rows = rows.narrow(0, self.first, self.count)
        return rows.unflatten(0, (self.nodes, -1))


class _Stage(nn.Module):
    """Groups of nodes that do not depend on one another."""

    def __init__(self, blocks: Sequence[nn.Module], reads: Sequence[_Read]) -> None:
        super().__init__()
        self.blocks, self.reads = nn.ModuleList(blocks), nn.ModuleList(reads)

    def forward(self, found: Sequence[Tensor]) -> Float[Tensor, "row batch"]:
        said = [block(read(found)).flatten(0, 1) for block, read in zip(self.blocks, self.reads, strict=True)]
        return said[0] if len(said) == 1 else torch.cat(said)


def _block(group: Group, rows: Mapping[str, int], width: int, depth: int, activation: str, shallow: int) -> nn.Module:
    inputs = group.nodes[0].inputs
    nodes, entering, leaving = len(group.nodes), sum(rows[name] for name in inputs), rows[group.nodes[0].name]
    if group.kind == "general":
        layers = 1 if len(inputs) <= shallow else depth
        return Perceptrons(nodes, entering, leaving, width, layers, ACTIVATIONS[activation])
    return (Sums if group.kind == "sum" else Products)(nodes, len(inputs), entering, leaving)


class Perceptrons(nn.Module):
    """Of every node, W₂ f(W₁ u + b₁) + S u + b₂, with `depth` hidden layers.

    The first weights are such that independent standard inputs give outputs of mean 0 and variance 1, half of it from
    the linear path: the signal keeps its scale however deep the graph is.
    """

    def __init__(
        self, nodes: int, inputs: int, outputs: int, width: int, depth: int, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.activation = activation
        hidden = points = torch.randn(nodes, inputs, _POINTS)
        weights, biases = [], []
        for _ in range(depth):
            weight = _standard(torch.randn(nodes, width, hidden.shape[1]), hidden)
            said = weight @ hidden
            bias = (2 * torch.rand(nodes, width, 1) - 1) * _SPREAD - said.mean(dim=-1, keepdim=True)
            weights.append(nn.Parameter(weight))
            biases.append(nn.Parameter(bias))
            hidden = activation(said + bias)
        self.weights, self.biases = nn.ParameterList(weights), nn.ParameterList(biases)
        both = torch.cat([hidden, points], dim=1)
        combine = torch.cat(
            [
                _standard(torch.randn(nodes, outputs, width), hidden) * _BENT,
                _standard(torch.randn(nodes, outputs, inputs), points),
            ],
            dim=-1,
        )
        combine = _standard(combine, both)
        self.combine = nn.Parameter(combine[..., :width].clone())
        self.linear = nn.Parameter(combine[..., width:].clone())
        self.bias = nn.Parameter(-(combine @ both).mean(dim=-1, keepdim=True))

    def forward(self, u: Float[Tensor, "node row batch"]) -> Float[Tensor, "node output batch"]:
        hidden = u
        for weight, bias in zip(self.weights, self.biases, strict=True):
            hidden = self.activation(torch.baddbmm(bias, weight, hidden))
        return torch.baddbmm(torch.baddbmm(self.bias, self.linear, u), self.combine, hidden)


class Sums(nn.Module):
    """Of every node, a weighted sum of its inputs, plus a bias."""

    def __init__(self, nodes: int, inputs: int, entering: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_signs(nodes, outputs, entering) / math.sqrt(entering))
        self.bias = nn.Parameter(torch.zeros(nodes, outputs, 1))

    def forward(self, u: Float[Tensor, "node row batch"]) -> Float[Tensor, "node output batch"]:
        return torch.baddbmm(self.bias, self.weight, u)


class Products(nn.Module):
    """Of every node, the product of affine functions of its inputs, plus a bias.

    At first the factors are b + a·z with b = ½ and (a² + b²)^inputs − b^(2 inputs) = 1: variance 1 for standard z. With
    b = 1 the product is nearly a sum at first, and training stays in minima that x·y·z has there.
    """

    def __init__(self, nodes: int, inputs: int, entering: int, outputs: int) -> None:
        super().__init__()
        channels = entering // inputs
        slope = math.sqrt(((1 + _OFFSET ** (2 * inputs)) ** (1 / inputs) - _OFFSET**2) / channels)
        self.weight = nn.Parameter(_signs(nodes * inputs, outputs, channels) * slope)
        self.offset = nn.Parameter(torch.full((nodes * inputs, outputs, 1), _OFFSET))
        self.bias = nn.Parameter(torch.full((nodes, outputs, 1), -(_OFFSET**inputs)))

    def forward(self, u: Float[Tensor, "node row batch"]) -> Float[Tensor, "node output batch"]:
        inputs = self.weight.shape[0] // self.bias.shape[0]
        each = u.unflatten(1, (inputs, -1)).flatten(0, 1)
        factors = torch.baddbmm(self.offset, self.weight, each).unflatten(0, (-1, inputs)).unbind(1)
        found = factors[0]
        for factor in factors[1:]:  # not `prod`, whose gradient looks for zeros
            found = found * factor
        return found + self.bias


def _standard(weight: Tensor, points: Tensor) -> Tensor:
    """The weights such that what they say of the points has a standard deviation of 1."""
    return weight / (weight @ points).std(dim=-1, keepdim=True).clamp(min=1e-6)


def _signs(*shape: int) -> Tensor:
    return torch.randint(0, 2, shape).to(torch.get_default_dtype()) * 2 - 1
