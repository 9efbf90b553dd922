"""Relevance, interactions and entanglement, against functions whose structure is known by hand."""

import numpy as np
import pytest

from theodolite.errors import BadInput
from theodolite.structure.data.black_box import CallableSource
from theodolite.structure.data.source import Gradients
from theodolite.structure.surrogate.evidence import gather


def evidence_of(function, variables, points=64, ranges=None):
    source = CallableSource(lambda x: function(*x.T), ranges or [(-1.0, 1.0)] * variables)
    return gather(source, np.random.default_rng(0), points)


def test_what_does_not_enter_is_not_relevant():
    evidence = evidence_of(lambda a, b, c, d: a * np.exp(c) + 0 * b, 4)
    assert evidence.relevant(0.01).tolist() == [True, False, True, False]


def test_a_step_is_relevant_though_it_has_no_slope():
    evidence = evidence_of(lambda a, b: np.sign(a) + 0 * b, 2)
    assert evidence.relevance[0] < 1
    assert evidence.relevant(0.01).tolist() == [True, False]


def test_pairs_that_interact_are_those_of_the_formula():
    evidence = evidence_of(lambda a, b, c, d: a * b + np.sin(b + c) + d**2, 4)
    found = {(i, j) for i, j in zip(*np.nonzero(evidence.interacting(0.01)), strict=True) if i < j}
    assert found == {(0, 1), (1, 2)}
    strength = evidence.interaction_strength
    assert strength[0, 1] > 1e-2 > 1e-6 > strength[0, 3]


def test_entanglement_is_that_of_the_ratio_of_slopes():
    # ∂_a : ∂_b = 1 : cos(b) for any link; c changes the ratios with a and with b
    evidence = evidence_of(lambda a, b, c: np.tanh(c * (a + np.sin(b))) + c, 3)
    entangled = evidence.entangled(0.01)
    assert not entangled[0, 1, 2]
    assert entangled[0, 2, 1]
    assert entangled[1, 2, 0]
    assert np.array_equal(entangled, entangled.transpose(1, 0, 2))


def test_entanglement_does_not_care_about_a_monotone_function_of_the_output():
    plain = evidence_of(lambda a, b, c, d: a * b + c * np.exp(d), 4).entangled(0.01)
    bent = evidence_of(lambda a, b, c, d: np.exp(a * b + c * np.exp(d)) ** 3, 4).entangled(0.01)
    assert plain.any()
    assert not plain.all()
    np.testing.assert_array_equal(plain, bent)


class Pretended:
    """Slopes that are pure noise around those of a sum, with honest errors."""

    noise = 0.0
    variables = ("a", "b", "c", "d", "e")

    def __init__(self, seed):
        self.scatter = np.random.default_rng(seed)

    def points(self, count, generator):
        return generator.uniform(-1, 1, (count, 5))

    def values(self, points):
        return points.sum(axis=1)

    def gradients(self, points):
        return Gradients(1 + 0.1 * self.scatter.standard_normal(points.shape), np.full(points.shape, 0.1))


def test_the_level_is_the_chance_of_any_false_alarm():
    level, runs = 0.2, 60
    alarms = 0
    for seed in range(runs):
        evidence = gather(Pretended(seed), np.random.default_rng(seed), points=32)
        alarms += evidence.entangled(level).any()
    # 60 runs at 0.2: at most 20 except with chance .005; and a threshold that is never reached would give none
    assert 1 <= alarms <= 20


def test_a_higher_level_only_adds_decisions_and_a_floor_only_takes_away():
    evidence = gather(Pretended(3), np.random.default_rng(3), points=16)
    few, many = evidence.entangled(0.01), evidence.entangled(1.0)
    assert np.all(many >= few)
    assert not evidence.entangled(1.0, floor=1.1).any()


def test_threshold_is_that_of_the_binomial_tail():
    from scipy import stats

    evidence = gather(Pretended(0), np.random.default_rng(0), points=20)
    bar = evidence.threshold(0.05, 10)
    exceeding = 2 * stats.norm.sf(bar)
    assert stats.binom.sf(1, 20, exceeding) == pytest.approx(0.05 / 10, rel=1e-6)


def test_rows_are_the_same_evidence_from_fewer_points():
    evidence = evidence_of(lambda a, b, c: a * b + c, 3, points=16)
    half = evidence.rows(np.arange(8))
    assert half.points == 8
    np.testing.assert_array_equal(half.base, evidence.base[:8])


def test_too_few_points_are_refused():
    with pytest.raises(BadInput, match="at least 4"):
        evidence_of(lambda a, b: a + b, 2, points=2)
