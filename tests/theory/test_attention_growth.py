"""The theorem of growth: each lemma against brute force, the bound against caps and measured ranks."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy

from theodolite.claims.tensors.growth_certificate import PRIME, _Form, growth_certificate
from theodolite.instruments.rank.separation import separation_rank
from theodolite.theory.attention import attention_bounds, theorem_7_2
from theodolite.theory.attention_growth import (
    base_depth,
    few_tokens_lower_bound,
    growth_lower_bound,
    growth_lower_bound_log3,
    proven_log3,
    refuted_depth,
    standing_bounds,
    upper_refuted,
)
from theodolite.theory.cap import attention_cap


@pytest.mark.parametrize(("variables", "m", "k"), [(3, 1, 2), (3, 4, 3), (4, 2, 2), (5, 3, 1)])
def test_derivatives_of_a_power_times_a_quadric_are_counted(variables: int, m: int, k: int) -> None:
    """Lemma 4: all derivatives of τ^m (τσ + Σ s²)^k span exactly what the formula says."""
    names = sympy.symbols(f"t s u0:{variables - 2}")
    t, s, *rest = names
    form = sympy.Poly(t**m * (t * s + sum(u**2 for u in rest)) ** k, *names)
    total, layer = 0, {form}
    for _ in range(m + 2 * k + 1):
        columns = sorted({term for p in layer for term in p.monoms()})
        total += sympy.Matrix([[p.coeff_monomial(c) for c in columns] for p in layer]).rank()
        layer = {p.diff(name) for p in layer for name in names} - {sympy.Poly(0, *names)}
    predicted = 2 * math.comb(variables + k - 1, variables) + (m + 1) * math.comb(variables + k - 1, k)
    assert total == predicted


@pytest.mark.parametrize(("width", "base"), [(2, 1), (3, 2), (5, 2), (8, 2)])
def test_powers_of_a_diagonal_matrix_give_the_point_of_the_theorem(width: int, base: int) -> None:
    """Lemma 5: S = diag of roots of unity, weights falling fast, q = aᵀS^e a: zero, and no singular Hessian."""
    degree = 3**base
    point = np.exp(2j * np.pi * np.arange(width) / degree)
    share = np.array([1.0, -1.0, *(10.0 ** -(2 * r) for r in range(1, width - 1))], dtype=complex)
    share[1] -= share.sum()
    a = np.sqrt(share)
    assert abs((share * point**degree).sum()) < 1e-12
    divided = np.zeros((width,) * 3, dtype=complex)  # h_{e−2}: divided differences of t^e
    for r, s, t in itertools.product(range(width), repeat=3):
        powers = [(i, j) for i in range(degree - 1) for j in range(degree - 1 - i)]
        divided[r, s, t] = sum(point[r] ** i * point[s] ** j * point[t] ** (degree - 2 - i - j) for i, j in powers)
    rows, columns = np.triu_indices(width)
    basis = np.zeros((len(rows), width, width))
    basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = 1
    # each unknown in units of the weights it meets, so that the determinant is not small for want of scale
    size = np.sqrt(np.maximum(abs(share[rows]), abs(share[columns])))
    half = np.einsum("r,t,irs,jst,rst->ij", a, a, basis, basis, divided, optimize=True) / np.outer(size, size)
    assert np.linalg.svd(half + half.T, compute_uv=False).min() > 1e-3


@pytest.mark.parametrize("width", [2, 3, 4, 6])
def test_the_bound_lies_between_one_and_the_cap(width: int) -> None:
    for depth in range(1, 9):
        bound = growth_lower_bound(depth, width)
        assert 1 <= bound <= attention_cap(depth, width, width, width)
        assert growth_lower_bound_log3(depth, width) == pytest.approx(math.log(bound, 3), rel=1e-9, abs=1e-9)


def test_measured_ranks_are_above_the_bound() -> None:
    for depth, width in ((2, 2), (3, 2), (3, 3)):
        bound = growth_lower_bound(depth, width)
        found = separation_rank("self-attention", depth=depth, width=width, tokens=2 * width, points=bound, repeats=1)
        assert bound > 1
        assert found.rank == bound


def test_the_bound_grows_by_a_factor_of_three_to_the_number_of_entries() -> None:
    for width in (2, 4, 8):
        entries = width * (width + 1) // 2
        step = growth_lower_bound_log3(61, width) - growth_lower_bound_log3(60, width)
        assert step == pytest.approx(entries, rel=1e-6)


def test_the_published_upper_bound_is_passed_from_width_4_on() -> None:
    assert [refuted_depth(width) for width in (1, 2, 3)] == [None] * 3
    for width in (4, 5, 8, 16):
        depth = refuted_depth(width)
        assert depth is not None
        published = theorem_7_2(depth, width, 1).upper
        if published is not None:
            assert growth_lower_bound(depth, width) > published
        before = theorem_7_2(depth - 1, width, 1).upper_log3
        assert before is not None
        assert proven_log3(depth - 1, width) <= before


@pytest.mark.parametrize("width", [2, 3, 4, 5, 8])
def test_one_head_is_certified_at_the_proven_base_depth_and_not_below(width: int) -> None:
    base = base_depth(width)
    assert growth_certificate(width, base=base).certified
    if base > 1:
        assert not growth_certificate(width, base=base - 1).certified


def test_a_narrow_head_reads_too_little_to_be_certified() -> None:
    found = growth_certificate(4, heads=1, attention_width=1, base=1)
    assert found.hessian_rank < found.entries
    assert not found.certified


def test_hyper_dual_second_derivatives_are_those_of_computer_algebra() -> None:
    form = _Form.drawn(2, 2, 1, 1, PRIME, seed=3)
    names = sympy.symbols("s00 s01 s11")
    s = sympy.Matrix([[names[0], names[1]], [names[1], names[2]]])
    (a, b), row = form.layers[0], sympy.Matrix(form.vector.tolist())
    layer = sum((sympy.Matrix(a[h].tolist()) * s * sympy.Matrix(b[h].tolist()) for h in range(2)), sympy.zeros(2))
    q = sympy.expand((row * layer * s * layer.T * row.T)[0])
    point = np.array([[5, 7], [7, 11]])
    at = dict(zip(names, (5, 7, 11), strict=True))
    truth = [[int(sympy.diff(q, x, y).subs(at)) % PRIME for y in names] for x in names]
    hessian, slope = form.second_derivatives(point)
    assert hessian.tolist() == truth
    assert slope


def _proven_for_heads(depth: int, width: int, tokens: int, heads: int, inner: int) -> int:
    """The largest of Theorems 1, 2 (a) and 2 (b) over all numbers of tokens t and dimensions w that the heads allow."""
    best = 1
    for w in range(1, width + 1):
        across = math.ceil(w / inner)
        for t in range(1, min(tokens, w) + 1):
            if across**2 <= heads:
                best = max(best, growth_lower_bound(depth, w) if t == w else few_tokens_lower_bound(depth, w, t))
            if 2 * t <= w and math.ceil(2 * t / inner) * across <= heads:
                best = max(best, few_tokens_lower_bound(depth, w, t, base_depth(2 * t) + 1))
    return best


@pytest.mark.parametrize(
    ("width", "heads", "inner"),
    [
        (8, 2, 4),
        (8, 4, 2),
        (8, 4, 4),
        (8, 8, 1),
        (12, 6, 2),
        (12, 2, 6),
        (16, 2, 8),
        (16, 1, 8),
        (20, 10, 3),
        (9, 3, 3),
    ],
)
def test_what_narrow_heads_are_proven_to_have_is_the_best_that_their_number_allows(
    width: int, heads: int, inner: int
) -> None:
    for depth, tokens in itertools.product(range(2, 10), (1, 3, 4, 7, 30)):
        proven = _proven_for_heads(depth, width, tokens, heads, inner)
        found = proven_log3(depth, width, tokens, heads=heads, head_width=inner)
        assert found == pytest.approx(math.log(proven, 3), abs=1e-9)
        published = attention_bounds(depth, width, 1).upper
        if 3**depth > width and published is not None:
            assert upper_refuted(depth, width, tokens, None, heads, inner) == (proven > published)


def test_two_heads_refute_it_later_than_one() -> None:
    """At d = 16 by whole numbers: two heads of width 8 from 14 layers on, one head of width 16 from 9."""
    depth = refuted_depth(16, heads=2, head_width=8)
    assert (depth, refuted_depth(16)) == (14, 9)
    for layers in (13, 14):
        published = attention_bounds(layers, 16, 1).upper
        assert published is not None
        beaten = layers == 14
        assert (_proven_for_heads(layers, 16, 16, 2, 8) > published) == beaten
        found = standing_bounds(layers, 16, 2)
        assert (found.upper is None) == beaten
        assert ("false here" in found.reason) == beaten


def test_a_refuted_upper_bound_is_not_given_and_the_reason_says_what_is_proven() -> None:
    """By whole numbers, without the logarithms that decide: at d = 8 from L = 9 on, and only with enough tokens."""
    for depth in range(2, 12):
        published = attention_bounds(depth, 8, 1).upper
        assert published is not None
        for tokens in (2, 5, 8, 40):
            few = (few_tokens_lower_bound(depth, 8, fewer) for fewer in range(1, min(8, tokens + 1)))
            beaten = max(*few, growth_lower_bound(depth, min(8, tokens))) > published
            assert upper_refuted(depth, 8, tokens) == beaten
            found = standing_bounds(depth, 8, 1, tokens)
            assert found.lower == attention_bounds(depth, 8, 1).lower
            assert (found.upper is None) == beaten
            assert ("false here" in found.reason) == beaten
            two = standing_bounds(depth, 8, 2, tokens)  # two heads of width 4: no proof reaches them
            assert two.upper == attention_bounds(depth, 8, 2).upper
            assert ("refuted for one head of full width" in two.reason) == beaten
    assert not upper_refuted(3, 28)  # Theorem 7.1 speaks there
    assert standing_bounds(9, 8, 9).upper_log3 is None  # more heads than the width: none, and no refutation
