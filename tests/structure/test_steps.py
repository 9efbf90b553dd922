"""Constituents that are constant on boxes: cuts are found, networks say what the steps say, and graphs are claimed."""

import numpy as np

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.boosting import boosted
from theodolite.structure.fit import steps
from theodolite.structure.fit.confirm import confirm
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.fit.step_network import fit_steps, terms_of
from theodolite.structure.fit.steps import Grid, grown
from theodolite.structure.piecewise import with_steps
from theodolite.structure.surrogate.noise_share import Noise, noise_share

GRAPH = CompositionalGraph(("a", "b", "c"), (Node("h", ("a", "b")), Node("y", ("h", "c"), "sum")))


def jumps(x):
    """2 where a > .2 and b > −.3, less 1 where c > .5."""
    return 2.0 * ((x[:, 0] > 0.2) & (x[:, 1] > -0.3)) - (x[:, 2] > 0.5)


def drawn(rows, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (rows, 3))


def noise_of(x, y) -> Noise:
    return lambda: noise_share(x, y, np.random.default_rng(0))


def test_cuts_lie_where_the_function_jumps():
    x = drawn(400)
    learnt = np.arange(400) % 4 != 0
    found = grown([(0, 1), (2,)], x, jumps(x), learnt)
    assert [len(cuts) for grid in found.grids for cuts in grid.cuts] == [1, 1, 1]
    assert np.allclose([cuts[0] for grid in found.grids for cuts in grid.cuts], [0.2, -0.3, 0.5], atol=0.02)
    assert abs(found.left[learnt]).max() < 1e-3


def test_cuts_found_by_some_rows_are_placed_again_by_all(monkeypatch):
    monkeypatch.setattr(steps, "MOST_ROWS", 100)
    x = drawn(800)
    found = grown([(0, 1), (2,)], x, jumps(x), np.arange(800) % 4 != 0)
    assert len(found.rows) == 800
    assert np.allclose([cuts[0] for grid in found.grids for cuts in grid.cuts], [0.2, -0.3, 0.5], atol=0.01)


def test_a_grid_counts_its_cells_and_products():
    x = drawn(50)
    grid = Grid((0, 1), [[0.1, -0.4], [0.3]])
    cells, count = grid.cells(x)
    assert count == 6
    assert grid.size() == len(grid.units) == grid.columns(x).shape[1] == 5
    # the same span: a column of every cell is a combination of the products and the constant
    basis = np.column_stack([np.ones(50), grid.columns(x)])
    shown = np.eye(count)[cells]
    assert np.linalg.matrix_rank(np.column_stack([basis, shown])) == np.linalg.matrix_rank(basis)


def test_the_network_says_what_the_steps_say():
    x, fold = drawn(300), np.arange(300) % 3
    y = jumps(x)
    made = fit_steps(GRAPH, x, y, fold)
    assert made is not None
    fitted, told = made
    wrong = np.abs(fitted.held_out - y) > 1e-3
    assert 0.9 < told.mean() < 1
    assert wrong[told].mean() < 0.3 * wrong[~told].mean()
    rows, wanted = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    for one in range(3):
        found = grown([(0, 1), (2,)], rows, wanted, fold != one)
        said = y.mean() + y.std() * (wanted - found.left)
        assert np.allclose(fitted.held_out[fold == one], said[fold == one], atol=1e-9)
    again = Fitted.from_state(*fitted.state())
    assert np.array_equal(again.predict(x), fitted.predict(x))


def test_steps_predict_better_than_boosting_where_there_are_jumps():
    x, y, new = drawn(400), jumps(drawn(400)), drawn(1000, 1)
    noisy = y + 0.1 * np.random.default_rng(2).standard_normal(400)
    made = fit_steps(GRAPH, x, noisy, np.arange(400) % 4)
    assert made is not None
    fitted, _ = made
    error = np.mean((fitted.predict(new) - jumps(new)) ** 2) / np.var(jumps(new))
    theirs = boosted(x, noisy, 0).predict(new)
    assert error < np.mean((theirs - jumps(new)) ** 2) / np.var(jumps(new))


def test_only_sums_of_functions_of_few_variables_have_steps():
    nested = CompositionalGraph(("a", "b", "c"), (Node("h", ("a", "b")), Node("y", ("h", "c"))))
    product = CompositionalGraph(("a", "b"), (Node("y", ("a", "b"), "product"),))
    wide = CompositionalGraph.dense("abcd")
    assert terms_of(nested) is terms_of(product) is terms_of(wide) is None
    assert terms_of(CompositionalGraph.dense("ab")) == {"y": (0, 1)}
    assert sorted(terms_of(GRAPH).values()) == [(0, 1), (2,)]
    assert fit_steps(nested, drawn(60), jumps(drawn(60)), np.arange(60) % 3) is None


def test_a_graph_of_steps_is_claimed_after_an_abstention():
    x, names, draw = drawn(300), ("a", "b", "c"), np.random.default_rng(0)
    smooth = confirm([], x, jumps(x), draw, variables=names, effort="quick")
    found = with_steps(smooth, x, jumps(x), names, draw, noise_of(x, jumps(x)))
    assert smooth.chosen is None
    assert found.chosen is not None
    assert [node.inputs for node in found.chosen.graph.nodes if node.kind == "general"] == [("a", "b")]
    assert found.model.validation_error < smooth.dense.validation_error
    assert found.dense is smooth.dense
    assert found.reason.startswith("on rows held out constituents with jumps miss 0.0")


def test_a_smooth_function_gets_no_steps():
    x, names, draw = drawn(200), ("a", "b", "c"), np.random.default_rng(0)
    smooth = confirm([], x, np.sin(x[:, 0] * x[:, 1]) + x[:, 2], draw, variables=names, effort="quick")
    y = np.sin(x[:, 0] * x[:, 1]) + x[:, 2]
    assert with_steps(smooth, x, y, names, draw, noise_of(x, y)) is smooth
