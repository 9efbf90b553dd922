"""Each family against an explicit transcription of its formula, and the shapes it refuses."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false, reportOperatorIssue=false

import itertools

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.circuits import ConvolutionalCircuit, RecurrentCircuit
from theodolite.nets.contract import nets
from theodolite.nets.degree_attention import DegreeAttention
from theodolite.nets.lstm import lstm
from theodolite.nets.polynomial_mixer import PolynomialMixer
from theodolite.nets.polynomial_mlp import PolynomialMLP
from theodolite.nets.self_attention import SelfAttention
from theodolite.nets.transformer import Transformer
from theodolite.partition import Partition
from theodolite.theory.attention_rank import separation_cap
from theodolite.theory.cap import attention_cap


def doubled(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def inputs(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def same(found: torch.Tensor, truth: torch.Tensor) -> None:
    torch.testing.assert_close(found, truth, rtol=1e-9, atol=1e-9 * float(truth.detach().abs().max()))


def equation_7_6(x, layers):
    """Eq. 7.6, letter by letter: sums over heads, tokens and features."""
    y = [list(row) for row in x]
    for query, key, value, output in layers:  # each (head, attention width, width), the output (head, width, a. width)
        heads, attention_width, width = query.shape
        tokens = len(y)
        new = [[0.0] * width for _ in range(tokens)]
        for i, h, j in itertools.product(range(tokens), range(heads), range(tokens)):
            score = 0.0
            for a in range(attention_width):
                q = sum(query[h, a, k] * y[i][k] for k in range(width))
                score += q * sum(key[h, a, k] * y[j][k] for k in range(width))
            for a in range(attention_width):
                v = sum(value[h, a, k] * y[j][k] for k in range(width))
                for k in range(width):
                    new[i][k] += output[h, k, a] * score * v
        y = new
    return torch.tensor(y, dtype=torch.float64)


def attention_matrices(layer):
    heads, size = layer.heads, layer.attention_width
    query, key, value = layer.project.weight.detach().view(3, heads, size, -1)
    output = layer.combine.weight.detach().view(-1, heads, size).permute(1, 0, 2)
    return query, key, value, output


@pytest.mark.parametrize(
    ("depth", "width", "heads", "attention_width", "tokens"),
    [(1, 2, 1, None, 2), (2, 3, 1, None, 3), (2, 4, 2, None, 1), (1, 3, 2, 4, 3), (1, 2, 2, 1, 5), (2, 2, 3, 1, 2)],
)
def test_self_attention_is_equation_7_6(depth, width, heads, attention_width, tokens):
    """Both orders of the product are met: more tokens than attention width, and fewer."""
    net = doubled(SelfAttention(depth=depth, width=width, heads=heads, attention_width=attention_width))
    x = inputs(2, tokens, width)
    layers = [attention_matrices(layer) for layer in net.layers]
    assert layers[0][0].shape == (heads, attention_width or width // heads, width)
    same(net(x), torch.stack([equation_7_6(sample.tolist(), layers) for sample in x]))


def test_an_embedding_of_low_rank_is_a_matrix_before_the_same_network():
    net = doubled(SelfAttention(depth=1, width=4, embedding_rank=2, tokens=3))
    x = inputs(2, 3, 2)
    embedded = x @ net.embed.weight.T
    assert net.embed.weight.shape == (4, 2)
    layers = [attention_matrices(layer) for layer in net.layers]
    same(net(x), torch.stack([equation_7_6(sample.tolist(), layers) for sample in embedded]))


def test_embedding_ranks_and_readouts():
    through = SelfAttention(features=5, width=4, embedding_rank=2, outputs=3)
    composed = through.embed(torch.eye(5)).T
    assert composed.shape == (4, 5)
    assert int(torch.linalg.matrix_rank(composed)) == 2 == through.embedding_rank
    assert SelfAttention(features=3, width=4).embedding_rank == 3
    assert SelfAttention(width=4, embedding_rank=9).embedding_rank == 4
    assert isinstance(SelfAttention(width=4).embed, nn.Identity)
    assert through(torch.zeros(1, 6, 5)).shape == (1, 6, 3)


def test_attention_width_is_free():
    wide = SelfAttention(depth=1, width=3, heads=2, attention_width=5)
    assert sum(p.numel() for p in wide.parameters()) == 4 * 2 * 5 * 3


@pytest.mark.parametrize(("width", "heads"), [(4, 3), (5, 2), (2, 3)])
@pytest.mark.parametrize("family", [SelfAttention, Transformer])
def test_heads_that_do_not_divide_the_width_are_refused(family, width, heads):
    with pytest.raises(BadInput, match=f"{heads} heads do not divide width {width}"):
        family(width=width, heads=heads)


def test_a_prediction_names_the_reason_when_there_is_no_theorem():
    balanced, lopsided = Partition.left_right(4), Partition((0,), (1, 2, 3))
    plain = SelfAttention(width=10, depth=1)
    assert plain.predict(balanced, 3).lower is not None
    assert "balanced" in plain.predict(lopsided, 3).reason
    assert "7.3" in SelfAttention(width=10, depth=1, embedding_rank=2).predict(balanced, 3).reason
    assert "attention width" in SelfAttention(width=10, depth=1, attention_width=3).predict(balanced, 3).reason
    # the cap counts the tokens on the side that is read: the two sides are not alike
    deep = SelfAttention(width=3, depth=2)
    assert deep.predict(lopsided, 0).cap == separation_cap(2, 3, 1, 3, 1, 3) < attention_cap(2, 3, 1, 3)
    assert deep.predict(lopsided, 3).cap == separation_cap(2, 3, 1, 3, 3, 1) <= attention_cap(2, 3, 3, 1)
    assert deep.predict(lopsided, 0).cap != deep.predict(lopsided, 3).cap


@pytest.mark.parametrize("tokens", [2, 4, 8])
def test_convolutional_circuit_by_explicit_loops(tokens):
    net = doubled(ConvolutionalCircuit(tokens=tokens, width=3, features=2, outputs=2))
    x = inputs(2, tokens, 2)
    truth = []
    for sample in x:
        row = [sample[t] for t in range(tokens)]
        for level in net.levels:
            mapped = [level.weight @ v for v in row]
            pairs = zip(mapped[::2], mapped[1::2], strict=True)
            row = [torch.stack([a * b for a, b in zip(*pair, strict=True)]) for pair in pairs]
        truth.append(net.read.weight @ row[0])
    same(net(x), torch.stack(truth))


def test_a_convolutional_circuit_ties_neighbours_first():
    """Swapping tokens inside a window or swapping windows changes nothing; crossing windows does."""
    net, x = doubled(ConvolutionalCircuit(tokens=4, width=3)), inputs(2, 4, 3)
    same(net(x[:, [1, 0, 2, 3]]), net(x))
    same(net(x[:, [2, 3, 0, 1]]), net(x))
    assert not torch.allclose(net(x[:, [0, 2, 1, 3]]), net(x))


@pytest.mark.parametrize("tokens", [0, 1, 3, 6])
def test_tokens_that_cannot_be_halved_are_refused(tokens):
    with pytest.raises(BadInput, match=f"{tokens}"):
        ConvolutionalCircuit(tokens=tokens)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_recurrent_circuit_by_explicit_loops(depth):
    net = doubled(RecurrentCircuit(depth=depth, width=3, features=2, outputs=2))
    x = inputs(2, 4, 2)
    truth = torch.empty(2, 4, 2, dtype=torch.float64)
    for n, sample in enumerate(x):
        states = [net.first[layer] for layer in range(depth)]
        for t in range(4):
            entering = sample[t]
            for layer in range(depth):
                states[layer] = (net.states[layer].weight @ states[layer]) * (net.inputs[layer].weight @ entering)
                entering = states[layer]
            truth[n, t] = net.read.weight @ entering
    same(net(x), truth)


def test_a_recurrent_circuit_does_not_see_the_future():
    net, x = doubled(RecurrentCircuit(depth=2, width=3)), inputs(1, 5, 3)
    changed = x.clone()
    changed[:, 3:] += 1
    same(net(changed)[:, :3], net(x)[:, :3])
    assert not torch.allclose(net(changed)[:, 3:], net(x)[:, 3:])
    one_sided = net.predict(Partition((0, 1), (2, 3, 4)), 1)
    assert one_sided.cap == 1


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_degree_attention_by_explicit_loops(degree):
    net = doubled(DegreeAttention(depth=1, width=3, degree=degree, attention_width=2, matrices="d+1"))
    x, block = inputs(2, 4, 3), net.blocks[0]
    truth = torch.empty_like(x)
    for n, sample in enumerate(x):
        for i in range(4):
            carried = sample[i]
            for query, key in zip(block.queries, block.keys, strict=True):
                carried = sum((query.weight @ carried) @ (key.weight @ sample[j]) * sample[j] for j in range(4))
            if degree % 2 == 0:
                carried = carried * (block.gate.weight @ sum(sample[j] for j in range(4)))
            truth[n, i] = block.output.weight @ (block.value.weight @ carried)
    same(net(x), truth)


@pytest.mark.parametrize("degree", [2, 3, 4, 5, 6, 7])
def test_degree_attention_has_degree_minus_one_matrices(degree):
    net = DegreeAttention(depth=2, width=3, degree=degree, matrices="d-1")
    assert sum(1 for _ in net.parameters()) == 2 * (degree - 1)
    assert sum(1 for _ in DegreeAttention(depth=1, width=3, degree=degree, matrices="d+1").parameters()) == degree + 1


def test_degree_3_with_value_and_output_is_self_attention():
    attention = doubled(SelfAttention(depth=1, width=3))
    degree = doubled(DegreeAttention(depth=1, width=3, degree=3, matrices="d+1")).blocks[0]
    query, key, value, output = (m[0] for m in attention_matrices(attention.layers[0]))
    with torch.no_grad():
        linears = (degree.queries[0], degree.keys[0], degree.value, degree.output)
        for linear, weight in zip(linears, (query, key, value, output), strict=True):
            linear.weight.copy_(weight)
    x = inputs(2, 4, 3)
    same(degree(x), attention(x))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_mixer_by_explicit_loops(degree):
    net = doubled(PolynomialMixer(depth=1, width=3, tokens=4, degree=degree, channel_degree=2))
    x, block = inputs(2, 4, 3), net.blocks[0]
    mixing = block.across_tokens.factors.weight.view(degree, 4, 4)
    channel = block.across_channels.factors.weight.view(2, 3, 3)
    truth = torch.ones_like(x)
    for k in range(degree):
        truth = truth * torch.einsum("st,btc->bsc", mixing[k], x)
    truth = torch.einsum("dc,bsc->bsd", channel[0], truth) * torch.einsum("dc,bsc->bsd", channel[1], truth)
    same(net(x), truth)


def test_polynomial_mlp_by_explicit_loops():
    net = doubled(PolynomialMLP(features=4, depth=2, width=3, degree=3, outputs=2, embed=False))
    x = inputs(5, 4)
    hidden = x
    for layer in net.layers:
        weights = layer.factors.weight.view(3, 3, -1)
        hidden = (hidden @ weights[0].T) * (hidden @ weights[1].T) * (hidden @ weights[2].T)
    same(net(x), hidden @ net.read.weight.T)


def test_attention_without_positions_commutes_with_permutations():
    order = torch.tensor([2, 0, 3, 1])
    bare = {"transformer": {"positions": "none", "causal": False}}
    for name in ("self-attention", "degree-attention", "transformer"):
        net = doubled(nets[name].build(features=4, outputs=2, depth=2, width=4, **bare.get(name, {})))
        x = inputs(2, 4, 4)
        same(net(x[:, order]), net(x)[:, order])


@pytest.mark.parametrize("bad", [0, -1, True])
def test_sizes_below_one_are_refused(bad):
    for family in (SelfAttention, DegreeAttention, PolynomialMLP, PolynomialMixer, RecurrentCircuit, Transformer, lstm):
        for name in ("depth", "width"):
            with pytest.raises(BadInput, match=name):
                family(**{name: bad})


@pytest.mark.parametrize("degree", [0, 1, -2])
def test_degrees_below_two_are_refused(degree):
    for family in (DegreeAttention, PolynomialMLP):
        with pytest.raises(BadInput, match="degree"):
            family(degree=degree)


def test_annotations_are_checked_while_testing():
    """The shapes in the signatures are true, because a wrong one would fail every test here."""
    import jaxtyping

    net = SelfAttention(width=4)
    with pytest.raises(jaxtyping.TypeCheckError):
        net(torch.zeros(2, 4))
    with pytest.raises(jaxtyping.TypeCheckError):
        net(torch.zeros(2, 3, 4, dtype=torch.int64))
