"""The mixer against plain loops over tokens and channels, the graph network against sums over an adjacency matrix."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

import math

import networkx
import pytest
import torch
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.nets.message_passing import MessagePassing, Neighbours
from theodolite.nets.mixer import Mixer, TokenMixing

from .test_families import doubled, inputs, same


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def mixed_by_hand(mixing: TokenMixing, x: Tensor) -> Tensor:
    """Number by number, for one channel after the other; place(u) is the token that hidden unit u belongs to."""
    into, back = mixing.into.weight.tolist(), mixing.back.weight.tolist()
    before, after = mixing.into.bias.tolist(), mixing.back.bias.tolist()
    tokens, width = x.shape
    place = lambda unit: unit // mixing.expansion
    answer = torch.zeros(tokens, width, dtype=torch.float64)
    for c in range(width):
        for t in range(tokens):
            total = after[t]
            for u in range(len(into)):
                if mixing.causal and place(u) > t:
                    continue
                heard = [s for s in range(tokens) if not mixing.causal or s <= place(u)]
                total += back[t][u] * gelu(before[u] + sum(into[u][s] * float(x[s, c]) for s in heard))
            answer[t, c] = total
    return answer


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [1, 4, 6])
def test_token_mixing_is_a_perceptron_across_the_first_tokens(causal, tokens):
    mixing, x = doubled(TokenMixing(6, 2, causal)), inputs(2, tokens, 3)
    same(mixing(x), torch.stack([mixed_by_hand(mixing, row) for row in x]))


@pytest.mark.parametrize("causal", [False, True])
def test_a_mixer_is_its_blocks_one_after_the_other(causal):
    net, x = doubled(Mixer(features=3, outputs=2, tokens=5, depth=2, width=4, causal=causal)), inputs(2, 4, 3)
    h = x @ net.embed.weight.T + net.embed.bias
    for block in net.blocks:
        normed = nn.functional.layer_norm(h, (4,), block.before_tokens.weight, block.before_tokens.bias)
        h = h + torch.stack([mixed_by_hand(block.across_tokens, row.detach()) for row in normed])
        first, _, second = block.across_channels
        normed = nn.functional.layer_norm(h, (4,), block.before_channels.weight, block.before_channels.bias)
        inner = normed @ first.weight.T + first.bias
        h = h + (0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))) @ second.weight.T + second.bias
    norm, read = net.read
    same(net(x), nn.functional.layer_norm(h, (4,), norm.weight, norm.bias) @ read.weight.T + read.bias)


def test_a_mixer_refuses_more_tokens_than_it_was_built_for_unless_they_are_padding():
    net, x = doubled(Mixer(features=3, tokens=5, width=4)), inputs(2, 8, 3)
    with pytest.raises(BadInput, match="built for 5 tokens cannot read 8: raise its 'tokens'"):
        net(x)
    present = (torch.arange(8) < 4).expand(2, -1)
    found = net(x, present)
    assert found.shape == (2, 8, 1)
    same(found[:, :4], net(x[:, :4]))
    assert (found[:, 5:] == 0).all()


def adjacency(graph: str, causal: bool, tokens: int) -> Tensor:
    """Entry (i, j): how often token i hears token j."""
    if graph == "complete":
        edges = torch.tensor(networkx.to_numpy_array(networkx.complete_graph(tokens)))
    elif graph == "path":
        edges = torch.tensor(networkx.to_numpy_array(networkx.path_graph(tokens)))
    else:
        edges = torch.zeros(tokens, tokens, dtype=torch.float64)
        for i in range(tokens):
            edges[i, (i + 1) % tokens] += 1
            edges[i, (i - 1) % tokens] += 1
        if tokens > 2:
            assert torch.equal(edges, torch.tensor(networkx.to_numpy_array(networkx.cycle_graph(tokens))))
    return edges.tril() if causal else edges


@pytest.mark.parametrize(
    ("graph", "causal"), [("complete", False), ("complete", True), ("path", False), ("path", True), ("ring", False)]
)
@pytest.mark.parametrize("mean", [False, True])
def test_what_a_token_hears_is_a_row_of_the_graphs_adjacency(graph, causal, mean):
    """Also of padded rows, whose graph has the tokens that are present only."""
    neighbours, counts = Neighbours(graph, causal, mean), [7, 1, 2, 3, 6]
    messages = inputs(5, 7, 2)
    together = neighbours.collect(messages, torch.arange(7) < torch.tensor(counts)[:, None])
    for row, count in enumerate(counts):
        edges = adjacency(graph, causal, count)
        truth = edges @ messages[row, :count]
        if mean:
            truth = truth / edges.sum(dim=1, keepdim=True).clamp(min=1)
        assert torch.allclose(together[row, :count], truth, atol=1e-12)
        assert torch.allclose(neighbours.collect(messages[row : row + 1, :count], None)[0], truth, atol=1e-12)


def test_a_round_updates_by_the_norm_and_what_was_heard():
    net, x = (
        doubled(MessagePassing(features=3, outputs=2, width=4, depth=2, graph="path", aggregation="sum")),
        inputs(2, 5, 3),
    )
    h, edges = net.embed(x), adjacency("path", False, 5)
    for round_ in net.rounds:
        normed = nn.functional.layer_norm(h, (4,), round_.norm.weight, round_.norm.bias)
        sent = nn.functional.gelu(normed @ round_.send[0].weight.T + round_.send[0].bias)
        h = h + round_.update(torch.cat((normed, edges @ sent), dim=-1))
    same(net(x), net.read(h))


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_on_a_complete_graph_every_permutation_commutes_and_on_a_ring_every_turn(aggregation):
    x = inputs(2, 9, 3)
    orders = [torch.randperm(9, generator=torch.Generator().manual_seed(seed)) for seed in range(5)]
    complete = doubled(MessagePassing(features=3, width=8, depth=3, aggregation=aggregation))
    ring = doubled(MessagePassing(features=3, width=8, depth=3, aggregation=aggregation, graph="ring"))
    for order in orders:
        same(complete(x[:, order]), complete(x)[:, order])
        assert not torch.allclose(ring(x[:, order]), ring(x)[:, order])
    for turn in range(9):
        same(ring(x.roll(turn, 1)), ring(x).roll(turn, 1))
    same(ring(x.flip(1)), ring(x).flip(1))


def test_messages_travel_one_edge_a_round():
    x, other = inputs(1, 12, 3), inputs(1, 12, 3)
    other[:, 0] += 1
    for depth in (1, 3):
        for graph, far in (("path", [0]), ("ring", [0, 12])):
            net = doubled(MessagePassing(features=3, width=8, depth=depth, graph=graph))
            changed = (net(x) - net(other)).abs().amax(dim=-1)[0] > 0
            near = [min(abs(t - end) for end in far) <= depth for t in range(12)]
            assert changed.tolist() == near


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("graph-network", {"graph": "ring", "causal": True}, "a ring leads from its end to its start"),
        ("graph-network", {"graph": "star"}, "graph must be complete, path or ring, not 'star'"),
        ("graph-network", {"aggregation": "max"}, "aggregation must be mean or sum"),
        ("mixer", {"expansion": 0}, "expansion of 'mixer' must be a whole number"),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(name, shape, message):
    with pytest.raises(BadInput, match=message):
        load(name, **shape)
