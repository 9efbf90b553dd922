"""Graph-shaped networks against the graph computed node by node, and against what its structure forbids."""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree, named_graph, random_dag, random_tree
from theodolite.graphs.stages import elementary, stages
from theodolite.nets.compositional_net import ACTIVATIONS, CompositionalNet, Perceptrons, Products
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters

MIXED = CompositionalGraph(
    ("a", "b", "c", "unused", "d"),
    (
        Node("p", ("a", "b"), "product"),
        Node("g", ("c", "a")),  # shared below
        Node("s", ("p", "g", "c"), "sum"),
        Node("q", ("g", "s", "d"), "product"),
        Node("u", ("q",)),
        Node("y", ("u", "d", "p")),
    ),
)
GRAPHS = {
    "mixed": MIXED,
    "dag": random_dag(9, 3, 3, 4, np.random.default_rng(0)),
    "kolmogorov-arnold": named_graph("kolmogorov-arnold", 3, 2),
    "dense": CompositionalGraph.dense(("a", "b", "c")),
    "product at the end": CompositionalGraph(("a", "b"), (Node("y", ("a", "b"), "product"),)),
}


def built(graph, seed: int = 0, **shape) -> CompositionalNet:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return CompositionalNet(graph, **shape).double()


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def node_by_node(net: CompositionalNet, x: Tensor) -> Tensor:
    """Every constituent by itself and by name, with its slice of the weights."""
    graph = elementary(net.graph)
    said = {name: x[:, [i]] for i, name in enumerate(graph.variables)}
    rows = lambda node: (len(node.inputs), sum(said[name].shape[1] for name in node.inputs))
    blocks = iter(block for stage in net.stages for block in stage.blocks)
    for level in range(1, graph.depth + 1):
        here = {n.name: n for n in graph.nodes if graph.level[n.name] == level}
        groups: dict[object, list[Node]] = {}
        for node in here.values():
            groups.setdefault((node.kind, rows(node)), []).append(node)
        for nodes in groups.values():
            block = next(blocks)
            for k, node in enumerate(nodes):
                u = torch.cat([said[name] for name in node.inputs], dim=1)
                if isinstance(block, Perceptrons):
                    h = u
                    for weight, bias in zip(block.weights, block.biases, strict=True):
                        h = block.activation(h @ weight[k].T + bias[k, :, 0])
                    said[node.name] = h @ block.combine[k].T + u @ block.linear[k].T + block.bias[k, :, 0]
                elif isinstance(block, Products):
                    product = 1.0
                    for i, name in enumerate(node.inputs):
                        j = k * len(node.inputs) + i
                        product = product * (said[name] @ block.weight[j].T + block.offset[j, :, 0])
                    said[node.name] = product + block.bias[k, :, 0]
                else:
                    said[node.name] = u @ block.weight[k].T + block.bias[k, :, 0]
    return said[graph.output.name]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("shape", [{}, {"channels": 3, "outputs": 2, "depth": 2, "width": 5}], ids=str)
def test_groups_compute_what_the_nodes_do_one_by_one(graph, shape):
    net, x = built(graph, **shape), drawn(7, len(graph.variables))
    expected = node_by_node(net, x)
    assert expected.shape == (7, shape.get("outputs", 1))
    assert float(expected.detach().var()) > 1e-3
    torch.testing.assert_close(net(x), expected, rtol=1e-10, atol=1e-12)


