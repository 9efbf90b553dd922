"""A Gaussian process beside scikit-learn's of the same covariance, and what rounding must not do to it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from theodolite.errors import BadInput
from theodolite.structure.process import FOLDS, GaussianProcess, fit_process
from theodolite.structure.surrogate.gaussian_process import Covariance, Learnt


def smooth(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * x[:, 0]) * x[:, 1] + np.exp(x[:, 2])


def rough(x: np.ndarray) -> np.ndarray:
    return np.abs(x[:, 0]) + np.abs(x[:, 1] * x[:, 2])


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(2.0, 3.0, (640, 4)) * [0.3, 0.3, 0.1, 100]


@pytest.mark.parametrize(("truth", "kind"), [(smooth, "gaussian"), (rough, "matern")])
def test_it_predicts_as_scikit_learns_does_with_the_same_covariance_and_without_the_rows_of_a_fold(
    truth: object, kind: Covariance, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[Learnt] = []
    from theodolite.structure import process

    learn = process.most_evident
    monkeypatch.setattr(
        process, "most_evident", lambda *given, **more: chosen.append(learn(*given, **more)) or chosen[-1]
    )
    y = truth(rows) + 0.1 * np.random.default_rng(1).normal(size=len(rows))  # type: ignore[operator]
    found = fit_process(rows, y, np.random.default_rng(2))
    assert found.kind == kind
    lengths, height, noise = (one.numpy() for one in chosen[0].read())
    shape: Kernel = RBF(lengths) if kind == "gaussian" else Matern(lengths, nu=2.5)
    scaled, wanted = (rows - rows.mean(0)) / rows.std(0), (y - y.mean()) / y.std()

    def theirs(seen: np.ndarray, asked: np.ndarray) -> np.ndarray:
        peer = GaussianProcessRegressor(ConstantKernel(float(height)) * shape, alpha=float(noise), optimizer=None)
        said = peer.fit(scaled[seen], wanted[seen]).predict((asked - rows.mean(0)) / rows.std(0))
        return y.mean() + y.std() * np.asarray(said)

    new = np.random.default_rng(3).normal(2.0, 3.0, (40, 4)) * [0.3, 0.3, 0.1, 100]
    np.testing.assert_allclose(found.predict(new), theirs(np.arange(640), new), rtol=1e-6, atol=1e-6)
    assert found.held_out is not None
    order = np.random.default_rng(2).permutation(640)
    for own in np.array_split(order, FOLDS)[:2]:
        others = np.setdiff1d(order, own)
        np.testing.assert_allclose(found.held_out[own], theirs(others, rows[own]), rtol=1e-6, atol=1e-6)


def test_sums_of_large_weights_are_not_rounded_to_nonsense() -> None:
    """A polynomial without noise has lengths of hundreds, of which the covariance matrix is next to singular."""
    draw = np.random.default_rng(4)
    x, new = draw.uniform(0.2, 3, (400, 3)), draw.uniform(0.2, 3, (200, 3))
    truth = lambda x: 3 * x[:, 0] - 2 * x[:, 0] * x[:, 1] - x[:, 0] ** 2 + x[:, 2] * x[:, 1]
    found = fit_process(x, truth(x), draw)
    assert found.held_out is not None
    held_out = np.mean((found.held_out - truth(x)) ** 2) / np.var(truth(x))
    assert np.mean((found.predict(new) - truth(new)) ** 2) / np.var(truth(new)) < 10 * held_out < 1e-7


def test_lengths_that_few_rows_choose_do_not_flatter_what_is_said_of_these_rows() -> None:
    draw = np.random.default_rng(5)
    shares = []
    for _ in range(4):
        x, y = draw.uniform(-1, 1, (80, 8)), draw.normal(size=80)
        found = fit_process(x, y, draw)
        assert found.held_out is not None
        shares.append(np.mean((found.held_out - y) ** 2) / y.var())
    assert np.mean(shares) > 1


def test_among_more_columns_it_says_the_same_and_what_is_saved_reads_back(rows: np.ndarray) -> None:
    found = fit_process(rows, smooth(rows), np.random.default_rng(0)).widened(np.array([0, 2, 3, 5]), 6)
    new = np.random.default_rng(1).normal(size=(30, 6))
    same = new.copy()
    same[:, [1, 4]] = 7.0
    np.testing.assert_array_equal(found.predict(new), found.predict(same))
    arrays, document = found.state()
    np.testing.assert_array_equal(GaussianProcess.from_state(arrays, document, 6).predict(new), found.predict(new))
    assert GaussianProcess.from_state(arrays, document, 6).predict(new[:0]).shape == (0,)
    with pytest.raises(BadInput, match="is not of 5 variables"):
        GaussianProcess.from_state(arrays, document, 5)
    with pytest.raises(BadInput, match="covariance 'cosine' that is not known"):
        GaussianProcess.from_state(arrays, {**document, "kind": "cosine"}, 6)
