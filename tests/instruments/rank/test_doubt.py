"""What a probability covers: each term of the bound against a count of all cases in small fields."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from flint import fmpz_mat, nmod_mat
from torch import nn

from theodolite.claims.tensors.graded_rank import graded_rank
from theodolite.field.draw import PRIMES_FROM, PRIMES_TO
from theodolite.field.modulus import prime_below
from theodolite.instruments.rank.doubt import Drawn, _shares, by_points, by_primes, by_weights, missed_rank
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import weight_degree as measured_weight_degree
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.load import load
from theodolite.nets.self_attention import SelfAttention
from theodolite.partition import Partition
from theodolite.theory.attention import hops
from theodolite.theory.attention_counts import coefficients_log2, part_counts, singular_matrices, weight_degree


@pytest.mark.parametrize(("size", "power", "p"), [(2, 1, 5), (2, 1, 13), (2, 2, 11), (3, 1, 3), (2, 3, 7)])
def test_the_share_of_weights_that_hide_rank_is_below_the_bound(size, power, p):
    """y = aᵀ W^k b has rank `size` for almost all W: count all matrices modulo p that have less."""
    short = 0
    for entries in itertools.product(range(p), repeat=size * size):
        w = nmod_mat(size, size, list(entries), p)
        short += (w**power).rank() < size
    share = short / p ** (size * size)
    assert 0 < share <= by_weights(size - 1, power, p)


def test_the_share_of_points_that_hide_rank_is_below_the_bound():
    """y = a·b + a²·b² over GF(5), rank 2: all choices of two and of three points a side."""
    p = 5
    for count in (2, 3):
        missed, all_ = 0, 0
        for a in itertools.product(range(p), repeat=count):
            for b in itertools.product(range(p), repeat=count):
                table = nmod_mat([[(x * y + x * x * y * y) % p for y in b] for x in a], p)
                missed += table.rank() < 2
                all_ += 1
        assert missed / all_ <= by_points(count, 1, 2, p)


def test_a_minor_is_at_most_the_mean_row_to_its_power_and_so_has_few_prime_divisors():
    random = np.random.default_rng(0)
    for _ in range(300):
        n, rows, columns = (int(v) for v in random.integers((1, 5, 5), (5, 8, 8)))
        table = random.integers(0, 9, size=(rows, columns)) * random.integers(0, 2, size=(rows, columns))
        chosen = table[:n, :n]
        minor = abs(int(fmpz_mat(chosen.tolist()).det()))
        total = int(table.sum())
        if minor:
            assert minor <= (total / n) ** n * (1 + 1e-9)
            divisors = [
                p for p in range(7, minor + 1) if minor % p == 0 and all(p % k for k in range(2, math.isqrt(p) + 1))
            ]
            assert len(divisors) <= n * math.log(total / n) / math.log(7)


def test_the_chance_of_a_prime_is_the_gap_to_its_successor():
    shares, width = _shares(), PRIMES_TO - PRIMES_FROM
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    counts = set(np.rint(shares * width).astype(int).tolist())
    start = PRIMES_FROM + 1234
    here = prime_below(start)
    after = next(n for n in range(here + 2, here + 400) if prime_below(n) != here) - 1
    assert sum(prime_below(n) == here for n in range(here - 5, after + 5)) == after - here
    assert after - here in counts
    assert by_primes(0, 22.0) == 0.0  # a number of 22 bits has no divisor that large
    assert by_primes(0, 23.0) == shares[0]
    assert by_primes(10**6, 100.0) == 1.0


def test_draws_multiply_and_what_is_not_known_is_not_counted():
    full = Drawn(100, 8388593, 16, 37.0)
    one, covers = missed_rank(36, 9, [full])
    three, _ = missed_rank(36, 9, [full] * 3)
    assert covers == ("points", "weights", "primes")
    assert one == pytest.approx(by_points(100, 36, 9, 8388593) + 37 * 16 / 8388593 + by_primes(36, 37.0))
    assert three == pytest.approx(one**3)
    assert missed_rank(36, 9, [full, Drawn(100, 8388593, 16)])[1] == ("points", "weights")
    assert missed_rank(36, 9, [Drawn(100, 8388593)])[1] == ("points",)
    assert missed_rank(100, 9, [full])[0] == 1.0


@pytest.mark.parametrize(
    "shape",
    [
        {"depth": 1, "width": 2, "tokens": 3},
        {"depth": 2, "width": 3, "heads": 3, "tokens": 2},
        {"depth": 2, "width": 2, "heads": 3, "attention_width": 2, "tokens": 2, "features": 3},
        {"depth": 1, "width": 3, "tokens": 2, "features": 4, "embedding_rank": 2, "outputs": 2},
    ],
)
def test_theory_counts_terms_and_weights_as_the_network_does(shape):
    subject = load("self-attention", **shape)
    split = Partition.parse("left-right", subject.sites)
    predicted = SelfAttention.predict(subject.module, split, subject.sites - 1)
    module = subject.module.to(dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(1.0)
    at_ones = module(torch.ones(1, subject.sites, subject.features, dtype=torch.float64))[0, -1, 0].item()
    assert predicted.coefficients_log2 == pytest.approx(math.log2(at_ones))
    sample = FieldSample.make(ScalarFunction.of(subject), split, 0, 0, torch.device("cpu"))
    assert predicted.weight_degree == measured_weight_degree(sample)


@pytest.mark.parametrize(("depth", "width", "heads", "inner", "r"), [(2, 3, 1, 3, 3), (3, 2, 2, 1, 2), (2, 3, 2, 2, 2)])
def test_parts_have_the_terms_that_theory_counts(depth, width, heads, inner, r):
    """At ones, in whole numbers: S_A + t·S_B is 1 + t everywhere, so part c is binom(C, c) times the whole."""
    s, one = np.full((r, r), 1, dtype=object), np.full((width, width), 1, dtype=object)
    if heads == 1 and inner == width == r:
        g = s.dot(one)
        for _ in range(depth - 1):
            g = g.dot(s).dot(g.T).dot(one).dot(g)
        value = np.full(width, 1, dtype=object).dot(g).dot(np.full(width, 1, dtype=object))
    else:
        f = (
            np.full((width, r), 1, dtype=object)
            if r != width
            else np.eye(width, dtype=object).astype(int).astype(object)
        )
        for _ in range(depth):
            f = heads * (inner * one).dot(f).dot(s).dot(f.T).dot(inner * one).dot(f)
        value = f[0].sum()
    for part in range(hops(depth) + 1):
        assert part_counts(depth, width, heads, inner, r, part)[1] == pytest.approx(
            math.log2(value * math.comb(hops(depth), part))
        )


def test_one_full_head_is_its_reduced_form():
    """y = aᵀG_L x with B′ and a made from the weights: the change of variables that halves the degree and more."""
    p, d, depth = 10007, 3, 3
    random = np.random.default_rng(1)
    draw = lambda *shape: random.integers(p, size=shape).astype(object)
    layers = [(draw(d, d), draw(d, d)) for _ in range(depth)]
    half, x = draw(d, d), draw(d)
    s = half + half.T
    f, outer, g = np.eye(d, dtype=int).astype(object), np.eye(d, dtype=int).astype(object), None
    for a, b in layers:
        f = a.dot(f).dot(s).dot(f.T).dot(b).dot(f) % p
        inner = outer.T.dot(b).dot(outer) % p
        g = s.dot(inner) % p if g is None else g.dot(s).dot(g.T).dot(inner).dot(g) % p
        outer = a.dot(outer) % p
    assert g is not None
    assert f[0].dot(x) % p == outer[0].dot(g).dot(x) % p
    assert part_counts(3, 4, 1, 4, 4, 7)[0] == 14 < weight_degree(3) == 52
    assert singular_matrices(3, 4) == 32
    assert coefficients_log2(1, 1, 1, 1, 1) == 0.0


def test_what_the_instruments_print_counts_everything():
    shape = {"depth": 2, "width": 5, "attention_width": 3, "tokens": 10}
    below = separation_rank("self-attention", **shape, repeats=2)
    assert (below.rank, below.cap) == (144, 163)
    assert below.covers == ("points", "weights", "primes")
    p, terms = below.primes, coefficients_log2(2, 5, 1, 3, 10)
    wanted = [by_points(below.points, 144, 9, q) + by_weights(144, 16, q) + by_primes(144, terms) for q in p]
    assert below.failure_probability == pytest.approx(math.prod(wanted))
    asked = separation_rank("self-attention", **shape, prime=8388593)
    assert asked.covers == ("points", "weights")
    own = separation_rank("self-attention", **shape, weights="own", repeats=1)
    assert own.covers == ("points",)
    assert separation_rank(_Product(), features=4, repeats=1).covers == ("points", "weights")
    parts = graded_rank(2, 5, 1, 3, degrees=[1])
    assert 0 < parts.failure_probability < 1e-5
    assert graded_rank(2, 3).failure_probability == 0.0


class _Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.w).prod(-1)
