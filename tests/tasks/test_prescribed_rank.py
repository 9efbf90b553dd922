"""Functions of a known rank: scale, spectrum and rank against integration, sampling and exact elimination."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.separation import separation_rank
from theodolite.partition import Partition
from theodolite.tasks import make_task
from theodolite.tasks.prescribed_rank import EPSILONS, KINDS, PrescribedRank
from theodolite.tasks.shared.rank_functions import SumOfProducts, sampled_ranks, truncated_rank

SMALL = {
    "products": {"rank": 5, "variables": 4, "decay": 0.4},
    "monomials": {"kind": "monomials", "rank": 7, "variables": 4, "partition": "interleaved"},
    "smooth": {"kind": "smooth", "rank": 6, "variables": 4},
    "rough": {"kind": "rough", "rank": 6, "variables": 4, "degree": 2},
    "network": {"kind": "network", "rank": 3, "variables": 4, "degree": 4},
}


def quadrature(inputs: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights that integrate exactly, to rounding: Gauss's, and equal steps under the normal density."""
    if inputs == "uniform":
        x, w = np.polynomial.legendre.leggauss(100)
    else:
        x = np.linspace(-14, 14, 501)
        w = np.exp(-(x**2) / 2)
    return x, w / w.sum()


def integrated(task: PrescribedRank) -> np.ndarray:
    """f of two variables at all pairs of points, times the roots of their weights: its singular values are f's."""
    x, w = quadrature(task.inputs)
    points = torch.from_numpy(np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1))
    return task.function(points).numpy() * np.sqrt(np.outer(w, w))


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
@pytest.mark.parametrize("kind", ["products", "monomials", "smooth", "rough"])
def test_mean_variance_and_spectrum_are_those_of_numerical_integration(kind, inputs):
    fields = {**SMALL[kind], "variables": 2, "partition": "0|1", "inputs": inputs, "degree": 5, "draw": 3}
    task = PrescribedRank(**fields)
    matrix = integrated(task)
    root = np.sqrt(quadrature(inputs)[1])
    assert root @ matrix @ root == pytest.approx(0, abs=1e-9)
    assert np.square(matrix).sum() == pytest.approx(1, abs=1e-9)
    function = task.function
    assert isinstance(function, SumOfProducts)
    spectrum = function.spectrum()
    np.testing.assert_allclose(spectrum[:5], np.linalg.svd(matrix, compute_uv=False)[:5], atol=1e-7)
    assert spectrum[2] > 1e-3, "the comparison is of more than the first value"


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
def test_the_spectrum_of_products_is_the_one_prescribed(inputs):
    task = PrescribedRank(rank=6, variables=5, decay=0.5, inputs=inputs, partition="0,3|1,2,4")
    wanted = np.exp(-0.5 * np.arange(6))
    function = task.function
    assert isinstance(function, SumOfProducts)
    np.testing.assert_allclose(function.spectrum()[:6], wanted / np.linalg.norm(wanted), atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_epsilon_rank_of_products_has_its_closed_form(decay):
    rank = 12
    function = PrescribedRank(rank=rank, decay=decay).function
    assert isinstance(function, SumOfProducts)
    found = {epsilon: truncated_rank(function.spectrum(), epsilon) for epsilon in (0.5, *EPSILONS)}
    assert len(set(found.values())) > 1
    for epsilon, value in found.items():
        if decay == 0:
            assert value == math.ceil((1 - epsilon**2) * rank)
        else:  # the geometric series: (q^k − q^R) / (1 − q^R) ≤ ε², q = exp(−2·decay)
            q = math.exp(-2 * decay)
            left = epsilon**2 * (1 - q**rank) + q**rank
            assert value == math.ceil(math.log(left) / math.log(q))


@pytest.mark.parametrize("name", ["products", "monomials", "smooth", "rough"])
def test_the_sampled_interval_holds_the_exact_epsilon_rank(name):
    facts = make_task("prescribed-rank", SMALL[name]).facts  # pyright: ignore[reportAttributeAccessIssue]
    assert [s.epsilon for s in facts.sampled] == list(EPSILONS)
    for sampled in facts.sampled:
        low, high = sampled.interval
        assert low <= facts.epsilon_ranks[sampled.epsilon] <= high
        assert high - low <= 2
        assert low <= sampled.rank <= high


class _Module(nn.Module):
    def __init__(self, task: PrescribedRank) -> None:
        super().__init__()
        self.task = task

    def forward(self, x: Tensor) -> Tensor:
        return self.task.function(x)


@pytest.mark.parametrize("name", ["products", "smooth", "network"])
def test_sampled_ranks_agree_with_the_instrument(name):
    """Other points, other code; the same law of inputs and the same definition of the error."""
    task = PrescribedRank(**SMALL[name])
    split = Partition.parse(task.partition, task.variables)
    (own,) = sampled_ranks(task.function, split, [0.1], "uniform", points=128, resamples=2, seed=5)
    found = separation_rank(
        _Module(task), "epsilon", split, epsilon=0.1, points=128, repeats=2, inputs="uniform", features=4, seed=9
    )
    assert own.rank is not None
    assert own.rank > 1
    assert abs(own.rank - found.rank) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_function_has_more_rank_than_its_bound_and_known_ranks_are_reached(kind):
    """By the singular values of the function at random pairs of points, down to rounding."""
    task = PrescribedRank(**SMALL[kind])
    split, generator = Partition.parse(task.partition, task.variables), torch.Generator().manual_seed(1)
    a, b = (2 * torch.rand(60, len(side), generator=generator, dtype=torch.float64) - 1 for side in (split.a, split.b))
    x = torch.empty(60, 60, task.variables, dtype=torch.float64)
    x[:, :, list(split.a)], x[:, :, list(split.b)] = a[:, None], b[None]
    found = int(torch.linalg.matrix_rank(task.function(x), rtol=1e-11))
    facts = task.facts
    assert found <= facts.upper_bound
    assert facts.separation_rank in (None, found)
    assert (facts.separation_rank is None) == (kind == "network")


@pytest.mark.parametrize("inputs", ["uniform", "normal"])
@pytest.mark.parametrize("name", SMALL)
def test_labels_are_those_of_the_slow_solver(name, inputs):
    task = PrescribedRank(**{**SMALL[name], "inputs": inputs})
    batch = task.sample(1, 12, None, torch.Generator().manual_seed(2))
    for row, target in zip(batch.inputs[0].tolist(), batch.targets[0, :, 0].tolist(), strict=True):
        assert task.solve(row)[0] == pytest.approx(target, rel=1e-5, abs=1e-5)


def test_a_teacher_has_mean_zero_and_variance_one_on_fresh_points():
    y = PrescribedRank(**SMALL["network"]).sample(1, 40_000, None, torch.Generator().manual_seed(3)).targets
    assert float(y.mean()) == pytest.approx(0, abs=0.05)
    assert float(y.var()) == pytest.approx(1, abs=0.15)


def test_a_sum_of_monomials_that_shares_a_side_has_the_rank_of_its_matching():
    """With exponents 1 and 2 of one variable a side there are two parts a side, so at most rank 2, and the mean's 1."""
    task = PrescribedRank(kind="monomials", rank=9, variables=2, degree=2)
    assert task.facts.separation_rank == 3
    assert task.function.mean != 0


def test_no_rank_below_the_epsilon_rank_comes_within_epsilon():
    spectrum = np.array([3.0, 2.0, 1.0])
    found = {e: truncated_rank(spectrum, e) for e in (0.99, math.sqrt(5 / 14), 0.5, math.sqrt(1 / 14), 0.2)}
    assert list(found.values()) == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "product"}, "product.*products"),
        ({"rank": 40}, "rank=40 .* 34 .*raise the degree"),
        ({"inputs": "gaussian"}, "inputs=gaussian"),
        ({"decay": -1.0}, "decay=-1.0"),
        ({"kind": "smooth", "decay": 0.5}, "decay=0.5 is for products"),
        ({"partition": "0,1|2,3"}, "name every site from 0 to 7"),
        ({"degree": 21}, "degree=21"),
        ({"variables": 40, "degree": 6}, "lower one of the two"),
    ],
)
def test_fields_that_make_no_function_are_refused(fields, message):
    with pytest.raises(BadInput, match=message):
        make_task("prescribed-rank", fields)
