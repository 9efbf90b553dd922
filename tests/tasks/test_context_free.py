"""Tasks that need a stack or a counter: rows worked by hand, the stated laws, chance and labels by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.bracket_arithmetic import BracketArithmetic, value_of
from theodolite.tasks.counting_languages import AnBn, AnBnCn
from theodolite.tasks.solve_equation import SolveEquation
from theodolite.tasks.stack_manipulation import StackManipulation
from theodolite.tasks.unbounded_dyck import UnboundedDyck

from .test_regular import assert_law


def draw(task, length: int, rows: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Inputs, and the scored targets."""
    drawn = task.sample(2, rows // 2, length, torch.Generator().manual_seed(seed))
    parts = zip(drawn.inputs.flatten(0, 1), drawn.targets.flatten(0, 1), drawn.mask.flatten(0, 1), strict=True)
    return [(inputs.tolist(), targets[mask].tolist()) for inputs, targets, mask in parts]


# stack-manipulation


@pytest.mark.parametrize(
    ("string", "stack"),
    [
        ("a b b a +b pop pop", "b b a"),
        ("b b a pop pop pop", ""),
        ("b pop pop pop +a", "a"),
        ("a pop +b pop pop +b +a", "a b"),
        ("b", "b"),
    ],
)
def test_stacks_worked_by_hand(string, stack):
    ids = {"a": 0, "b": 1, "pop": 2, "+a": 3, "+b": 4}
    tokens = [ids[s] for s in string.split()]
    answer = StackManipulation().solve([*tokens, *[5] * (len(tokens) + 1)])[len(tokens) :]
    wanted = [ids[s] for s in stack.split()]
    assert answer == [*wanted, 2, *[0] * (len(tokens) - len(wanted))]


def stack_law(symbols: int, length: int) -> dict[tuple[int, ...], float]:
    law: Any = Counter()
    for given in range(1, max(2, length)):
        blocks = [range(symbols)] * given + [range(symbols, 2 * symbols + 1)] * (length - given)
        share = 1 / max(1, length - 1) / symbols**given / (symbols + 1) ** (length - given)
        law.update(dict.fromkeys(product(*blocks), share))
    return law


@pytest.mark.parametrize("length", [1, 4])
def test_stacks_and_actions_have_the_stated_probabilities(length):
    seen = Counter(tuple(inputs[:length]) for inputs, _ in draw(StackManipulation(), length, 12_000))
    assert_law(seen, stack_law(2, length))


@pytest.mark.parametrize("symbols", [1, 2, 3])
def test_chance_of_stacks_is_that_of_every_string(symbols):
    task = StackManipulation(symbols=symbols, shortest=2, longest=5)
    shares = Counter()
    for length in range(2, 6):
        tokens, found = 0.0, Counter()
        for string, share in stack_law(symbols, length).items():
            answer = task.solve([*string, *[2 * symbols + 1] * (length + 1)])[length:]
            answer = answer[: answer.index(symbols) + 1]
            tokens += share * len(answer)
            for token in answer:
                found[token] += share
        for token, share in found.items():
            shares[token] += share / tokens / 4
    assert task.spec.chance == pytest.approx(max(shares.values()))


def test_stacks_are_scored_up_to_the_terminator_and_can_be_empty():
    heights = Counter()
    for inputs, scored in draw(StackManipulation(symbols=3), 8, 2_000):
        assert len(inputs) == 17
        assert set(inputs[8:]) == {7}
        assert scored[-1] == 3
        assert 3 not in scored[:-1]
        heights[len(scored) - 1] += 1
    assert {0, 1, 4, 8} <= set(heights)


# bracket-arithmetic and solve-equation


def written(tokens, modulus: int, hidden: str = "x") -> str:
    return "".join(str(t) if t < modulus else ["+", "-", "*", "(", ")", hidden, "=="][t - modulus] for t in tokens)


def expressions(modulus: int, operators: str, length: int) -> Iterator[tuple[str, float]]:
    """Every expression with its probability, by the grammar."""
    if length < 5:
        for digit in range(modulus):
            yield ("{}", "-{}", "({})", "(-{})")[length - 1].format(digit), 1 / modulus
        return
    splits = length - 4
    for left in range(1, splits + 1):
        for (one, p), (two, q) in product(
            expressions(modulus, operators, left), expressions(modulus, operators, length - 3 - left)
        ):
            for operator in operators:
                yield f"({one}{operator}{two})", p * q / splits / len(operators)


@pytest.mark.parametrize(
    ("expression", "answer"), [("(2*(4-1))", 1), ("(-3)", 2), ("((1)-(-4))", 0), ("(-2*-4)", 3), ("(1--3)", 4)]
)
def test_brackets_worked_by_hand(expression, answer):
    assert value_of([int(s) if s.isdigit() else 5 + "+-*()".index(s) for s in expression], 5) == answer


@pytest.mark.parametrize(("modulus", "length"), [(5, 1), (5, 4), (5, 23), (5, 40), (2, 33), (9, 64), (5, 301)])
def test_brackets_have_the_value_that_python_gives_them(modulus, length):
    rows = draw(BracketArithmetic(modulus=modulus), length, 40)
    for inputs, (answer,) in rows:
        assert len(inputs) == length + 1
        assert eval(written(inputs[:-1], modulus)) % modulus == answer
    assert length < 23 or len({shape(written(inputs[:-1], modulus)) for inputs, _ in rows}) > 20, "shapes differ"


def shape(expression: str) -> str:
    return "".join("d" if s.isdigit() else s for s in expression)


@pytest.mark.parametrize(("modulus", "length"), [(2, 6), (2, 9), (2, 13)])
def test_brackets_have_the_probabilities_of_the_grammar(modulus, length):
    """Every expression where they are few; every shape, with a single digit and operator, where they are many."""
    law: Any = Counter()
    few = length == 6
    for expression, share in expressions(2 if few else 1, "+-*" if few else "+", length):
        law[expression if few else shape(expression)] += share
    task = BracketArithmetic(modulus=modulus, operations=3 if few else 1)
    seen = Counter()
    for inputs, _ in draw(task, length, 12_000):
        expression = written(inputs[:-1], modulus)
        seen[expression if few else shape(expression)] += 1
    assert_law(seen, law)


@pytest.mark.parametrize("operations", [1, 2, 3])
def test_chance_of_brackets_is_that_of_every_expression(operations):
    modulus, shortest, longest = 3, 4, 9
    shares = Counter()
    for length in range(shortest, longest + 1):
        for expression, share in expressions(modulus, "+-*"[:operations], length):
            shares[eval(expression) % modulus] += share / (longest - shortest + 1)
    task = BracketArithmetic(modulus=modulus, operations=operations, shortest=shortest, longest=longest)
    assert task.spec.chance == pytest.approx(max(shares.values()))


@pytest.mark.parametrize(("operations", "absent"), [(1, "-*"), (2, "*"), (3, "")])
@pytest.mark.parametrize("kind", [BracketArithmetic, SolveEquation])
def test_only_the_first_operations_stand_between_numbers(kind, operations, absent):
    strings = [written(inputs[:-1], 5) for inputs, _ in draw(kind(operations=operations), 21, 200)]
    between = {b for s in strings for a, b in pairwise(s) if a in "01234x)" and b in "+-*"}
    assert between == set("+-*") - set(absent)


@each(("modulus", "operations"), [(5, 2), (5, 3), (6, 3), (4, 3)])
@each("length", [3, 7, 24, 41])
def test_equations_have_one_solution_that_python_finds(modulus, operations, length):
    """Also where some numbers other than 0 cannot be divided by."""
    for inputs, (answer,) in draw(SolveEquation(modulus=modulus, operations=operations), length, 100):
        side, right = written(inputs[:-1], modulus).split("==")
        assert side.count("x") == 1
        assert [x for x in range(modulus) if eval(side.replace("x", str(x))) % modulus == int(right)] == [answer]


def test_products_stand_around_the_unknown_too():
    """x · d with d invertible, and never with one that is not."""
    factors = Counter()
    for inputs, _ in draw(SolveEquation(modulus=6, operations=3), 7, 4_000):
        side = written(inputs[:-1], 6)
        if "x*" in side:
            factors[side[side.index("x*") + 2]] += 1
    assert set(factors) == {"1", "5"}


def test_the_unknown_is_the_first_digit_from_a_random_token_on():
    """(d + d) has five tokens: going round, three of them lead to the first digit and two to the second."""
    strings = [written(inputs[:-1], 5) for inputs, _ in draw(SolveEquation(), 7, 10_000)]
    assert_law(Counter(s.index("x") for s in strings), {1: 3 / 5, 3: 2 / 5})


def test_equations_below_three_tokens_are_the_end_of_one():
    for length, left in ((1, ""), (2, "==")):
        rows = draw(SolveEquation(), length, 500)
        assert {written(inputs[:-1], 5) for inputs, _ in rows} == {f"{left}{digit}" for digit in range(5)}
        assert all(inputs[-2] == answer for inputs, (answer,) in rows)


def test_an_equation_with_other_than_one_solution_is_refused_by_the_solver():
    tokens = [8, 10, 7, 0, 9, 11, 0, 12]  # (x * 0) = 0
    with pytest.raises(ValueError, match="has 5 solutions"):
        SolveEquation().solve(tokens)


@pytest.mark.parametrize("operations", [0, 4])
@pytest.mark.parametrize("name", ["bracket-arithmetic", "solve-equation"])
def test_operators_that_are_not_there_are_refused(name, operations):
    with pytest.raises(BadInput, match=f"operations={operations} .*'{name}' can use: use 1 for"):
        make_task(name, {"operations": operations})


# unbounded-dyck


@pytest.mark.parametrize("types", [1, 2])
def test_brackets_without_a_bound_have_the_stated_probabilities(types):
    law = {}
    for string in product(range(2 * types), repeat=6):
        stack, share = [], 1.0
        for bracket in string:
            if bracket < types:
                share *= (0.5 if stack else 1.0) / types
                stack.append(bracket)
            elif stack and stack.pop() == bracket - types:
                share *= 0.5
            else:
                share = 0.0
                break
        if share:
            law[string] = share
    assert_law(Counter(tuple(inputs) for inputs, _ in draw(UnboundedDyck(types=types), 6, 20_000)), law)


def test_chance_without_a_bound_is_that_of_every_walk():
    shares = Counter()
    for length in range(1, 8):
        for steps in product((-1, 1), repeat=length):
            level = [abs(sum(steps[: place + 1])) for place in range(length)]
            shares["none"] += level.count(0) / length / 2**length / 7
    for types in (1, 3):
        chance = UnboundedDyck(types=types, longest=7).spec.chance
        assert chance == pytest.approx(max(shares["none"], (1 - shares["none"]) / types))


def test_the_depth_grows_with_the_root_of_the_length():
    """E|S_t| = √(2t/π) for a fair walk; at 1,600 brackets 32, far beyond what a bounded depth reaches."""
    task, length, rows = UnboundedDyck(types=1), 1_600, 400
    open_ = [sum(1 if bracket == 0 else -1 for bracket in inputs) for inputs, _ in draw(task, length, rows)]
    mean, spread = (2 * length / torch.pi) ** 0.5, (length * (1 - 2 / torch.pi) / rows) ** 0.5
    assert abs(sum(open_) / rows - mean) < 5 * spread


def test_long_brackets_without_a_bound_are_nested_and_labelled():
    task, inputs = UnboundedDyck(types=3), []
    for inputs, targets in draw(task, 20_000, 2):
        assert task.solve(inputs) == targets  # the solver refuses strings that are not nested
    wrong = [*inputs]
    close = next(place for place, bracket in enumerate(inputs) if bracket >= task.types)
    wrong[close] = task.types + (wrong[close] - task.types + 1) % task.types
    with pytest.raises(ValueError, match="not nested"):
        task.solve(wrong)


# anbn and anbncn


def continuations(string: str, letters: str) -> set[str]:
    """What may follow in the language, by looking through its words; "" is the end."""
    words = ["".join(letter * n for letter in letters) for n in range(1, len(string) + 2)]
    return {word[len(string) : len(string) + 1] for word in words if word.startswith(string)}


@each(("task", "letters", "answers"), [(AnBn(), "ab", ["ab", "b", ""]), (AnBnCn(), "abc", ["ab", "b", "c", ""])])
@each("length", [1, 2, 3, 7, 12, 40])
def test_the_answer_is_what_may_follow_in_the_language(task, letters, answers, length):
    seen = Counter()
    for inputs, (answer,) in draw(task, length, 200):
        string = "".join((letters + "#")[symbol] for symbol in inputs)
        assert len(string) == length + 1
        prefix = string.rstrip("#")
        assert "#" not in prefix
        assert continuations(prefix, letters) == (set(answers[answer]) or {""})
        seen[answer] += 1
    assert length < 12 or set(seen) == set(range(len(answers)))


def counting_law(letters: str, length: int) -> dict[str, float]:
    """The stated law of the prefixes."""
    law: Any = Counter()
    largest = max(1, length // len(letters))
    for n, blocks in product(range(1, largest + 1), range(2, len(letters) + 1)):
        word = "".join(letter * n for letter in letters[:blocks])
        share = 1 / largest / (len(letters) - 1)
        law[word[:length]] += share / 2
        law[word[:-1][:length]] += share / 4
        for kept in range(1, len(word)):
            law[word[:kept][:length]] += share / 4 / (len(word) - 1)
    return law


@pytest.mark.parametrize(("task", "letters"), [(AnBn, "ab"), (AnBnCn, "abc")], ids=["anbn", "anbncn"])
def test_prefixes_have_the_stated_law_and_chance_follows_from_it(task, letters):
    for length in (2, 9):
        strings = ["".join((letters + "#")[s] for s in inputs).rstrip("#") for inputs, _ in draw(task(), length, 8_000)]
        assert_law(Counter(strings), counting_law(letters, length))
    shares, lengths = Counter(), range(1, 12)
    for length in lengths:
        for string, share in counting_law(letters, length).items():
            shares[frozenset(continuations(string, letters))] += share / len(lengths)
    assert task(longest=11).spec.chance == pytest.approx(max(shares.values()))


@pytest.mark.parametrize("task", [AnBn(), AnBnCn()], ids=["anbn", "anbncn"])
def test_every_length_asks_for_counts_as_long_as_itself(task):
    """Prefixes that lack one symbol, or none, of a word that nearly fills the length: a bounded count is not enough."""
    letters = task.spec.vocab - 1
    for length in (60, 500):
        close = [abs(inputs.count(0) - inputs.count(letters - 1)) <= 1 for inputs, _ in draw(task, length, 400)]
        long = [inputs.count(0) > length // letters // 2 for inputs, _ in draw(task, length, 400)]
        assert sum(a and b for a, b in zip(close, long, strict=True)) > 60
