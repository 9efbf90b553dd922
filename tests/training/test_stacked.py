"""Members as vectors of their parameters, against the modules they were made of."""

from __future__ import annotations

import torch
from torch import nn

from theodolite.graphs.families import named_graph
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.nets.load import seeded
from theodolite.training.stacked import draw, stack


class Scaled(nn.Module):
    """With a parameter of no dimension and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(()))
        self.layer = nn.Linear(4, 2)
        self.register_buffer("shift", torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * self.layer(x) + self.shift


def build() -> nn.Module:
    return nn.Sequential(CompositionalNet(named_graph("binary-tree", 4), width=5), nn.Linear(1, 4), Scaled())


def test_every_member_says_what_its_module_says_of_its_own_rows_or_of_common_ones():
    modules = [build() for _ in range(3)]
    x = torch.randn(3, 8, 4, generator=torch.Generator().manual_seed(0))
    net, vectors = stack(modules)
    assert vectors.shape == (3, net.parameters) == (3, sum(p.numel() for p in modules[0].parameters()))
    own, common = net.outputs(vectors, x), net.outputs(vectors, x[0], common=True)
    for member, module in enumerate(modules):
        torch.testing.assert_close(own[member], module(x[member]))
        torch.testing.assert_close(common[member], module(x[0]))
        named = net.named(vectors)
        assert all(torch.equal(named[name][member], p) for name, p in module.named_parameters())


def test_values_are_the_one_output():
    modules = [nn.Linear(4, 1) for _ in range(2)]
    x = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0))
    net, vectors = stack(modules)
    for member, module in enumerate(modules):
        torch.testing.assert_close(net.values(vectors, x)[member], module(x[member])[:, 0])
        torch.testing.assert_close(net.values(vectors, x[1])[member], module(x[1])[:, 0])


def test_members_of_one_seed_start_alike_and_no_draw_is_left_behind():
    before = torch.get_rng_state()
    net, vectors = draw(build, [5, 6, 5], dtype=torch.float64)
    assert torch.equal(torch.get_rng_state(), before)
    assert vectors.dtype == torch.float64
    assert torch.equal(vectors[0], vectors[2])
    assert not torch.equal(vectors[0], vectors[1])
    with seeded(6):
        other = build()
    torch.testing.assert_close(net.named(vectors[1])["1.weight"].float(), other.get_parameter("1.weight").detach())
