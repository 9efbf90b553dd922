"""Degree along a line and mixing of tokens, against polynomials written out."""

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import line_degree, mixing
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.nets.load import load
from theodolite.partition import Partition
from theodolite.theory.attention import mixing as predicted_mixing


def sample(net, prime=None, token=None, **shape) -> FieldSample:
    subject = load(net, **shape)
    partition = Partition.left_right(subject.sites)
    return FieldSample.make(ScalarFunction.of(subject, token), partition, 1, 0, torch.device("cpu"), prime)


class Monomial(nn.Module):
    """x_0^power + x_1, times a constant."""

    def __init__(self, features: int, power: int, factor: int = 3) -> None:
        super().__init__()
        self.power, self.factor = power, factor

    def forward(self, x):
        return self.factor * (x[:, 0] ** self.power + x[:, 1])


@pytest.mark.parametrize("power", [2, 3, 17, 47, 48, 63, 64, 65, 200, 300])
def test_the_degree_of_a_power(power):
    """Through the lengths at which the line is made longer."""
    assert line_degree(sample(Monomial, features=2, power=power)) == power


def test_a_constant_and_a_linear_function():
    class Constant(nn.Module):
        def forward(self, x):
            return x[:, 0] * 0 + 5

    assert line_degree(sample(Constant(), features=2)) == 0
    assert line_degree(sample(Monomial, features=2, power=1)) == 1
    assert line_degree(sample(Monomial, features=2, power=3, factor=0)) == 0


def test_a_degree_beyond_the_prime_is_refused():
    with pytest.raises(BadInput, match="too large to be found modulo 101"):
        line_degree(sample(Monomial, features=2, power=60, prime=101))


@pytest.mark.parametrize(("depth", "tokens"), [(1, 4), (2, 6)])
def test_attention_mixes_one_more_than_the_degree_in_s(depth, tokens):
    """(3^L − 1)/2 + 1 input vectors: 2 at depth 1, 5 at depth 2."""
    found = mixing(sample("self-attention", depth=depth, width=2, tokens=tokens), tokens)
    assert found == predicted_mixing(depth) == {1: 2, 2: 5}[depth]


class Terms(nn.Module):
    """x_3·(x_0·x_1 + x_2): the longest term holds three tokens."""

    def __init__(self, tokens: int, features: int) -> None:
        super().__init__()

    def forward(self, x):
        t = x.sum(-1)
        return t[:, 3] * (t[:, 0] * t[:, 1] + t[:, 2])


def test_mixing_counts_the_longest_term():
    assert mixing(sample(Terms, tokens=4, features=2), 4) == 3
    assert mixing(sample(Terms, tokens=5, features=2, token=3), 5) == 3
    assert mixing(sample(Terms, tokens=4, features=2), 3) == 3, "the sets grow from the token that is read"
    assert mixing(sample(Terms, tokens=4, features=2), 2) == 0
    assert mixing(sample("conv-circuit", tokens=4), 4) == 4
    assert mixing(sample("recurrent-circuit", tokens=5, width=2), 5) == 5
    assert mixing(sample("recurrent-circuit", tokens=5, width=2, token=1), 5) == 2


def test_mixing_that_cannot_be_measured_is_refused():
    with pytest.raises(BadInput, match="use at least 5 tokens"):
        mixing(sample(Terms, tokens=4, features=2), 5)
    with pytest.raises(BadInput, match="at most 20"):
        mixing(sample("self-attention", depth=1, tokens=30), 21)
