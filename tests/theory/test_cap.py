"""Caps, against measured ranks of networks and of generic polynomials."""

import math
import random
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.attention import attention_bounds, hops
from theodolite.theory.cap import attention_cap, homogeneous_cap, multihomogeneous_cap, polynomial_cap
from theodolite.theory.invariants import covariants, invariants

from . import modular


def attention(rng, depth, width, heads, attention_width, skip=False):
    """Eq. 7.6 token by token, entry 0 of the output at `token`; says nothing of S."""
    layers = [
        [
            tuple(modular.draw(rng, *shape) for shape in [(width, attention_width)] + 3 * [(attention_width, width)])
            for _ in range(heads)
        ]
        for _ in range(depth)
    ]

    def network(tokens, token=0):
        y = tokens
        for layer in layers:
            fresh = [list(vector) if skip else [0] * width for vector in y]
            for o, v, k, q in layer:
                keys, values = [modular.apply(k, t) for t in y], [modular.apply(v, t) for t in y]
                for i, vector in enumerate(y):
                    query = modular.apply(q, vector)
                    scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
                    mixed = [sum(s * value[e] for s, value in zip(scores, values, strict=True)) for e in range(len(q))]
                    fresh[i] = [(a + b) % modular.PRIME for a, b in zip(fresh[i], modular.apply(o, mixed), strict=True)]
            y = fresh
        return y[token][0]

    return network


def measured(network, width, tokens_with_output, tokens_other, points, rng, embedding=None):
    """Rank of the network's table; token 0, the output, stands on side A."""
    rank = width if embedding is None else len(embedding[0])

    def side(tokens):
        drawn = [modular.vector(rng, rank) for _ in range(tokens)]
        return drawn if embedding is None else [modular.apply(embedding, w) for w in drawn]

    a = [side(tokens_with_output) for _ in range(points)]
    b = [side(tokens_other) for _ in range(points)]
    return modular.rank([[network(left + right) for right in b] for left in a])


@each(
    ("depth", "width", "tokens_with_output", "tokens_other"),
    [
        *[(1, 3, 1, 1), (1, 4, 2, 2), (1, 3, 4, 4), (2, 2, 1, 1), (2, 2, 1, 2), (2, 2, 2, 1), (2, 2, 2, 2)],
        *[(2, 2, 3, 3), (2, 3, 1, 1), (2, 3, 2, 1), (2, 3, 2, 2), (2, 3, 3, 2)],
    ],
)
def test_one_head_attains_the_cap(depth, width, tokens_with_output, tokens_other):
    rng = random.Random(3)
    cap = attention_cap(depth, width, tokens_with_output, tokens_other)
    network = attention(rng, depth, width, heads=1, attention_width=width)
    assert measured(network, width, tokens_with_output, tokens_other, cap + 3, rng) == cap


def test_one_head_stays_below_the_cap_when_the_output_token_is_alone():
    """The known exception; three full-width heads attain it."""
    rng = random.Random(4)
    assert attention_cap(2, 3, 1, 2) == 41
    for heads, rank in ((1, 39), (3, 41)):
        network = attention(rng, 2, 3, heads=heads, attention_width=3)
        assert measured(network, 3, 1, 2, 44, rng) == rank


def test_skip_connections_and_heads_do_not_pass_the_cap():
    rng = random.Random(5)
    for heads, attention_width in ((1, 2), (2, 1), (4, 2)):
        network = attention(rng, 2, 2, heads, attention_width, skip=True)
        assert measured(network, 2, 2, 2, 24, rng) <= attention_cap(2, 2, 2, 2) == 18


@pytest.mark.parametrize(("degree", "width", "n", "m"), [(3, 3, 2, 1), (3, 3, 1, 2), (4, 3, 1, 2), (3, 3, 2, 2)])
def test_a_generic_polynomial_in_s_attains_the_cap(degree, width, n, m):
    """Σ_r F_r(S) x^i_r with random forms F_r: the cap cannot be lowered for the class it speaks of."""
    rng = random.Random(13)
    cap = sum(min(invariants(c, width, m), covariants(degree - c, width, n)) for c in range(degree + 1))
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    chosen = list(combinations_with_replacement(range(len(pairs)), degree))
    forms = modular.draw(rng, width, len(chosen))

    def value(left, right):
        s = modular.times(modular.transpose(left + right), left + right)
        entries = [s[i][j] for i, j in pairs]
        monomials = [math.prod(entries[e] for e in choice) % modular.PRIME for choice in chosen]
        return sum(a * b for a, b in zip(modular.apply(forms, monomials), left[0], strict=True)) % modular.PRIME

    a, b = ([modular.draw(rng, tokens, width) for _ in range(cap + 3)] for tokens in (n, m))
    assert modular.rank([[value(left, right) for right in b] for left in a]) == cap


def test_embedding_rank_lowers_the_width():
    rng = random.Random(6)
    cap = attention_cap(2, 3, 2, 2, embedding_rank=2)
    assert cap == attention_cap(2, 2, 2, 2) == 18
    network = attention(rng, 2, 3, heads=1, attention_width=3)
    assert measured(network, 3, 2, 2, cap + 3, rng, embedding=modular.draw(rng, 3, 2)) == cap
    assert attention_cap(2, 3, 2, 2, embedding_rank=9) == attention_cap(2, 3, 2, 2)


