"""Tasks of regular languages: rows worked by hand, the stated laws, chance by brute force."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.cycle_navigation import CycleNavigation
from theodolite.tasks.even_pairs import EvenPairs
from theodolite.tasks.modular_arithmetic import ModularArithmetic


def draw(task, length: int, rows: int, seed: int = 0) -> list[tuple[list[int], int]]:
    """Strings without their marker, and what is asked there."""
    drawn = task.sample(2, rows // 2, length, torch.Generator().manual_seed(seed))
    assert drawn.inputs.shape[-1] == length + 1
    assert not drawn.mask[..., :-1].any()
    assert drawn.mask[..., -1].all()
    strings, answers = drawn.inputs[..., :-1].flatten(0, 1), drawn.targets[..., -1].flatten()
    return list(zip(strings.tolist(), answers.tolist(), strict=True))


def assert_law(seen: Counter, law: dict) -> None:
    """Chi-squared of the counts, within five standard deviations of its mean; nothing drawn that cannot be."""
    assert sum(law.values()) == pytest.approx(1)
    assert len(law) > 1
    assert set(seen) <= set(law)
    rows = sum(seen.values())
    squares = sum((seen[s] - rows * p) ** 2 / (rows * p) for s, p in law.items())
    freedom = len(law) - 1
    assert squares < freedom + 5 * (2 * freedom) ** 0.5


def expressions(modulus: int, length: int) -> list[tuple[int, ...]]:
    """Every sum the task can ask for at this length, all equally likely: the first sign is + or −."""
    digits, operators = range(modulus), range(modulus, modulus + 3)
    tokens = [operators if (length - place) % 2 == 0 else digits for place in range(length)]
    if length % 2 == 0:
        tokens[0] = operators[:2]
    return list(product(*tokens))


def value(tokens, modulus: int) -> int:
    """By Python's own arithmetic."""
    written = "".join(str(t) if t < modulus else "+-*"[t - modulus] for t in tokens)
    return eval(written) % modulus


@pytest.mark.parametrize(
    ("string", "answer"), [("a", 0), ("ab", 1), ("aabbba", 0), ("abababb", 1), ("bbb", 0), ("baab", 0), ("baa", 1)]
)
def test_even_pairs_of_strings_worked_by_hand(string, answer):
    assert EvenPairs().solve(["ab".index(s) for s in string] + [2])[-1] == answer


def test_even_pairs_are_strings_of_fair_symbols():
    seen = Counter(tuple(string) for string, _ in draw(EvenPairs(), 5, 8_000))
    assert_law(seen, dict.fromkeys(product(range(2), repeat=5), 1 / 32))


def test_even_pairs_of_one_symbol_have_one_answer_and_chance_says_so():
    assert {answer for _, answer in draw(EvenPairs(), 1, 200)} == {0}
    assert EvenPairs(shortest=1, longest=4).spec.chance == pytest.approx((1 + 3 / 2) / 4)
    assert EvenPairs(shortest=2, longest=4).spec.chance == 0.5


@pytest.mark.parametrize(("moves", "places", "place"), [("><.<<", 5, 3), (">>><", 5, 2), (">>", 2, 0), ("<", 7, 6)])
def test_cycle_navigation_worked_by_hand(moves, places, place):
    assert CycleNavigation(places=places).solve(["<.>".index(m) for m in moves] + [3])[-1] == place


@pytest.mark.parametrize("places", [2, 3, 5])
def test_chance_on_a_cycle_is_that_of_all_walks(places):
    shortest, longest = 2, 6
    shares = Counter()
    for length in range(shortest, longest + 1):
        for moves in product((-1, 0, 1), repeat=length):
            shares[sum(moves) % places] += 1 / 3**length / (longest - shortest + 1)
    task = CycleNavigation(places=places, shortest=shortest, longest=longest)
    assert task.spec.chance == pytest.approx(max(shares.values()))


def test_moves_on_a_cycle_are_equally_likely():
    seen = Counter(tuple(string) for string, _ in draw(CycleNavigation(), 3, 8_000))
    assert_law(seen, dict.fromkeys(product(range(3), repeat=3), 1 / 27))


@pytest.mark.parametrize(
    ("sum_", "answer"), [("1+2*3", 2), ("1-1-1", 4), ("0*1+4*3-2", 0), ("-2*3", 4), ("+4", 4), ("2-3*3*2", 4)]
)
def test_modular_arithmetic_worked_by_hand(sum_, answer):
    tokens = [int(s) if s.isdigit() else 5 + "+-*".index(s) for s in sum_]
    assert ModularArithmetic().solve([*tokens, 8])[-1] == answer


@pytest.mark.parametrize(("modulus", "length"), [(5, 1), (5, 2), (5, 40), (5, 41), (2, 30), (12, 27), (5, 301)])
def test_sums_have_the_value_that_python_gives_them(modulus, length):
    rows = draw(ModularArithmetic(modulus=modulus), length, 40)
    assert [answer for _, answer in rows] == [value(string, modulus) for string, _ in rows]
    assert any(modulus + 2 in string for string, _ in rows) or length < 3, "some hold a product"


@pytest.mark.parametrize("length", [3, 4])
def test_sums_are_uniform_and_an_even_length_starts_with_a_sign(length):
    seen = Counter(tuple(string) for string, _ in draw(ModularArithmetic(modulus=2), length, 8_000))
    every = expressions(2, length)
    assert len(every) == 2**2 * 3 * (2 if length == 4 else 1)
    assert_law(seen, dict.fromkeys(every, 1 / len(every)))


@pytest.mark.parametrize("modulus", [2, 3, 4])
def test_chance_of_sums_is_that_of_every_sum(modulus):
    shortest, longest = 2, 6
    shares = Counter()
    for length in range(shortest, longest + 1):
        every = expressions(modulus, length)
        for tokens in every:
            shares[value(tokens, modulus)] += 1 / len(every) / (longest - shortest + 1)
    task = ModularArithmetic(modulus=modulus, shortest=shortest, longest=longest)
    assert task.spec.chance == pytest.approx(max(shares.values()))


@pytest.mark.parametrize(
    ("name", "fields", "match"),
    [
        ("cycle-navigation", {"places": 1}, "places=1 is too small for the task 'cycle-navigation'"),
        ("modular-arithmetic", {"modulus": 1}, "modulus=1 is too small for the task 'modular-arithmetic'"),
        ("even-pairs", {"longest": 0}, "longest=0 is below shortest=1 in the task 'even-pairs'"),
    ],
)
def test_fields_that_make_no_task_are_refused(name, fields, match):
    with pytest.raises(BadInput, match=match):
        make_task(name, fields)
