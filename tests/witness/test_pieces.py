"""Linear pieces in exact arithmetic, against torch's own forward pass and against counts known beforehand."""

# pyright: reportCallIssue=false

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.nets.mlp import MLP
from theodolite.nets.size import count_parameters
from theodolite.tasks import make_task
from theodolite.theory.sawtooth import most_pieces
from theodolite.witness import registered_nets
from theodolite.witness.contract import Witness, constructions
from theodolite.witness.pieces import BrokenLine, broken_line_of, linear_maps, pieces, sawtooth
from theodolite.witness.registered_nets.mlp import broken_curve, deep_sawtooth
from theodolite.witness.tent import RecurrentTent

assert registered_nets.__all__  # imported for its constructions


def drawn(depth: int, width: int, seed: int) -> MLP:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return MLP(features=1, depth=depth, width=width).double()


@each("seed", range(4))
@each(("depth", "width"), [(1, 9), (2, 5), (4, 4)])
def test_the_broken_line_is_what_the_network_computes(depth, width, seed):
    net = drawn(depth, width, seed)
    line = pieces(net, -3, 3)
    points = torch.linspace(-3, 3, 501, dtype=torch.float64)[:, None]
    with torch.no_grad():
        computed = net(points)[:, 0].tolist()
    exact = [float(line(Fraction(x))) for (x,) in points.tolist()]
    assert computed == pytest.approx(exact, abs=1e-12)
    assert line.pieces <= most_pieces([width] * depth)


@pytest.mark.parametrize("seed", range(4))
def test_bends_stand_where_the_gradient_of_torch_jumps(seed):
    net = drawn(2, 6, seed)
    line = pieces(net, -3, 3)
    assert line.pieces > 2
    middles = [(a + b) / 2 for a, b in itertools.pairwise(line.points)]
    x = torch.tensor([[float(m)] for m in middles], dtype=torch.float64, requires_grad=True)
    (slopes,) = torch.autograd.grad(net(x).sum(), x)
    rises = [float((line(b) - line(a)) / (b - a)) for a, b in itertools.pairwise(line.points)]
    assert slopes[:, 0].tolist() == pytest.approx(rises, abs=1e-9)
    assert all(before != after for before, after in itertools.pairwise(rises))


def test_one_layer_with_known_bends_has_as_many_pieces():
    net = nn.Sequential(nn.Linear(1, 7), nn.ReLU(), nn.Linear(7, 1)).double()
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.copy_(-torch.tensor([0.1, 0.2, 0.3, 0.3, 0.7, 1.0, 2.0]))
        net[2].weight.copy_(torch.tensor([[1.0, -2.0, 1.0, -1.0, 3.0, 1.0, 1.0]]))
    # 0.3 twice cancels; 1 is the end of the interval and 2 beyond it.
    assert pieces(net).pieces == 4
    assert pieces(net, 0, 3).pieces == 6


def test_a_bend_too_small_for_floats_counts():
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [1.0]]))
        net[0].bias.copy_(torch.tensor([1.0, -0.5]))
        net[2].weight.copy_(torch.tensor([[1.0, 1e-30]], dtype=torch.float64))
        net[2].bias.zero_()
    assert pieces(net).pieces == 2


@pytest.mark.parametrize("folds", range(1, 8))
def test_three_witnesses_are_the_tent_map_exactly(folds):
    task = make_task("sawtooth", {"folds": folds})
    truth = sawtooth(folds)
    shallow, deep = broken_curve(task, {}), deep_sawtooth(task, {})
    assert isinstance(shallow, Witness)
    assert isinstance(deep, Witness)
    recurrent = RecurrentTent(folds)
    lines = [pieces(shallow.module), pieces(deep.module), broken_line_of(recurrent.unrolled())]
    assert [line.pieces for line in lines] == [2**folds] * 3
    assert [line.gap(truth) for line in lines] == [0, 0, 0]
    assert (shallow.units, deep.units, count_parameters(recurrent)) == (2**folds, 2 * folds, 7)
    # The recurrence itself, not only what it unrolls to, against the task's solver.
    points = torch.rand(200, 1, generator=torch.Generator().manual_seed(0)).double()
    expected = [task.solve(row)[0] for row in points.tolist()]
    with torch.no_grad():
        assert recurrent(points)[:, 0].tolist() == expected


def test_the_sawtooth_of_the_definition_is_the_one_of_the_task():
    task = make_task("sawtooth", {"folds": 4})
    line = sawtooth(4)
    assert line.pieces == 16
    for numerator in range(0, 1025, 7):
        x = numerator / 1024
        assert float(line(Fraction(x))) == task.solve([x])[0]


def test_the_recurrent_tent_is_found_by_its_name():
    (construction,) = constructions("recurrent-tent")
    witness = construction(make_task("sawtooth", {"folds": 5}), {})
    assert isinstance(witness, Witness)
    assert witness.predicted["parameters"] == count_parameters(witness.module)
    assert construction(make_task("majority", {}), {}) is None


def test_a_deep_sawtooth_fits_into_a_larger_perceptron_and_not_into_a_flatter_one():
    task = make_task("sawtooth", {"folds": 3})
    larger = deep_sawtooth(task, {"depth": 5, "width": 4})
    assert isinstance(larger, Witness)
    assert pieces(larger.module).gap(sawtooth(3)) == 0
    assert deep_sawtooth(task, {"depth": 2, "width": 4}) is None


def test_the_gap_of_two_broken_lines_is_at_a_bend_of_either():
    flat = BrokenLine((Fraction(0), Fraction(1)), (Fraction(0), Fraction(0)))
    assert sawtooth(3).gap(flat) == flat.gap(sawtooth(3)) == 1


def test_what_is_no_chain_of_linear_and_relu_is_refused():
    with pytest.raises(BadInput, match="Linear and ReLU"):
        linear_maps(nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1)))
    with pytest.raises(BadInput, match="one input"):
        pieces(MLP(features=2))
    with pytest.raises(BadInput, match="ends at 0 and 1"):
        sawtooth(1)(Fraction(2))
