"""Networks of a graph, fitted: each piece against numpy, scipy and scikit-learn, the whole by invariances."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.optimize
import torch
from sklearn.linear_model import BayesianRidge, Ridge
from torch import nn
from torch.func import jacrev, vmap

from theodolite.device import cpu_threads
from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree, random_dag
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.descent import train_networks
from theodolite.structure.fit.effort import EFFORTS, Effort, effort_named
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.fit.jacobian import jacobian, values
from theodolite.structure.fit.least_squares import _Normal, least_squares
from theodolite.tasks.shared.constituents import ComposedFunction
from theodolite.training.stacked import Stacked, draw

TINY = Effort(2, 1, 20, 6, 1e9, 4, None)


def tree_data(rows: int, seed: int = 0) -> tuple[CompositionalGraph, np.ndarray, np.ndarray]:
    graph = binary_tree(4)
    generator = np.random.default_rng(seed)
    function = ComposedFunction(graph, generator)
    x = generator.uniform(-1, 1, (rows, 4))
    return graph, x, np.asarray(function(x))


def test_the_jacobian_of_every_member_is_that_of_finite_differences() -> None:
    net, members = draw(lambda: CompositionalNet(binary_tree(4), width=2), [0, 1], dtype=torch.float64)
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))
    found = jacobian(net, members, rows)
    step = 1e-6
    for place in range(0, net.parameters, 5):
        shift = torch.zeros(net.parameters, dtype=torch.float64)
        shift[place] = step
        with torch.no_grad():
            slope = (net.values(members + shift, rows) - net.values(members - shift, rows)) / (2 * step)
        torch.testing.assert_close(found[:, :, place], slope, rtol=1e-5, atol=1e-7)


MIXED = CompositionalGraph(
    ("a", "b", "c", "d"),
    (Node("p", ("a", "b", "c"), "product"), Node("s", ("p", "d", "a"), "sum"), Node("y", ("s", "b"))),
)


@pytest.mark.parametrize("own_rows", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("graph", [MIXED, random_dag(6, 3, 2, None, np.random.default_rng(0))], ids=["mixed", "dag"])
def test_values_and_slopes_written_out_are_those_of_torch(
    graph: CompositionalGraph, depth: int, own_rows: bool
) -> None:
    net, members = draw(lambda: CompositionalNet(graph, width=3, depth=depth), [0, 1], dtype=torch.float64)
    shape = (2, 5, len(graph.variables)) if own_rows else (5, len(graph.variables))
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=shape))
    each = rows if own_rows else rows.expand(2, -1, -1)
    slopes = vmap(jacrev(lambda member, rows: net.outputs(member[None], rows, common=True)[0, :, 0]))(members, each)
    torch.testing.assert_close(jacobian(net, members, rows), slopes)
    torch.testing.assert_close(jacobian(net, members, rows, out=torch.empty(2, 5, net.parameters).double()), slopes)
    torch.testing.assert_close(values(net, members, rows), net.values(members, rows))


@pytest.mark.parametrize(("rows", "parameters"), [(30, 7), (7, 30)], ids=["more rows", "more parameters"])
def test_the_normal_equations_are_solved_as_numpy_solves_them(rows: int, parameters: int) -> None:
    generator = np.random.default_rng(0)
    jacobian, residuals = generator.normal(size=(2, rows, parameters)), generator.normal(size=(2, rows))
    weights = np.ones((2, rows))
    weights[1, :3] = 0
    pull, shift = generator.normal(size=(2, parameters)), np.array([0.3, 2.0])
    normal = _Normal(*(torch.from_numpy(a.copy()) for a in (jacobian, residuals, weights)))
    solved = normal.solve(torch.from_numpy(shift), torch.from_numpy(pull))
    trace = normal.trace_of_inverse(torch.from_numpy(shift))
    for m in range(2):
        j = jacobian[m] * weights[m][:, None]
        matrix = j.T @ j + shift[m] * np.eye(parameters)
        np.testing.assert_allclose(solved[m], -np.linalg.solve(matrix, j.T @ residuals[m] + pull[m]), rtol=1e-8)
        np.testing.assert_allclose(float(trace[m]), np.trace(np.linalg.inv(matrix)), rtol=1e-8)


def linear_problem() -> tuple[Stacked, torch.Tensor, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(40, 6))
    y = x @ np.array([1.0, -2.0, 0.5, 0.0, 0.0, 0.1]) + 0.7 * generator.normal(size=40)
    net, members = draw(lambda: nn.Linear(6, 1, bias=False), [0], dtype=torch.float64)
    return net, members, x, y


def test_on_a_linear_network_a_fixed_penalty_gives_ridge_regression() -> None:
    net, members, x, y = linear_problem()
    everything = torch.ones(1, 40, dtype=torch.float64)
    found = least_squares(net, members, torch.from_numpy(x), torch.from_numpy(y), everything, penalty=3.0)
    expected = Ridge(alpha=3.0, fit_intercept=False).fit(x, y).coef_
    np.testing.assert_allclose(found.members[0], expected, rtol=1e-6)


def test_on_a_linear_network_the_evidence_gives_bayesian_ridge_regression() -> None:
    net, members, x, y = linear_problem()
    everything = torch.ones(1, 40, dtype=torch.float64)
    found = least_squares(net, members, torch.from_numpy(x), torch.from_numpy(y), everything)
    flat = dict.fromkeys(["alpha_1", "alpha_2", "lambda_1", "lambda_2"], 1e-12)
    expected = BayesianRidge(fit_intercept=False, tol=1e-9, max_iter=1000, **flat).fit(x, y).coef_
    assert np.abs(expected - np.linalg.lstsq(x, y, rcond=None)[0]).max() > 1e-3  # the penalty matters
    np.testing.assert_allclose(found.members[0], expected, rtol=1e-3, atol=1e-5)


def test_on_a_nonlinear_network_it_reaches_the_minimum_that_scipy_reaches() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (30, 2))
    y = np.tanh(2 * x[:, 0] - x[:, 1]) + 0.1 * generator.normal(size=30)
    net, members = draw(
        lambda: CompositionalNet(CompositionalGraph.dense(("a", "b")), width=2, activation="tanh"),
        [1],
        dtype=torch.float64,
    )
    rows, targets, penalty = torch.from_numpy(x), torch.from_numpy(y), 0.1

    def residuals(theta: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            outputs = net.values(torch.from_numpy(theta)[None], rows)[0].numpy()
        return np.concatenate([outputs - y, np.sqrt(penalty) * theta])

    scipys = scipy.optimize.least_squares(residuals, members[0].numpy(), method="lm", xtol=1e-10, ftol=1e-10)
    everything = torch.ones(1, 30, dtype=torch.float64)
    ours = least_squares(net, members, rows, targets, everything, penalty=penalty, steps=300, patience=60)
    cost = 0.5 * float((residuals(ours.members[0].numpy()) ** 2).sum())
    assert scipys.cost < 0.25 * float((residuals(members[0].numpy()) ** 2).sum())  # there was something to do
    np.testing.assert_allclose(cost, scipys.cost, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_members_are_fitted_to_their_own_rows_only(threads: int) -> None:
    torch.set_num_threads(threads)
    net, members, x, y = linear_problem()
    both = members.expand(2, -1).clone()
    weights = torch.ones(2, 40, dtype=torch.float64)
    weights[0, :20] = 0
    changed = y.copy()
    changed[:20] += 100.0
    rows = torch.from_numpy(x)
    one = least_squares(net, both, rows, torch.from_numpy(y), weights, penalty=1.0, patience=200)
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(x[20:], y[20:]).coef_
    other = least_squares(net, both, rows, torch.from_numpy(changed), weights, penalty=1.0, patience=200)
    final = other.members[1].numpy()
    np.testing.assert_allclose(final, Ridge(alpha=1.0, fit_intercept=False).fit(x, changed).coef_, rtol=1e-6)
    kept = ((x[:20] @ one.members[0].numpy() - y[:20]) ** 2).mean()
    assert kept <= ((x[:20] @ expected - y[:20]) ** 2).mean() + 1e-9  # the best on held-out rows along the way
    np.testing.assert_allclose(float(one.held_out[0]), kept)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("penalty", [0.1, None])
def test_members_end_where_each_ends_alone_whenever_others_stop_and_whoever_takes_them(
    penalty: float | None, threads: int
) -> None:
    generator = np.random.default_rng(5)
    graph = CompositionalGraph(("a", "b"), (Node("y", ("a", "b")),))
    build = lambda: CompositionalNet(graph, features=2, outputs=1, width=3, depth=1, activation="tanh")
    net, members = draw(build, [3, 1, 2], dtype=torch.float64)
    x = torch.from_numpy(generator.uniform(-1, 1, (60, 2)))
    y = torch.sin(2 * x[:, 0]) * x[:, 1] + 0.1 * torch.from_numpy(generator.standard_normal(60))
    weights = (torch.arange(60)[None] % 3 != torch.arange(3)[:, None]).double()
    with torch.no_grad(), cpu_threads(threads):
        told = {"penalty": penalty, "steps": 200, "patience": 3}
        alone = [least_squares(net, members[[k]], x, y, weights[[k]], **told) for k in range(3)]
        together = least_squares(net, members, x, y, weights, **told)
    assert len({one.steps for one in alone}) > 1
    assert together.steps == max(one.steps for one in alone)
    np.testing.assert_allclose(together.members, torch.cat([one.members for one in alone]), rtol=1e-6, atol=1e-8)


def test_adam_ends_at_least_squares_where_nothing_is_held_out() -> None:
    net, members, x, y = linear_problem()
    everything = torch.ones(1, 40, dtype=torch.float64)
    data = (torch.from_numpy(x), torch.from_numpy(y))
    found = train_networks(net, members, *data, everything, torch.Generator().manual_seed(0), steps=300, rate=0.1)
    np.testing.assert_allclose(found[0], np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-3)


def test_adam_learns_from_no_row_of_weight_zero_but_stops_where_those_are_predicted_best() -> None:
    net, members, x, y = linear_problem()
    rows, weights = torch.from_numpy(x), torch.ones(2, 40, dtype=torch.float64)
    weights[:, :20] = 0
    both = torch.stack([members[0], torch.zeros_like(members[0])])
    last = np.linalg.lstsq(x[20:], y[20:], rcond=None)[0]
    found = train_networks(
        net, both, rows, torch.from_numpy(y), weights, torch.Generator().manual_seed(0), steps=300, rate=0.1
    )
    unseen = lambda theta: float(((x[:20] @ np.asarray(theta) - y[:20]) ** 2).mean())
    assert all(unseen(theta) <= unseen(last) + 1e-3 for theta in found)
    spoilt = y.copy()
    spoilt[:20] = x[:20] @ last  # now the held-out rows are predicted best by what the others alone say
    found = train_networks(
        net, both, rows, torch.from_numpy(spoilt), weights, torch.Generator().manual_seed(0), steps=300, rate=0.1
    )
    np.testing.assert_allclose(found, np.stack([last, last]), atol=5e-3)


def test_scaling_the_columns_and_the_target_scales_the_prediction_and_changes_nothing_else() -> None:
    graph, x, y = tree_data(60)
    scales = np.array([2.0, 0.5, 8.0, 4.0])  # powers of two, so that not even rounding differs
    plain = fit(graph, x, y, np.random.default_rng(0), effort=TINY)
    scaled = fit(graph, x * scales, 16 * y, np.random.default_rng(0), effort=TINY)
    np.testing.assert_array_equal(scaled.predict(x * scales), 16 * plain.predict(x))
    shifted = fit(graph, x + 10, y - 7, np.random.default_rng(0), effort=TINY)
    np.testing.assert_allclose(shifted.predict(x + 10), plain.predict(x) - 7, atol=0.05)
    assert scaled.validation_error == plain.validation_error


def test_the_same_generator_gives_the_same_network_and_global_generators_are_left_alone() -> None:
    graph, x, y = tree_data(40)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_default_dtype())  # noqa: NPY002
    first, second, other = (fit(graph, x, y, np.random.default_rng(seed), effort=TINY) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.members, second.members)
    assert not np.array_equal(first.members, other.members)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert torch.get_default_dtype() == before[2]


def test_a_network_of_the_right_graph_beats_a_dense_one_on_new_points() -> None:
    graph = binary_tree(8)
    generator = np.random.default_rng(1)
    function = ComposedFunction(graph, generator)
    x, new = generator.uniform(-1, 1, (200, 8)), generator.uniform(-1, 1, (1000, 8))
    y, truth = np.asarray(function(x)), np.asarray(function(new))
    right = fit(graph, x, y, generator, effort="quick")
    dense = fit(CompositionalGraph.dense(graph.variables), x, y, generator, effort="quick", width=10, depth=2)
    error = lambda fitted: np.mean((fitted.predict(new) - truth) ** 2) / truth.var()
    assert error(right) < error(dense) / 2


def test_the_validation_error_is_that_of_networks_that_did_not_see_the_row() -> None:
    generator = np.random.default_rng(0)
    x, noise = generator.normal(size=(60, 4)), generator.normal(size=60)
    found = fit(CompositionalGraph.dense(("a", "b", "c", "d")), x, noise, generator, effort="quick", width=20)
    assert found.validation_error > 0.8  # noise cannot be predicted; memorised rows would show an error near 0
    assert found.held_out is not None
    np.testing.assert_allclose(found.validation_error, np.mean((found.held_out - noise) ** 2) / noise.var())


@pytest.mark.parametrize(("depth", "shallow"), [(1, 0), (2, 0), (2, 3)])
def test_it_survives_a_pickle_and_its_state_and_predicts_by_the_mean_of_its_networks(depth: int, shallow: int) -> None:
    graph, x, y = tree_data(50)
    found = fit(graph, x, y, np.random.default_rng(0), effort=TINY, depth=depth, shallow=shallow)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(x), found.predict(x))
    arrays, document = found.state()
    again = Fitted.from_state(arrays, document)
    np.testing.assert_array_equal(again.predict(x), found.predict(x))
    assert again.graph == found.graph
    alone = Fitted.from_state({**arrays, "shares": np.eye(len(found.shares))[np.argmax(found.shares)]}, document)
    outputs = found.module.double()(torch.from_numpy((x - found.centre) / found.scale)).detach().numpy()[:, 0]
    np.testing.assert_allclose(alone.predict(x), found.offset + found.spread * outputs, rtol=1e-5, atol=1e-6)


def test_a_state_that_does_not_fit_is_refused() -> None:
    graph, x, y = tree_data(30)
    arrays, document = fit(graph, x, y, np.random.default_rng(0), effort=TINY).state()
    with pytest.raises(BadInput, match="schema"):
        Fitted.from_state(arrays, {**document, "schema": 99})
    with pytest.raises(BadInput, match="'scale'"):
        Fitted.from_state({k: v for k, v in arrays.items() if k != "scale"}, document)
    with pytest.raises(BadInput, match="'members'"):
        Fitted.from_state(arrays, {**document, "width": 9})


def test_a_state_from_before_narrow_constituents_could_be_shallow_is_read() -> None:
    graph, x, y = tree_data(30)
    found = fit(graph, x, y, np.random.default_rng(0), effort=TINY, depth=2)
    arrays, document = found.state()
    again = Fitted.from_state(arrays, {name: value for name, value in document.items() if name != "shallow"})
    np.testing.assert_array_equal(again.predict(x), found.predict(x))


def test_a_column_the_graph_does_not_read_does_not_move_the_prediction() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 3))
    graph = CompositionalGraph(("a", "b", "c"), (Node("y", ("a", "c")),))
    found = fit(graph, x, x[:, 0] * x[:, 2], generator, effort=TINY)
    moved = x.copy()
    moved[:, 1] = 1e6
    np.testing.assert_array_equal(found.predict(moved), found.predict(x))


def test_a_constant_target_is_predicted_exactly_and_a_constant_column_does_no_harm() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(20, 2))
    dense = CompositionalGraph.dense(("a", "b"))
    np.testing.assert_array_equal(fit(dense, x, np.full(20, 0.1), generator, effort=TINY).predict(x), np.full(20, 0.1))
    x[:, 1] = 0.3
    assert np.isfinite(fit(dense, x, x[:, 0], generator, effort=TINY).predict(x)).all()


def test_a_time_limit_still_gives_a_network_and_progress_never_passes_its_total() -> None:
    graph, x, y = tree_data(60)
    seen: list[tuple[int, int]] = []
    found = fit(
        *(graph, x, y, np.random.default_rng(0)),
        effort=EFFORTS["thorough"],
        seconds=0.0,
        progress=lambda done, total, label: seen.append((done, total)),
    )
    assert np.isfinite(found.predict(x)).all()
    assert 0 < len(seen) < 10  # it stopped at once
    assert all(done <= total for done, total in seen)


def test_data_that_cannot_be_used_is_refused_in_a_sentence() -> None:
    graph, x, y = tree_data(20)
    generator = np.random.default_rng(0)
    spoilt = x.copy()
    spoilt[3, 1] = np.nan
    for bad_x, bad_y, words in (
        (x[:, :3], y, "4 variables"),
        (x, y[:-1], "20 rows"),
        (x[:3], y[:3], "too few"),
        (spoilt, y, "NaN"),
    ):
        with pytest.raises(BadInput, match=words):
            fit(graph, bad_x, bad_y, generator)
    with pytest.raises(BadInput, match="effort must be"):
        fit(graph, x, y, generator, effort="much")
    with pytest.raises(BadInput, match="shape"):
        fit(graph, x, y, generator, effort=TINY).predict(x[:, :2])


def test_effort_is_quick_for_few_rows_and_spends_no_more_products_than_it_has() -> None:
    assert effort_named("auto", 200) == EFFORTS["quick"]
    assert effort_named("auto", 5000) == EFFORTS["standard"]
    for effort in EFFORTS.values():
        for rows, parameters in ((200, 90), (10_000, 300), (10_000, 5000)):
            steps = effort.polish_steps(rows, parameters)
            assert steps * rows * parameters * min(rows, parameters) * effort.folds <= effort.products
            assert steps <= effort.polish
    assert EFFORTS["standard"].polish_steps(10_000, 5000) == 0
    assert EFFORTS["standard"].descent_steps(0) > EFFORTS["standard"].descent_steps(10)


def test_among_more_columns_a_network_says_the_same() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(2.0, 3.0, (60, 4))
    graph = CompositionalGraph(("b", "d"), (Node("y", ("b", "d")),))
    narrow = fit(graph, x[:, [1, 3]], x[:, 1] * x[:, 3], generator, effort="quick")
    wide = narrow.widened(("a", "b", "c", "d"), x)
    assert np.allclose(wide.predict(x), narrow.predict(x[:, [1, 3]]), rtol=1e-12)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_network_that_grew_says_what_it_said_and_goes_on_from_there(depth: int) -> None:
    graph, x, y = tree_data(200)
    fold = np.arange(200) % 2
    effort = Effort(2, 6, 100, 20, 1e10, 3, None)
    before = fit(graph, x, y, np.random.default_rng(0), effort=effort, fold=fold, depth=depth)
    told = {"fold": fold, "start": before, "width": 6, "depth": depth}
    untouched = fit(graph, x, y, np.random.default_rng(1), effort=Effort(2, 0, 0, 0, 0, 6, None), **told)
    np.testing.assert_allclose(untouched.predict(x), before.predict(x), atol=1e-12)
    after = fit(graph, x, y, np.random.default_rng(1), effort=Effort(2, 0, 0, 40, 1e10, 6, None), **told)
    error = lambda fitted: [np.mean((fitted.held_out - y)[fold == one] ** 2) for one in range(2)]
    assert after.width == 6
    assert all(late <= early for late, early in zip(error(after), error(before), strict=True))  # of every fold
    assert min(error(after)) < min(error(before)) / 5


def test_least_squares_from_a_minimum_does_not_leave_it() -> None:
    graph, x, y = tree_data(200)
    build = lambda: CompositionalNet(graph, width=4, activation="tanh")
    net, members = draw(build, [0, 1], dtype=torch.float64)
    inputs, wanted = torch.from_numpy(x), torch.from_numpy(y)
    data = (inputs, wanted, torch.ones(2, 200, dtype=torch.float64))  # nothing held out: the last parameters are kept
    with torch.no_grad():
        found = least_squares(net, members, *data, steps=150)
        cold, warm = (least_squares(net, found.members, *data, steps=2, warm=warm).trained for warm in (False, True))
    assert bool((warm <= found.trained * (1 + 1e-6)).all())
    assert bool((cold > 1.1 * found.trained).all())


def test_the_errors_of_folds_are_those_of_their_networks_on_the_rows_they_did_not_see() -> None:
    draw = np.random.default_rng(0)
    x, fold = draw.uniform(-1, 1, (90, 2)), np.arange(90) % 3
    y = np.sin(3 * x[:, 0]) + x[:, 1] + 0.1 * draw.normal(size=90)
    found = fit(CompositionalGraph.dense(("a", "b")), x, y, draw, effort="quick", fold=fold)
    own = [np.mean((one(x) - y)[fold == number] ** 2) for number, one in enumerate(found.guide().functions)]
    assert np.allclose(found.errors_of_folds(x, y), own)
    assert np.mean(own) / y.var() == pytest.approx(found.validation_error)


def test_a_fold_that_is_far_behind_the_others_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first network of one fold is spoilt, and so are its next two."""
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (120, 2))
    y, fold = np.sin(2 * x[:, 0] * x[:, 1]), np.arange(120) % 4
    asked: list[list[int]] = []

    def spoilt(net, members, *data, **options):
        asked.append((1 - data[2]).argmax(1).tolist())  # the first row of a fold has its number
        found = least_squares(net, members, *data, **options)
        if len(asked) <= 3:
            found.members[asked[-1].index(1)] = 0.0
        return found

    monkeypatch.setattr("theodolite.structure.fit.fitting.least_squares", spoilt)
    effort = Effort(folds=4, restarts=2, descent=60, polish=30, products=1e10, width=6, dense_width=None, guided=1)
    found = fit(CompositionalGraph.dense(("a", "b")), x, y, draw, effort=effort, fold=fold)
    assert asked == [[0, 1, 2, 3], [1], [1], [1]]
    assert found.validation_error < 1e-3
