"""The draw rule, from its docstring, in plain Python."""

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from theodolite.field import Modulus, draw_prime, draw_residues
from theodolite.field.draw import draw_words
from theodolite.field.modulus import is_prime

from .truth import NEAR_2_23


def word(name: str, n: int) -> int:
    """Number n of the stream, as the docstring of `theodolite.field.draw` says."""
    cut = (1 << 64) - 1
    key = int.from_bytes(hashlib.sha256(("theodolite-draw-1/" + name).encode("utf-8")).digest()[:8], "big")
    z = (key + (n + 1) * 0x9E3779B97F4A7C15) & cut
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & cut
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & cut
    return z ^ (z >> 31)


@given(name=st.text(st.characters(exclude_categories=["Cs"])), start=st.integers(0, 1 << 40), count=st.integers(0, 20))
def test_words_follow_the_rule(name, start, count):
    assert draw_words(name, count, start).tolist() == [word(name, n) >> 1 for n in range(start, start + count)]


@pytest.mark.parametrize("p", [2, 101, NEAR_2_23])
def test_residues_follow_the_rule_in_row_major_order(p):
    m = Modulus(p)
    found = draw_residues("7/0/a", (5, 3, 2), m, start=6)
    assert found.shape == (5, 3, 2)
    assert found.dtype == torch.float64
    assert m.canonical(found).flatten().tolist() == [(word("7/0/a", n) >> 1) % p for n in range(6, 36)]
    assert float(found.abs().max()) <= p / 2


def test_a_scalar_and_an_empty_draw():
    m = Modulus(101)
    assert draw_residues("s", (), m).shape == ()
    assert draw_residues("s", (0, 4), m).shape == (0, 4)


def test_a_later_part_of_a_stream_is_the_same_numbers():
    m = Modulus(NEAR_2_23)
    assert torch.equal(draw_residues("s", (50,), m)[30:], draw_residues("s", (20,), m, start=30))


def test_streams_differ_and_look_uniform():
    m = Modulus(101)
    a, b = (m.canonical(draw_residues(name, (20_200,), m)) for name in ("1/0/a", "1/0/b"))
    assert abs(int((a == b).sum()) - 200) < 6 * 15  # independent streams agree at one place in 101
    for x in (a, b):
        counts = torch.bincount(x, minlength=101).double()
        assert float(((counts - 200) ** 2 / 200).sum()) < 200  # χ² with 100 degrees of freedom


@given(st.integers(0, 10**6))
def test_drawn_primes_are_those_of_the_rule(seed):
    p = draw_prime(f"{seed}/0/prime")
    bound = (3 << 21) + (word(f"{seed}/0/prime", 0) >> 1) % ((1 << 23) - 64 - (3 << 21))
    assert is_prime(p)
    assert p < bound
    assert not any(map(is_prime, range(p + 1, bound)))
    assert Modulus(p).terms >= 512
