"""F1–F10: their formulas against sympy's, their interactions against mixed differences."""

# pyright: reportCallIssue=false

from itertools import combinations

import numpy as np
import pytest
import sympy
from benchmarks.known_structures.interaction_functions import INTERACTION_FUNCTIONS, InteractionFunction

TARGETS = list(INTERACTION_FUNCTIONS.values())
X = sympy.symbols("x1:11", real=True)
FORMULAS = {  # written a second time, as text that sympy reads
    "F1": "pi**(x1*x2)*sqrt(2*x3) - asin(x4) + log(x3 + x5) - x9/x10*sqrt(x7/x8) - x2*x7",
    "F2": "pi**(x1*x2)*sqrt(2*Abs(x3)) - asin(x4/2) + log(Abs(x3 + x5) + 1)"
    " + x9/(1 + Abs(x10))*sqrt(Abs(x7)/(1 + Abs(x8))) - x2*x7",
    "F3": "exp(Abs(x1 - x2)) + Abs(x2*x3) - (x3**2)**Abs(x4) + log(x4**2 + x5**2 + x7**2 + x8**2) + x9"
    " + 1/(1 + x10**2)",
    "F4": "exp(Abs(x1 - x2)) + Abs(x2*x3) - (x3**2)**Abs(x4) + (x1*x4)**2 + log(x4**2 + x5**2 + x7**2 + x8**2) + x9"
    " + 1/(1 + x10**2)",
    "F5": "1/(1 + x1**2 + x2**2 + x3**2) + sqrt(exp(x4 + x5)) + Abs(x6 + x7) + x8*x9*x10",
    "F6": "exp(Abs(x1*x2) + 1) - exp(Abs(x3 + x4) + 1) + cos(x5 + x6 - x8) + sqrt(x8**2 + x9**2 + x10**2)",
    "F7": "(atan(x1) + atan(x2))**2 + Max(x3*x4 + x6, 0) - 1/(1 + (x4*x5*x6*x7*x8)**2) + (Abs(x7)/(1 + Abs(x9)))**5"
    " + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10",
    "F8": "x1*x2 + 2**(x3 + x5 + x6) + 2**(x3 + x4 + x5 + x7) + sin(x7*sin(x8 + x9)) + acos(9*x10/10)",
    "F9": "tanh(x1*x2 + x3*x4)*sqrt(Abs(x5)) + exp(x5 + x6) + log((x6*x7*x8)**2 + 1) + x9*x10 + 1/(1 + Abs(x10))",
    "F10": "sinh(x1 + x2) + acos(tanh(x3 + x5 + x7)) + cos(x4 + x5) + sec(x7*x9)",
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_values_are_those_of_the_published_formula(target: InteractionFunction) -> None:
    rows, values = target.sample(50, np.random.default_rng(1))
    formula = sympy.sympify(FORMULAS[target.name], locals={str(symbol): symbol for symbol in X})
    expected = sympy.lambdify(X, formula, "numpy")(*rows.T)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_exactly_the_labelled_pairs_have_a_mixed_difference(target: InteractionFunction) -> None:
    rows, values = target.sample(2000, np.random.default_rng(2))
    others, _ = target.sample(2000, np.random.default_rng(3))
    found = set()
    for i, j in combinations(range(10), 2):
        first, second, both = rows.copy(), rows.copy(), rows.copy()
        first[:, i] = both[:, i] = others[:, i]
        second[:, j] = both[:, j] = others[:, j]
        mixed = values - target.function(first) - target.function(second) + target.function(both)
        if np.mean(mixed**2) > 1e-12:
            found.add((i, j))
    assert found == target.pairs


def test_rows_stay_in_their_ranges_and_noise_has_the_size_asked_for() -> None:
    target = INTERACTION_FUNCTIONS["F1"]
    rows, clean = target.sample(5000, np.random.default_rng(4))
    same, noisy = target.sample(5000, np.random.default_rng(4), noise=0.1)
    low, high = np.array(target.ranges).T
    assert (rows >= low).all()
    assert (rows <= high).all()
    assert rows[:, 3].min() < 0.61
    np.testing.assert_array_equal(rows, same)
    assert np.std(noisy - clean) == pytest.approx(0.1 * clean.std(), rel=0.05)
