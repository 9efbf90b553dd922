"""Approximants and their rates, against least squares and against spectra that are known."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite.claims.sparsity.approximation_rate import Composed, Constituent, fit, residuals, slope, spectrum, tree
from theodolite.errors import BadInput
from theodolite.graphs.families import binary_tree
from theodolite.measures import measure


def drawn(inputs: int, smoothness: float = 2.0, seed: int = 0) -> Constituent:
    return Constituent.draw(inputs, smoothness, np.random.default_rng(seed))


def test_a_constituent_has_the_spectrum_it_is_named_after():
    values = Constituent(np.ones((1, 1)), np.zeros(1), drawn(1, 1.7).table[:1])(np.arange(4096)[:, None] / 4096)
    power = np.abs(np.fft.rfft(values))[1:200]
    assert -np.polyfit(np.log(np.arange(1, 200)), np.log(power), 1)[0] == pytest.approx(2.2, abs=0.02)


def test_constituents_are_periodic_in_every_variable():
    function, x = drawn(3), np.random.default_rng(1).random((50, 3))
    for variable in range(3):
        assert np.allclose(function(x + np.eye(3)[variable]), function(x))
        assert not np.allclose(function(x + 0.3 * np.eye(3)[variable]), function(x))


def test_the_polynomial_is_that_of_least_squares_and_its_residual_is_told():
    function, offset, highest = drawn(2), np.array([0.3, 0.7]), 3
    coefficients = spectrum(function, 2, offset)
    polynomial = fit(coefficients, highest, offset)
    side = coefficients.shape[0]
    grid = np.stack(np.meshgrid(*[np.arange(side) / side] * 2, indexing="ij"), -1).reshape(-1, 2) + offset
    frequency = np.arange(-highest, highest + 1)
    basis = np.exp(2j * np.pi * (grid[:, 0, None, None] * frequency[:, None] + grid[:, 1, None, None] * frequency))
    truth = function(grid)
    solution = np.linalg.lstsq(basis.reshape(len(grid), -1), truth.astype(complex), rcond=None)[0]
    said = polynomial(grid)
    assert np.allclose(said, (basis.reshape(len(grid), -1) @ solution).real, atol=1e-10)
    assert residuals(coefficients, [highest])[0] == pytest.approx(np.std(said - truth) / np.std(truth))


def test_rates_are_the_smoothness_over_the_variables():
    for n, highest in ((1, [8, 16, 32, 64]), (2, [4, 8, 16])):
        row = measure("approximation-rate",
            {"variables": n, "smoothness": 2.0, "approximant": "shallow", "graph": "dense", "highest": highest,
             "draws": 6}, 0, "cpu",
        )  # fmt: skip
        assert row["sizes"] == [(2 * k + 1) ** n for k in highest]
        assert np.mean(row["slopes"]) == pytest.approx(2 / n, rel=0.15)


def test_along_the_graph_the_rate_does_not_know_the_number_of_variables():
    config = {"smoothness": 2.0, "approximant": "graph", "highest": [6, 12, 24], "draws": 3, "points": 200}
    for n in (2, 8):
        row = measure("approximation-rate", {"variables": n, **config}, 0, "cpu")
        assert row["sizes"] == [(n - 1) * (2 * k + 1) ** 2 for k in config["highest"]]
        assert np.mean(row["slopes"]) == pytest.approx(1.0, rel=0.2)


def test_a_composed_function_is_its_constituents_by_hand():
    graph = binary_tree(4)
    function, x = Composed(graph, 2.0, np.random.default_rng(0)), np.random.default_rng(1).random((5, 4))
    values = dict(zip(graph.variables, x.T, strict=True))
    for node in graph.nodes:
        values[node.name] = function.constituents[node.name](np.stack([values[i] for i in node.inputs], axis=-1))
    assert np.array_equal(function(x), values[graph.output.name])


def test_the_slope_of_a_power_law_is_its_exponent():
    sizes = np.array([3.0, 10.0, 40.0])
    assert slope(sizes.tolist(), (5 * sizes**-0.7).tolist()) == pytest.approx(0.7)


def test_a_grid_of_five_variables_is_refused():
    with pytest.raises(BadInput, match="5 variables"):
        spectrum(Composed(tree(5), 2.0, np.random.default_rng(0)), 5, np.zeros(5))


def test_trained_networks_of_the_graph_learn():
    config = {"variables": 2, "smoothness": 3.0, "shape": "graph", "widths": [4, 8], "seeds": 2, "batch": 64,
              "rate": 0.02}  # fmt: skip
    few, many = (measure("trained-approximation", {**config, "steps": steps}, 0, "cpu") for steps in (1, 60))
    assert few["parameters"][0] < few["parameters"][1]
    assert len(few["errors"]) == len(few["slopes"]) == 2
    for before, after in zip(few["errors"], many["errors"], strict=True):
        assert all(b > a for b, a in zip(before, after, strict=True))
