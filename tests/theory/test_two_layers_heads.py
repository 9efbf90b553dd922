"""Two layers of many heads (docs/exact-rank.md): the main steps of the proof by brute force, and the archive."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import two_layer_maps
from numpy.typing import NDArray

from theodolite.errors import OutsideDomain
from theodolite.field import Modulus, rank
from theodolite.instruments.rank.document import read
from theodolite.theory.attention_rank import graded_cap
from theodolite.theory.heads import Reading, graded_heads_cap, heads_that_see_all
from theodolite.theory.two_layers import CERTIFIED, COMPUTED, FORMS_CHECKED, law_proven

from . import modular

P = 8_388_593
Residues = NDArray[np.int64]
Row = Callable[[Residues], Residues]  # matrices S, stacked, to rows of d
ARCHIVE = Path(__file__).resolve().parents[2] / "benchmarks" / "certificates" / "two-layers.jsonl"


def _rank(table: Residues) -> int:
    return modular.rank((table % P).tolist(), P)


def _part(phi: Row, d: int, c: int, seed: int = 0) -> int:
    """The rank of the part of degree c in B of Φ(A + B), from its values at random symmetric A and B."""
    random = np.random.default_rng(seed)
    entries = d * (d + 1) // 2
    columns = {1: entries, 2: entries * (entries + 1) // 2, 3: d * entries}[c] + 5
    points = random.integers(P, size=(max(entries, -(-columns // d)) + 1 + columns, d, d))
    points = (points + points.transpose(0, 2, 1)) % P
    a, b = points[:-columns], points[-columns:]
    weights = [_coefficient(c, step) for step in range(5)]
    table = np.zeros((len(a), d, columns), dtype=np.int64)
    for i, s in enumerate(a):
        values = sum(w * phi((s + step * b) % P) % P for step, w in enumerate(weights))
        table[i] = np.asarray(values % P).T
    return _rank(table.reshape(-1, columns))


def _coefficient(c: int, step: int) -> int:
    """What value `step` counts in the coefficient of t^c of a polynomial of degree 4, by Lagrange at 0 … 4."""
    polynomial, scale = [1], 1
    for other in (k for k in range(5) if k != step):
        polynomial = [x - other * y for x, y in zip([0, *polynomial], [*polynomial, 0], strict=True)]
        scale *= step - other
    return polynomial[c] * pow(scale, -1, P) % P


def _words(f: Callable[[Residues], Residues], terms: list[tuple[int, int, int, int]]) -> Row:
    """Σ sign·S(F_i, F_j)·F_k over (i, j, k, sign)."""

    def phi(s: Residues) -> Residues:
        rows = f(s)
        images = rows @ s % P
        total = np.zeros_like(rows[:, 0])
        for i, j, k, sign in terms:
            form = (rows[:, i] * images[:, j] % P).sum(1) % P * sign % P
            total = (total + form[:, None] * rows[:, k]) % P
        return total

    return phi


def _first_layer(d: int, heads: int, inner: int) -> Callable[[Residues], Residues]:
    random = np.random.default_rng(d + 10 * heads + 100 * inner)
    o, v, k, q = (random.integers(1, P, size=(heads, *size)) for size in ((d, inner), *[(inner, d)] * 3))

    def f(s: Residues) -> Residues:
        blocks = ((o[h] @ ((v[h] @ s % P) @ k[h].T % P) % P) @ q[h] % P for h in range(heads))
        return sum(blocks, np.zeros_like(s)) % P

    return f


# (width, heads, d_a), full rows l, rows N: heads that share the width, one more, two wide ones, single entries
@pytest.mark.parametrize(
    ("shape", "full", "rows"),
    [((6, 3, 2), 2, 2), ((6, 3, 3), 3, 4), ((5, 2, 3), 2, 3), ((6, 2, 3), 3, 3), ((6, 14, 1), 2, 3)],
)
def test_a_symmetric_matrix_for_each_row_is_enough_for_the_second_part(shape, full, rows):
    pairs = [(i, j) for i in range(full) for j in range(i, full)]
    phi = _words(_first_layer(*shape), [(i, j, k, 1) for k, (i, j) in enumerate(pairs[:rows])])
    assert _part(phi, shape[0], 2) == graded_heads_cap(2, *shape)[2]


@pytest.mark.parametrize("heads", [4, 5])
def test_a_skew_matrix_serves_too(heads):
    """d = 6, three blocks of two columns: rows 0, 1, copies of them 2, 3, and the other heads in rows 4, 5."""
    d, inner, q = 6, 2, 3
    random = np.random.default_rng(heads)
    v, k = random.integers(1, P, size=(2, heads, inner, d))

    def f(s: Residues) -> Residues:
        rows = np.zeros_like(s)
        for h in range(q):
            block = slice(h * inner, (h + 1) * inner)
            rows[:, :2, block] = (v[h] @ s % P)[:, :, block]
            rows[:, 2:4, block] = rows[:, :2, block] * (h + 2) % P
        for h in range(q, heads):
            block = slice((h - q) * inner, (h - q + 1) * inner)
            rows[:, 4:6, block] = (v[h] @ s % P) @ k[h].T % P
        return rows

    symmetric = [(0, 0, 0, 1), (0, 1, 1, 1), (1, 1, 4, 1)]
    phi = _words(f, [*symmetric, (0, 3, 5, 1), (1, 2, 5, P - 1)])
    assert _part(phi, d, 2) == graded_heads_cap(2, d, heads, inner)[2]
    alone = _words(f, [*symmetric, (1, 1, 5, 1)])  # only three symmetric matrices for four rows
    assert _part(alone, d, 2) < graded_heads_cap(2, d, heads, inner)[2]


def _two_rows(d: int, inner: int) -> list[list[tuple[int, int]]]:
    """The entries of S that stand in the rows x and y of the proof of the third part."""
    last = min(inner, d - 4)
    first = [((0, c + 2), (1, c + 2)) for c in range(d - last)]
    return [list(row) for row in zip(*first, *(((2, c + 4), (3, c + 4)) for c in range(last)), strict=True)]


@pytest.mark.parametrize(("d", "inner"), [(7, 2), (7, 6)])
def test_two_rows_of_different_entries_give_the_whole_third_part(d, inner):
    entries = np.array(_two_rows(d, inner))

    def f(s: Residues) -> Residues:
        return s[:, entries[:, :, 0], entries[:, :, 1]]

    phi = _words(f, [(0, 1, 0, 1), (0, 0, 1, 5)])
    assert _part(phi, d, 3) == d * d * (d + 1) // 2


def test_the_two_rows_fit_into_the_heads():
    for d in range(7, 40):
        for inner in range(2, d):
            entries = list(itertools.chain(*_two_rows(d, inner)))
            assert len({*entries}) == 2 * d
            assert all(0 <= a < b < d for a, b in entries)
            last = min(inner, d - 4)
            assert 2 <= last <= inner
            assert -(-(d - last) // inner) + 1 <= max(2, -(-d // inner))


@pytest.mark.parametrize("d", [4, 5, 6])
def test_a_circle_of_single_entries_has_the_cap_in_every_part(d):
    """x_c = S_{c,c+1} and Φ = S(x, x)·x: the law of H = d heads of one entry."""
    around = (np.arange(d) + 1) % d
    phi = _words(lambda s: s[:, None, np.arange(d), around], [(0, 0, 0, 1)])
    assert [_part(phi, d, c) for c in (1, 2, 3)] == graded_heads_cap(2, d, d, 1)[1:4]


def _forms(pairs: list[tuple[Residues, Residues]], d: int) -> Residues:
    """The linear forms vᵀSk in the entries of S, for each (v, k)."""
    rows, columns = np.triu_indices(d)
    v, k = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    products = v[:, rows] * k[:, columns] + np.where(rows == columns, 0, v[:, columns] * k[:, rows])
    return products % P


def _heads_of_the_proof(inner: int, q: int, heads: int) -> list[tuple[Residues, Residues]]:
    """All (v, k) of heads that read nothing twice: pairs of blocks, twins of blocks, the odd block, powers."""
    d = inner * q
    random = np.random.default_rng(d)
    unit = np.eye(d, dtype=np.int64)
    twins = [(2 * j, 2 * j + 1) for j in range(q // 2)]
    seconds = [unit[b * inner + i] for _, b in twins for i in range(inner)]
    places = np.array([s.argmax() for s in seconds])
    found = [(unit[a * inner : (a + 1) * inner], unit[b * inner : (b + 1) * inner]) for a in range(q) for b in range(a)]
    for a, b in twins:
        factors = random.integers(1, P, size=(2, inner, 1))
        first, second = (unit[x * inner : (x + 1) * inner] for x in (a, b))
        found.append(((first + factors[0] * second) % P, (first + factors[1] * second) % P))
    if q % 2:
        drawn = np.zeros((2, inner, d), dtype=np.int64)
        drawn[:, :, places] = random.integers(1, P, size=(2, inner, len(places)))
        found.append(((unit[-inner:] + drawn[0]) % P, (unit[-inner:] + drawn[1]) % P))
    for power in range(heads - len(found)):
        v, k = np.zeros((2, inner, d), dtype=np.int64)
        for m, place in enumerate(places):
            scale = int(random.integers(1, P))
            for a in range(inner):
                v[a, place] = scale * pow(m + 2, a, P) % P
                k[a, place] = pow(m + 2, inner * a + inner**2 * power, P)
        found.append((v, k))
    return [(v, k) for vs, ks in found[:heads] for v in vs for k in ks]


def test_no_form_is_read_twice_by_heads_whose_width_divides_d():
    for inner, q in ((1, 6), (2, 3), (2, 4), (2, 5), (2, 9), (3, 3), (3, 4), (4, 5)):
        d = inner * q
        for heads in range(q, heads_that_see_all(d, inner) + 1):
            forms = _forms(_heads_of_the_proof(inner, q, heads), d)
            assert _rank(forms) == Reading.of(d, heads, inner).seen == min(d * (d + 1) // 2, heads * inner**2)


@pytest.mark.parametrize("widths", [range(5, 14), pytest.param(range(14, FORMS_CHECKED + 1), marks=pytest.mark.slow)])
def test_no_form_is_read_twice_where_the_width_of_heads_does_not_divide_d(widths):
    for d in widths:
        for inner in (g for g in range(2, (d + 1) // 2) if d % g):
            random = np.random.default_rng(d + 100 * inner)
            last = heads_that_see_all(d, inner)
            drawn = random.integers(P, size=(2, last, inner, d))
            forms = _forms([(v, k) for h in range(last) for v in drawn[0, h] for k in drawn[1, h]], d)
            assert _rank(forms) == Reading.of(d, last, inner).seen
            fewer = forms[: (last - 1) * inner**2]
            assert _rank(fewer) == Reading.of(d, last - 1, inner).seen


def test_heads_that_fit_into_coordinates_which_their_width_divides_read_nothing_twice():
    """And the theorem has them for every d: heads of the proof in 24 of 26 coordinates, read at d = 26."""
    d, inner, heads = 26, 4, 18
    forms = _forms([(np.pad(v, (0, 2)), np.pad(k, (0, 2))) for v, k in _heads_of_the_proof(inner, 6, heads)], d)
    assert _rank(forms) == Reading.of(d, heads, inner).seen == heads * inner**2
    assert [law_proven(d, h, inner) for h in (heads, heads + 1)] == ["theorem", None]


@pytest.mark.parametrize("d", [4, 5, 8, 9])
def test_two_heads_of_half_the_width_have_half_the_rows_independent_and_one_more_reads_the_rest(d):
    half = d // 2
    unit = np.eye(d, dtype=np.int64)
    first, second, z = unit[:half], unit[half : 2 * half], unit[2 * half :]
    blocks = [np.concatenate([first, z]), second]
    a, b, theta = (np.arange(2, half + 2)[:, None] * factor for factor in (1, 3, 5))
    rows = [[first + a * second, [second.sum(0) + z.sum(0)]], [second + b * first, [(theta * first).sum(0) + z.sum(0)]]]
    read = [(v, k) for h in (0, 1) for v in rows[h][0] for k in blocks[h]]
    more = [(v, k) for h in (0, 1) for v in rows[h][1] for k in blocks[h]]
    assert _rank(_forms(read, d)) == half * d
    assert _rank(_forms(read + more, d)) == d * (d + 1) // 2


def test_rows_between_blocks_are_independent_and_leave_every_coordinate_a_stranger():
    """The conditions (1) to (3) of the lemma: entries differ, no coordinate meets all others, the first row has all."""
    for d, inner in itertools.product(range(4, 25), range(1, 12)):
        q, rest = divmod(d, inner)
        blocks = [[*range(h * inner, (h + 1) * inner)] for h in range(q)]
        for layers in range(1, (q - 1) // 2 + 1):
            rows = [
                [(c, blocks[(h + f) % q][i]) for h in range(q) for c in blocks[h]]
                + [(c, blocks[f][i]) for c in range(d - rest, d)]
                for f in range(1, layers + 1)
                for i in range(inner)
            ]
            met = [frozenset(entry) for row in rows for entry in row]
            assert len({*met}) == len(met) == layers * inner * d
            assert all(len(entry) == 2 for entry in met)
            assert {c for entry in rows[0] for c in entry} == {*range(d)}
            if inner >= 2 or q >= 2 * layers + 2:
                assert all(sum(c in entry for entry in met) < d - 1 for c in range(d))


def test_two_blocks_and_a_rest_have_independent_rows():
    """q = 2: the blocks as two heads of half the width read them, the rest by the first block."""
    for inner, rest in ((3, 1), (3, 2), (5, 3)):
        d = 2 * inner + rest
        first, second, last = np.split(np.eye(d, dtype=np.int64), [inner, 2 * inner])
        a, b = np.arange(2, inner + 2)[:, None], 3 * np.arange(2, inner + 2)[:, None]
        heads = ((first + a * second, first), (second + b * first, second), (first, last))
        assert _rank(_forms([(v, k) for vs, ks in heads for v in vs for k in ks], d)) == inner * d


def _layer_with_a_rest(d: int, heads: int, inner: int) -> Callable[[Residues], Residues]:
    """d_a full rows: a head for each block and one for the rest, which has a rectangle below, too, as all others."""
    random = np.random.default_rng(d + heads)
    q, rest = divmod(d, inner)
    v, k = random.integers(1, P, size=(2, heads, inner, d))
    o, places = np.zeros((2, heads, inner, d), dtype=np.int64)
    unit = np.eye(inner, dtype=np.int64)
    o[: q + 1, :, :inner] = unit
    for h in range(heads):
        row, block = divmod(h, q)
        o[h, :, row * inner : (row + 1) * inner] = unit
        places[h, :, block * inner : (block + 1) * inner] = unit
    places[q, :rest, d - rest :] = np.eye(rest, dtype=np.int64)

    def f(s: Residues) -> Residues:
        blocks = (o[h].T @ ((v[h] @ s % P) @ k[h].T % P) % P @ places[h] % P for h in range(heads))
        return sum(blocks, np.zeros_like(s)) % P

    return f


@pytest.mark.parametrize("shape", [(7, 3, 3), (7, 4, 3), (8, 3, 3)])
def test_a_head_for_the_rest_makes_full_rows_of_all_columns(shape):
    d, _, inner = shape
    pairs = [(i, j) for i in range(inner) for j in range(i, inner)]
    phi = _words(_layer_with_a_rest(*shape), [(i, j, k, 1) for k, (i, j) in enumerate(pairs[: 2 * inner])])
    assert _part(phi, d, 2) == graded_heads_cap(2, *shape)[2]


def test_what_the_theorem_says_is_what_the_count_gives():
    for d in range(9, 49):
        for inner in range(1, d):
            if d % inner and 2 * inner < d:
                continue
            for heads in range(-(-d // inner), heads_that_see_all(d, inner) + 2):
                onto, injective = 10 * ((d - 2) // 7) + 4 * ((d - 2) % 7) // 3, 13 * (d // 9) + -(-3 * (d % 9) // 2)
                open_ = inner == 1 and (d < heads < 2 * d if d <= CERTIFIED else onto < heads < injective)
                otherwise = "certificate" if d <= CERTIFIED else "computation" if d <= COMPUTED else None
                expected = otherwise if open_ else "theorem"
                assert law_proven(d, heads, inner) == expected, (d, heads, inner)
    assert law_proven(64, 1, 64) == "theorem"
    assert (law_proven(9, 9, 2), law_proven(11, 11, 2)) == ("certificate", None)
    with pytest.raises(OutsideDomain, match="at least the width 8"):
        law_proven(8, 3, 2)


def test_what_is_open_where_the_width_of_heads_does_not_divide_d():
    """The list of the docs for 11 ≤ d ≤ 24, up to the heads that see all."""
    found = {
        (d, heads, inner)
        for d in range(11, 25)
        for inner in range(1, d)
        for heads in range(-(-d // inner), heads_that_see_all(d, inner) + 1)
        if law_proven(d, heads, inner) is None
    }
    narrow = {(d, heads, 2) for d in range(11, 25, 2) for heads in range((d + 1) // 2, d + 1)}
    few = {(11, 7, 3), (11, 8, 3), (11, 5, 4), (14, 7, 4), (14, 5, 5), (15, 7, 4), (15, 8, 4)}
    assert found == narrow | few | {(17, 5, 6), (20, 5, 7), (23, 5, 8)}
    assert len(found) == 73


@pytest.mark.parametrize(
    ("widths", "kind", "open_", "shapes"),
    [(range(11, 25), "rest", 73, 551), (range(25, 41), "rest", 725, 2634), (range(25, 41), "single", 54, 504)],
)
def test_the_docs_count_what_is_open(widths, kind, open_, shapes):
    verdicts = [
        law_proven(d, heads, inner)
        for d in widths
        for inner in ([1] if kind == "single" else [g for g in range(2, (d + 1) // 2) if d % g])
        for heads in (
            range(d + 1, 2 * d) if kind == "single" else range(-(-d // inner), heads_that_see_all(d, inner) + 1)
        )
    ]
    assert (verdicts.count(None), len(verdicts)) == (open_, shapes)


def test_every_shape_without_a_theorem_has_a_certificate_of_its_cap():
    archived = {}
    for document in read(ARCHIVE):
        h = document["header"]
        assert (h["depth"], h["features"], h["tokens_with_output"], h["tokens_other"]) == (2, *[h["width"]] * 3)
        archived[h["width"], h["heads"], h["attention_width"]] = [rank for _, rank in h["parts"]]
    needed = {
        (d, heads, inner)
        for d in range(2, CERTIFIED + 1)
        for inner in range(1, d)
        for heads in range(-(-d // inner), heads_that_see_all(d, inner) + 1)
        if law_proven(d, heads, inner) == "certificate"
    }
    assert needed <= set(archived)
    assert all(archived[shape] == graded_cap(2, *shape) for shape in archived)


def test_four_ranks_prove_the_law_of_single_heads():
    """Computed anew at d = 6, where seven heads are balanced (84 of 84), and archived for 11 ≤ d ≤ 16."""
    assert two_layer_maps.proven(6, 7)["ranks"]["third"] == (84, 84)
    for heads in (7, 11):
        assert two_layer_maps.proven(6, heads)["proven"]
    rows = json.loads(two_layer_maps.RESULTS.read_text())["rows"]
    assert all(found == most for row in rows for found, most in row["ranks"].values())
    for row in rows:
        d, heads = row["width"], row["heads"]
        kappa = d * (d + 1) // 2 - heads
        third = [min(d * kappa, heads * (heads + 1) * (heads + 2) // 6), d * heads]
        second = [heads * kappa, heads * (heads + 1) // 2]
        assert [most for _, most in row["ranks"].values()] == third + second
        assert graded_heads_cap(2, d, heads, 1)[2:4] == [sum(second), sum(third)]
    archived = {(row["width"], row["heads"]) for row in rows}
    assert archived >= {(d, heads) for d in range(11, 17) for heads in range(d + 1, 2 * d)}


class Single:
    """Φ = Σ_p S(w_p, w′_p)·u_p of heads of one entry: `rows` has their weights (p, w w′ u, h), `places` the q_h."""

    def __init__(self, rows: Residues, places: Residues, entries: list[tuple[int, int]]) -> None:
        self.rows, self.places = rows % P, places % P
        self.heads, self.d = places.shape
        pairs = itertools.combinations_with_replacement(range(self.d), 2)
        unseen = [pair for pair in pairs if pair not in entries]  # the forms are entries of S, i ≤ j
        self.unseen = np.zeros((len(unseen), self.d, self.d), dtype=np.int64)
        for x, (i, j) in zip(self.unseen, unseen, strict=True):
            x[i, j] = x[j, i] = 1

    def slopes(self, f: Residues) -> Residues:
        """∂Φ_c/∂f_h at f, for all (h, X, c)."""
        total = np.zeros((self.heads, len(self.unseen), self.d), dtype=np.int64)
        for word in self.rows:
            w, v, u = ((row * f % P) @ self.places % P for row in word)
            moves = word[:, :, None] * self.places % P  # what w, w′ and u gain with f_h
            left, right = (self.unseen @ x % P for x in (w, v))
            gains = (moves[0] @ right.T + moves[1] @ left.T) % P
            total += gains[:, :, None] * u % P + (left @ v % P)[:, None] * moves[2][:, None, :] % P
        return total % P

    def second(self) -> bool:
        """(2a): no X_h in U but 0 have Σ_h ∂Φ(f; X_h)/∂f_h = 0."""
        unknown = self.heads * len(self.unseen)
        points = self._points(unknown // self.d + 5)
        table = [self.slopes(f).transpose(2, 0, 1).reshape(self.d, unknown) for f in points]
        return _rank(np.concatenate(table)) == unknown

    def second_forms(self) -> bool:
        """(2b): no operator of order 2 in f but 0 kills Φ(f; X) for all X in U. The second derivatives are linear."""
        unit = np.eye(self.heads, dtype=np.int64)
        once = np.array([self.slopes(e) for e in unit])
        both = np.array([[self.slopes(e + other) for other in unit] for e in unit])
        pairs = [*itertools.combinations_with_replacement(range(self.heads), 2)]
        table = [np.stack([both[i, g, h] - once[i, h] - once[g, h] for g, h in pairs], -1) for i in range(self.heads)]
        return _rank(np.concatenate(table).reshape(-1, len(pairs))) == len(pairs)

    def third_forms(self) -> bool:
        """(3b): no numbers y_rh but 0 have Σ y_rh ∂Φ_r/∂f_h = 0 for all X in U."""
        unknown = self.d * self.heads
        table = [self.slopes(f).transpose(1, 2, 0).reshape(-1, unknown) for f in self._points(self.heads + 5)]
        return _rank(np.concatenate(table)) == unknown

    def _points(self, number: int) -> Residues:
        return np.random.default_rng(number).integers(1, P, size=(number, self.heads))


@pytest.mark.parametrize(("d", "more"), [(5, 1), (5, 4), (6, 3), (7, 6)])
def test_diagonal_matrices_are_enough_for_the_maps_of_forms(d, more):
    """x_c and, for c < more, y_c in column c: Φ = S(x, x+y)·x for (3b), S(x, x)(x+η∗y) + S(y, y)(θ∗x+y) for (2b)."""
    places = np.concatenate([np.eye(d, dtype=np.int64), np.eye(d, dtype=np.int64)[:more]])
    entries = [*itertools.combinations(range(d), 2)]
    x, y = np.arange(d + more) < d, np.arange(d + more) >= d
    number = np.concatenate([np.arange(d), np.arange(more)]) + 2
    assert Single(np.array([[x, x | y, x]], dtype=np.int64), places, entries[: d + more]).third_forms()
    words = [[x, x, x + 3 * y * number], [y, y, x * number + y]]
    assert Single(np.array(words, dtype=np.int64), places, entries[: d + more]).second_forms()
    same = [[x, x, x + 3 * y], [y, y, x + y]]  # all η_cθ_c the same
    assert more == 1 or not Single(np.array(same, dtype=np.int64), places, entries[: d + more]).second_forms()


@pytest.mark.parametrize(("d", "heads"), [(4, 5), (4, 8), (5, 6), (5, 9)])
def test_one_more_coordinate_and_form_keep_the_second_part(d, heads):
    """(2a) from (d, H) to (d+1, H+1): t = S_nn, t·e_n joins each w, and one head has S(w + t·e_n, w)·t·e_n."""
    random = np.random.default_rng(d)
    rows = random.integers(P, size=(heads, 3, d)) @ random.integers(P, size=(d, heads)) % P
    places = random.integers(P, size=(heads, d))
    entries = [*itertools.combinations_with_replacement(range(d), 2)][1 : heads + 1]
    assert Single(rows, places, entries).second()
    grown = np.zeros((heads + 1, 3, heads + 1), dtype=np.int64)
    grown[:heads, :, :heads] = rows
    grown[:heads, 0, heads] = random.integers(1, P, size=heads)
    grown[heads, :2, :heads] = random.integers(1, P, size=(d, heads)).sum(0)
    grown[heads, :, heads] = 1, 0, 1
    grown[heads, 2, :heads] = 0
    wider = np.zeros((heads + 1, d + 1), dtype=np.int64)
    wider[:heads, :d], wider[heads, d] = places, 1
    assert Single(grown, wider, [*entries, (d, d)]).second()
    grown[:heads, 0, heads] = 0  # without t in the old heads nothing sees the new rows
    assert not Single(grown, wider, [*entries, (d, d)]).second()


def _rows_seen(mixed: Residues, places: Residues) -> int:
    """The rank of (ξ_h) ↦ q_g·Σ_h M(h, g)(ξ_h·q_h) + Σ_h M(g, h)(ξ_h·q_g)·q_h, all g."""
    heads, d = places.shape
    table = np.zeros((heads, d, heads, d), dtype=np.int64)
    for g, h in itertools.product(range(heads), repeat=2):
        trace = np.outer(places[g], places[h]) % P * mixed[h, g]
        table[g, :, h] = (trace + np.outer(places[h], places[g]) % P * mixed[g, h]) % P
    return _rank(table.reshape(heads * d, heads * d))


def test_the_new_rows_are_seen():
    """The weights of the proof: m with d − r entries around the circle in each row, or twice every column."""
    for d in range(2, 8):
        random = np.random.default_rng(d)
        unit = np.eye(d, dtype=np.int64)
        for more in range(d):
            band = sum(np.roll(unit, k, axis=1) for k in range(d - more)) * random.integers(1, P, size=(d, d)) % P
            o = np.concatenate([unit, random.integers(1, P, size=(more, d))])
            places = np.concatenate([unit, random.integers(1, P, size=(more, d))])
            assert _rows_seen((o @ band % P) @ o.T % P, places) == d * (d + more)
        o = random.integers(-9, 10, size=(2 * d, d))
        assert _rows_seen(o @ o.T % P, np.concatenate([unit, unit])) == 2 * d * d


def _cubic_forms(blocks: tuple[tuple[int, int], ...], extra: int, reads: set[tuple[int, int, int]]) -> tuple[int, ...]:
    """(rank, sources, targets) of (3a) among blocks of columns and their forms, for Φ of two heads with any weights.

    `reads` has the sources as blocks (a, b, c), Y_ab in component c, with block −1 for the `extra` columns that have no
    forms; targets are the products of three forms of the blocks of those that need none of the extra columns.
    """
    random = np.random.default_rng(len(blocks))
    column = [b for b, (size, _) in enumerate(blocks) for _ in range(size)] + [-1] * extra
    form = [b for b, (_, forms) in enumerate(blocks) for _ in range(forms)]
    own = np.array(column)[:, None] == np.array(form)
    places = random.integers(1, P, size=own.shape) * (own | (np.array(column)[:, None] < 0))
    heads = random.integers(1, P, size=(2, 3, 1, len(form))) * places % P
    targets = {tuple(sorted(read)) for read in reads if -1 not in read}
    number = np.full([len(form)] * 3, -1)
    found = 0
    for triple in itertools.combinations_with_replacement(range(len(form)), 3):
        if tuple(form[h] for h in triple) in targets:
            for order in itertools.permutations(triple):
                number[order] = found
            found += 1
    wanted = number >= 0
    table = []
    for i, j, k in itertools.product(range(len(column)), repeat=3):
        if i <= j and (column[i], column[j], column[k]) in reads:
            total = np.zeros(number.shape, dtype=np.int64)
            for w, v, u in heads:
                total = (total + (np.outer(w[i], v[j]) + np.outer(w[j], v[i]))[:, :, None] % P * u[k]) % P
            table.append(np.bincount(number[wanted], weights=total[wanted], minlength=found) % P)
    matrix = torch.from_numpy(np.array(table))
    return rank(matrix, Modulus(P)), *matrix.shape


DIFFERENT = {(0, 1, 2), (0, 2, 1), (1, 2, 0)}
TWICE = {(0, 0, 1), (0, 1, 0)}


def test_blocks_of_columns_make_the_third_part_injective():
    sizes = ((9, 13), (2, 3), (1, 2))
    for reads, number in ((DIFFERENT, 3), (TWICE, 2), ({(0, 0, 0)}, 1)):
        for blocks in itertools.product(sizes, repeat=number):
            if number < 3 or list(blocks) == sorted(blocks, reverse=True):
                found, sources, _ = _cubic_forms(blocks, 0, reads)
                assert found == sources, blocks


def test_blocks_of_columns_make_the_third_part_onto():
    sizes = ((7, 10), (3, 4), (1, 1))
    pair = TWICE | {(0, 1, 1), (1, 1, 0), (0, 1, -1)}
    for reads, number in ((DIFFERENT, 3), (pair, 2), ({(0, 0, 0), (0, 0, -1)}, 1)):
        for blocks in itertools.combinations_with_replacement(sizes, number):
            found, _, targets = _cubic_forms(blocks, 2, reads)
            assert found == targets, blocks


def _balanced(d: int) -> int:
    """The fewest heads of one entry for which (3a) has no more sources than targets."""
    return next(h for h in range(d, 2 * d) if d * (d * (d + 1) // 2 - h) <= math.comb(h + 2, 3))


@pytest.mark.parametrize("widths", [range(4, 14), pytest.param(range(14, COMPUTED + 1), marks=pytest.mark.slow)])
def test_the_third_part_is_as_large_as_it_can_be_on_both_sides_of_the_balance(widths):
    """Two heads of the second layer with any weights, forms that are entries of S: the values at random points."""
    for d in widths:
        random = np.random.default_rng(d)
        for heads in (_balanced(d) - 1, _balanced(d)):
            i, j = np.triu_indices(d)
            kept = np.sort(random.permutation(len(i))[heads:])
            most = min(d * len(kept), math.comb(heads + 2, 3))
            places, f = random.integers(P, size=(heads, d)), random.integers(P, size=(most + 4, heads))
            table = np.zeros((most + 4, len(kept), d), dtype=np.int64)
            for word in random.integers(P, size=(2, 3, heads)):
                w, v, u = ((row * f % P) @ places % P for row in word)
                forms = (w[:, i] * v[:, j] + w[:, j] * v[:, i]) % P
                table = (table + forms[:, kept, None] * u[:, None]) % P
            assert rank(torch.from_numpy(table.reshape(most + 4, -1) * 1.0), Modulus(P)) == most, (d, heads)
