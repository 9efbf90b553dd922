"""The surrogate of data: it predicts rows it has not seen, its gradients are those of what it says and of the truth."""

import math

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from theodolite.errors import BadInput
from theodolite.structure.data.source import Array
from theodolite.structure.surrogate.gaussian_process import (
    Processes,
    covariance,
    covariance_matrix,
    evidence,
    factor_of,
)
from theodolite.structure.surrogate.surrogate import SurrogateSource, fit_surrogate

NAMES = ("a", "b", "c")


def smooth(x: Array) -> Array:
    return np.sin(2 * x[:, 0] * x[:, 1]) + 0.5 * x[:, 2] ** 2


def slopes(x: Array) -> Array:
    turn = 2 * np.cos(2 * x[:, 0] * x[:, 1])
    return np.stack([turn * x[:, 1], turn * x[:, 0], x[:, 2]], 1)


def fitted(rows: int, seed: int = 0, **options: int) -> SurrogateSource:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (rows, 3))
    return fit_surrogate(x, 3 + 10 * smooth(x), NAMES, generator, **options)


@pytest.fixture(scope="module", params=[150, 1100], ids=["processes", "networks"])
def source(request: pytest.FixtureRequest) -> SurrogateSource:
    return fitted(request.param, steps=400)


def test_new_rows_are_predicted_as_well_as_the_unseen_ones(source: SurrogateSource) -> None:
    fresh = np.random.default_rng(9).uniform(-0.95, 0.95, (500, 3))
    missed = np.mean((source.values(fresh) - 3 - 10 * smooth(fresh)) ** 2)
    assert source.r2 > 0.99
    assert missed < 2 * source.noise**2
    assert source.noise**2 == pytest.approx((1 - source.r2) * source.targets.var(), rel=1e-6)


def test_gradients_are_the_differences_of_the_values(source: SurrogateSource) -> None:
    points, step = source.points(20, np.random.default_rng(1)), 1e-3
    expected = np.empty_like(points)
    for index in range(3):
        ahead, behind = points.copy(), points.copy()
        ahead[:, index] += step
        behind[:, index] -= step
        expected[:, index] = (source.values(ahead) - source.values(behind)) / (2 * step)
    np.testing.assert_allclose(source.gradients(points).value, expected, atol=0.02 * np.abs(expected).max())


def test_gradients_lie_within_a_few_errors_of_the_true_ones(source: SurrogateSource) -> None:
    points = np.random.default_rng(2).uniform(-0.8, 0.8, (400, 3))
    found = source.gradients(points)
    missed = np.abs(found.value - 10 * slopes(points)) / found.error
    assert np.quantile(missed, 0.9) < 3  # honest error bars
    assert np.sqrt(np.mean(found.error**2)) < 0.2 * np.std(10 * slopes(points))  # that say something


def test_a_member_has_not_seen_its_fold() -> None:
    """A row far from the rule moves every member but the one that lacks it."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-1, 1, (60, 2))
    y = x.sum(1)
    odd = y.copy()
    odd[7] += 3
    clean, moved = (fit_surrogate(x, t, ("a", "b"), np.random.default_rng(0)) for t in (y, odd))
    np.testing.assert_array_equal(clean.folds, moved.folds)
    own = moved.folds[7]
    near = np.array([np.abs(moved.unseen(m, x[7:8]) - odd[7])[0] for m in range(moved.ensemble.members)])
    assert near.argmax() == own


def test_the_evidence_is_the_density_of_the_targets_and_its_slope_is_autograds() -> None:
    generator = torch.Generator().manual_seed(0)
    root, y = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((5, 5), (5,)))
    matrix = (root @ root.T + torch.eye(5)).requires_grad_()
    density = torch.distributions.MultivariateNormal(torch.zeros(5, dtype=torch.float64), matrix).log_prob(y)
    found = evidence(matrix, y)
    assert (found - density).item() == pytest.approx(2.5 * math.log(2 * math.pi))
    ours, theirs = (torch.autograd.grad(value, matrix)[0] for value in (found, density))
    torch.testing.assert_close(ours, (theirs + theirs.T) / 2)  # of a symmetric matrix


@pytest.mark.parametrize("kind", ["gaussian", "matern"])
def test_a_process_predicts_as_scikit_learn_does_with_the_same_covariance(kind: str) -> None:
    generator = np.random.default_rng(5)
    x, fresh = generator.uniform(-1, 1, (40, 3)), generator.uniform(-1, 1, (10, 3))
    y = smooth(x)
    lengths = np.array([0.7, 1.1, 2.0])
    scaled, height, noise = torch.from_numpy(x / lengths), torch.tensor(1.3), torch.tensor(0.01)
    factor = factor_of(covariance_matrix(kind, scaled, height, noise))  # type: ignore[arg-type]
    weights = torch.cholesky_solve(torch.from_numpy(y)[:, None], factor).mT * height
    process = Processes(kind, torch.from_numpy(lengths), scaled, weights)  # type: ignore[arg-type]
    ours = process.everywhere(torch.from_numpy(fresh))[0]
    shape = RBF(lengths) if kind == "gaussian" else Matern(lengths, nu=2.5)
    kernel = ConstantKernel(1.3) * shape + WhiteKernel(0.01)
    peer = GaussianProcessRegressor(kernel, optimizer=None, alpha=0).fit(x, y)
    np.testing.assert_allclose(ours.numpy(), peer.predict(fresh), atol=1e-5)
    leaf = torch.from_numpy(fresh / lengths).requires_grad_()
    (slope,) = torch.autograd.grad((covariance(kind, leaf, scaled) @ weights.mT).sum(), leaf)  # type: ignore[arg-type]
    np.testing.assert_allclose(process.slopes(torch.from_numpy(fresh))[0], slope / lengths, atol=1e-9)


def test_the_same_generator_fits_the_same_surrogate() -> None:
    points = np.zeros((1, 3))
    first, second = fitted(1200, seed=4, steps=30), fitted(1200, seed=4, steps=30)
    assert first.values(points) == second.values(points) != fitted(1200, seed=5, steps=30).values(points)


def test_points_are_rows_of_the_data_each_once_before_any_twice() -> None:
    source = fitted(25)
    drawn = source.points(50, np.random.default_rng(0))
    rows, counts = np.unique(drawn, axis=0, return_counts=True)
    assert (counts == 2).all()
    np.testing.assert_array_equal(rows, np.unique(source.rows, axis=0))


@pytest.mark.parametrize(
    ("rows", "change", "words"),
    [
        (10, lambda x, y: (x, y), "10 rows are too few"),
        (40, lambda x, y: (x, 0 * y), "y is constant"),
        (40, lambda x, y: (x[:, :2], y), "3 variables are named but x has 2 columns"),
        (40, lambda x, y: (x, y[:-1]), r"shape \(40, 3\) and y \(39,\)"),
        (40, lambda x, y: (x, np.where(y > 0, y, np.nan)), "must be finite"),
    ],
)
def test_data_that_cannot_be_fitted_is_refused(rows: int, change, words: str) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, 3))
    with pytest.raises(BadInput, match=words):
        fit_surrogate(*change(x, x[:, 0]), NAMES, generator)  # pyright: ignore[reportCallIssue]
