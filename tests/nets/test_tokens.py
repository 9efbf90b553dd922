"""What every net that is trained on sequences does with its tokens: the past, the future, and padding."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.each import each
from theodolite.nets import nets
from theodolite.nets.load import load

TRAINED = [name for name, entry in nets.items() if entry.kind == "sequence" and not entry.polynomial]
# Arguments that change how tokens meet; a net that has none of them is tested as it is.
VARIANTS: dict[str, list[dict]] = {
    "transformer": [
        {"positions": positions, "causal": causal, "block": block}
        for positions in ("none", "sinusoidal", "rotary")
        for causal in (False, True)
        for block in ("serial", "parallel")
    ],
    **{
        f"{kind}-transformer": [{"causal": causal} for causal in (False, True)]
        for kind in ("thresholded", "sparsemax", "entmax", "alibi", "random-offset")
    },
    "universal-transformer": [
        {"causal": False},
        {"causal": True},
        *({"positions": positions, "block": "parallel"} for positions in ("none", "rotary", "alibi")),
        {"halting": False},
        {"attention": "entmax", "depth": 6},
    ],
    "linear-transformer": [
        {"positions": positions, "causal": causal, "block": block}
        for positions in ("none", "sinusoidal")
        for causal in (False, True)
        for block in ("serial", "parallel")
    ],
    "delta-net": [{}, {"products": 2, "gated": False}, {"negative": False, "kernel": 1}],
    "state-space": [{}, {"selective": False}],
    "equilibrium": [
        {"positions": "none", "causal": False},
        {"positions": "sinusoidal", "solver": "broyden"},
        {"positions": "rotary", "solver": "picard"},
        {"causal": False},
    ],
    "convolution": [
        *({"causal": causal, "dilation": dilation} for causal in (False, True) for dilation in (1, 2)),
        {"causal": False, "padding": "circular"},
    ],
    "lstm": [{"depth": 1}, {"depth": 2}],
    "rnn": [{"depth": 1}, {"depth": 2}],
    "gru": [{"depth": 1}, {"depth": 2}],
    "stack-rnn": [{}, {"depth": 2}, {"stack": 3}, {"activation": "tanh"}],
    "tape-rnn": [{}, {"depth": 2}, {"tape": 5}, {"jump": 2}, {"write_layers": 2, "activation": "tanh"}],
    "mixer": [{"causal": causal, "tokens": 200} for causal in (False, True)],
    "graph-network": [
        *({"causal": False, "graph": graph} for graph in ("complete", "path", "ring")),
        *({"causal": True, "graph": graph, "aggregation": "sum"} for graph in ("complete", "path")),
        {"causal": False, "aggregation": "sum"},
    ],
}
CASES = {name: VARIANTS.get(name, [{}]) for name in TRAINED}
CAUSAL = {name: [v for v in variants if v.get("causal", True)] for name, variants in CASES.items()}
BOTH_WAYS = {name: [v for v in variants if not v.get("causal", True)] for name, variants in CASES.items()}


def of_every_net(cases: dict[str, list[dict]]) -> Callable[..., Any]:
    """One test of a net for all its variants."""

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("name", [name for name, variants in cases.items() if variants])
        def run(name: str) -> None:
            each("variant", cases[name])(test)(name=name)

        return run

    return decorated


def build(name: str, variant: dict, seed: int = 0) -> torch.nn.Module:
    return load(name, seed=seed, features=3, outputs=2, width=8, **variant).module.double()


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def influence(net: torch.nn.Module, tokens: int) -> Tensor:
    """Entry (s, t): the largest derivative of the output at token s by the input at token t."""
    jacobian = torch.autograd.functional.jacobian(lambda x: net(x)[0], normal(1, tokens, 3))
    assert isinstance(jacobian, Tensor)
    return jacobian.squeeze(2).abs().amax(dim=(1, 3))


def test_every_trained_sequence_net_takes_present():
    assert {"lstm", "rnn", "convolution", "transformer"} <= set(TRAINED)
    for name in TRAINED:
        assert list(inspect.signature(nets[name].build().forward).parameters) == ["x", "present"]


@of_every_net(CAUSAL)
def test_a_causal_net_does_not_leak(name, variant):
    found = influence(build(name, variant), 9)
    assert (found.triu(1) == 0).all(), "a token sees a later one"
    assert (found.diagonal() > 0).all()
    assert (found.diagonal(-1) > 0).all(), "a token does not see the one before it"


@of_every_net(BOTH_WAYS)
def test_a_net_without_a_mask_sees_both_ways(name, variant):
    found = influence(build(name, variant), 9)
    assert (found.diagonal(1) > 0).all()
    assert (found.diagonal(-1) > 0).all()


@of_every_net(CASES)
def test_padding_never_affects_a_real_token(name, variant):
    """A batch of lengths 1 to 7 padded with garbage, small and large, against every sequence alone; and gradients."""
    net, lengths = build(name, variant), torch.tensor([7, 1, 4, 6, 2, 4])
    present = torch.arange(7) < lengths[:, None]
    size = torch.tensor([1.0, 1e4, 1.0, 1e4, 1.0, 1e4])[:, None, None]
    x = torch.where(present[..., None], normal(6, 7, 3), size * normal(6, 7, 3, seed=2)).requires_grad_()
    together = net(x, present)
    for i, length in enumerate(lengths.tolist()):
        alone = x[i : i + 1, :length].detach()
        truth = net(alone)
        torch.testing.assert_close(together[i : i + 1, :length], truth, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(net(alone, present[i : i + 1, :length]), truth, rtol=1e-12, atol=1e-14)
    assert torch.isfinite(together).all()
    together[present].square().sum().backward()
    assert (x.grad[~present] == 0).all()
    assert (x.grad[present] != 0).any(dim=-1).all()
    for parameter in net.parameters():
        assert torch.isfinite(parameter.grad).all()


@of_every_net(BOTH_WAYS)
def test_without_present_padding_would_be_seen(name, variant):
    """The test above can fail."""
    net, x = build(name, variant), normal(1, 5, 3)
    present = torch.arange(5)[None] < 3
    assert not torch.allclose(net(x)[:, :3], net(x, present)[:, :3])


@of_every_net(CASES)
def test_a_row_of_nothing_but_padding_gives_finite_numbers(name, variant):
    net = build(name, variant)
    x = normal(2, 4, 3).requires_grad_()
    present = torch.tensor([[True, True, False, False], [False] * 4])
    output = net(x, present)
    assert torch.isfinite(output).all()
    output[present].sum().backward()
    assert torch.isfinite(x.grad).all()


@of_every_net(CASES)
def test_one_token_and_two_hundred_give_finite_numbers_and_gradients(name, variant):
    for tokens in (1, 200):
        net = build(name, variant).float()
        output = net(normal(2, tokens, 3).float())
        assert output.shape == (2, tokens, 2)
        output.square().sum().backward()
        assert torch.isfinite(output).all()
        for parameter in net.parameters():
            if tokens > 1 or parameter.grad is not None:  # one token alone reads no memory
                assert torch.isfinite(parameter.grad).all()


@of_every_net(CASES)
def test_every_parameter_of_a_variant_gets_a_gradient(name, variant):
    net = build(name, variant)
    net(normal(4, 9, 3)).square().sum().backward()
    for label, parameter in net.named_parameters():
        assert parameter.grad is not None, f"{label} does not enter the output"
        assert parameter.grad.abs().max() > 0, f"{label} has no influence"


@of_every_net(CASES)
def test_an_ensemble_of_a_variant_equals_its_members_one_by_one(name, variant):
    """Forward and gradient under vmap, three members with weights, inputs and padding of their own."""
    members = [build(name, variant, seed) for seed in range(3)]
    parameters, buffers = torch.func.stack_module_state(members)
    skeleton = copy.deepcopy(members[0]).to("meta")
    x = torch.stack([normal(4, 6, 3, seed=seed) for seed in range(3)])
    present = torch.arange(6) < torch.tensor([[6, 3, 1, 5], [2, 6, 6, 4], [1, 2, 3, 4]])[..., None]

    def loss(weights, extra, inputs, real):
        output = torch.func.functional_call(skeleton, (weights, extra), (inputs, real))
        return (output.square() * real[..., None]).sum(), output

    gradients, together = torch.func.vmap(torch.func.grad(loss, has_aux=True))(parameters, buffers, x, present)
    for i, member in enumerate(members):
        alone = member(x[i], present[i])
        torch.testing.assert_close(together[i], alone, rtol=1e-9, atol=1e-12)
        (alone.square() * present[i][..., None]).sum().backward()
        for label, parameter in member.named_parameters():
            torch.testing.assert_close(gradients[label][i], parameter.grad, rtol=1e-8, atol=1e-10)
