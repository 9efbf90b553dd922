"""Interactions on unseen rows, and the graphs proposed from them, for functions whose structure is known."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from theodolite.graphs import CompositionalGraph, Node
from theodolite.structure.data.source import Array
from theodolite.structure.fit.effort import Effort
from theodolite.structure.fit.fitting import fit
from theodolite.structure.search.interactions import measure_interactions, predicts, propose
from theodolite.structure.search.pairs import pair_scores, with_left_over
from theodolite.structure.search.summands import find_summands, summands_graph
from theodolite.structure.surrogate.effects import HeldOut
from theodolite.structure.surrogate.surrogate import SurrogateSource, fit_surrogate

NAMES = tuple(f"x{i}" for i in range(1, 6))


def draw(rows: int, variables: int, seed: int = 0) -> tuple[Array, np.random.Generator]:
    generator = np.random.default_rng(seed)
    return generator.uniform(-1, 1, (rows, variables)), generator


def shape(graph: CompositionalGraph) -> set[tuple[frozenset[str], int, str]]:
    """What every node reaches, how many inputs it has, and its kind: enough to tell these graphs apart."""
    return {(graph.reach[node.name], len(node.inputs), node.kind) for node in graph.nodes}


def same(graph: CompositionalGraph, *nodes: tuple[str, str, str]) -> bool:
    made = [Node(name, tuple(inputs.split()), kind) for name, inputs, kind in nodes]  # type: ignore[arg-type]
    return shape(graph) == shape(CompositionalGraph(NAMES, tuple(made)))


@pytest.fixture(scope="module")
def measured() -> SurrogateSource:
    x, generator = draw(300, 5)
    y = x[:, 0] * x[:, 1] + x[:, 2] ** 2 + 0.05 * generator.normal(size=300)
    return fit_surrogate(x, y, NAMES, generator)


def test_an_effect_explains_the_share_of_variance_that_the_analysis_of_variance_gives_it(
    measured: SurrogateSource,
) -> None:
    """Var x1·x2 = 1/9, Var x3² = 4/45 for uniform variables."""
    held_out = HeldOut(measured, np.random.default_rng(1), redraws=8)
    total = measured.targets.var()
    assert held_out.effect((0, 1)).share == pytest.approx(1 / 9 / total, rel=0.2)
    assert held_out.effect((2,)).share == pytest.approx(4 / 45 / total, rel=0.2)
    assert held_out.effect((0, 1)).z > 7
    assert held_out.effect((3,)).share < 1e-3


def test_sets_that_do_not_interact_have_standard_normal_scores() -> None:
    """The pairs of an additive function, over fits: the mean is near 0 and none is far out."""
    null = []
    for seed in range(2):
        x, generator = draw(150, 8, seed)
        y = np.sin(3 * x).sum(1) + 0.1 * generator.normal(size=150)
        null += pair_scores(x, y, [f"v{i}" for i in range(8)], generator).values()
    assert len(null) == 56
    assert abs(np.mean(null)) < 0.5
    assert np.mean(np.array(null) > stats.norm.isf(0.05)) < 0.15
    assert max(null) < 4.5


def test_weak_pairs_are_ranked_above_none_at_all() -> None:
    x, generator = draw(250, 6)
    y = 2 * x.sum(1) + 0.3 * x[:, 0] * x[:, 1] + 0.3 * np.cos(x[:, 2] + x[:, 3]) + 0.01 * generator.normal(size=250)
    scores = pair_scores(x, y, [f"v{i}" for i in range(6)], generator)
    truth = [pair in {("v0", "v1"), ("v2", "v3")} for pair in scores]
    assert roc_auc_score(truth, list(scores.values())) == 1.0


def test_a_pair_below_what_a_surrogate_misses_shows_in_what_the_sure_terms_leave_over() -> None:
    x, generator = draw(1500, 6)
    y = np.exp(2 * x[:, 0] * x[:, 1] + x[:, 2]) + x[:, 3] + x[:, 4] + 0.05 * x[:, 3] * x[:, 4]
    names = [f"v{i}" for i in range(6)]
    source = fit_surrogate(x, y, names, generator)
    assert 1 - source.r2 > 10 * np.var(0.05 * x[:, 3] * x[:, 4]) / np.var(y)  # it misses more than the pair carries
    alone, both = measure_interactions(source, generator).scores(), pair_scores(x, y, names, generator)
    weak, none = ("v3", "v4"), [pair for pair in both if "v5" in pair]
    assert alone[weak] < 4 < both[weak]
    assert both[weak] > 1.5 * max(both[pair] for pair in none)


def test_two_tests_of_a_pair_count_as_two() -> None:
    graph = CompositionalGraph(
        ("a", "b", "c"), (Node("f", ("a",)), Node("g", ("b", "c")), Node("y", ("f", "g"), "sum"))
    )
    x, generator = draw(4000, 3)
    y = generator.normal(size=4000)
    fitted = fit(graph, x, y, generator, effort=Effort(2, 1, 2, 0, 0, 2, None))
    given = {("a", "b"): 1.0, ("a", "c"): 4.0, ("b", "c"): 7.0}
    found = with_left_over(given, fitted, x, y)
    assert found["b", "c"] == 7.0  # not apart
    assert found["a", "c"] == pytest.approx(float(stats.norm.isf(2 * stats.norm.sf(4.0))), abs=1e-3)
    assert found["a", "b"] < 2.5


def test_scores_do_not_depend_on_the_units_of_rows_or_target() -> None:
    x, _ = draw(100, 3)
    y = x[:, 0] * x[:, 1] + x[:, 2]
    plain = pair_scores(x, y, "abc", np.random.default_rng(1))
    scaled = pair_scores(1e3 * x + 5, 1e-4 * y - 2, "abc", np.random.default_rng(1))
    assert list(scaled.values()) == pytest.approx(list(plain.values()), rel=1e-2, abs=0.05)


def test_a_sum_of_terms_comes_first_with_unused_variables_left_out() -> None:
    x, generator = draw(250, 5)
    first = propose(x, x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2] * x[:, 3]), NAMES, generator)[0]
    assert {(reach, kind) for reach, _, kind in shape(first.graph) if kind == "sum"} == {(frozenset(NAMES[:4]), "sum")}
    assert {first.graph.reach[name] for name in first.graph.output.inputs} == {
        frozenset(NAMES[:2]),
        frozenset(NAMES[2:4]),
    }
    assert first.graph.used == NAMES[:4]
    assert set(first.confidence) == set(first.graph.edges)
    assert min(first.confidence.values()) > 0.9
    assert set(first.pairs) == set(combinations(NAMES, 2))


def test_a_product_is_proposed_for_a_target_of_one_sign() -> None:
    x, generator = draw(200, 5)
    y = -np.exp(x[:, 0] * x[:, 1]) * (2 + x[:, 2]) / (1.5 + x[:, 3])
    found = propose(x, y, NAMES, generator)
    wanted = (("a", "x1 x2", "general"), ("y", "a x3 x4", "product"))
    assert any(same(candidate.graph, *wanted) for candidate in found)


def test_a_hierarchy_is_proposed_where_all_pairs_interact() -> None:
    x, generator = draw(400, 5)
    y = np.tanh(x[:, 0] * x[:, 1] + x[:, 2]) * (1.3 + x[:, 3] * x[:, 4])
    below = (("a", "x1 x2", "general"), ("b", "a x3", "general"), ("c", "x4 x5", "general"))
    found = propose(x, y, NAMES, generator)
    ends = (("y", "b c", "general"), ("y", "b c", "product"))  # it is a product; that is for a fit to see
    assert any(same(candidate.graph, *below, end) for candidate in found[:3] for end in ends)


def test_candidates_differ_and_are_few() -> None:
    x, generator = draw(120, 5)
    y = np.sqrt((x[:, 0] - x[:, 1]) ** 2 + (x[:, 2] - x[:, 3]) ** 2 + 0.1)
    graphs = [candidate.graph.nodes for candidate in propose(x, y, NAMES, generator)]
    assert 2 <= len(graphs) <= 11
    assert len(set(graphs)) == len(graphs)


def test_nothing_is_proposed_for_noise() -> None:
    x, generator = draw(100, 5, seed=3)
    noise = generator.normal(size=100)
    assert not predicts(fit_surrogate(x, noise, NAMES, generator))
    assert propose(x, noise, NAMES, generator) == []


def test_the_same_generator_proposes_the_same() -> None:
    x, _ = draw(80, 5)
    y = x[:, 0] * x[:, 1] + x[:, 2]
    assert propose(x, y, NAMES, np.random.default_rng(2)) == propose(x, y, NAMES, np.random.default_rng(2))


def test_terms_are_the_largest_sets_in_which_all_pairs_and_triples_interact() -> None:
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3)]
    joined = find_summands(range(5), pairs)
    assert joined == [frozenset({0, 1, 2}), frozenset({2, 3}), frozenset({4})]
    parted = find_summands(range(5), pairs, lambda three: False)
    assert parted == [frozenset(pair) for pair in ((0, 1), (0, 2), (1, 2), (2, 3))] + [frozenset({4})]
    assert find_summands(range(6), list(combinations(range(6), 2)), lambda three: False) is None


def test_names_of_nodes_avoid_those_of_variables() -> None:
    graph = summands_graph(("y", "t1", "z"), [frozenset({0, 1}), frozenset({2})], "sum")
    assert len({node.name for node in graph.nodes} | {"y", "t1", "z"}) == 5
