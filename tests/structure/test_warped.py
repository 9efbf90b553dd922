"""The scale on which a target is a sum of terms that share variables, and networks that start from it."""

import numpy as np
import pytest
import torch

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import structure_key
from theodolite.structure.fit.effort import EFFORTS
from theodolite.structure.fit.fitting import drawn_folds, fit
from theodolite.structure.fit.scaled_start import terms_below
from theodolite.structure.search.directions import below_function
from theodolite.structure.settle import settle
from theodolite.structure.surrogate.gaussian_process import evidence
from theodolite.structure.surrogate.warped import additive_scale, scales

NAMES = ("a", "b", "c")
PAIRS = CompositionalGraph(
    NAMES, (Node("u", ("a", "b")), Node("v", ("a", "c")), Node("w", ("b", "c")), Node("y", ("u", "v", "w"), "sum"))
)


def inner(x):
    """g(a, b) + g(b, c) + g(a, c)."""
    a, b, c = x.T
    return np.sin(2 * a * b + a) + np.cos(1.5 * b - b * c) + np.tanh(2 * a * c)


BENDS = {
    "exp": (np.exp, np.log),
    "tanh": (lambda s: np.tanh(s - 1), lambda y: np.arctanh(y) + 1),
    "square": (lambda s: (s + 4) ** 2, lambda y: np.sqrt(y) - 4),
}


def drawn(count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3))


@pytest.mark.parametrize("bend", BENDS)
def test_the_scale_is_the_inverse_of_the_outer_function(bend):
    outer, inverse = BENDS[bend]
    x = drawn(300)
    y = outer(inner(x))
    scale = additive_scale(x, y, np.random.default_rng(0))
    assert scale is not None
    assert np.corrcoef(scale(y), inverse(y))[0, 1] > 0.995
    assert (np.diff(scale(np.sort(y))) > 0).all()


def test_a_sum_as_it_stands_pays_for_no_scale():
    x = drawn(300)
    assert additive_scale(x, inner(x), np.random.default_rng(0)) is None


def test_two_columns_or_few_values_have_no_scale():
    x = drawn(200)
    assert additive_scale(x[:, :2], np.exp(x[:, 0] * x[:, 1]), np.random.default_rng(0)) is None
    assert additive_scale(x, np.sign(x[:, 0] * x[:, 1] + x[:, 2]), np.random.default_rng(0)) is None


def test_scales_of_several_choices_of_rows_are_those_of_each_alone():
    x = drawn(200)
    y = np.exp(inner(x))
    choices = [np.arange(0, 80), np.arange(100, 180)]
    terms = ((0, 1), (0, 2), (1, 2))
    both = scales(x, y, choices, terms)
    alone = [scales(x, y, [own], terms)[0] for own in choices]
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)
        assert one.gain == pytest.approx(other.gain)


def test_slopes_of_the_evidence_are_those_of_differences():
    draw = np.random.default_rng(0)
    half, y = torch.from_numpy(draw.standard_normal((2, 5, 5))), torch.from_numpy(draw.standard_normal((2, 5)))
    matrix = half @ half.mT + torch.eye(5)
    said = evidence(matrix, y)
    for member in range(2):
        by_hand = torch.distributions.MultivariateNormal(torch.zeros(5).double(), matrix[member]).log_prob(y[member])
        assert float(said[member]) == pytest.approx(float(by_hand) + 2.5 * np.log(2 * np.pi))
    matrix.requires_grad_()
    y.requires_grad_()
    assert torch.autograd.gradcheck(lambda m, t: evidence((m + m.mT) / 2, t), (matrix, y))


def test_terms_below_a_function():
    hidden = below_function(PAIRS)
    assert [node.kind for node in hidden.nodes[-2:]] == ["sum", "general"]
    assert hidden.output.name == "y"
    assert terms_below(hidden) == ((0, 1), (0, 2), (1, 2))
    assert terms_below(PAIRS) is None
    assert terms_below(CompositionalGraph.dense(NAMES)) is None


def test_a_function_of_overlapping_terms_is_fitted_in_every_fold():
    """Without a start on the scale folds are caught at 1 % of the variance and more."""
    x, work = drawn(600, seed=5), EFFORTS["quick"]
    y = np.exp(inner(x))
    fold = drawn_folds(len(y), work, np.random.default_rng(0))
    fitted = fit(below_function(PAIRS), x, y, np.random.default_rng(0), effort=work, fold=fold)
    missed = [np.mean((fitted.held_out - y)[fold == one] ** 2) / y.var() for one in range(3)]
    assert max(missed) < 2e-3
    new = drawn(2000, seed=6)
    truth = np.exp(inner(new))
    assert np.mean((fitted.predict(new) - truth) ** 2) / truth.var() < 1e-3


def test_a_function_of_overlapping_terms_is_found_from_rows():
    x = drawn(800, seed=5)
    asked = settle(x, np.exp(inner(x)), NAMES, np.random.default_rng(0), effort="quick")
    assert asked.chosen is not None
    assert structure_key(asked.chosen.graph, kinds=True) == structure_key(below_function(PAIRS), kinds=True)
    assert asked.model.validation_error < asked.dense.validation_error
