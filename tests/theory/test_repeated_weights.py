"""What one head loses by repeating its matrices: against sets of places, elimination, networks and the archive."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from theodolite.field import Modulus, eliminate
from theodolite.theory.attention_rank import graded_cap, separation_cap
from theodolite.theory.cap import attention_cap
from theodolite.theory.repeated_weights import generators, layers_between, lost_covariants, lost_invariants

ARCHIVE = Path(__file__).parents[2] / "benchmarks/results/exact-rank-nvidia-h200-2026-11-15.json"
P = 8388593


def places(depth: int) -> list[str]:
    """The letters of F_L written out: F_1 = S n, F_(l+1) = F_l S F_lᵀ (l) F_l; of a layer's factors what matters."""
    word = ["S", "0"]
    for layer in range(1, depth):
        word = [*word, "S", *reversed(word), str(layer), *word]
    return word


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_layers_between_places_are_those_of_the_word(depth: int):
    word = places(depth)
    assert word[::2] == ["S"] * ((3**depth - 1) // 2)
    assert word[1::2] == [*map(str, layers_between(depth)), "0"]  # the last stands before x


@pytest.mark.parametrize("with_output", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_generators_are_the_least_products_of_all_sets_of_places(depth: int, with_output: bool):
    between = [*layers_between(depth), 0]
    count = len(between)
    found: list[set[tuple[int, ...]]] = [set() for _ in range(count + 1)]
    for chosen in itertools.product((0, 1), repeat=count):
        product = [chosen[0]] + [0] * depth
        for place, layer in enumerate(between):
            after = chosen[place + 1] if place + 1 < count else int(with_output)
            product[1 + layer] += chosen[place] * after
        found[sum(chosen)].add(tuple(product))
    for size, products in enumerate(found):
        least = {p for p in products if not any(q != p and np.all(np.less_equal(q, p)) for q in products)}
        assert set(generators(depth, with_output=with_output)[size]) == least


def monomials(variables: int, degree: int) -> list[tuple[int, ...]]:
    if variables == 1:
        return [(degree,)]
    return [(i, *rest) for i in range(degree + 1) for rest in monomials(variables - 1, degree - i)]


def outside(products: tuple[tuple[int, ...], ...], width: int, degree: int) -> int:
    """Forms of this degree modulo the products of one drawn linear form and drawn quadrics, by elimination."""
    drawn = random.Random(0)
    forms = [{m: drawn.randrange(1, P) for m in monomials(width, 1 if i == 0 else 2)} for i in range(len(products[0]))]
    place = {m: i for i, m in enumerate(monomials(width, degree))}
    rows = []
    for exponents in products:
        factor = {(0,) * width: 1}
        for form, power in zip(forms, exponents, strict=True):
            for _ in range(power):
                new: dict[tuple[int, ...], int] = {}
                for (a, u), (b, v) in itertools.product(factor.items(), form.items()):
                    key = tuple(map(sum, zip(a, b, strict=True)))
                    new[key] = (new.get(key, 0) + u * v) % P
                factor = new
        left = degree - sum(next(iter(factor)))
        for m in monomials(width, left) if left >= 0 else []:
            row = [0] * len(place)
            for a, u in factor.items():
                row[place[tuple(map(sum, zip(a, m, strict=True)))]] = u
            rows.append(row)
    if not rows:
        return len(place)
    return len(place) - eliminate(torch.tensor(rows, dtype=torch.float64), Modulus(P)).rank


@pytest.mark.parametrize(("depth", "width", "degree"), [(2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 4, 7)])
def test_what_is_lost_is_what_elimination_finds_outside_the_ideal(depth: int, width: int, degree: int):
    here, other = (generators(depth, with_output=with_output)[degree] for with_output in (True, False))
    assert lost_invariants(degree, depth, width) == outside(other, width, 2 * degree)
    assert lost_covariants(degree, depth, width) == outside(here, width, 2 * degree + 1)


def test_with_fewer_dimensions_than_forms_it_is_still_no_more_than_is_outside():
    for degree in (8, 9, 10):
        exact = outside(generators(3, with_output=False)[degree], 3, 2 * degree)
        assert 0 < lost_invariants(degree, 3, 3) <= exact


def network(s: np.ndarray, layers: list[list[tuple[np.ndarray, np.ndarray]]]) -> np.ndarray:
    """F_L(S) as in docs/cap.md, Lemma 1: a layer is a list of heads (O V, Kᵀ Q)."""
    f = np.eye(len(s), dtype=complex)
    for heads in layers:
        f = sum(ov @ f @ s @ f.T @ kq for ov, kq in heads) @ f
    return f


def coefficients(function, degree: int) -> np.ndarray:
    """Of a polynomial of this degree, by the discrete Fourier transform, over the largest one."""
    count = degree + 3
    values = np.array([function(np.exp(2j * np.pi * k / count)) for k in range(count)])
    found = np.abs(np.fft.fft(values, axis=0)).reshape(count, -1).max(1)
    return found / found.max()


def test_four_points_of_one_head_explain_four_of_31460():
    """Order 7 in z zᵀ kills the output at the four z in which a plane and two quadrics meet, and at no other z."""
    rng = np.random.default_rng(3)
    layers = [[(rng.normal(size=(4, 4)), rng.normal(size=(4, 4)))] for _ in range(3)]
    (m0, n0), (m1, n1), (m2, _) = (heads[0] for heads in layers)
    row = rng.normal(size=4)
    w, first, second = row @ m2 @ m1 @ m0, n0, m0.T @ n1 @ m0
    plane = np.linalg.svd(w[None])[2][1:].T
    # On z = plane·(1, s, t) both quadrics are quadratic in t; their resultant in s has four roots.
    poly = np.polynomial.Polynomial
    a, b = (plane.T @ (q + q.T) @ plane for q in (first, second))
    parts = [(poly([q[0, 0], 2 * q[0, 1], q[1, 1]]), poly([2 * q[0, 2], 2 * q[1, 2]]), q[2, 2]) for q in (a, b)]
    (a0, a1, a2), (b0, b1, b2) = parts
    roots = ((a0 * b2 - b0 * a2) ** 2 - (a0 * b1 - b0 * a1) * (a1 * b2 - b1 * a2)).roots()
    assert len(roots) == 4
    s = rng.normal(size=(4, 4))
    s = s + s.T
    for root in roots:
        last = -(a0(root) * b2 - b0(root) * a2) / (a1(root) * b2 - b1(root) * a2)
        z = plane @ np.array([1, root, last])
        z = z / np.linalg.norm(z) * 2
        sizes = coefficients(lambda t, z=z: row @ network(s + t * np.outer(z, z), layers), 13)
        assert sizes[7:].max() < 1e-11 < sizes[6]
    z = rng.normal(size=4)
    assert coefficients(lambda t: row @ network(s + t * np.outer(z, z), layers), 13)[13] > 1e-9


def test_ten_operators_of_five_heads_of_one_entry_explain_ten_of_23755():
    rng = np.random.default_rng(4)
    vectors = [[rng.normal(size=(4, 5)) for _ in "ovkq"] for _ in range(3)]
    layers = [[(np.outer(o[:, h], v[:, h]), np.outer(k[:, h], q[:, h])) for h in range(5)] for o, v, k, q in vectors]
    _, v, k, q = vectors[0]
    pairs = list(itertools.combinations_with_replacement(range(4), 2))

    def as_row(left: np.ndarray, right: np.ndarray) -> list[float]:
        """leftᵀ S right as a linear form in the ten entries of S."""
        return [left[i] * right[j] + (left[j] * right[i] if i != j else 0) for i, j in pairs]

    def solved(rows: list[list[float]], wanted: list[float] | None = None) -> np.ndarray:
        if wanted is None:
            null = np.linalg.svd(np.array(rows))[2][len(rows) :]
            assert len(null) == 1
            entries = null[0]
        else:
            entries = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
        s = np.zeros((4, 4))
        for value, (i, j) in zip(entries, pairs, strict=True):
            s[i, j] = s[j, i] = value
        return s / np.linalg.norm(s)

    forms = [as_row(v[:, h], k[:, h]) for h in range(5)]
    row, base = rng.normal(size=4), rng.normal(size=(4, 4))
    base = base + base.T
    for h in range(5):
        hidden = solved(forms + [as_row(q[:, h], unit) for unit in np.eye(4)])  # f = 0 and S q_h = 0
        alone = solved([*forms, as_row(q[:, h], q[:, h])], [*map(float, np.arange(5) == h), 0.0])  # f = e_h, g_hh = 0

        def along(t: complex, u: complex, hidden=hidden, alone=alone) -> np.ndarray:
            return row @ network(base + t * hidden + u * alone, layers)

        steps = np.exp(2j * np.pi * np.arange(16) / 16)
        table = np.abs(np.fft.fft2(np.array([[along(t, u) for u in steps] for t in steps]), axes=(0, 1))).max(2)
        table = table / table.max()
        assert table[5:].max() < 1e-11 < table[4, 0]  # of degree 4 in g
        assert table[4, 2:].max() < 1e-11 < table[4, 1]  # order 6 = 4 + 2 and order 7 = 4 + 3
        assert table[3, 4:].max() < 1e-11 < table[3, 3]  # order 7 = 3 + 4


def measured() -> list[dict]:
    return json.loads(ARCHIVE.read_text("utf-8"))["rows"]


def inner(shape: dict) -> int:
    return shape.get("attention_width", shape["width"] // shape.get("heads", 1))


def caps(shape: dict) -> list[int]:
    tokens = (shape.get("tokens_with_output"), shape.get("tokens_other"))
    return graded_cap(shape["depth"], shape["width"], shape.get("heads", 1), inner(shape), *tokens)


def test_every_measured_part_of_one_full_head_has_this_cap_and_no_part_of_any_shape_has_more():
    equal = below = 0
    for row in measured():
        shape, bound = row["shape"], caps(row["shape"])
        full = shape.get("heads", 1) == 1 and inner(shape) >= shape["width"]
        for degree, rank, by_tokens, by_heads, _ in row["blocks"]:
            assert rank <= bound[degree], (shape, degree)
            if full and shape["depth"] + 1 <= shape["width"]:
                assert rank == bound[degree], (shape, degree)
                equal += 1
                below += bound[degree] < min(by_tokens, by_heads)
    assert (equal, below) == (773, 45)


def test_three_layers_whose_heads_fill_the_width_have_the_cap_of_their_weights():
    rows = [
        row
        for row in measured()
        if row["complete"]
        and row["shape"]["depth"] == 3
        and "tokens_other" not in row["shape"]
        and row["shape"].get("heads", 1) * inner(row["shape"]) >= row["shape"]["width"]
    ]
    assert len(rows) == 16
    assert all(row["total"] == sum(caps(row["shape"])) for row in rows)


def test_the_cap_of_one_head_at_depth_3():
    assert [separation_cap(3, d, 1, d, d, d) for d in (2, 3, 4, 5)] == [232, 3102, 31460 - 4, 248064 - 56]
    assert [separation_cap(3, d, 2, d, d, d) for d in (4, 5)] == [attention_cap(3, d, d, d) for d in (4, 5)]
    assert separation_cap(3, 4, 1, 4, 2, 1) == 4185
    assert separation_cap(2, 6, 1, 6, 2, 1) == 275
