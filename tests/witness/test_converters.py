"""Weight-tied and equilibrium forms of networks: equal to the network itself, and nilpotent."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.theory.fixed_points import tied_size
from theodolite.witness.converters import Equilibrium, TiedChain, TiedGraph, equilibrium, weight_tied


def chain() -> nn.Sequential:
    torch.default_generator.manual_seed(1)
    inner = nn.Sequential(nn.Linear(7, 7, bias=False), nn.GELU(), nn.Tanh())
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), inner, nn.Linear(7, 3), nn.Sigmoid(), nn.Linear(3, 2)).double()


def inputs(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_theorem_three_computes_all_layers_with_the_sum_of_the_widths():
    net, x = chain(), inputs(6, 5)
    tied = weight_tied(net)
    assert isinstance(tied, TiedChain)
    assert tied.size == tied_size([7, 7, 3, 2]) == 19
    assert tied.steps == 4
    z = tied.start(x)
    for _ in range(tied.steps):
        z = tied.step(z, x)
    first = torch.relu(net[0](x))
    second = torch.tanh(nn.functional.gelu(net[2][0](first)))  # pyright: ignore[reportIndexIssue]
    third = torch.sigmoid(net[3](second))
    assert torch.allclose(z, torch.cat((first, second, third, net[5](third)), dim=1), rtol=0, atol=1e-14)
    assert torch.allclose(tied(x), net(x), rtol=1e-13, atol=1e-15)


def test_after_fewer_steps_the_output_is_another():
    """The depth is needed: the tied layer does not have the answer before its last step."""
    net, x = chain(), inputs(6, 5)
    tied = weight_tied(net)
    z = tied.start(x)
    for _ in range(tied.steps - 1):
        z = tied.step(z, x)
    assert not torch.allclose(tied.read(z), net(x), atol=1e-3)


def test_the_jacobian_in_z_is_nilpotent_and_no_smaller_power_vanishes():
    net = chain()
    tied = weight_tied(net)
    jacobian = torch.func.jacrev(lambda z: tied.step(z.unsqueeze(0), inputs(1, 5))[0])(inputs(19))
    assert not torch.linalg.matrix_power(jacobian, 4).any()
    assert torch.linalg.matrix_power(jacobian, 3).any()


@pytest.mark.parametrize("name", ["mlp", "convolution", "transformer", "linear-transformer", "rnn", "lstm"])
def test_registered_nets_equal_their_tied_and_equilibrium_forms(name):
    subject = load(name, seed=2, **({} if name == "mlp" else {"tokens": 5}))
    module = subject.module.double()
    shape = (subject.sites, subject.features) if subject.kind == "sequence" else (subject.sites,)
    x = inputs(3, *shape, seed=4)
    tied = TiedGraph(module, x)
    with torch.no_grad():
        truth = module(x)
        assert torch.allclose(tied(x), truth, rtol=1e-12, atol=1e-13)
        z, steps = Equilibrium(tied).solve(x, inputs(3, tied.size, seed=5))
        assert steps <= tied.steps
        assert torch.equal(tied.step(z, x), z)
        assert torch.allclose(tied.read(z), truth, rtol=1e-12, atol=1e-13)
        other = inputs(7, *shape, seed=6)  # another batch than the one it was traced on
        assert torch.allclose(tied(other), module(other), rtol=1e-12, atol=1e-13)


class Branched(nn.Module):
    """A skip connection, a product of two ways and a parameter of its own: any connectivity."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Conv1d(1, 2, 3, padding=1)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = torch.relu(self.a(x))
        right = self.b(x.unsqueeze(1)).sum(dim=1)
        return x + self.scale * left * right + left.chunk(2, dim=1)[0].mean(dim=1, keepdim=True)


def test_any_connectivity_is_one_layer():
    torch.default_generator.manual_seed(3)
    net, x = Branched().double(), inputs(5, 4)
    layer = equilibrium(net, x)
    assert isinstance(layer.tied, TiedGraph)
    assert torch.allclose(layer(x), net(x), rtol=1e-13, atol=1e-14)
    assert layer.tied.size == sum(slot.size for slot in layer.tied.slots)


class Asks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum().item() > 0 else -x


class Ends(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum()


@pytest.mark.parametrize(
    ("module", "example", "words"),
    [
        (Asks(), inputs(2, 3), "cannot be traced"),
        (Ends(), inputs(2, 3), "returns no batch"),
        (nn.Sequential(nn.LayerNorm(3)), None, "pass an example input"),
        (nn.Sequential(nn.ReLU(), nn.Linear(3, 3)), None, "begin with a linear layer"),
        (nn.Sequential(nn.Linear(3, 4), nn.Linear(3, 4)), None, "gives 4 numbers and the next reads 3"),
        (Branched(), inputs(4), "is no batch"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_a_sentence(module, example, words):
    with pytest.raises(BadInput, match=words) as raised:
        weight_tied(module.double(), example)
    assert "\n" not in str(raised.value)
