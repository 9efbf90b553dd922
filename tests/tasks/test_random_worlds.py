"""Random circuits and random languages, against the enumeration of all inputs and all words."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.random_circuit import GATES, RandomCircuit, draw_circuit
from theodolite.tasks.random_language import RandomLanguage
from theodolite.tasks.shared.automata import Automaton, log_paths, random_automaton

Word = tuple[int, ...]

SHAPES = [(2, 1, 0), (3, 2, 3), (5, 3, 1), (6, 5, 0), (8, 20, 2), (4, 60, 5), (10, 15, 0)]


@pytest.mark.parametrize(("bits", "gates", "draw"), SHAPES)
def test_a_circuit_depends_on_as_many_inputs_as_it_can_and_chance_is_counted(bits, gates, draw):
    task = RandomCircuit(bits, gates, draw)
    truth = {signs: task.solve(signs)[0] for signs in product((1.0, -1.0), repeat=bits)}
    flips = lambda signs, i: (*signs[:i], -signs[i], *signs[i + 1 :])
    relevant = [i for i in range(bits) if any(truth[signs] != truth[flips(signs, i)] for signs in truth)]
    assert len(relevant) == min(bits, gates + 1)
    share = sum(answer < 0 for answer in truth.values()) / 2**bits
    assert 0.1 <= share <= 0.9
    assert task.spec.chance == pytest.approx(max(share, 1 - share), abs=1e-12)


@pytest.mark.parametrize(("bits", "gates", "draw"), SHAPES)
def test_every_gate_leads_to_the_last(bits, gates, draw):
    circuit = draw_circuit(bits, gates, draw)
    assert len(circuit.gates) == gates
    read = {bits + gates - 1}
    for number, (left, right, truth) in reversed(list(enumerate(circuit.gates))):
        assert bits + number in read
        assert left != right
        assert max(left, right) < bits + number
        assert truth in GATES
        read |= {left, right}


def test_a_gate_depends_on_both_its_inputs():
    say = lambda gate, left, right: gate >> (2 * left + right) & 1
    both = [
        gate
        for gate in range(16)
        if any(say(gate, 0, r) != say(gate, 1, r) for r in (0, 1))
        and any(say(gate, x, 0) != say(gate, x, 1) for x in (0, 1))
    ]
    assert list(GATES) == both
    assert len(both) == 10


def test_all_inputs_of_a_circuit_are_equally_likely():
    drawn = RandomCircuit(4, 3).sample(2, 4000, None, torch.Generator().manual_seed(0))
    seen = Counter(map(tuple, drawn.inputs.flatten(0, 1).tolist()))
    assert len(seen) == 16
    assert sum((count - 500) ** 2 / 500 for count in seen.values()) < 15 + 5 * 30**0.5


def test_functions_of_different_draws_differ_and_a_draw_is_the_same_everywhere():
    functions = {draw_circuit(10, 15, draw).truth.tobytes() for draw in range(40)}
    assert len(functions) == 40
    assert draw_circuit(3, 2, 3).gates == ((0, 1, 6), (3, 2, 8))
    assert random_automaton(3, 2, 0) == Automaton(((1, 2), (0, 0), (2, 0)), (False, False, True))


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("random-circuit", {"bits": 17}, "bits=17"),
        ("random-circuit", {"bits": 1}, "bits=1"),
        ("random-circuit", {"gates": 0}, "gates=0"),
        ("random-circuit", {"gates": 257}, "gates=257"),
        ("random-circuit", {"draw": -1}, "draw=-1"),
        ("random-language", {"states": 1}, "states=1"),
        ("random-language", {"states": 17}, "states=17"),
        ("random-language", {"symbols": 1}, "symbols=1"),
        ("random-language", {"symbols": 5}, "symbols=5"),
        ("random-language", {"draw": -1}, "draw=-1"),
        ("random-language", {"longest": 1}, "length 1 to 1 have the same answer.*draw=0"),
    ],
)
def test_fields_that_make_no_task_are_refused(name, arguments, fault):
    with pytest.raises(BadInput, match=fault) as refused:
        make_task(name, arguments)
    assert f"'{name}'" in str(refused.value)


def test_the_widest_circuit_there_is_works():
    task = RandomCircuit(16, 256)
    drawn = task.sample(1, 50, None, torch.Generator().manual_seed(1))
    for row, target in zip(drawn.inputs[0].tolist(), drawn.targets[0].tolist(), strict=True):
        assert list(task.solve(row)) == target


def language(task: RandomLanguage, length: int) -> tuple[set[Word], set[Word]]:
    """The accepted and the rejected words of a length, walked one by one."""
    kinds: tuple[set[Word], set[Word]] = (set(), set())
    for word in product(range(task.symbols), repeat=length):
        kinds[task.solve([*word, task.symbols])[-1] == 0].add(word)
    return kinds


def beside(word: Word, symbols: int) -> list[Word]:
    """All words that differ in one place."""
    return [(*word[:i], s, *word[i + 1 :]) for i in range(len(word)) for s in range(symbols) if s != word[i]]


@pytest.mark.parametrize(
    ("states", "symbols", "draw", "length"), [(6, 2, 0, 6), (6, 2, 2, 7), (3, 3, 1, 4), (9, 4, 3, 3)]
)
def test_accepted_words_are_uniform_and_rejected_ones_miss_by_one_symbol(states, symbols, draw, length):
    """Against enumeration: the very words, each as often as it should be."""
    task, rows = RandomLanguage(states, symbols, draw), 40_000
    drawn = task.sample(1, rows, length, torch.Generator().manual_seed(2))
    accepted, rejected = language(task, length)
    pairs = Counter(near for word in accepted for near in beside(word, symbols) if near in rejected)
    wanted = ({word: 1 / len(accepted) for word in accepted}, {w: n / pairs.total() for w, n in pairs.items()})
    labels, words = drawn.targets[0, :, -1], drawn.inputs[0, :, :-1]
    assert abs(int(labels.sum()) - rows / 2) < 5 * (rows / 4) ** 0.5
    for label, law in ((1, wanted[0]), (0, wanted[1])):
        seen = Counter(map(tuple, words[labels == label].tolist()))
        assert set(seen) == set(law)
        squares = sum((seen[word] - seen.total() * p) ** 2 / (seen.total() * p) for word, p in law.items())
        assert squares < len(law) - 1 + 5 * (2 * len(law)) ** 0.5


@pytest.mark.parametrize(("states", "symbols", "draw"), [(2, 2, 0), (6, 2, 0), (4, 3, 2), (7, 4, 1)])
def test_numbers_of_paths_are_numbers_of_words_and_of_pairs(states, symbols, draw):
    task = RandomLanguage(states, symbols, draw)
    counts = np.exp(log_paths(task.automaton, 5))
    for length in range(1, 6):
        accepted, rejected = language(task, length)
        pairs = sum(near in rejected for word in accepted for near in beside(word, symbols))
        assert counts[length, 0] == pytest.approx(len(accepted))
        assert counts[length, states] == pytest.approx(pairs)


def answers(automaton: Automaton, state: int, word: Word) -> bool:
    for symbol in word:
        state = automaton.moves[state][symbol]
    return automaton.accepting[state]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 6), st.integers(2, 3), st.integers(0, 10**9))
def test_random_automata_are_minimal_and_complete(states, symbols, draw):
    """Words shorter than the number of states tell any two states of a minimal automaton apart, and reach each."""
    automaton = random_automaton(states, symbols, draw)
    assert len(automaton.moves) == len(automaton.accepting) == states
    assert all(len(row) == symbols and set(row) <= set(range(states)) for row in automaton.moves)
    words = [word for length in range(states) for word in product(range(symbols), repeat=length)]
    behaviour = {tuple(answers(automaton, state, word) for word in words) for state in range(states)}
    assert len(behaviour) == states
    reached = {0}
    for _ in range(states):
        reached |= {after for state in reached for after in automaton.moves[state]}
    assert reached == set(range(states))


@pytest.mark.parametrize(
    "automaton",
    [
        Automaton(((1, 2), (1, 1), (2, 2)), (False, True, True)),  # two states that accept everything
        Automaton(((0, 1), (1, 0), (0, 1)), (True, False, False)),  # nothing leads to the last
        Automaton(((1, 0), (0, 1)), (True, True)),
        Automaton(((1, 2), (3, 3), (3, 3), (0, 0)), (False, False, False, True)),
    ],
)
def test_automata_that_are_too_large_are_not_minimal(automaton):
    assert not automaton.minimal()


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(2, 4), st.integers(0, 10**6), st.integers(1, 30))
def test_every_rejected_word_is_one_substitution_from_an_accepted_one(states, symbols, draw, length):
    task = RandomLanguage(states, symbols, draw)
    drawn = task.sample(1, 12, length, torch.Generator().manual_seed(draw))
    member = lambda word: bool(task.solve([*word, symbols])[-1])
    rows = [tuple(row[:-1]) for row in drawn.inputs[0].tolist()]
    labels = drawn.targets[0, :, -1].tolist()
    assert [member(word) for word in rows] == [label == 1 for label in labels]
    if length >= states:  # every such length has both kinds
        assert all(any(map(member, beside(word, symbols))) for word in rows if not member(word))


def test_from_as_many_symbols_as_states_on_every_length_has_both_kinds():
    for draw in range(30):
        task = RandomLanguage(4, 2, draw)
        for length in range(4, 11):
            accepted, rejected = language(task, length)
            assert accepted
            assert rejected


def test_a_length_of_one_kind_has_one_answer_and_counts_in_chance():
    """Draw 0 rejects both words of one symbol and accepts all four of two."""
    task = RandomLanguage(longest=4)
    assert [tuple(map(len, language(task, length))) for length in (1, 2)] == [(0, 2), (4, 0)]
    for length, answer in ((1, 0), (2, 1)):
        drawn = task.sample(1, 200, length, torch.Generator().manual_seed(3))
        assert set(drawn.targets[0, :, -1].tolist()) == {answer}
        assert len(set(map(tuple, drawn.inputs[0].tolist()))) == 2**length
    assert task.spec.chance == 0.5
    assert RandomLanguage(shortest=2, longest=4).spec.chance == pytest.approx((1 + 0.5 + 0.5) / 3)


@pytest.mark.parametrize("task", [RandomLanguage(), RandomLanguage(16, 4)])
def test_words_too_many_to_count_in_floating_point_are_drawn_all_the_same(task):
    length = 600  # 4^600 is above the largest float
    drawn = task.sample(1, 8, length, torch.Generator().manual_seed(4))
    labels = drawn.targets[0, :, -1].tolist()
    assert set(labels) == {0, 1}
    assert [task.solve(row)[-1] for row in drawn.inputs[0].tolist()] == labels
