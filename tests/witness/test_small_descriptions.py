"""Smallest DNFs, circuits, automata and linear units against brute force."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.each import each
from theodolite.errors import BadInput
from theodolite.theory.boolean import MOST_GATES
from theodolite.witness.automata import BALANCED, Grammar, automaton_of, balanced_words
from theodolite.witness.dnf import minimal_dnf, prime_implicants
from theodolite.witness.gates import every_input
from theodolite.witness.linear import Farkas, separate
from theodolite.witness.minimal_circuits import minimal_sizes

# DNF


def terms(bits: int) -> list[np.ndarray]:
    """Truth tables of all conjunctions: every input true, false or absent."""
    inputs = every_input(bits)
    return [
        np.all([(inputs[:, i] == v) | (v == 2) for i, v in enumerate(choice)], axis=0)
        for choice in product((0, 1, 2), repeat=bits)
    ]


@each("number", range(0, 256, 5))
def test_no_dnf_of_fewer_terms_computes_a_function_of_three_bits(number):
    table = np.array([number >> i & 1 for i in range(8)], dtype=bool)
    found = minimal_dnf(table.tolist())
    assert found.minimal
    assert (found.evaluate() == table).all()
    implicants = [t for t in terms(3) if (t <= table).all()]
    smaller = combinations(implicants, len(found.terms) - 1) if found.terms else ()
    assert not any((np.any(chosen, axis=0) == table).all() for chosen in smaller if chosen)
    assert len(found.terms) > 0 or not table.any()


@given(st.lists(st.booleans(), min_size=16, max_size=16))
def test_prime_implicants_are_the_maximal_ones(table):
    table = np.array(table)
    implicants = [t for t in terms(4) if (t <= table).all()]
    maximal = [t for t in implicants if not any((t <= o).all() and (t != o).any() for o in implicants)]
    found = prime_implicants(table)
    inputs = np.arange(16)
    tables = {((inputs & prime.mask) == prime.ones).tobytes() for prime in found}
    assert tables == {t.tobytes() for t in maximal}
    assert len(found) == len(tables)


def test_larger_functions_are_covered_and_proven():
    table = np.random.default_rng(0).random(2**8) < 0.5
    found = minimal_dnf(table.tolist())
    assert found.minimal
    assert (found.evaluate() == table).all()
    assert len(found.terms) < table.sum()


def test_tables_that_are_none_or_too_large_are_refused():
    with pytest.raises(BadInput, match="2\\^n answers, not 3"):
        minimal_dnf([0, 1, 1])
    with pytest.raises(BadInput, match="11 bits is out of reach"):
        minimal_dnf([0] * 2**11)


# smallest circuits


def chains(bits: int, most: int, gates: list[int], single: bool) -> dict[int, int]:
    """Least sizes by trying every sequence of at most `most` gates, each a 4-entry truth table of two earlier nodes."""
    rows = 2**bits
    full = 2**rows - 1
    inputs = [sum(1 << i for i in range(rows) if i >> (bits - 1 - p) & 1) for p in range(bits)]
    least: dict[int, int] = dict.fromkeys(inputs, 0)

    def applied(gate: int, a: int, b: int) -> int:
        return sum((gate >> (2 * (a >> i & 1) + (b >> i & 1)) & 1) << i for i in range(rows))

    def extend(nodes: list[int], used: int) -> None:
        fresh = set()
        for i, a in enumerate(nodes):
            if single:
                fresh.add(full ^ a)
            fresh |= {applied(gate, a, b) for b in nodes[:i] for gate in gates}
        for new in fresh - set(nodes):
            if least.get(new, most + 1) > used + 1:
                least[new] = used + 1
            if used + 1 < most:
                extend([*nodes, new], used + 1)

    extend(inputs, 0)
    return least


def normal_chains(inputs: list[int], most: int, xor: bool) -> dict[int, int]:
    """The same for functions that are 0 where all inputs are, by Python's operators on whole truth tables."""
    least = dict.fromkeys([0, *inputs], 0)

    def extend(nodes: list[int], used: int) -> None:
        for i, a in enumerate(nodes):
            for b in nodes[:i]:
                for new in (a & b, a | b, a & ~b, b & ~a, *([a ^ b] if xor else ())):
                    least[new] = min(least.get(new, used + 1), used + 1)
                    if used + 1 < most and new not in nodes:
                        extend([*nodes, new], used + 1)

    extend(inputs, 0)
    return least


@pytest.mark.parametrize(("basis", "xor", "most"), [("fan-in-2", True, 3), ("and-or", False, 3)])
def test_sizes_of_three_bits_agree_with_every_chain_of_three_gates(basis, xor, most):
    found = minimal_sizes(3, basis)
    least = normal_chains([0b11110000, 0b11001100, 0b10101010], most, xor)
    for function, size in enumerate(found.sizes):
        normal = function if not function & 1 else 255 ^ function
        assert min(size, most + 1) == least.get(normal, most + 1)
    assert sum(found.functions) == 256
    if basis == "fan-in-2":
        assert found.most == MOST_GATES[3]


