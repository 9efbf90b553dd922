"""The real sets, against scikit-learn's own scaler and the rows they come from."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

from theodolite.errors import BadInput
from theodolite.instruments.degree.real_data import real_examples

CPU = torch.device("cpu")


def test_every_seed_splits_all_rows_into_three_parts_that_share_none() -> None:
    found = real_examples("diabetes", [1, 2], CPU)
    parts = (found.train, found.validation, found.test)
    assert [x.shape[1] for x, _ in parts] == [265, 89, 88]
    targets = load_diabetes(return_X_y=True)[1]
    for source in range(2):
        together = torch.cat([y[source, :, 0] for _, y in parts]).double().numpy()
        back = (together - together.mean()) / together.std()
        whole = (targets - targets.mean()) / targets.std()
        assert np.allclose(np.sort(back), np.sort(whole), atol=1e-5)
    assert not torch.equal(found.test[1][0], found.test[1][1])


def test_training_rows_alone_set_the_scale() -> None:
    """From scaled values back to the rows they were: which rows trained is found by their targets."""
    found = real_examples("diabetes", [5], CPU)
    order = np.random.default_rng(5).permutation(442)
    inputs, targets = load_diabetes(return_X_y=True)
    train, test = order[:265], order[354:]
    scaler = StandardScaler().fit(inputs[train])
    assert np.allclose(found.train[0][0], scaler.transform(inputs[train]), atol=1e-4)
    assert np.allclose(found.test[0][0], scaler.transform(inputs[test]), atol=1e-4)
    scaler = StandardScaler().fit(targets[train, None])
    assert np.allclose(found.test[1][0], scaler.transform(targets[test, None]), atol=1e-4)


def test_digits_keep_their_classes_and_a_pixel_that_is_always_blank_stays_zero() -> None:
    found = real_examples("digits", [3], CPU)
    inputs, targets = load_digits(return_X_y=True)
    counts = np.bincount(targets)
    together = torch.cat([found.train[1], found.validation[1], found.test[1]], dim=1)[0]
    assert torch.equal(together.bincount(), torch.tensor(counts))
    assert found.outputs == 10
    assert found.features == 64
    assert found.loss == "cross-entropy"
    assert found.constant_error == pytest.approx(1 - counts.max() / len(targets))
    assert found.constant == pytest.approx(np.log(10), abs=0.001)
    assert not found.train[0][..., 0].any()
    assert not inputs[:, 0].any()
    assert all(x.isfinite().all() for x, _ in (found.train, found.validation, found.test))


def test_an_unknown_set_is_answered_with_the_near_name() -> None:
    with pytest.raises(BadInput, match="did you mean 'digits'"):
        real_examples("digit", [0], CPU)
