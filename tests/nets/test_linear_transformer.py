"""Linear attention against its quadratic form and its recurrence, and windows that read on at the other end."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false

import math

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.convolution import Convolution, Window
from theodolite.nets.linear_transformer import LinearTransformer, feature_map, linear_attention
from theodolite.nets.load import load

from .test_families import doubled, inputs, same


def quadratic(query, key, value, seen):
    """All weights ⟨φ(q), φ(k)⟩ written out, rows normalised."""
    phi = lambda x: nn.functional.elu(x) + 1
    weights = torch.einsum("bhia,bhja->bhij", phi(query), phi(key)) * seen
    return weights / weights.sum(-1, keepdim=True) @ value


def recurrence(query, key, value):
    """Token by token, from the state alone."""
    phi = lambda x: nn.functional.elu(x) + 1
    matrix, vector, outputs = 0.0, 0.0, []
    for t in range(query.shape[2]):
        q, k, v = phi(query[:, :, t]), phi(key[:, :, t]), value[:, :, t]
        matrix = matrix + k[..., :, None] * v[..., None, :]
        vector = vector + k
        outputs.append((q[..., None, :] @ matrix)[..., 0, :] / (q * vector).sum(-1, keepdim=True))
    return torch.stack(outputs, dim=2)


def three(tokens: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    query, key, value = inputs(3, 2, 3, tokens, 4) * torch.tensor([2.0, 3.0, 1.0]).view(3, 1, 1, 1, 1)
    return query, key, value


@pytest.mark.parametrize(("tokens", "chunk"), [(1, 64), (5, 64), (5, 1), (12, 4), (13, 4), (7, 8), (130, 64)])
def test_causal_linear_attention_is_the_quadratic_sum_and_the_recurrence(tokens, chunk):
    query, key, value = three(tokens)
    found = linear_attention(query, key, value, chunk=chunk)
    same(found, quadratic(query, key, value, torch.ones(tokens, tokens).tril()))
    same(found, recurrence(query, key, value))


@pytest.mark.parametrize("tokens", [1, 6, 100])
def test_linear_attention_without_a_mask_is_the_quadratic_sum_over_present_tokens(tokens):
    query, key, value = three(tokens)
    same(linear_attention(query, key, value, causal=False), quadratic(query, key, value, torch.ones(tokens, tokens)))
    present = torch.arange(tokens) < torch.tensor([tokens, max(1, tokens // 2)])[:, None]
    found = linear_attention(query, key, value, present, causal=False)
    same(found, quadratic(query, key, value, present[:, None, None, :].double()))


def test_the_feature_map_is_elu_plus_one_and_never_rounds_to_nothing():
    x = torch.linspace(-12, 12, 401, dtype=torch.float64)
    same(feature_map(x), nn.functional.elu(x) + 1)
    far = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
    assert feature_map(far).item() == pytest.approx(math.exp(-60))
    feature_map(torch.cat((far, torch.full((1,), 1e4, dtype=torch.float64)))).sum().backward()
    assert far.grad.item() == pytest.approx(math.exp(-60))


def test_a_long_sequence_keeps_its_precision():
    """2,000 tokens in chunks, in float32 and float64, against the float64 sum of pairs."""
    query, key, value = (each[:1, :1] for each in three(2000))
    truth = quadratic(query, key, value, torch.ones(2000, 2000).tril())
    same(linear_attention(query, key, value), truth)
    single = linear_attention(query.float(), key.float(), value.float())
    torch.testing.assert_close(single.double(), truth, rtol=1e-4, atol=1e-4)


def test_memory_does_not_grow_with_the_square_of_the_length():
    """No tensor on the way is larger than a few chunks' worth per token."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                Largest.seen = max(Largest.seen, result.numel())
            return result

    query, key, value = (each[:1, :1] for each in three(4096))
    with Largest():
        linear_attention(query, key, value)
    assert 4096 * 4 < Largest.seen <= 4096 * 64


def test_the_blocks_are_those_of_the_transformer_but_for_the_mixing():
    linear, soft = load("linear-transformer").module, load("transformer", positions="none").module
    assert {n: p.shape for n, p in linear.named_parameters()} == {n: p.shape for n, p in soft.named_parameters()}
    assert all(torch.equal(a, b) for a, b in zip(linear.parameters(), soft.parameters(), strict=True))
    x = inputs(2, 1, 4).float()
    torch.testing.assert_close(linear(x), soft(x))  # one token has one weight, which is 1
    assert not torch.allclose(linear(inputs(2, 5, 4).float()), soft(inputs(2, 5, 4).float()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positions": "rotary"}, "positions must be none or sinusoidal, not 'rotary'"),
        ({"width": 30}, "4 heads do not divide width 30"),
        ({"block": "none"}, "block must be serial or parallel"),
    ],
)
def test_shapes_a_linear_transformer_refuses(arguments, message):
    with pytest.raises(BadInput, match=message):
        LinearTransformer(**arguments)


@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (5, 2), (3, 4)])
@pytest.mark.parametrize("tokens", [9, 20])
def test_a_circular_window_is_torchs(kernel, dilation, tokens):
    window = doubled(Window(4, kernel, dilation, causal=False, circular=True))
    reach = dilation * (kernel - 1) // 2
    torchs = nn.Conv1d(4, 4, kernel, dilation=dilation, padding=reach, padding_mode="circular").double()
    with torch.no_grad():
        torchs.weight.copy_(window.taps.weight.unflatten(1, (kernel, 4)).permute(0, 2, 1))
        torchs.bias.copy_(window.taps.bias)
    x = inputs(2, tokens, 4)
    same(window(x), torchs(x.transpose(1, 2)).transpose(1, 2))


def test_a_circle_that_is_wider_than_its_tokens_goes_around_more_than_once():
    window = doubled(Window(2, 7, 3, causal=False, circular=True))
    x = inputs(1, 4, 2)
    taps = window.taps.weight.unflatten(1, (7, 2))
    truth = [sum(taps[:, k] @ x[0, (t + 3 * (k - 3)) % 4] for k in range(7)) + window.taps.bias for t in range(4)]
    same(window(x)[0], torch.stack(truth))


def test_a_circle_is_not_causal():
    with pytest.raises(BadInput, match="not causal"):
        Convolution(padding="circular")
    with pytest.raises(BadInput, match="padding must be zeros or circular"):
        Convolution(padding="reflect")
