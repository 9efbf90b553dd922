"""Growth with few tokens (docs/paper.md, Theorem 2): each lemma by brute force over GF(p), with code of its own."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from theodolite.errors import OutsideDomain
from theodolite.theory.attention import theorem_7_2
from theodolite.theory.attention_growth import (
    base_depth,
    few_tokens_lower_bound,
    growth_exponent,
    growth_lower_bound,
    growth_lower_bound_log3,
    proven_log3,
    refuted_depth,
    upper_refuted,
)
from theodolite.theory.cap import attention_cap

from . import modular

P = 51_193  # p − 1 = 4·3⁴·158, and 2 is a square: GF(p) has 81st roots of unity, i and √2
Residues = NDArray[np.int64]
Layers = list[list[tuple[Residues, Residues]]]  # for every layer its heads' (A, B)


def test_the_prime_has_the_roots_that_the_proof_takes() -> None:
    assert all(P % f for f in range(2, math.isqrt(P) + 1))
    assert (P - 1) % (4 * 81) == 0
    assert pow(2, (P - 1) // 2, P) == 1


def _product(*factors: Residues) -> Residues:
    """Of matrices over GF(p)[ε₁, ε₂]/(ε₁², ε₂²): arrays (part, …, row, column), parts 1, ε₁, ε₂, ε₁ε₂."""
    x = factors[0]
    for y in factors[1:]:
        if len(x) == 1:  # plain matrices
            x = x @ y % P
            continue
        both = x[0] @ y[3] + x[3] @ y[0] + x[1] @ y[2] + x[2] @ y[1]
        x = np.stack([x[0] @ y[0], x[0] @ y[1] + x[1] @ y[0], x[0] @ y[2] + x[2] @ y[0], both]) % P
    return x


def _row(layers: Layers, a: Residues, s: Residues) -> Residues:
    """w(S)ᵀ = aᵀF for a batch of such matrices S, F by the recursion of Lemma 1."""
    f = np.zeros_like(s)
    f[0] = np.eye(s.shape[-1], dtype=np.int64)
    for heads in layers:
        gram = _product(f, s, np.swapaxes(f, -1, -2))
        f = sum(_product(left @ gram % P, right @ f % P) for left, right in heads) % P
    return a @ f % P


def _form(layers: Layers, a: Residues, s: Residues) -> Residues:
    """q(S) = w(S)ᵀS w(S)."""
    row = _row(layers, a, s)
    return _product(row, s, np.swapaxes(row, -1, -2))[..., 0, 0]


def _at(tokens: Residues) -> Residues:
    return tokens @ np.swapaxes(tokens, -1, -2) % P


def _bordered_rank(layers: Layers, a: Residues, x: Residues, y: Residues) -> int:
    """Rank of the Hessian on T_A × T_B, bordered by the gradients: ρ + 2 of Lemma 3, whose q = 0 and wᵀx ≠ 0 hold."""
    left, right = _tangents(x), _tangents(y)
    s = np.zeros((4, len(left), len(right), *left.shape[1:]), dtype=np.int64)
    s[0], s[1], s[2] = (_at(x) + _at(y)) % P, left[:, None], right
    value, along_a, along_b, both = _form(layers, a[None], s)
    assert not value.any()
    assert (_row(layers, a[None], s[:1, 0, 0])[0] @ x % P).any()
    bordered = np.block([[both, along_a[:, :1]], [along_b[:1], np.zeros((1, 1), dtype=np.int64)]])
    return modular.rank((bordered % P).tolist(), P)


def _tangents(tokens: Residues) -> Residues:
    d, t = tokens.shape
    bumps = np.eye(d * t, dtype=np.int64).reshape(d * t, d, t)
    half = bumps @ tokens.T % P
    return (half + half.transpose(0, 2, 1)) % P


def _root(value: int) -> int | None:
    return next((r for r in range(P // 2 + 1) if (r * r - value) % P == 0), None)


def _special_point(d: int, t: int, degree: int) -> tuple[Residues, Residues, Residues]:
    """The proof's a, X and Y: blocks of one or two roots of unity, x = (√ν₁, −√ν₂)/√2 and y = (√ν₁, √ν₂)/√2."""
    primes = [f for f in range(2, 300) if (P - 1) % f == 0 and all(f % g for g in range(2, f))]
    generator = next(g for g in range(2, P) if all(pow(g, (P - 1) // f, P) != 1 for f in primes))
    used, singles, scale = min(d, 2 * t), max(0, 2 * t - d), _root(pow(2, -1, P))
    assert scale is not None
    roots = [pow(generator, (P - 1) // degree * j, P) for j in range(used)]
    blocks = [(0, 1), *((2 + j,) for j in range(singles))]
    blocks += [(2 + singles + 2 * j, 3 + singles + 2 * j) for j in range(t - singles - 1)]
    x, y = np.zeros((2, d, t), dtype=np.int64)
    for token, block in enumerate(blocks):
        for sign, r in zip((1, -1), block, strict=False):
            y[r, token] = scale * pow(roots[r], (degree + 1) // 2, P) % P
            x[r, token] = sign * y[r, token] % P
    draws = np.random.default_rng(100 * d + t)
    while True:
        a = np.zeros(d, dtype=np.int64)
        a[:used] = draws.integers(1, P, size=used)
        second = _root(int(a[1] ** 2 - (a**2).sum()) % P)
        if second:
            a[1] = second
            return a, x, y


@pytest.mark.parametrize(("rho", "k"), [(0, 3), (1, 2), (2, 3), (3, 2), (4, 3)])
def test_a_power_of_the_normal_form_has_the_rank_of_the_lemma(rho: int, k: int) -> None:
    """Lemma 3: (σ_A + σ_B + Σ s_j s'_j)^k has rank binom(k+ρ+1, k), by its table of coefficients."""
    table: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for powers in itertools.product(range(k + 1), repeat=rho + 2):
        if sum(powers) == k:
            row = table.setdefault((powers[0], *powers[2:]), {})
            row[powers[1:]] = math.factorial(k) // math.prod(math.factorial(power) for power in powers)
    columns = sorted({column for row in table.values() for column in row})
    matrix = np.array([[row.get(column, 0) for column in columns] for row in table.values()])
    assert modular.rank((matrix % P).tolist(), P) == math.comb(k + rho + 1, k)


SHAPES = [(d, t) for d in range(2, 9) for t in range(1, d)]


@pytest.mark.parametrize(("d", "t"), SHAPES)
def test_the_point_of_roots_of_unity_is_one_of_the_theorem(d: int, t: int) -> None:
    """A = B = 1, S₀ a diagonal of roots of unity, a drawn on the quadric of the proof: ρ = δ − 1."""
    base = base_depth(min(d, 2 * t))
    a, x, y = _special_point(d, t, 3**base)
    one = np.eye(d, dtype=np.int64)
    assert _bordered_rank([[(one, one)]] * base, a, x, y) == growth_exponent(d, t) + 1


@pytest.mark.parametrize(("d", "inner", "t"), [(4, 2, 1), (5, 2, 1), (6, 2, 1), (3, 1, 1), (8, 4, 2), (6, 3, 2)])
def test_heads_that_share_two_projections_are_enough(d: int, inner: int, t: int) -> None:
    """Step 6: ⌈2t/d_a⌉·⌈d/d_a⌉ heads, the first layer's B sharing the identity; all else happens in 2t dimensions."""
    base = base_depth(2 * t) + 1
    a, x, y = _special_point(d, t, 3**base)
    places = np.arange(d)
    shares = [np.diag(places // inner == h).astype(np.int64) for h in range(-(-d // inner))]
    small = [share * (places < 2 * t) for share in shares[: -(-2 * t // inner)]]
    layers = [list(itertools.product(small, shares)), *[list(itertools.product(small, small))] * (base - 1)]
    assert _bordered_rank(layers, a, x, y) == growth_exponent(d, t) + 1


def test_enough_narrow_heads_contain_one_of_full_width() -> None:
    draws = np.random.default_rng(0)
    d, inner = 5, 2
    a, b, x = draws.integers(9, size=(3, d, d))
    shares = [np.diag(np.arange(d) // inner == h).astype(np.int64) for h in range(-(-d // inner))]
    heads = [(a @ left, right @ b) for left, right in itertools.product(shares, shares)]
    assert len(heads) == 9
    assert all(np.linalg.matrix_rank(side) <= inner for head in heads for side in head)
    assert (sum(left @ x @ right for left, right in heads) == a @ x @ b).all()


@pytest.mark.parametrize(("d", "heads", "t"), [(5, 5, 3), (6, 6, 3), (8, 4, 3), (4, 4, 2)])
def test_narrow_heads_are_certified_one_by_one(d: int, heads: int, t: int) -> None:
    """Drawn weights with H·d_a = d, a zero of q on a line, base depth 2: the premise of Lemma 3 modulo p."""
    draws, inner = np.random.default_rng(7 * d + t), d // heads

    def low_rank() -> Residues:
        return draws.integers(P, size=(d, inner)) @ draws.integers(P, size=(inner, d)) % P

    layers = [[(low_rank(), low_rank()) for _ in range(heads)] for _ in range(2)]
    a, y = draws.integers(P, size=d), draws.integers(P, size=(d, t))
    while True:
        origin, direction = draws.integers(P, size=(2, d, t))
        line = (origin + np.arange(4_000)[:, None, None] * direction) % P
        zeros = np.flatnonzero(_form(layers, a[None], (_at(line) + _at(y))[None] % P)[0] == 0)
        if len(zeros):
            break
    assert _bordered_rank(layers, a, line[zeros[0]], y) == growth_exponent(d, t) + 1


@pytest.mark.parametrize("earlier", [(2,), (2, 1), (2, 1, 2), (2, 2, 2)])
def test_what_is_left_of_a_block_has_the_real_part_of_the_proof(earlier: tuple[int, ...]) -> None:
    """Step 4: the limit's group of a block of two, its off-diagonal parts eliminated: (ε − 1 − blocks before)/2."""
    degree = 27
    places = list(itertools.accumulate((0, *earlier)))
    root = np.exp(2j * np.pi * np.arange(places[-1] + 2) / degree)
    draws = np.random.default_rng(len(earlier))
    alpha = draws.normal(size=len(root)) + 1j * draws.normal(size=len(root))
    a = np.sqrt(alpha)
    one = root[-2]
    left = np.array([1, 1]) / np.sqrt(root[-2:])  # n_A: what the tangents of x's block annul
    right = np.array([1, -1]) / np.sqrt(root[-2:])
    corrected = (degree - 1) / 2 + 0j  # in units of 2εα/ν², the entry P₁₁R₁₁
    for start, size in zip(places, earlier, strict=False):
        t = slice(start, start + size)
        pairing = (2 * degree * alpha[t] / root[t])[:, None] / (root[t][:, None] - root[-2:])
        meets = np.zeros((size, 2), dtype=complex)  # the last block's second weight is 0
        meets[:, 0] = 2 * degree * a[t] * a[-2] / (one * (one - root[t]))
        matrix, border = np.diag(pairing.ravel()), np.zeros((2 * size, 0))
        other = border
        if size == 2:  # both of two: one form on either side is annulled
            border = np.outer([1, 1] / np.sqrt(root[t]), left).reshape(-1, 1)
            other = np.outer([1, -1] / np.sqrt(root[t]), right).reshape(-1, 1)
        kept_a, kept_b = (np.linalg.svd(n.T)[2][n.shape[1] :].conj().T for n in (border, other))
        inside = kept_a.T @ matrix @ kept_b
        flat = meets.ravel()
        corrected -= (flat @ kept_b @ np.linalg.solve(inside, kept_a.T @ flat)) / (2 * degree * alpha[-2] / one**2)
    assert corrected.real == pytest.approx((degree - 1 - len(earlier)) / 2)


@pytest.mark.parametrize(("depth", "d", "t"), [(2, 2, 1), (2, 3, 1), (3, 2, 1), (3, 3, 2)])
def test_ranks_are_at_least_the_bound(depth: int, d: int, t: int) -> None:
    """One head with drawn weights, layer by layer from Eq. 7.6 in plain integers, at as many points as the bound."""
    rng, bound = random.Random(depth + d), few_tokens_lower_bound(depth, d, t)
    weights = [[modular.draw(rng, d, d) for _ in range(4)] for _ in range(depth)]

    def output(tokens: modular.Matrix) -> int:
        for o, v, k, q in weights:
            keys, values = ([modular.apply(w, x) for x in tokens] for w in (k, v))
            read = []
            for x in tokens:
                query = modular.apply(q, x)
                scores = [sum(p * r for p, r in zip(query, key, strict=True)) for key in keys]
                mixed = [sum(s * value[r] for s, value in zip(scores, values, strict=True)) for r in range(d)]
                read.append(modular.apply(o, [entry % modular.PRIME for entry in mixed]))
            tokens = read
        return tokens[0][0]

    sides = [[modular.draw(rng, t, d) for _ in range(bound)] for _ in range(2)]
    assert bound > 1
    assert modular.rank([[output(left + right) for right in sides[1]] for left in sides[0]]) == bound


@pytest.mark.parametrize(("d", "t"), [(2, 1), (3, 2), (4, 2), (4, 3), (6, 3)])
def test_the_bound_lies_below_the_cap_and_grows_with_the_exponent(d: int, t: int) -> None:
    for depth in range(1, 6):
        assert few_tokens_lower_bound(depth, d, t) <= attention_cap(depth, d, t, t)
    exact = [math.log(few_tokens_lower_bound(depth, d, t), 3) for depth in (11, 12)]
    assert exact[1] - exact[0] == pytest.approx(growth_exponent(d, t), rel=1e-2)
    assert proven_log3(12, d, t) >= exact[1] - 1e-6


def test_as_many_tokens_as_the_width_belong_to_the_other_theorem() -> None:
    with pytest.raises(OutsideDomain, match="fewer than width = 4"):
        few_tokens_lower_bound(5, 4, 4)
    assert growth_exponent(5, 7) == growth_exponent(5) == 15
    assert proven_log3(9, 8, 8) == proven_log3(9, 8) == growth_lower_bound_log3(9, 8)


@pytest.mark.parametrize("d", [1, 2, 5, 9, 14])
def test_what_is_proven_is_the_best_over_all_tokens_and_dimensions_that_may_be_used(d: int) -> None:
    for depth, t in itertools.product(range(1, 9), range(1, d + 3)):
        full = [growth_lower_bound(depth, r) for r in range(1, min(t, d) + 1)]
        few = [few_tokens_lower_bound(depth, w, r) for w in range(2, d + 1) for r in range(1, min(t, w - 1) + 1)]
        assert proven_log3(depth, d, t) == pytest.approx(math.log(max(full + few), 3), abs=1e-9)


def test_tokens_in_fewer_dimensions_make_these_the_width() -> None:
    assert proven_log3(9, 8, 20, 5) == proven_log3(9, 5) == growth_lower_bound_log3(9, 5)
    assert proven_log3(9, 8, 3, 5) == proven_log3(9, 5, 3)


@pytest.mark.parametrize(("d", "t"), [(4, 4), (5, 3), (6, 3), (6, 5), (8, 3), (8, 6), (16, 3), (16, 8)])
def test_the_first_depth_beyond_the_published_bound_is_that_of_whole_numbers(d: int, t: int) -> None:
    depth = refuted_depth(d, t)
    assert depth is not None
    for layers in range(base_depth(d), depth + 1):
        published = theorem_7_2(layers, d, 1).upper
        assert published is not None
        few = (few_tokens_lower_bound(layers, w, r) for w in range(2, d + 1) for r in range(1, min(t, w - 1) + 1))
        proven = max(*few, growth_lower_bound(layers, t))
        assert (proven > published) == (layers == depth) == upper_refuted(layers, d, t)


def test_where_the_published_bound_falls_is_where_the_exponent_is_larger() -> None:
    """Six tokens from d = 5 on, eight at d = 4, never below: widths up to 40, up to five tokens a side."""
    for d, t in itertools.product((1, 2, 3, 4, 5, 6, 7, 12, 40), range(1, 6)):
        beyond = (d >= 5 and t >= 3) or (d == 4 and t >= 4)
        assert (growth_exponent(d, t) > 2 * d + 1) == beyond
        assert (refuted_depth(d, t) is not None) == beyond


def test_tokens_in_as_many_dimensions_refute_it_already() -> None:
    """The corollary of Theorem 1 alone: from t(t+1)/2 > 2d + 1 on, 12 tokens at d = 8 and 16 at d = 16."""

    def passes(d: int, t: int) -> bool:
        bounds = (
            (growth_lower_bound_log3(depth, t), theorem_7_2(depth, d, 1).upper_log3) for depth in range(5, 150, 5)
        )
        return any(proven > published for proven, published in bounds if published is not None)

    for d in (4, 8, 16):
        assert [t for t in range(1, d + 1) if passes(d, t)] == [
            t for t in range(1, d + 1) if t * (t + 1) // 2 > 2 * d + 1
        ]
    assert min(t for t in range(1, 9) if passes(8, t)) == 6
    assert min(t for t in range(1, 17) if passes(16, t)) == 8