def gradient(net: CompositionalNet, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(net(x).sum(), x)[0]


def test_a_module_enters_through_one_number():
    """∂f/∂x1 over ∂f/∂x2 is that of the constituent, whatever the variables outside are; inside it changes."""
    net, x = built(binary_tree(8)), drawn(50, 8)
    outside = x.clone()
    outside[:, 2:] = drawn(50, 6, seed=1)
    inside = x.clone()
    inside[:, 0] += 1.0
    ratio = lambda at: gradient(net, at)[:, 0] / gradient(net, at)[:, 1]
    torch.testing.assert_close(ratio(outside), ratio(x), rtol=1e-8, atol=1e-8)
    assert float((ratio(inside) - ratio(x)).abs().median()) > 1e-3


def test_only_what_feeds_a_node_matters():
    slope = gradient(built(MIXED), drawn(40, 5))
    assert torch.equal(slope[:, 3], torch.zeros(40, dtype=torch.float64))
    assert bool((slope[:, [0, 1, 2, 4]].abs().amax(dim=0) > 1e-3).all())


def table(net: CompositionalNet, points: int = 12) -> Tensor:
    """y over a grid of two variables."""
    a, b = drawn(points, 1), drawn(points, 1, seed=1)
    pairs = torch.cat([a.repeat_interleave(points, 0), b.repeat(points, 1)], dim=1)
    return net(pairs).detach().reshape(points, points)


def test_a_sum_is_additive_a_product_has_rank_one_and_a_general_node_neither():
    centred = lambda m: m - m.mean(0, keepdim=True) - m.mean(1, keepdim=True) + m.mean()
    of = lambda kind: built(CompositionalGraph(("a", "b"), (Node("y", ("a", "b"), kind),)))
    assert float(centred(table(of("sum"))).abs().max()) < 1e-12
    product = of("product")
    assert torch.linalg.matrix_rank(table(product) - product.stages[-1].blocks[0].bias.detach().item()) == 1
    assert float(centred(table(product)).abs().max()) > 1e-2
    assert torch.linalg.matrix_rank(centred(table(of("general"))), rtol=1e-6) > 2


def trained(net: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    optimiser = torch.optim.LBFGS(net.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        error = (net(x)[:, 0] - y).square().mean() / y.var()
        error.backward()
        return error

    optimiser.step(loss)
    return float(loss().detach())


def test_squares_and_functions_of_sums_and_products_can_be_learnt():
    """x² + y², and sin(x + y) · z, whose factors are functions of a sum and of a variable."""
    x = drawn(100, 3)
    squares = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "b"), "sum"),))
    assert trained(built(squares, width=8), x, x[:, 0] ** 2 + x[:, 1] ** 2) < 0.01
    wave = CompositionalGraph(("a", "b", "c"), (Node("s", ("a", "b"), "sum"), Node("y", ("s", "c"), "product")))
    assert trained(built(wave, width=8), x, torch.sin(x[:, 0] + x[:, 1]) * x[:, 2]) < 0.02
    triple = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "b", "c"), "product"),))
    assert trained(built(triple, width=8), x, x.prod(dim=1)) < 0.01


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [1, 2])
def test_the_signal_keeps_its_scale_over_six_levels(activation, depth):
    x, sizes = drawn(500, 64), []
    for seed in range(4):
        found = [x.mT]
        for stage in built("binary-tree", seed, features=64, activation=activation, depth=depth).stages:
            found.append(stage(found).detach())
        sizes.append([float(rows.var(dim=1).median()) for rows in found])
        assert len(found) == 7
    for size in torch.tensor(sizes).mean(dim=0).tolist():
        assert 0.4 < size < 2.0


def test_a_level_of_a_tree_is_one_block_and_its_inputs_are_a_view():
    net = CompositionalNet("binary-tree", features=128)
    assert [len(stage.blocks) for stage in net.stages] == [1] * 7
    assert not list(net.buffers())
    d, w = 2, 16
    assert count_parameters(net) == 127 * (w * d + w + w + d + 1)


def test_a_dense_graph_is_an_ordinary_perceptron_with_a_linear_path():
    net, x = built("dense", features=4, width=6, depth=2, activation="tanh", outputs=3), drawn(5, 4)
    block = net.stages[0].blocks[0]
    h = torch.tanh(x @ block.weights[0][0].T + block.biases[0][0, :, 0])
    h = torch.tanh(h @ block.weights[1][0].T + block.biases[1][0, :, 0])
    expected = h @ block.combine[0].T + x @ block.linear[0].T + block.bias[0, :, 0]
    torch.testing.assert_close(net(x), expected)


def test_only_wide_constituents_are_deep_where_narrow_ones_are_shallow():
    graph = CompositionalGraph(tuple("abcde"), (Node("t", ("a", "b")), Node("y", ("t", "c", "d", "e"))))
    net = built(graph, width=5, depth=3, shallow=2)
    assert [len(stage.blocks[0].weights) for stage in net.stages] == [1, 3]
    torch.testing.assert_close(net(drawn(7, 5)), node_by_node(net, drawn(7, 5)))


