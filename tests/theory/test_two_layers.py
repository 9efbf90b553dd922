"""Two layers of one head (docs/exact-rank.md): each step of the proof by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from theodolite.theory.cap import attention_cap
from theodolite.theory.heads import heads_cap

from . import modular

P = 32_003
Residues = NDArray[np.int64]


def _symplectic(d: int) -> Residues:
    pair = np.array([[0, 1], [-1, 0]])
    return np.kron(np.eye(d // 2, dtype=np.int64), pair)


def _symmetric_product(a: Residues, b: Residues) -> Residues:
    rows, columns = np.triu_indices(len(a))
    return np.where(rows == columns, a[rows] * b[rows], a[rows] * b[columns] + a[columns] * b[rows]) % P


@pytest.mark.parametrize("d", [2, 4, 6])
def test_rank_one_matrices_leave_one_operator_of_order_two(d: int) -> None:
    """Q(u², Mu·ζ) = c(u)·ζᵀNu with M diagonal has one solution (Q, c) up to a factor."""
    random, n = np.random.default_rng(d), _symplectic(d)
    m = random.integers(1, P, size=d)
    first, second = np.triu_indices(d * (d + 1) // 2)
    equations = []
    for _ in range(len(first) + d * (d + 1) // 2 + 20):
        u, zeta = random.integers(P, size=(2, d))
        alpha, beta = _symmetric_product(u, u), _symmetric_product(m * u % P, zeta)
        left = np.where(
            first == second, alpha[first] * beta[first], alpha[first] * beta[second] + alpha[second] * beta[first]
        )
        right = _symmetric_product(u, u) * (zeta @ n @ u % P)
        equations.append(np.concatenate([left, -right]) % P)
    unknowns = len(equations[0])
    assert unknowns - modular.rank((np.array(equations) % P).tolist(), P) == 1


@pytest.mark.parametrize("d", [2, 4, 6])
def test_the_operator_that_is_left_does_not_kill_the_network(d: int) -> None:
    """Σ N_bc N_da ∂_ab ∂_cd of vᵀS B S Bᵀ S G S B z at S = 1_E, by differences: −1, whatever d."""
    n = b = _symplectic(d)
    inside = np.diag(np.arange(d) < 2).astype(np.int64)
    g, v, z = np.zeros((d, d), dtype=np.int64), np.eye(d, dtype=np.int64)[0], np.zeros(d, dtype=np.int64)
    g[1, 1], z[:2] = 1, 1

    def word(s: Residues) -> int:
        return int(v @ s @ b @ s @ b.T @ s @ g @ s @ b @ z)

    def second(p: Residues, r: Residues) -> float:
        """The coefficient of xy in word(S + xp + yr), a polynomial of degree 4, from its values on a grid."""
        steps = range(-2, 3)
        table = np.array([[word(inside + x * p + y * r) for y in steps] for x in steps], dtype=float)
        slope = np.array([1, -8, 0, 8, -1]) / 12
        return float(slope @ table @ slope)

    units = [[np.zeros((d, d), dtype=np.int64) for _ in range(d)] for _ in range(d)]
    for i, j in itertools.product(range(d), repeat=2):  # twice the direction (E_ij + E_ji)/2
        units[i][j][i, j] += 1
        units[i][j][j, i] += 1
    total = 0.0
    for i, j, k, m in itertools.product(range(d), repeat=4):
        if n[j, k] and n[m, i]:
            total += n[j, k] * n[m, i] * second(units[i][j], units[k][m]) / 4
    assert abs(total) == pytest.approx(1)


@pytest.mark.parametrize("d", [6, 7])
def test_no_direction_kills_the_cubic_form_on_a_hyperplane(d: int) -> None:
    """∂_X of vᵀS B S Bᵀ S g vanishes on all symmetric S with Sh = 0 for X = 0 only; v, B, g drawn, h = e_1."""
    random = np.random.default_rng(d)
    b, v, g = random.integers(P, size=(d, d)), random.integers(P, size=d), random.integers(P, size=d)
    rows, columns = np.triu_indices(d)
    basis = np.zeros((len(rows), d, d), dtype=np.int64)
    basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = 1
    equations = []
    for _ in range(len(rows) + 10):
        t = random.integers(P, size=d)
        t[0] = 0
        form, first, last = int(t @ b % P @ t % P), int(v @ t % P), int(g @ t % P)
        along = b @ t % P
        back = b.T @ t % P
        terms = (v @ basis % P @ along) * (form * last % P) + (back @ basis % P @ back) * (first * last % P)
        terms += (along @ basis % P @ g) * (first * form % P)
        equations.append(terms % P)
    assert modular.rank((np.array(equations) % P).tolist(), P) == len(rows)


@pytest.mark.parametrize(("d", "left_over"), [(3, 1), (5, 0), (7, 0)])
def test_for_odd_widths_rank_one_matrices_leave_no_operator(d: int, left_over: int) -> None:
    """B = N ⊕ 1, v = e, G = NM ⊕ m: no Q ≠ 0 satisfies all equations of S = xxᵀ, but one at d = 3, with one pair."""
    random, n = np.random.default_rng(d), _symplectic(d - 1)
    m = random.integers(1, P, size=d)
    b, g = np.eye(d, dtype=np.int64), np.diag(m)
    b[:-1, :-1], g[:-1, :-1], v = n, n @ g[:-1, :-1] % P, np.eye(d, dtype=np.int64)[-1]
    rows, columns = np.triu_indices(d)
    basis = np.zeros((len(rows), d, d), dtype=np.int64)
    basis[np.arange(len(rows)), rows, columns] = basis[np.arange(len(rows)), columns, rows] = 1
    first, second = np.triu_indices(len(rows))
    equations = []
    for _ in range(len(first) + 15):
        x, y, z = random.integers(P, size=(3, d))
        zeta = ((x @ y % P) * z - (x @ z % P) * y) % P  # ⟂ x
        # the second derivative of vᵀS B S Bᵀ S G S at S = xxᵀ, applied to ζ: P at the first three places, R at the last
        outer, form, start = basis @ zeta % P, x @ b % P @ x % P, v @ x % P
        ends = outer @ (g.T @ x % P) % P
        places = (v @ basis % P @ (b @ x % P) * form + start * (basis @ (b.T @ x % P) % P @ (b.T @ x % P))) % P
        third = (b @ x % P @ basis) % P @ g % P @ outer.T % P
        pairs = (np.outer(places, ends) + start * form % P * third) % P
        both = np.where(first == second, pairs[first, first], pairs[first, second] + pairs[second, first])
        equations.append(both % P)
    assert len(first) - modular.rank((np.array(equations) % P).tolist(), P) == left_over


def test_the_cap_of_as_many_heads_as_contain_a_full_one_is_that_of_the_full_one() -> None:
    """Else the theorem, which holds for ⌈d/d_a⌉² heads, would contradict the cap of the heads."""
    for d in range(2, 10):
        entries = d * (d + 1) // 2
        full = 1 + entries + entries * (entries + 1) // 2 + d * entries + d
        assert attention_cap(2, d, d, d) == full
        for inner in range(1, d + 1):
            assert heads_cap(2, d, (-(-d // inner)) ** 2, inner) == full
