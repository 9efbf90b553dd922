"""Context-sensitive tasks: hand-worked rows, exact long arithmetic, the laws of the draws, counted chances."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks import Batch, Task, make_task
from theodolite.tasks.binary_addition import BinaryAddition
from theodolite.tasks.binary_multiplication import BinaryMultiplication
from theodolite.tasks.shared.positional import add, carries, count_digits, draw_positive, multiply, square_root

FAMILY = ["copy", "reverse", "duplicate", "odds-first", "bucket-sort"]
ARITHMETIC = ["binary-addition", "binary-multiplication", "square-root", "decimal-addition"]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(drawn: Batch) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    parts = (part.flatten(0, 1).tolist() for part in (drawn.inputs, drawn.targets, drawn.mask))
    return zip(*parts, strict=True)


def integers(digits: torch.Tensor, base: int = 2) -> list[int]:
    """Read by Python's own parser, which wants the most significant digit first."""
    return [int("".join(map(str, reversed(row))), base) for row in digits.flatten(0, -2).tolist()]


def test_copying_and_reversing_draw_what_they_always_drew():
    """The digest was taken of the data of version 1, before the family was one."""
    for name, digest in (
        ("copy", "6af95478cdadfcfce60ecf0c3d56932f69feac27bc7863a2a8bbd15d40058013"),
        ("reverse", "7e57790f355b0c5284f10322e533accf1819920d4ae58c3e80fdd161e976a9ec"),
    ):
        drawn = hashlib.sha256()
        source = generator(7)
        for symbols in (8, 2, 10):
            for length in (None, 1, 5, 40, 77):
                batch = make_task(name, {"symbols": symbols}).sample(3, 9, length, source)
                for part in (batch.inputs, batch.targets, batch.mask):
                    drawn.update(part.numpy().tobytes())
        assert drawn.hexdigest() == digest
        assert make_task(name, {}).version == 1


@pytest.mark.parametrize("name", FAMILY)
def test_an_answer_holds_the_symbols_of_its_string(name):
    task = make_task(name, {"symbols": 3})
    for length in (1, 2, 9, 60):
        for inputs, targets, mask in rows(task.sample(2, 20, length, generator())):
            string, answer = inputs[:length], [y for y, scored in zip(targets, mask, strict=True) if scored]
            times = 2 if name == "duplicate" else 1
            assert Counter(answer) == Counter(times * string)
            assert set(inputs[length:]) == {3}


@pytest.mark.parametrize(
    ("name", "string", "answer"),
    [
        ("duplicate", "101", "101101"),
        ("odds-first", "00110101", "01000111"),
        ("odds-first", "110", "101"),
        ("bucket-sort", "10204112", "00111224"),
    ],
)
def test_rearrangements_worked_by_hand(name, string, answer, monkeypatch):
    task = make_task(name, {})
    drawn = torch.tensor([[[int(symbol) for symbol in string]]])
    monkeypatch.setattr(torch, "randint", lambda *_, **__: drawn)
    ((inputs, targets, _),) = rows(task.sample(1, 1, len(string), generator()))
    assert inputs == [*map(int, string), *[task.spec.vocab - 1] * len(answer)]
    assert targets[len(string) :] == [int(symbol) for symbol in answer]