@pytest.mark.parametrize("name", ["mixed", "dag"])
def test_members_trained_together_equal_members_trained_alone(name):
    """Graphs whose inputs are picked by index: gradients of a stacked ensemble against each member's own."""
    graph = GRAPHS[name]
    members = [built(graph, seed) for seed in range(3)]
    assert list(members[0].buffers())
    x, y = drawn(3, 10, len(graph.variables)), drawn(3, 10, 1, seed=5)
    parameters, buffers = torch.func.stack_module_state(members)
    skeleton = copy.deepcopy(members[0]).to("meta")

    def loss(weights, extra, inputs, targets):
        return (torch.func.functional_call(skeleton, (weights, extra), (inputs,)) - targets).square().mean()

    together = torch.func.vmap(torch.func.grad(loss))(parameters, buffers, x, y)
    for i, member in enumerate(members):
        (member(x[i]) - y[i]).square().mean().backward()
        for key, parameter in member.named_parameters():
            assert parameter.grad is not None
            assert float(parameter.grad.abs().max()) > 0
            torch.testing.assert_close(together[key][i], parameter.grad, rtol=1e-8, atol=1e-11)


def test_hundreds_of_nodes_and_long_chains_are_computed():
    tree = random_tree(300, 4, np.random.default_rng(3))
    net, x = built(tree), drawn(6, 300)
    assert bool(torch.isfinite(net(x)).all())
    assert bool((gradient(net, x) != 0).all())
    names = [f"x{i}" for i in range(101)]
    chain = [Node("n1", ("x0", "x1")), *(Node(f"n{i}", (f"n{i - 1}", f"x{i}")) for i in range(2, 101))]
    variance = float(built(CompositionalGraph(names, chain))(drawn(500, 101)).detach().var())
    assert 0.01 < variance < 100


def test_a_graph_can_be_given_as_object_json_and_text():
    document = MIXED.to_json()
    nets = [built(MIXED), built(document), built(json.dumps(document))]
    x = drawn(4, 5)
    assert torch.equal(nets[0](x), nets[1](x))
    assert torch.equal(nets[0](x), nets[2](x))
    loaded = load("graph-net", graph=json.dumps(document))
    assert (loaded.sites, loaded.module.features) == (5, 5)
    assert load("graph-net", graph="dense", features=6).module.graph == named_graph("dense", 6, 2)


def test_the_same_weights_load_into_the_same_graph():
    first, second = built(MIXED, 0), built(MIXED, 1)
    second.load_state_dict(first.state_dict())
    x = drawn(4, 5)
    assert torch.equal(first(x), second(x))
    assert not any("index" in key for key in first.state_dict())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"graph": MIXED, "features": 8}, "features is 8 but the graph has 5 variables"),
        ({"graph": "binary-treee"}, "binary-tree"),
        ({"graph": "{no json"}, "no JSON"),
        ({"graph": {"nodes": []}}, "no compositional graph"),
        ({"graph": "binary-tree", "fan_in": 3}, "fan-in of 3 is for the graph 'convolutional'"),
        ({"activation": "sin"}, "activation must be gelu, tanh, relu or silu, not 'sin'"),
        ({"width": 0}, "width must be a whole number of at least 1"),
        ({"features": 0}, "features must be a whole number of at least 1"),
    ],
)
def test_what_makes_no_net_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(BadInput, match=words):
        CompositionalNet(**arguments)


def test_elementary_graphs_have_perceptrons_where_sums_and_products_need_them():
    nodes = elementary(MIXED).node
    assert nodes["p"].inputs == ("p.a", "p.b")
    assert nodes["s"].inputs == ("s.p", "s.g", "s.c")  # a product, a shared node, a variable
    assert nodes["y"] == Node("y", ("u", "d", "p"))
    arnold = GRAPHS["kolmogorov-arnold"]
    assert elementary(arnold) == arnold
    taken = CompositionalGraph(("a", "y.a"), (Node("y", ("a", "y.a"), "sum"),))
    assert elementary(taken).node["y"].inputs == ("y.a_", "y.y.a")
    for groups in stages(elementary(MIXED)):
        assert all(len({(n.kind, len(n.inputs)) for n in group.nodes}) == 1 for group in groups)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_products_start_with_mean_zero_and_variance_one(inputs):
    z = drawn(200_000, inputs).mT.reshape(1, inputs, -1)
    said = Products(1, inputs, inputs, 1).double()(z).detach()
    assert float(said.mean()) == pytest.approx(0, abs=0.02)
    assert float(said.var()) == pytest.approx(1, rel=0.05)