@given(st.integers(1, 4), st.integers(1, 6))
def test_two_tokens(depth, width):
    assert attention_cap(depth, width, 1, 1) == math.comb(width + hops(depth), width)


@given(st.integers(1, 2), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
def test_is_the_graded_sum_and_monotone(depth, width, with_output, other):
    total = hops(depth)
    terms = [min(invariants(c, width, other), covariants(total - c, width, with_output)) for c in range(total + 1)]
    cap = attention_cap(depth, width, with_output, other)
    assert cap == sum(terms)
    assert cap <= attention_cap(depth, width, with_output + 1, other)
    assert cap <= attention_cap(depth, width, with_output, other + 1)
    assert cap <= attention_cap(depth, width + 1, with_output, other)
    assert cap <= attention_cap(depth + 1, width, with_output, other)
    if with_output >= width and other >= width:
        assert cap == attention_cap(depth, width, with_output + 3, other + 5)


def test_no_lower_bound_of_the_theorems_passes_the_cap():
    for depth in (1, 2, 3, 4):
        for width in (2, 4, 8, 10, 28):
            bounds = attention_bounds(depth, width, 1)
            if bounds.lower is not None:
                assert bounds.lower <= attention_cap(depth, width, 1, 1)


def test_other_block_degrees():
    assert attention_cap(1, 2, 1, 1, block_degree=5) == math.comb(2 + 2, 2)
    assert attention_cap(1, 2, 2, 2, block_degree=9) == attention_cap(2, 2, 2, 2)  # C = 4 both
    with pytest.raises(OutsideDomain, match="odd"):
        attention_cap(1, 2, 1, 1, block_degree=4)


@pytest.mark.parametrize("wrong", [(0, 2, 1, 1), (1, 0, 1, 1), (1, 2, 0, 1), (1, 2, 1, 0), (1, 2, 1, 1, 0)])
def test_outside_the_domain(wrong):
    with pytest.raises(OutsideDomain, match="pass an integer of at least 1"):
        attention_cap(*wrong)


def monomial_degrees(variables, degree):
    """The degrees of all monomials up to `degree`, one entry a monomial."""
    return [c for c in range(degree + 1) for _ in combinations_with_replacement(range(variables), c)]


def coefficient_rank(degree, variables_a, variables_b, keep):
    rng = random.Random(7)
    rows, columns = monomial_degrees(variables_a, degree), monomial_degrees(variables_b, degree)
    return modular.rank([[rng.randrange(modular.PRIME) if keep(a + b) else 0 for b in columns] for a in rows])


@given(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3))
def test_generic_polynomials_attain_their_cap(degree, variables_a, variables_b):
    assert homogeneous_cap(degree, variables_a, variables_b) == coefficient_rank(
        degree, variables_a, variables_b, lambda total: total == degree
    )
    assert polynomial_cap(degree, variables_a, variables_b) == coefficient_rank(
        degree, variables_a, variables_b, lambda total: total <= degree
    )


@given(st.integers(0, 12), st.integers(1, 8), st.integers(1, 8))
def test_lower_terms_do_not_raise_the_cap(degree, variables_a, variables_b):
    cap = polynomial_cap(degree, variables_a, variables_b)
    assert cap == homogeneous_cap(degree, variables_a, variables_b)
    assert cap == polynomial_cap(degree, variables_b, variables_a)
    assert cap <= polynomial_cap(degree + 1, variables_a, variables_b)


def test_polynomial_extremes():
    assert polynomial_cap(0, 3, 5) == 1
    assert polynomial_cap(1, 3, 5) == 2  # a(x_A)·1 + 1·b(x_B)
    assert polynomial_cap(2, 3, 100) == 5  # 1·q(x_B) + Σ x_i·l_i(x_B) + q'(x_A)·1


def test_multihomogeneous():
    assert multihomogeneous_cap([1, 1], [1], 3) == 3
    assert multihomogeneous_cap([2, 1], [4], 2) == 5
    assert multihomogeneous_cap([2], [1, 1], 3) == 6  # against 9
    assert multihomogeneous_cap([0], [7, 7], 3) == 1
    with pytest.raises(OutsideDomain, match="features = 0"):
        multihomogeneous_cap([1], [1], 0)


def test_the_cap_is_below_the_upper_half_of_theorem_7_1_at_every_depth():
    """docs/paper.md, Theorem 3: cap ≤ 1 + d + … + d^C ≤ (d+1)^C, with any number of tokens, beyond L < log3 d too."""
    for depth, width, n, m in product((1, 2, 3), range(1, 7), (1, 2, 6), (1, 3, 6)):
        total = hops(depth)
        cap = attention_cap(depth, width, n, m)
        assert cap <= sum(width**j for j in range(total + 1)) <= (width + 1) ** total
    assert attention_cap(1, 5, 9, 9) == 6  # attained at depth 1