def test_the_hidden_symbol_is_where_the_two_writings_differ():
    task = make_task("missing-duplicate", {"symbols": 3})
    hidden, blank, marker = 3, 4, 5
    for length in (2, 3, 8, 13):
        places = set()
        for inputs, targets, mask in rows(task.sample(2, 200, length, generator(length))):
            string = inputs[:length]
            assert inputs[length:] == [marker]
            assert mask == [False] * length + [True]
            if length % 2:
                assert string.pop() == blank
            assert string.count(hidden) == 1
            places.add(string.index(hidden))
            half = len(string) // 2
            string[string.index(hidden)] = targets[-1]
            assert string[:half] == string[half:]
        assert places == set(range(2 * (length // 2))), "any symbol may be the hidden one"


@pytest.mark.parametrize("symbols", [2, 3, 5])
def test_the_hidden_symbol_is_the_one_left_an_odd_number_of_times(symbols):
    """So that the task is regular, though it is listed as context-sensitive."""
    for inputs, targets, _ in rows(make_task("missing-duplicate", {"symbols": symbols}).sample(2, 20, 13, generator())):
        odd = [symbol for symbol in range(symbols) if list(inputs).count(symbol) % 2]
        assert odd == [targets[-1]]


def test_one_symbol_alone_is_its_own_answer():
    for inputs, targets, _ in rows(make_task("missing-duplicate", {}).sample(1, 20, 1, generator())):
        assert inputs[1] == 4
        assert targets[1] == inputs[0] < 2


@pytest.mark.parametrize(
    ("name", "row", "answer"),
    [
        ("binary-addition", "001+01101", "01011$"),  # 4 + 22 = 26
        ("binary-addition", "1001+000001", "100101$"),  # 9 + 32 = 41
        ("binary-addition", "10", "1$"),
        ("binary-multiplication", "001+01101", "0001101$"),  # 4 · 22 = 88
        ("binary-multiplication", "1001+000001", "000001001$"),  # 9 · 32 = 288
        ("binary-multiplication", "11", "11$"),
        ("square-root", "100101", "110"),  # 37
        ("square-root", "111", "10"),  # 7
        ("square-root", "1", "1"),
    ],
)
def test_arithmetic_worked_by_hand(name, row, answer):
    task = make_task(name, {})
    assert task.spec.vocab is not None
    markers = len(answer) if name == "square-root" else len(row) + 1
    solved = task.solve([*("01+".index(token) for token in row), *[task.spec.vocab - 1] * markers])
    assert solved[len(row) :][: len(answer)] == ["01$".index(token) for token in answer]


@each("name", ARITHMETIC)
@each("length", [1, 2, 3, 52, 53, 61, 62, 63, 64, 200, 499, 500])
def test_arithmetic_is_exact_at_any_length(name, length):
    """Around the widths of machine words, and far beyond them."""
    task = make_task(name, {})
    for inputs, targets, mask in rows(task.sample(2, 6, length, generator(length))):
        assert any(mask[length:])
        assert not any(mask[:length])
        solved = task.solve(inputs)
        assert [y for y, scored in zip(solved, mask, strict=True) if scored] == [
            y for y, scored in zip(targets, mask, strict=True) if scored
        ]


def test_what_is_scored_of_an_answer_ends_with_its_end():
    for name in ("binary-addition", "binary-multiplication"):
        for length in (1, 2, 3, 17, 90):
            for _, targets, mask in rows(make_task(name, {}).sample(1, 50, length, generator())):
                answer = [y for y, scored in zip(targets[length:], mask[length:], strict=True) if scored]
                assert answer[-2:] == [1, 2], "the highest digit is a one"
                assert 2 not in answer[:-1]
                assert mask[length : length + len(answer)] == [True] * len(answer), "no gap"


def test_carries_run_through_any_number_of_places():
    nines = torch.full((1, 301), 9)
    nines[0, 300] = 0
    one = torch.zeros_like(nines)
    one[0, 0] = 1
    assert integers(add(nines, one, base=10), 10) == [10**300]
    sums = torch.tensor([[5, 9, 12, 9, 9, 3]])
    assert carries(sums >= 10, sums == 9).tolist() == [[0, 0, 1, 1, 1, 0]]


@pytest.mark.parametrize("base", [2, 3, 7, 10])
def test_sums_in_any_base(base):
    width = 90
    one, two = torch.randint(base, (2, 1, 64, width), generator=generator())
    one[..., -1] = two[..., -1] = 0
    assert integers(add(one, two, base), base) == [
        a + b for a, b in zip(integers(one, base), integers(two, base), strict=True)
    ]


@pytest.mark.parametrize("width", [1, 2, 31, 52, 53, 61, 62, 63, 130, 500])
def test_products_and_roots_of_extreme_numbers(width):
    """All ones, a single one, squares and their neighbours below, besides random numbers."""
    big = (1 << width) - 1
    root = math.isqrt(big)
    chosen = sorted({1, big, 1 << (width - 1), root**2, max(1, root**2 - 1), root, big // 3})
    digits = torch.tensor([[(number >> place) & 1 for place in range(width)] for number in chosen])
    assert integers(digits) == chosen
    assert integers(square_root(digits)) == [math.isqrt(number) for number in chosen]
    assert count_digits(digits).tolist() == [number.bit_length() for number in chosen]
    wide = torch.nn.functional.pad(digits, (0, width))
    assert integers(multiply(wide, wide.flip(0))) == [a * b for a, b in zip(chosen, reversed(chosen), strict=True)]


def test_every_number_but_zero_is_equally_likely():
    draws = 30_000
    for bits in (1, 2, 4):
        numbers = integers(draw_positive(torch.full((1, draws), bits), 6, generator(bits)))
        seen = Counter(numbers)
        assert set(seen) == set(range(1, 1 << bits))
        each, freedom = draws / len(seen), len(seen) - 1
        squares = sum((count - each) ** 2 / each for count in seen.values())
        assert squares <= freedom + 5 * (2 * freedom) ** 0.5  # chi-squared: mean and five standard deviations


def test_the_sign_stands_anywhere_between_two_numbers():
    task, length, draws = make_task("binary-addition", {}), 12, 20_000
    inputs = task.sample(1, draws, length, generator()).inputs[0, :, :length]
    assert bool(((inputs == 2).sum(dim=-1) == 1).all())
    counts = torch.bincount((inputs == 2).int().argmax(dim=-1), minlength=length).tolist()
    assert counts[0] == counts[-1] == 0
    each = draws / (length - 2)
    assert all(abs(count - each) < 5 * each**0.5 for count in counts[1:-1])


def test_numbers_to_add_in_decimal_are_as_long_as_each_other():
    task = make_task("decimal-addition", {"base": 7})
    for length, (first, second) in {1: (0, 0), 2: (0, 1), 3: (1, 1), 8: (3, 4), 9: (4, 4)}.items():
        for inputs, _, mask in rows(task.sample(1, 10, length, generator())):
            assert inputs.index(7) == first
            assert inputs.index(8) == length == first + 1 + second
            assert sum(mask) == len(inputs) - length == second + 1


def counted(numbers: list[int]) -> tuple[float, float]:
    return (
        sum(number.bit_count() for number in numbers) / len(numbers),
        sum(number.bit_length() for number in numbers) / len(numbers),
    )


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 5), (2, 3), (3, 3), (3, 8), (5, 6)])
def test_expected_digits_of_sums_and_products_are_those_of_all_pairs(first, second):
    pairs = [(a, b) for a in range(1, 1 << first) for b in range(1, 1 << second)]
    assert BinaryAddition.expected(first, second) == pytest.approx(counted([a + b for a, b in pairs]), rel=1e-12)
    assert BinaryMultiplication.expected(first, second) == pytest.approx(counted([a * b for a, b in pairs]), rel=1e-12)


@pytest.mark.parametrize(("first", "second"), [(1, 16), (3, 14), (6, 11), (8, 9)])
def test_expected_digits_of_products_too_many_to_count_are_close(first, second):
    pairs = [(a, b) for a in range(1, 1 << first) for b in range(1, 1 << second)]
    ones, digits = counted([a * b for a, b in pairs])
    assert BinaryMultiplication.expected(first, second) == pytest.approx((ones, digits), abs=0.01)


def best_constant(task: Task, length: int, strings: list[list[int]]) -> float:
    """Over all strings of one length, equally likely."""
    seen: Counter[float] = Counter()
    for string in strings:
        seen.update(task.solve(string)[length:])
    return max(seen.values()) / seen.total()


@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 11])
def test_chance_of_roots_is_counted_over_all_numbers(length):
    task = make_task("square-root", {"shortest": length, "longest": length})
    numbers = [[int(digit) for digit in f"{n:0{length}b}"] for n in range(1, 1 << length)]
    strings = [number + [2] * ((length + 1) // 2) for number in numbers]
    assert task.spec.chance == pytest.approx(best_constant(task, length, strings), rel=1e-12)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7])
