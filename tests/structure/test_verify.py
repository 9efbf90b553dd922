"""What a graph's network misses is noise, or the graph is doubted: by variables, pairs, trees, dense, and the noise."""

from dataclasses import replace

import numpy as np
import pytest

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.fit.confirm import Confirmation, Trial
from theodolite.structure.fit.dependence import dependence, polynomials, products
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.fit.verify import doubt, verified
from theodolite.structure.result import Found
from theodolite.structure.search.sources import with_sources
from theodolite.structure.surrogate.derived import derived_columns, derived_notes, sources_of
from theodolite.structure.surrogate.noise_share import Noise, noise_share
from theodolite.structure.surrogate.screening import screened

NAMES = ("a", "b", "c", "d")
SUM = CompositionalGraph(NAMES, (Node("y", NAMES, "sum"),))


def draw(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.uniform(-1, 1, (rows, 4)), generator.standard_normal(rows)


def noise_of(x: np.ndarray, y: np.ndarray) -> Noise:
    return lambda: noise_share(x, y, np.random.default_rng(0))


def test_chance_is_rarely_taken_for_dependence_and_the_share_of_a_true_one_is_found() -> None:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(300):
        x, r = generator.uniform(-1, 1, (200, 2)), generator.standard_t(5, 200)
        found.append(dependence(r, products(polynomials(x[:, 0]), polynomials(x[:, 1])))[0])
    assert np.mean(np.array(found) < 0.05) < 0.07
    x, r = draw(4000)
    p, share = dependence(3 * x[:, 0] * x[:, 1] + r, products(polynomials(x[:, 0]), polynomials(x[:, 1])))
    assert p < 1e-6
    assert share == pytest.approx(1.0, abs=0.1)  # 9 E[a²] E[b²]


def test_of_jumps_most_rows_must_miss_about_as_much_as_all_do() -> None:
    """A process takes a jump in few rows for noise; noise itself is in every row."""
    x, fine = draw()
    seen, few = x[:, 0] + 2 * x[:, 1], 1.5 * (np.random.default_rng(1).random(len(x)) < 0.05)
    for missed, jumps, told in ((0.4 * fine, True, None), (few, False, None), (few, True, "that concerns few")):
        y = seen + missed + 0.01 * fine
        found = doubt(SUM, x, y, seen, seen, np.random.default_rng(0), noise_of(x, y), jumps=jumps)
        assert (None if found is None else found.reason[-len(told or "") :]) == told


def test_noise_alone_is_no_reason_to_doubt() -> None:
    x, noise = draw()
    truth = 2 * x[:, 0] + np.sin(3 * x[:, 1])
    y = truth + 0.5 * noise
    near = truth + 0.05 * np.cos(5 * x[:, 2])
    wavering = truth + 0.05 * np.sin(4 * x[:, 0])  # a network errs, and another tells a little of that
    assert doubt(SUM, x, y, wavering, near, np.random.default_rng(0), noise_of(x, y)) is None


def test_an_error_of_less_than_a_hundredth_hides_nothing_that_matters() -> None:
    x, _ = draw()
    y = x[:, 0] + 0.09 * x[:, 1]
    assert doubt(SUM, x, y, x[:, 0], y, np.random.default_rng(0), noise_of(x, y)) is None


@pytest.mark.parametrize(
    ("missed", "named"),
    [
        (lambda a, b, c, d: 0.5 * d, ("d",)),
        (lambda a, b, c, d: 0.9 * c * d, ("c", "d")),
        (lambda a, b, c, d: 2.0 * np.sign(a) * np.sign(b) * np.sign(c), ()),
        (lambda a, b, c, d: np.sin(3 * a) * b * c * 3, ()),
    ],
)
def test_what_is_missed_is_found_and_named(missed, named: tuple[str, ...]) -> None:
    x, noise = draw()
    known = 2 * x[:, 0]
    y = known + missed(*x.T) + 0.3 * noise
    found = doubt(SUM, x, y, known, known, np.random.default_rng(0), noise_of(x, y))
    assert found is not None
    assert "of the variance" in found.reason
    if named:
        assert found.variables == named


def test_what_only_the_dense_network_knows_speaks_against_the_graph() -> None:
    x, noise = draw()
    fine = np.cos(25 * x[:, 0]) * np.cos(25 * x[:, 1])
    y = x[:, 2] + fine + 0.1 * noise
    found = doubt(SUM, x, y, x[:, 2], x[:, 2] + 0.5 * fine, np.random.default_rng(0), noise_of(x, y))
    assert found is not None
    assert "dense network" in found.reason


def fitted(graph: CompositionalGraph, error: float) -> Fitted:
    """As much of a network as the decision looks at."""
    return Fitted(graph, 1, 1, "tanh", 0, *(np.zeros((1, 1)), np.ones(1), np.zeros(4), np.ones(4), 0.0, 1.0, error))


@pytest.mark.parametrize(
    ("error", "dense_error", "claimed", "predicts"),
    [
        (8e-7, 1e-7, True, "dense"),
        (8e-8, 1e-7, True, "graph"),
        (5e-6, 1e-7, False, "dense"),  # what it misses may be a part that the dense network knows
        (2e-3, 1e-3, False, "dense"),
    ],
)
def test_a_graph_that_misses_next_to_nothing_is_claimed_whoever_predicts(
    error: float, dense_error: float, claimed: bool, predicts: str
) -> None:
    dense, own = fitted(CompositionalGraph.dense(NAMES), dense_error), fitted(SUM, error)
    trial = Trial(Found(SUM, {}, {}), own, error, error / dense_error, (0.1, 10.0), p=0.5, preferred=False)
    asked = Confirmation(None, dense, dense, "larger", (trial,), "not preferred", 0.0)
    x, y = draw()
    found = verified(asked, x, y, np.random.default_rng(0), noise_of(x, y))
    assert (found.chosen is trial.found) == claimed
    assert found.model is {"dense": dense, "graph": own}[predicts]
    assert ("dense network predicts" in found.reason) == (claimed and predicts == "dense")


def test_a_claim_beside_noise_says_how_much_noise_may_hide() -> None:
    """Where the error is 11 % and the rule asks for noise of (11 − 1)/1.2 % at least, 11 − 10/1.2 % are left."""
    x, fine = draw()
    seen = x[:, 0] + 2 * x[:, 1]
    y = seen + 0.45 * fine
    error = float(np.mean((y - seen) ** 2) / y.var())
    own = replace(fitted(SUM, error), held_out=seen)
    dense = replace(fitted(CompositionalGraph.dense(NAMES), error + 0.02), held_out=seen + 0.2 * np.roll(fine, 1))
    trial = Trial(Found(SUM, {}, {}), own, error, 0.8, (0.7, 0.9), p=1e-6, preferred=True)
    asked = Confirmation(trial.found, own, dense, "larger", (trial,), "preferred", 0.0)
    found = verified(asked, x, y, np.random.default_rng(0), noise_of(x, y))
    assert found.chosen is trial.found
    share = 100 * (error - (error - 0.01) / 1.2)
    assert found.notes == (
        f"noise hides small parts: what the graph leaves out may carry up to {share:.2g} % of the variance",
    )


def test_columns_that_others_tell_are_named_with_these() -> None:
    generator = np.random.default_rng(0)
    a, b, c = generator.uniform(-1, 1, (3, 400))
    noisy = a + 0.5 * generator.standard_normal(400)
    x = np.stack([a, b, c, a * b, noisy, np.exp(c)], axis=1)
    assert derived_columns(x, generator) == {5: (2,), 3: (0, 1)}
    notes = derived_notes(sources_of(x, tuple("abcdef"), generator))
    assert notes[1] == (
        "'a' and 'b' predict 'd' (over 99% of its variance): which of them a graph reads is hardly told by data"
    )
    assert derived_columns(x[:, :3], generator) == {}


def test_a_process_tells_noise_from_a_function() -> None:
    x, noise = draw(200)
    smooth = np.sin(2 * x[:, 0] * x[:, 1]) + x[:, 2]
    assert noise_of(x, smooth)().value < 0.01
    y = smooth + smooth.std() * noise
    assert noise_of(x, y)().value == pytest.approx(0.5, abs=0.15)


def test_noise_is_sure_and_a_function_that_a_process_takes_for_noise_is_not() -> None:
    """The noise is a tenth of the variance in one, and in the other a wave too fine for a process of 600 rows."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (800, 4))
    smooth = x[:, 0] + np.sin(2 * x[:, 1])
    loud = noise_of(x, smooth + smooth.std() / 3 * generator.standard_normal(800))()
    assert loud.value == pytest.approx(0.1, abs=0.015)
    assert loud.surely_above(0.08)
    assert not loud.surely_above(0.11)
    rough = np.exp(2 * np.sin(3 * x[:, 0] * x[:, 1]) * x[:, 2] + x[:, 3] ** 3)
    fine = noise_of(x, rough)()
    assert not fine.surely_above(0.01)
    assert fine.surely_above(-1.0)  # an error that is below what matters asks for none


def test_of_many_columns_those_that_act_alone_and_together_are_kept() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (600, 200))
    y = x[:, 3] ** 2 + 2 * x[:, 10] * x[:, 20] + 0.1 * generator.standard_normal(600)
    kept = screened(x, y, generator)
    assert {3, 10, 20} <= set(kept)
    assert len(kept) <= 6
    assert screened(x[:, :10], y, generator) == list(range(10))


def test_noise_is_told_by_the_variables_that_were_searched() -> None:
    """A process of 150 variables that mean nothing takes noise for a function of them; it is not asked about those."""
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (400, 150))
    names = tuple(f"x{i}" for i in range(150))
    truth = x[:, 0] * x[:, 1] + x[:, 2]
    y = truth + 0.2 * draw.normal(size=400)
    graph = CompositionalGraph(names, (Node("t", ("x0", "x1")), Node("y", ("t", "x2"), "sum")))
    assert doubt(graph, x, y, truth, truth, np.random.default_rng(0), noise_of(x, y)) is not None
    assert doubt(graph, x, y, truth, truth, np.random.default_rng(0), noise_of(x[:, :3], y)) is None


def test_a_graph_that_reads_a_column_instead_of_what_it_is_made_of_is_not_claimed() -> None:
    generator = np.random.default_rng(0)
    a, b, c = generator.uniform(-1, 1, (3, 400))
    x, names = np.stack([a, b, c, np.tanh(a + b**2) + b], axis=1), ("a", "b", "c", "made")
    y = np.sin(2 * a * b) + c
    instead = CompositionalGraph(names, (Node("t", ("a", "made")), Node("y", ("t", "c"), "sum")))
    rightly = with_sources(instead, {"made": ("a", "b")})
    assert rightly.used == ("a", "b", "c")
    of = lambda graph, error: replace(fitted(graph, error), held_out=y)
    dense = of(CompositionalGraph.dense(names), 1e-4)

    def claimed(*graphs: CompositionalGraph) -> CompositionalGraph | None:
        own = [Found(graph, {}, {}) for graph in graphs]
        trials = tuple(
            Trial(found, of(found.graph, error), error, 0.1, (0.05, 0.2), p=1e-6, preferred=True)
            for found, error in zip(own, (1e-5, 2e-5), strict=False)
        )
        asked = Confirmation(own[0], trials[0].fitted, dense, "larger", trials, "preferred", 0.0)
        found = verified(asked, x, y, np.random.default_rng(0), noise_of(x, y))
        if found.chosen is None:
            assert "reads 'made', which 'a' and 'b' predict, and not 'b'" in found.reason
        return found.chosen and found.chosen.graph

    assert claimed(instead) is None
    assert claimed(instead, rightly) == rightly
