"""ε-ranks of functions whose spectrum is known."""

import math

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.epsilon import first_within
from theodolite.instruments.rank.separation import separation_rank

from .known import Diagonal, SumOfSquares

SIDE = 12


def tail(r: int) -> float:
    """Relative error of the best rank-r approximation of Σ 2^-k a_k b_k."""
    energy = [4.0**-k for k in range(SIDE)]
    return math.sqrt(sum(energy[r:]) / sum(energy))


@pytest.mark.parametrize("inputs", ["normal", "signs"])
@pytest.mark.parametrize("r", [1, 3, 6])
def test_a_geometric_spectrum(inputs, r):
    """The tail halves with every rank; an ε between two of them tells the rank."""
    epsilon = math.sqrt(tail(r) * tail(r - 1))
    found = separation_rank(Diagonal, mode="epsilon", features=2 * SIDE, epsilon=epsilon, inputs=inputs, points=256)
    assert found.rank == r
    assert found.details["resolved"]
    assert found.details["spread"] == [r, r]
    low, high = found.details["interval"]
    assert low <= r == high
    assert tail(r) * 0.8 < found.details["held_out_error"] < epsilon
    assert found.mode == "epsilon"
    assert not found.exact
    assert found.cap is None


class Lifted(nn.Module):
    """A function of known rank beside a constant that dwarfs it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.inner = Diagonal(features)

    def forward(self, x):
        return 1000.0 + self.inner(x)


@pytest.mark.parametrize("r", [1, 4])
def test_relative_to_the_spread_a_constant_hides_nothing(r):
    epsilon = math.sqrt(tail(r) * tail(r - 1))
    asked = {"mode": "epsilon", "features": 2 * SIDE, "epsilon": epsilon}
    assert separation_rank(Lifted, **asked).rank == 1
    assert separation_rank(Lifted, **asked, relative_to="spread").rank == r
    assert separation_rank(Diagonal, **asked, relative_to="spread").rank == r


def test_uniform_inputs_have_variance_a_third():
    """Both sides shrink alike: relative errors stay the same."""
    epsilon = math.sqrt(tail(4) * tail(3))
    assert separation_rank(Diagonal, mode="epsilon", features=2 * SIDE, epsilon=epsilon, inputs="uniform").rank == 4


def test_the_spectrum_is_that_of_the_operator():
    found = separation_rank(Diagonal, mode="epsilon", features=2 * SIDE, points=512)
    whole = math.sqrt(sum(4.0**-k for k in range(SIDE)))
    for k, value in enumerate(found.details["spectrum"][:6]):
        assert value == pytest.approx(2.0**-k / whole, rel=0.25)
    assert found.details["spectrum"] == sorted(found.details["spectrum"], reverse=True)


def test_equal_singular_values_have_their_number_as_effective_rank():
    flat = separation_rank(Diagonal, mode="epsilon", features=16, ratio=1.0, points=512, inputs="signs")
    assert flat.details["effective_rank"] == pytest.approx(8, rel=0.05)
    assert flat.rank == 8
    steep = separation_rank(Diagonal, mode="epsilon", features=16, ratio=0.1, points=256)
    assert steep.details["effective_rank"] < 1.5


@pytest.mark.parametrize("terms", [1, 3, 6])
def test_a_small_epsilon_finds_the_exact_rank(terms):
    found = separation_rank(SumOfSquares, mode="epsilon", features=6, terms=terms, epsilon=1e-9, points=128)
    assert found.rank == terms == separation_rank(SumOfSquares, features=6, terms=terms, max_points=100).rank
    assert found.details["held_out_error"] < 1e-9


def test_a_larger_epsilon_never_needs_a_larger_rank():
    ranks = [
        separation_rank("transformer", mode="epsilon", tokens=4, width=8, heads=2, epsilon=e, points=64, repeats=1).rank
        for e in (0.5, 0.1, 0.02)
    ]
    assert ranks == sorted(ranks)
    assert ranks[0] >= 1
    assert ranks[-1] > 1


def test_a_sum_of_one_side_each_has_rank_two():
    class Additive(nn.Module):
        def forward(self, x):
            return torch.sin(x[:, :4]).sum(-1) + torch.exp(0.3 * x[:, 4:]).sum(-1)

    found = separation_rank(Additive(), mode="epsilon", features=8, epsilon=1e-8, points=64)
    assert found.rank == 2
    assert found.details["d1_interval"][0] <= 2 <= found.details["d1_interval"][1]


def test_a_spectrum_that_the_sample_does_not_reach_is_not_called_resolved():
    """More singular values than points: the rank is only known to be larger than what was seen."""

    class Rough(nn.Module):
        def forward(self, x):
            return torch.sin(50 * (x[:, :4] * x[:, 4:]).sum(-1))

    found = separation_rank(Rough(), mode="epsilon", features=8, epsilon=1e-3, points=32)
    assert not found.details["resolved"]
    assert found.rank > 16
    assert found.details["held_out_error"] > 1e-3


def test_float32_and_float64_agree_above_their_tolerance():
    ranks = [
        separation_rank(Diagonal, mode="epsilon", features=2 * SIDE, epsilon=0.17, dtype=dtype, points=128)
        for dtype in ("float32", "float64")
    ]
    assert ranks[0].rank == ranks[1].rank == 3
    assert ranks[0].details["tolerance"] > 1e6 * ranks[1].details["tolerance"]


def test_repeats_are_resamples_and_a_seed_repeats_them():
    one, two, other = (
        separation_rank("mlp", mode="epsilon", features=4, points=32, repeats=2, seed=s).details for s in (1, 1, 2)
    )
    assert one == two
    assert one["spectrum"] != other["spectrum"]
    assert one["resamples"] == 2


def test_the_net_itself_is_left_as_it_was():
    net = nn.Linear(4, 1)
    separation_rank(net, mode="epsilon", features=4, points=16, dtype="float64")
    assert net.weight.dtype == torch.float32


def test_first_within():
    errors = torch.tensor([1.0, 0.5, 0.2, 0.3])
    assert first_within(errors, 1.0) == 0
    assert first_within(errors, 0.5) == 1
    assert first_within(errors, 0.25) == 2
    assert first_within(errors, 0.1) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "between 0 and 1"),
        ({"epsilon": 1.0}, "between 0 and 1"),
        ({"epsilon": -0.1}, "between 0 and 1"),
        ({"points": 3}, "at least 4 points"),
        ({"repeats": 0}, "1 resample"),
        ({"dtype": "float16"}, "float32 or float64"),
        ({"inputs": "cauchy"}, "normal, uniform or signs"),
        ({"prime": 101}, "no prime"),
    ],
)
def test_bad_options_are_refused(arguments, message):
    with pytest.raises(BadInput, match=message):
        separation_rank("mlp", mode="epsilon", features=4, **arguments)


def test_a_function_that_is_zero_is_refused():
    class Zero(nn.Module):
        def forward(self, x):
            return x[:, 0] * 0

    with pytest.raises(BadInput, match="0 at every drawn point"):
        separation_rank(Zero(), mode="epsilon", features=4, points=16)