def test_chance_of_sums_is_counted_over_all_pairs(length):
    base, first = 3, (length - 1) // 2
    task = make_task("decimal-addition", {"base": base, "shortest": length, "longest": length})
    digits = torch.cartesian_prod(*[torch.arange(base)] * (length - 1)).reshape(-1, length - 1) if length > 1 else []
    plain = [row.tolist() for row in digits] if length > 1 else [[]]
    strings = [[*row[:first], base, *row[first:], *[base + 1] * (length // 2 + 1)] for row in plain]
    assert task.spec.chance == pytest.approx(best_constant(task, length, strings), rel=1e-12)


@pytest.mark.parametrize("name", [*FAMILY, "missing-duplicate"])
def test_an_alphabet_of_one_symbol_is_refused(name):
    with pytest.raises(BadInput, match=f"symbols=1 is too small for the task '{name}'"):
        make_task(name, {"symbols": 1})


@pytest.mark.parametrize("name", ["missing-duplicate", *ARITHMETIC])
def test_training_lengths_that_hold_no_length_are_refused(name):
    with pytest.raises(BadInput, match=f"longest=3 is below shortest=5 in the task '{name}'"):
        make_task(name, {"shortest": 5, "longest": 3})


def test_a_base_without_two_digits_is_refused():
    with pytest.raises(BadInput, match="base=1 is too small for the task 'decimal-addition'"):
        make_task("decimal-addition", {"base": 1})
