"""Theorem 1's leading terms, against exact powers and against measured errors of tensor-product splines."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from theodolite.errors import OutsideDomain
from theodolite.graphs.families import binary_tree, kolmogorov_arnold, random_dag
from theodolite.graphs.graph import CompositionalGraph
from theodolite.theory.compositional import (
    deep_exponent,
    deep_units,
    graph_units,
    shallow_exponent,
    shallow_units,
)


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_a_binary_tree_takes_n_minus_one_blocks_of_two_inputs_and_a_shallow_net_all_variables_at_once(levels):
    n, inverse, order = 2**levels, 64, 3
    units = graph_units(binary_tree(n), Fraction(1, inverse), order)
    assert units.deep == pytest.approx((n - 1) * inverse ** (2 / 3))
    assert math.log(units.shallow, inverse) == pytest.approx(n / order)
    assert (units.shallow_exponent, units.deep_exponent) == (n / order, 2 / order)


def test_powers_that_are_whole_numbers_come_out_exactly():
    assert shallow_units(0.25, 6, 2) == 4**3
    assert deep_units(0.25, (2, 2, 4), 2) == 4 + 4 + 16
    assert deep_units(0.25, (2, 3), (1, 3)) == 16 + 4


def test_the_roughest_constituent_sets_the_shallow_rate_and_its_own_term_of_the_deep_one():
    graph = binary_tree(4)
    mixed = graph_units(graph, 0.01, (1, 4, 4))
    assert mixed.shallow == graph_units(graph, 0.01, 1).shallow
    assert mixed.deep == pytest.approx(0.01**-2 + 2 * 0.01**-0.5)
    assert mixed.deep < graph_units(graph, 0.01, 1).deep


def test_a_dense_graph_gains_nothing_and_univariate_nodes_cost_least():
    dense = CompositionalGraph.dense(["a", "b", "c"])
    units = graph_units(dense, 0.1, 2)
    assert units.shallow == units.deep
    arnold = graph_units(kolmogorov_arnold(2), 0.1, 2)
    inner, sums, outer, total = 10 * 10**0.5, 5 * 10.0, 5 * 10**0.5, 10**2.5
    assert arnold.deep == pytest.approx(inner + sums + outer + total)


def test_variables_that_nothing_reads_do_not_count():
    some = graph_units(CompositionalGraph(("a", "b", "idle"), binary_tree(["a", "b"]).nodes), 0.1, 1)
    assert some == graph_units(binary_tree(["a", "b"]), 0.1, 1)


def test_the_curse_is_lifted_when_smoothness_grows_with_the_variables():
    assert {shallow_exponent(n, n / 2) for n in (2, 8, 32)} == {2.0}
    assert [shallow_exponent(n, 2) for n in (2, 8, 32)] == [1, 4, 16]


def test_extra_uses_make_a_graph_dearer_but_not_its_exponent():
    random = np.random.default_rng(1)
    for _ in range(20):
        graph = random_dag(9, 3, 3, None, random)
        units = graph_units(graph, 1e-3, 2)
        assert units.deep_exponent == max(graph.fan_ins) / 2
        assert len(graph.nodes) * 1e3**0.5 <= units.deep <= len(graph.nodes) * 1e3 ** (3 / 2)


@pytest.mark.parametrize(("variables", "order"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_splines_on_a_grid_fall_with_the_predicted_slope(variables, order):
    """Interpolation by constants (one derivative) and by lines (two) has error h^m with N = h^−n pieces; the error is
    taken everywhere between the knots, and its slope over the number of pieces is −m/n."""
    pieces = np.array([8, 16, 32, 64])
    errors = [_spline_error(variables, order, int(k)) for k in pieces]
    slope = np.polyfit(np.log(pieces**variables), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1 / shallow_exponent(variables, order), rel=0.08)


def _spline_error(variables: int, order: int, pieces: int) -> float:
    from scipy.interpolate import RegularGridInterpolator

    def f(points):
        return np.sin(3 * points).sum(axis=-1) + np.prod(np.cos(2 * points), axis=-1)

    knots = np.linspace(0, 1, pieces + 1)
    grid = np.stack(np.meshgrid(*[knots] * variables, indexing="ij"), axis=-1)
    spline = RegularGridInterpolator([knots] * variables, f(grid), method="nearest" if order == 1 else "linear")
    points = np.random.default_rng(0).random((4000, variables))
    return float(np.abs(spline(points) - f(points)).max())


def test_the_graph_with_the_smaller_exponent_wins_in_the_end():
    fan_ins, order = (2,) * 15, 2
    assert deep_exponent(fan_ins, order) == 1
    ratios = [shallow_units(eps, 16, order) / deep_units(eps, fan_ins, order) for eps in (0.5, 0.1, 0.01)]
    assert ratios == sorted(ratios)
    assert ratios[-1] > 1e12


def test_too_large_for_a_float_is_infinite():
    assert shallow_units(1e-9, 1000, 1) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shallow_units(0.0, 2, 1), "accuracy = 0.0"),
        (lambda: shallow_units(1.0, 2, 1), "accuracy = 1.0"),
        (lambda: shallow_units(math.nan, 2, 1), "accuracy = nan"),
        (lambda: shallow_units(0.1, 0, 1), "variables = 0"),
        (lambda: shallow_units(0.1, 2, 0), "smoothness = 0"),
        (lambda: shallow_units(0.1, 2, math.inf), "smoothness = inf"),
        (lambda: deep_units(0.1, (), 1), "without nodes"),
        (lambda: deep_units(0.1, (2, 0), 1), "fan-in = 0"),
        (lambda: deep_units(0.1, (2, 2), (1, 2, 3)), "3 orders of smoothness are given for 2 nodes"),
    ],
)
def test_outside_the_domain(call, message):
    with pytest.raises(OutsideDomain, match=message):
        call()
