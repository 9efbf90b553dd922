"""Formulas of cost against networks of torch, and against sums written out."""

import pytest
from torch import nn

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.cost import (
    PRICES,
    convolution_price,
    linear_transformer_price,
    lstm_price,
    mlp_price,
    rnn_price,
    transformer_price,
)


def numel(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


@pytest.mark.parametrize(("f", "o", "depth", "d"), [(3, 2, 1, 4), (5, 1, 3, 8), (1, 7, 2, 5)])
def test_parameters_are_those_of_torchs_layers(f, o, depth, d):
    hidden = [nn.Linear(f if layer == 0 else d, d) for layer in range(depth)]
    assert mlp_price(f, o, depth, d).parameters == numel(*hidden, nn.Linear(d, o))
    # torch's recurrent layers have two biases per gate where ours have one
    assert rnn_price(f, o, depth, d).parameters == numel(nn.RNN(f, d, depth), nn.Linear(d, o)) - depth * d
    assert lstm_price(f, o, depth, d).parameters == numel(nn.LSTM(f, d, depth), nn.Linear(d, o)) - 4 * depth * d
    windows = [layer for _ in range(depth) for layer in (nn.Conv1d(d, d, 3), nn.Linear(d, d))]
    expected = numel(nn.Linear(f, d), *windows, nn.Linear(d, o))
    assert convolution_price(f, o, depth, d, 3, 2).parameters == expected


@pytest.mark.parametrize(("f", "o", "depth", "d"), [(3, 2, 1, 4), (5, 1, 3, 8)])
def test_a_transformers_parameters_are_those_of_torchs(f, o, depth, d):
    blocks = [nn.TransformerEncoderLayer(d, 2, dim_feedforward=4 * d) for _ in range(depth)]
    truth = numel(nn.Linear(f, d), *blocks, nn.LayerNorm(d), nn.Linear(d, o))
    assert transformer_price(f, o, depth, d, tokens=8).parameters == truth
    assert linear_transformer_price(f, o, depth, d, heads=2, tokens=8).parameters == truth
    assert transformer_price(f, o, depth, d, tokens=8, block="parallel").parameters == truth - depth * 2 * d


def test_operations_of_a_large_transformer_are_two_per_parameter():
    """Kaplan et al. 2020: C ≈ 2·N + 2·n·d·L of them for causal attention; computed whole, twice the second part."""
    price = transformer_price(features=1, outputs=1, depth=24, width=1024, tokens=1024)
    body = 12 * 24 * 1024**2
    assert price.flops_per_token == pytest.approx(2 * body + 4 * 24 * 1024 * 1024, rel=1e-3)
    assert price.flops_per_token / price.parameters == pytest.approx(2.33, abs=0.01)
    assert transformer_price(1, 1, 24, 1024, tokens=1).flops_per_token / price.parameters == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("tokens", [1, 30, 64, 65, 128, 200])
def test_linear_attention_is_counted_chunk_by_chunk(tokens):
    f, o, depth, d, heads = 3, 2, 2, 8, 2
    a, chunk = d // heads, min(64, tokens)
    matrices = f * d + depth * 12 * d * d + d * o
    operations, place = 2 * matrices * tokens, 0
    while place < tokens:
        operations += depth * heads * 2 * chunk * chunk * a  # products of queries and keys
        operations += depth * heads * 2 * chunk * chunk * (a + 1)  # times the values
        if place:  # what earlier chunks left is read here; every chunk but the last leaves something
            operations += 2 * depth * heads * 2 * chunk * a * (a + 1)
        place += chunk
    found = linear_transformer_price(f, o, depth, d, heads, tokens)
    assert found.flops_per_token * tokens == pytest.approx(operations)


def test_states():
    assert rnn_price(3, 1, 2, 8).state == 2 * 8
    assert lstm_price(3, 1, 2, 8).state == 2 * 2 * 8
    assert convolution_price(3, 1, 3, 8, 5, 2).state == 8 * 4 * (1 + 2 + 4)
    assert convolution_price(3, 1, 3, 8, 5, 2, causal=False).state == 8 * 2 * (1 + 2 + 4)
    assert convolution_price(3, 1, 3, 8, 5, 2, causal=False, padding="circular").state is None
    softmax = transformer_price(3, 1, 3, 8, tokens=10)
    assert (softmax.state, softmax.state_per_token, softmax.cache_per_token) == (None, 8 - 1, 2 * 8 * 3)
    assert transformer_price(3, 1, 3, 8, tokens=10, causal=False).cache_per_token is None
    assert linear_transformer_price(3, 1, 3, 8, heads=2, tokens=10).state == 3 * 2 * 4 * 5
    assert linear_transformer_price(3, 1, 3, 8, heads=1, tokens=10).state == 3 * 8 * 8, "a value has d − 1 numbers"
    assert linear_transformer_price(3, 1, 3, 8, heads=2, tokens=10, causal=False).state is None
    assert mlp_price(3, 1, 1, 8).state is None


@each("name", PRICES)
def test_shapes_outside_the_domain_are_refused(name):
    sizes = {"features": 3, "outputs": 1, "depth": 0, "width": 8, "tokens": 4, "heads": 2, "kernel": 3, "dilation": 1}
    import inspect

    taken = inspect.signature(PRICES[name]).parameters
    with pytest.raises(OutsideDomain, match="depth"):
        PRICES[name](**{argument: size for argument, size in sizes.items() if argument in taken})
