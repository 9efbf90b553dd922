"""Residues in float64 against Python's integers, at the ends of the range where rounding could show."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from theodolite.errors import BadInput
from theodolite.field import Modulus, product
from theodolite.field.modulus import is_prime, prime_below
from theodolite.field.product import subtract_product_

from .truth import NEAR_2_23, NEAR_2_25, PRIMES, residue

NEAR_2_20 = prime_below(1 << 20)


def largest(p: int) -> int:
    return min((1 << 53) - 2 * p, p << 30)


def assert_reduced(p: int, values: list[int], reduced: torch.Tensor) -> None:
    for value, found in zip(values, reduced.tolist(), strict=True):
        assert found == int(found)
        assert (int(found) - value) % p == 0, (p, value, found)
        assert abs(found) <= p // 2 + 2, (p, value, found)
        assert (found == 0) == (value % p == 0), "a residue must be 0 exactly when the number is 0 modulo p"


@pytest.mark.parametrize("p", PRIMES)
def test_reduce_at_the_ends_of_the_range_and_around_multiples_and_halves(p):
    top = largest(p)
    rng = random.Random(p)
    factors = [0, 1, 2, top // p - 1, top // p, *(rng.randrange(top // p) for _ in range(200))]
    near = (-2, -1, 0, 1, 2)
    values = [k * p + at + d for k in factors for at in (0, p // 2, p - p // 2) for d in near]
    values += [top + d for d in (-2, -1, 0)]
    values = [sign * v for v in values if abs(v) <= top for sign in (1, -1)]
    x = torch.tensor(values, dtype=torch.float64)
    assert [int(v) for v in x.tolist()] == values  # the test's own numbers are exact
    assert_reduced(p, values, Modulus(p).reduce(x))
    assert [int(v) for v in x.tolist()] == values  # reduce copies
    assert Modulus(p).reduce_(x) is x
    assert_reduced(p, values, x)


@given(p=st.sampled_from(PRIMES), data=st.data())
def test_reduce_anywhere_in_the_range(p, data):
    values = data.draw(st.lists(st.integers(-largest(p), largest(p)), min_size=1, max_size=50))
    assert_reduced(p, values, Modulus(p).reduce(torch.tensor(values, dtype=torch.float64)))


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "three dimensions"])
def test_reduce_in_tiles_reaches_every_entry(layout):
    """More entries than one tile holds, in each memory layout that is treated apart."""
    rng = np.random.default_rng(0)
    whole = torch.from_numpy(rng.integers(-(1 << 52), 1 << 52, size=(1030, 1026))).to(torch.float64)
    x = {
        "contiguous": whole,
        "transposed": whole.T,
        "strided": whole[:, ::2],
        "three dimensions": whole.view(103, 10, 1026).transpose(0, 1),
    }[layout]
    before = x.to(torch.int64)
    m = Modulus(NEAR_2_23)
    m.reduce_(x)
    assert torch.equal(x.to(torch.int64).remainder(m.p), before.remainder(m.p))
    assert float(x.abs().max()) <= m.p // 2 + 2


@pytest.mark.parametrize("p", PRIMES)
def test_terms_is_the_largest_number_that_fits(p):
    bound = p // 2 + 2
    terms = Modulus(p).terms
    assert terms * bound**2 <= largest(p) < (terms + 1) * bound**2


def test_terms_promised_near_two_to_the_23():
    assert Modulus(NEAR_2_23).terms == 512
    assert Modulus(NEAR_2_25).terms == 32


@pytest.mark.parametrize("p", [NEAR_2_20, NEAR_2_23, NEAR_2_25, 101, 7])
@pytest.mark.parametrize("times", [1, 3])
def test_products_of_extreme_residues_stay_exact(p, times):
    """Every entry at ±(p/2 + 2), as many as one exact sum may hold, and over several sums."""
    m = Modulus(p)
    bound = p // 2 + 2
    length = min(m.terms, 50_000) * times + (times > 1)
    for pattern in ([bound], [-bound, bound - 1], [bound, bound, -bound]):
        left = torch.tensor([pattern[i % len(pattern)] for i in range(length)], dtype=torch.float64)
        right = torch.full((length, 2), float(bound), dtype=torch.float64)
        right[:, 1] = -right[:, 1] + 1
        truth = [
            sum(int(a) * int(b) for a, b in zip(left.tolist(), column, strict=True)) % p for column in right.T.tolist()
        ]
        assert m.canonical(product(left[None], right, m)).tolist() == [truth]
        assert m.canonical(product(left, right, m)).tolist() == truth
        assert int(m.canonical(product(left, right[:, 0].clone(), m))) == truth[0]
        target = torch.full((1, 2), float(bound), dtype=torch.float64)
        subtract_product_(target, left[None], right, m)
        assert m.canonical(target).tolist() == [[(bound - t) % p for t in truth]]


@given(p=st.sampled_from(PRIMES[3:]), inner=st.integers(0, 120), seed=st.integers(0, 99))
def test_product_with_broadcasting_equals_integers(p, inner, seed):
    m = Modulus(p)
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randint(-(p // 2), p // 2 + 1, shape, generator=generator)
    left, right = draw(2, 1, 3, inner), draw(4, inner, 2)
    truth = np.matmul(left.numpy().astype(object), right.numpy().astype(object)) % p
    found = m.canonical(product(left.double(), right.double(), m))
    assert found.tolist() == truth.tolist()


@given(x=st.floats(allow_nan=False, allow_infinity=False), p=st.sampled_from(PRIMES[1:]))
def test_lift_takes_a_float_as_the_fraction_it_is(x, p):
    m = Modulus(p)
    truth = residue(Fraction(x), p)
    assert m.lift_number(x) == truth
    assert m.canonical(m.lift(torch.tensor([x, -x, 1.0], dtype=torch.float64))).tolist() == [truth, -truth % p, 1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_lift_of_every_float_type(dtype):
    values = torch.tensor([0.1, -0.1, 1e-3, 3.5, 0.0, -0.0, 255.0, 2.0**-14, 6e-8], dtype=dtype)
    m = Modulus(NEAR_2_23)
    truth = [residue(Fraction(v), m.p) for v in values.double().tolist()]
    assert m.canonical(m.lift(values)).tolist() == truth


def test_lift_of_extreme_floats_together():
    """Smallest subnormal and largest number in one tensor: all powers of two in between are looked up."""
    values = [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.0, 1.0]
    for p in (3, 101, NEAR_2_25):
        m = Modulus(p)
        truth = [residue(Fraction(v), p) for v in values]
        assert m.canonical(m.lift(torch.tensor(values, dtype=torch.float64))).tolist() == truth


def test_lift_of_integers_masks_and_nothing():
    m = Modulus(101)
    extremes = [0, 1, -1, 101, 202, 10**18, -(10**18), (1 << 63) - 1, -(1 << 63)]
    assert m.canonical(m.lift(torch.tensor(extremes))).tolist() == [v % 101 for v in extremes]
    assert m.canonical(m.lift(torch.tensor([True, False]))).tolist() == [1, 0]
    assert m.lift(torch.zeros(0)).shape == (0,)
    assert m.lift(torch.zeros(2, 0, 3)).shape == (2, 0, 3)
    assert m.lift(torch.tensor(7.0)).shape == ()


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_constant_that_is_no_number_is_refused(bad):
    m = Modulus(101)
    with pytest.raises(BadInput, match="infinite or NaN"):
        m.lift(torch.tensor([1.0, bad]))
    with pytest.raises(BadInput, match="no residue"):
        m.lift_number(bad)


def test_fractions_modulo_2():
    m = Modulus(2)
    assert m.canonical(m.lift(torch.tensor([0.0, 1.0, -3.0, 4.0, 2.0**80, 2.0**62 + 2.0**12]))).tolist() == [
        0,
        1,
        1,
        0,
        0,
        0,
    ]
    with pytest.raises(BadInput, match="odd prime"):
        m.lift(torch.tensor([0.5]))
    with pytest.raises(BadInput):
        m.lift_number(0.5)


def test_complex_is_refused():
    with pytest.raises(BadInput, match="complex"):
        Modulus(101).lift(torch.tensor([1j]))


@pytest.mark.parametrize("p", [0, 1, -7, 4, 15, 91, 561, 8388591, NEAR_2_23 - 2])
def test_a_modulus_that_is_not_prime_is_refused(p):
    with pytest.raises(BadInput, match="not prime"):
        Modulus(p)


def test_the_nearest_prime_is_offered():
    with pytest.raises(BadInput, match="13"):
        Modulus(15)


@pytest.mark.parametrize("p", [1 << 25, (1 << 31) - 1, (1 << 61) - 1])
def test_a_modulus_that_is_too_large_is_refused(p):
    with pytest.raises(BadInput, match="too large"):
        Modulus(p)


def test_primes_by_a_sieve():
    composite = set()
    for n in range(2, 2000):
        assert is_prime(n) == (n not in composite)
        composite.update(range(2 * n, 2000, n))
    assert not is_prime(1)
    # Carmichael numbers and strong pseudoprimes to small bases
    assert not any(map(is_prime, [561, 41041, 3215031751, 3474749660383, 341550071728321]))
    assert is_prime((1 << 61) - 1)


@given(st.integers(3, 10**6))
def test_prime_below_leaves_no_prime_out(n):
    found = prime_below(n)
    assert found < n
    assert is_prime(found)
    assert not any(map(is_prime, range(found + 1, n)))


@pytest.mark.parametrize("p", PRIMES)
def test_inverses(p):
    m = Modulus(p)
    values = sorted({v % p for v in (1, p - 1, p // 2, p // 2 + 1, *range(2, 60))} - {0})
    x = m.centred(torch.tensor([0, *values]))
    before = x.clone()
    found = m.canonical(m.inverses(x)).tolist()
    assert found == [0, *(pow(v, -1, p) for v in values)]
    assert torch.equal(x, before)
    assert [m.inverse(v) for v in values] == found[1:]
    with pytest.raises(BadInput, match="no inverse"):
        m.inverse(3 * p)


@given(p=st.sampled_from(PRIMES), value=st.integers(-(1 << 63), (1 << 63) - 1))
def test_centred_and_canonical_agree_with_integers(p, value):
    m = Modulus(p)
    centred = m.centred(torch.tensor([value]))
    assert abs(float(centred)) <= p / 2
    assert (int(centred) - value) % p == 0
    assert m.canonical(centred).tolist() == [value % p]
