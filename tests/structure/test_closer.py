"""Without noise a claimed graph's network goes on to errors that narrow constituents do not reach; noise stops it."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.fit.closer import closer
from theodolite.structure.fit.confirm import confirm
from theodolite.structure.result import Found

GRAPH = CompositionalGraph(("a", "b", "c"), (Node("t", ("a", "b")), Node("y", ("t", "c"), "sum")))


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * x[:, 0] * x[:, 1]) + np.exp(x[:, 2])


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_network_goes_on_where_there_is_no_noise_to_stop_at(noise: float) -> None:
    draw = np.random.default_rng(1)
    x, new = draw.uniform(-1, 1, (400, 3)), draw.uniform(-1, 1, (2000, 3))
    y = truth(x) + noise * draw.normal(size=400)
    asked = confirm([Found(GRAPH, {}, {})], x, y, draw, effort="quick")
    assert asked.chosen is not None
    found = closer(asked, x, y, draw)
    before, after = (np.mean((one.model.predict(new) - truth(new)) ** 2) / truth(new).var() for one in (asked, found))
    if noise:
        assert found is asked
    else:
        assert after < before / 50
        assert after < 2e-6
        assert found.chosen is asked.chosen
        assert found.model.validation_error == found.trials[0].error
        assert "wider constituents" in found.reason


def test_folds_are_read_from_what_was_held_out() -> None:
    draw = np.random.default_rng(1)
    x = draw.uniform(-1, 1, (90, 3))
    fold = draw.permutation(90) % 3
    asked = confirm([Found(GRAPH, {}, {})], x, truth(x), draw, effort="quick", fold=fold)
    np.testing.assert_array_equal(asked.trials[0].fitted.fold_of(x), fold)


def test_nothing_is_begun_after_the_time() -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (200, 3))
    asked = confirm([Found(GRAPH, {}, {})], x, truth(x), draw, effort="quick")
    assert closer(asked, x, truth(x), draw, until=0.0) is asked