@pytest.mark.parametrize(("basis", "gates"), [("and-or-not", [8, 14]), ("nand", [7])])
def test_sizes_of_two_bits_agree_with_every_chain(basis, gates):
    found = minimal_sizes(2, basis)
    assert dict(enumerate(found.sizes)) == chains(2, found.most, gates, single=True)


def test_parity_needs_three_gates_a_bit_without_xor_and_four_nands():
    odd = [sum(1 << i for i in range(2**n) if i.bit_count() % 2) for n in range(4)]
    assert minimal_sizes(3, "and-or").sizes[odd[3]] == 6  # Schnorr 1974: 3(n − 1)
    assert minimal_sizes(2, "and-or").sizes[odd[2]] == 3
    assert minimal_sizes(2, "nand").sizes[odd[2]] == 4
    assert minimal_sizes(3, "fan-in-2").sizes[odd[3]] == 2


def test_a_basis_or_size_out_of_reach_is_refused():
    with pytest.raises(BadInput, match="did you mean 'nand'"):
        minimal_sizes(2, "nnad")
    with pytest.raises(BadInput, match="4 bits are out of reach"):
        minimal_sizes(4)
    with pytest.raises(BadInput, match="1 to 2 for the basis 'nand'"):
        minimal_sizes(3, "nand")


# automata and grammars


@pytest.mark.parametrize("most", range(6))
def test_live_states_are_the_residual_languages_that_are_not_empty(most):
    listed = balanced_words(most)
    automaton = automaton_of(listed).minimal()
    prefixes = {word[:i] for word in listed for i in range(len(word) + 1)}
    residuals = {frozenset(word[len(p) :] for word in listed if word.startswith(p)) for p in prefixes}
    assert automaton.live == len(residuals) == 2 * most + 1
    assert automaton.states == automaton.live + 1  # and one from which nothing is accepted


@given(st.sets(st.text("ab", max_size=5), max_size=8))
@settings(max_examples=40)
def test_minimal_automata_accept_the_same_words_and_have_one_state_a_residual(listed):
    automaton = automaton_of(sorted(listed)).minimal()
    every = ["".join(w) for n in range(7) for w in product("ab", repeat=n)]
    assert {w for w in every if automaton.accepts(w)} == listed
    residuals = {frozenset(word[len(p) :] for word in listed if word.startswith(p)) for p in every}
    assert automaton.states == len(residuals)


def test_two_rules_generate_exactly_the_balanced_words():
    every = ["".join(w) for n in range(9) for w in product("ab", repeat=n)]
    assert {w for w in every if BALANCED.generates(w)} == set(balanced_words(4))
    assert BALANCED.generates("a" * 60 + "b" * 60)
    nested = Grammar((("S", "aSbS"), ("S", "")))
    assert nested.generates("aabbab")
    assert not nested.generates("abba")
    with pytest.raises(BadInput, match="letter 'c'"):
        automaton_of(["ab"]).accepts("abc")


# linear units


def signs(bits: int) -> np.ndarray:
    return 1.0 - 2.0 * every_input(bits)


def test_of_all_functions_of_two_and_three_bits_the_known_numbers_are_linear():
    for bits, linear in ((2, 14), (3, 104)):
        inputs, count = signs(bits), 0
        for number in range(2 ** (2**bits)):
            answers = np.array([1.0 if number >> i & 1 else -1.0 for i in range(2**bits)])
            found = separate(inputs, answers)
            if found.weights is not None:
                assert (np.sign(inputs @ found.weights + found.bias) == answers).all()
                count += 1
            else:
                assert found.proof is not None
                assert found.proof.holds()
        assert count == linear


def test_the_proof_about_parity_is_confirmed_by_another_linear_program():
    inputs = signs(6)
    answers = inputs.prod(axis=1)
    proof = separate(inputs, answers).proof
    assert proof is not None
    rows, y = np.array(proof.inputs, float), np.array(proof.answers, float)
    assert (rows.prod(axis=1) == y).all()
    signed = y[:, None] * np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    again = linprog(np.zeros(7), A_ub=-signed, b_ub=-np.ones(len(rows)), bounds=(None, None), method="highs-ipm")
    assert again.status == 2


def test_a_false_proof_does_not_hold():
    good = Farkas(((1, 1), (-1, -1), (1, -1), (-1, 1)), (1, 1, -1, -1), (1, 1, 1, 1))
    assert good.holds()
    assert not Farkas(good.inputs, good.answers, (1, 1, 1, 2)).holds()
    assert not Farkas(good.inputs, good.answers, (0, 0, 0, 0)).holds()
    assert not Farkas(good.inputs, (1, 1, 1, -1), good.weights).holds()
    assert not Farkas((), (), ()).holds()


def test_a_linear_function_of_many_bits_is_found_by_adding_rows():
    inputs = signs(12)
    weights = np.random.default_rng(0).normal(size=12)
    found = separate(inputs, np.sign(inputs @ weights + 0.3))
    assert found.status == "feasible"
    assert found.inputs < len(inputs)
