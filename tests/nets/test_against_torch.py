"""Recurrent, convolutional and attention layers against the ones of torch, which cannot be batched over members."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

import math

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets.convolution import Convolution, Window
from theodolite.nets.gru import gru
from theodolite.nets.load import load
from theodolite.nets.lstm import lstm
from theodolite.nets.parts.positions import rotate, rotation, sinusoidal
from theodolite.nets.rnn import rnn
from theodolite.nets.transformer import Transformer, attention

from .test_families import doubled, inputs, same


def copy_into(torchs: nn.RNNBase, ours: nn.Module, order: list[int]) -> nn.RNNBase:
    """Our weights in torch's layers; `order` says which of our gates stands at each of torch's places."""
    take = lambda weight: torch.cat([weight.chunk(len(order))[i] for i in order])
    with torch.no_grad():
        for i, layer in enumerate(ours.layers):
            getattr(torchs, f"weight_ih_l{i}").copy_(take(layer.into.weight))
            getattr(torchs, f"bias_ih_l{i}").copy_(take(layer.into.bias))
            getattr(torchs, f"weight_hh_l{i}").copy_(take(layer.across.weight))
            getattr(torchs, f"bias_hh_l{i}").zero_()
    return torchs


@pytest.mark.parametrize(("depth", "tokens"), [(1, 5), (2, 7), (3, 1)])
def test_lstm_is_torchs(depth, tokens):
    keep, admit, show, new = range(4)
    ours = doubled(lstm(features=3, width=4, depth=depth, outputs=2))
    torchs = nn.LSTM(3, 4, depth, batch_first=True).double()
    copy_into(torchs, ours, [admit, keep, new, show])  # torch stacks input, forget, cell, output
    x = inputs(2, tokens, 3)
    same(ours(x), ours.read(torchs(x)[0]))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(("depth", "tokens"), [(1, 5), (2, 7), (3, 1)])
def test_rnn_is_torchs(depth, tokens, activation):
    ours = doubled(rnn(features=3, width=4, depth=depth, outputs=2, activation=activation))
    torchs = copy_into(nn.RNN(3, 4, depth, activation, batch_first=True).double(), ours, [0])
    x = inputs(2, tokens, 3)
    same(ours(x), ours.read(torchs(x)[0]))
    by_hand = torch.func.vmap(ours)(x[None])[0]  # the cell as it is written out
    same(by_hand, ours(x))


@pytest.mark.parametrize(("depth", "tokens"), [(1, 5), (2, 7), (3, 1)])
def test_gru_is_torchs(depth, tokens):
    ours = doubled(gru(features=3, width=4, depth=depth, outputs=2))
    torchs = copy_into(nn.GRU(3, 4, depth, batch_first=True).double(), ours, [0, 1, 2])
    x = inputs(2, tokens, 3)
    same(ours(x), ours.read(torchs(x)[0]))
    by_hand = torch.func.vmap(ours)(x[None])[0]  # the cell as it is written out
    same(by_hand, ours(x))


@pytest.mark.parametrize("name", ["lstm", "rnn", "gru"])
def test_recurrent_weights_start_as_torchs_do(name):
    """Uniform in ±1/√width, all of them: as in the reference, by bound, mean and variance."""
    layer = load(name, width=64, features=50).module.layers[0]
    torchs = {"lstm": nn.LSTM, "rnn": nn.RNN, "gru": nn.GRU}[name](50, 64)
    for ours, reference in [(layer.into.weight, torchs.weight_ih_l0), (layer.across.weight, torchs.weight_hh_l0)]:
        assert ours.shape == reference.shape
        assert 0.97 / 8 < ours.abs().max() <= 1 / 8
        assert ours.var().item() == pytest.approx(reference.var().item(), rel=0.1)
        assert abs(ours.mean()) < 0.01
    assert 0 < layer.into.bias.abs().max() <= 1 / 8


@each("tokens", [1, 3, 9, 30])
@each(("kernel", "dilation"), [(1, 1), (2, 3), (3, 1), (5, 4), (3, 16)])
@each("causal", [True, False])
def test_a_window_is_torchs_convolution(tokens, kernel, dilation, causal):
    """Also where the window is longer than the sequence."""
    if not causal and kernel % 2 == 0:
        kernel += 1
    window = doubled(Window(4, kernel, dilation, causal))
    x = inputs(2, tokens, 4)
    weight = window.taps.weight.unflatten(1, (kernel, 4)).permute(0, 2, 1)  # torch's (out, in, tap)
    reach = dilation * (kernel - 1)
    before, after = (reach, 0) if causal else (reach // 2, reach // 2)
    padded = nn.functional.pad(x.transpose(1, 2), (before, after))
    truth = nn.functional.conv1d(padded, weight, window.taps.bias, dilation=dilation).transpose(1, 2)
    same(window(x), truth)


def test_dilation_multiplies_from_layer_to_layer():
    net = Convolution(depth=3, kernel=3, dilation=4)
    assert [block.window.offsets for block in net.blocks] == [[-2, -1, 0], [-8, -4, 0], [-32, -16, 0]]
    plain = Convolution(depth=2, kernel=3, dilation=1, causal=False)
    assert [block.window.offsets for block in plain.blocks] == [[-1, 0, 1], [-1, 0, 1]]
    with pytest.raises(BadInput, match="odd kernel, not 4"):
        Convolution(kernel=4, causal=False)


@pytest.mark.parametrize("causal", [False, True])
def test_transformer_block_is_torchs(causal):
    ours = doubled(Transformer(features=3, width=4, heads=2, depth=1, positions="none", causal=causal))
    torchs = nn.TransformerEncoderLayer(
        4, 2, dim_feedforward=16, activation="gelu", batch_first=True, norm_first=True, dropout=0.0
    ).double()
    block = ours.blocks[0]
    pairs = [
        (torchs.self_attn.in_proj_weight, block.project.weight),
        (torchs.self_attn.in_proj_bias, block.project.bias),
        (torchs.self_attn.out_proj.weight, block.combine.weight),
        (torchs.self_attn.out_proj.bias, block.combine.bias),
        *((getattr(torchs.norm1, n), getattr(block.before_attention, n)) for n in ("weight", "bias")),
        *((getattr(torchs.norm2, n), getattr(block.before_mlp, n)) for n in ("weight", "bias")),
        *((getattr(torchs.linear1, n), getattr(block.mlp[0], n)) for n in ("weight", "bias")),
        *((getattr(torchs.linear2, n), getattr(block.mlp[2], n)) for n in ("weight", "bias")),
    ]
    with torch.no_grad():
        for target, source in pairs:
            target.copy_(source)
    x = inputs(2, 5, 3)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64) if causal else None
    same(ours(x), ours.read(torchs(ours.embed(x), src_mask=mask)))


def test_a_parallel_block_adds_both_to_one_norm():
    net = doubled(Transformer(features=3, width=4, heads=2, depth=1, block="parallel", positions="none"))
    block, x = net.blocks[0], inputs(2, 5, 4)
    normed = nn.functional.layer_norm(x, (4,), block.before_attention.weight, block.before_attention.bias)
    torchs = nn.MultiheadAttention(4, 2, batch_first=True).double()
    with torch.no_grad():
        torchs.in_proj_weight.copy_(block.project.weight)
        torchs.in_proj_bias.copy_(block.project.bias)
        torchs.out_proj.weight.copy_(block.combine.weight)
        torchs.out_proj.bias.copy_(block.combine.bias)
    same(block(x), x + torchs(normed, normed, normed)[0] + block.mlp(normed))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_torchs(masked):
    query, key, value = (inputs(3, 2, tokens, 4) * scale for tokens, scale in ((5, 3), (6, 1), (6, 2)))
    seen = torch.rand(3, 1, 5, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    seen[..., 0] = True
    bias = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -math.inf) if masked else None
    truth = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen if masked else None)
    same(attention(query, key, value, bias), truth)


@pytest.mark.parametrize("width", [2, 5, 8])
def test_sinusoidal_positions_are_the_closed_formula(width):
    table = sinusoidal(7, width, inputs(1))
    for t in range(7):
        for i in range(width):
            angle = t / 10000 ** (2 * (i // 2) / width)
            assert table[t, i].item() == pytest.approx(math.cos(angle) if i % 2 else math.sin(angle), abs=1e-12)
    net = doubled(Transformer(features=3, width=4, heads=1, positions="sinusoidal"))
    bare = doubled(Transformer(features=3, width=4, heads=1, positions="none"))
    x, moved = inputs(2, 6, 3), inputs(2, 6, 3)
    same(net.embed(x), bare.embed(x))
    bare.embed = nn.Sequential(bare.embed, Added(sinusoidal(6, 4, x)))
    same(net(moved), bare(moved))


class Added(nn.Module):
    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table


@pytest.mark.parametrize("width", [2, 3, 8])
def test_rotary_products_depend_on_the_distance_only(width):
    """One query and one key put at every place: their product is a function of the difference of the places."""
    query, key = inputs(2, width)
    turns = rotation(20, width, query)
    turned_query, turned_key = (rotate(v.expand(1, 20, 1, width), turns)[0, :, 0] for v in (query, key))
    products = turned_query @ turned_key.T
    for distance in range(-19, 20):
        diagonal = products.diagonal(distance)
        same(diagonal, diagonal[:1].expand_as(diagonal))
    assert products[0].std() > 1e-2, "and it does depend on it"
    same(turned_query.norm(dim=-1), query.norm().expand(20))
    # as complex numbers: entry i and entry i + pairs are one number, turned by t / 10000^(2i / width)
    pairs = width // 2
    angle = torch.arange(20.0, dtype=torch.float64)[:, None] / 10000 ** (2 * torch.arange(pairs) / width)
    truth = torch.complex(query[:pairs], query[pairs : 2 * pairs]) * torch.exp(1j * angle)
    same(turned_query[:, :pairs], truth.real)
    same(turned_query[:, pairs : 2 * pairs], truth.imag)


def test_rotary_attention_does_not_see_a_shift_of_all_places():
    """With keys hidden up to the shift, a rotary Transformer gives the same outputs later in the sequence."""
    net = doubled(Transformer(features=3, width=8, heads=2, depth=1, positions="rotary", causal=True))
    x = inputs(1, 6, 3)
    block, embedded = net.blocks[0], net.embed(x)
    late = torch.cat((torch.zeros(1, 4, 8, dtype=torch.float64), embedded), dim=1)
    place = torch.arange(10)
    seen = (place[:, None] >= place) & ((place >= 4) | (place[:, None] == place))
    bias = torch.zeros(10, 10, dtype=torch.float64).masked_fill(~seen, -math.inf)
    early = block(embedded, bias[4:, 4:], rotation(6, 4, x))
    same(block(late, bias, rotation(10, 4, x))[:, 4:], early)
    cosine, sine = rotation(12, 4, x)
    stretched = block(embedded, bias[4:, 4:], (cosine[::2], sine[::2]))
    assert not torch.allclose(stretched, early), "and sees a stretch"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positions": "x"}, "for the net 'transformer': positions must be none, .*, alibi or random-offset, not 'x'"),
        ({"block": "both"}, "for the net 'transformer': block must be serial or parallel, not 'both'"),
        ({"positions": 3}, "positions of 'transformer' is a word, such as [a-z]+, not 3"),
        ({"positions": True}, "positions of 'transformer' is a word"),
        ({"causal": "yes"}, "causal of 'transformer' is switched on or off"),
        ({"positions": "rotary", "width": 4, "heads": 4}, "rotary positions turn pairs"),
    ],
)
def test_choices_are_checked_in_a_sentence(arguments, message):
    with pytest.raises(BadInput, match=message):
        load("transformer", **arguments)
