"""aⁿbⁿ in four cells: every short string, and long ones that are wrong in one place."""

from __future__ import annotations

import itertools
import re

import pytest

from theodolite.errors import BadInput
from theodolite.nets.lstm import LSTMLayer
from theodolite.nets.size import count_parameters
from theodolite.witness.counting import accepts, anbn_lstm


def in_language(string: str) -> bool:
    """By a regular expression and a comparison: no counter."""
    found = re.fullmatch(r"(a+)(b+)", string)
    return found is not None and found[1] == found[2].replace("b", "a")


def test_every_string_up_to_length_16_is_told():
    witness = anbn_lstm()
    accepted = 0
    for length in range(1, 17):
        strings = ["".join(letters) for letters in itertools.product("ab", repeat=length)]
        said = accepts(witness, strings)
        assert said == [in_language(string) for string in strings]
        accepted += sum(said)
    assert accepted == 8


@pytest.mark.parametrize("n", [100, 5000])
def test_long_strings_are_told_from_those_with_one_fault(n):
    witness = anbn_lstm()
    a, b = "a" * n, "b" * n
    assert accepts(witness, [a + b]) == [True]
    same_length = [
        a + "b" * (n - 1) + "a",
        "b" + a[1:] + b,
        a[1:] + b + "b",
        a + "a" + b[1:],
        a[1:] + "ba" + b[1:],
        b + a,
    ]
    assert accepts(witness, same_length) == [False] * 6
    assert accepts(witness, [a + b[1:], a[1:] + b]) == [False] * 2


def test_the_size_is_that_of_a_registered_lstm_and_does_not_depend_on_n():
    witness = anbn_lstm()
    assert {type(layer) for layer in witness.module.layers} == {LSTMLayer}  # pyright: ignore[reportGeneralTypeIssues]
    assert count_parameters(witness.module) == 117


@pytest.mark.parametrize(
    ("strings", "words"), [(["ab", "a"], "one length"), (["abc"], "other symbols"), ([""], "one l")]
)
def test_strings_that_cannot_be_read_are_refused(strings, words):
    with pytest.raises(BadInput, match=words):
        accepts(anbn_lstm(), strings)
