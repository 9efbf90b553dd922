"""Counting bounds against exact counts at small sizes and against Shannon's and the theorem's rates."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from theodolite.errors import OutsideDomain
from theodolite.theory import boolean as theory
from theodolite.witness.minimal_circuits import minimal_sizes


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_count_of_circuits_is_never_below_the_true_number(bits):
    functions = minimal_sizes(bits).functions
    for gates in range(len(functions) + 2):
        assert theory.fan_in_two_count(bits, gates) >= sum(functions[: gates + 1])


def test_without_xor_the_largest_circuits_are_the_published_ones():
    for bits in (2, 3):
        assert minimal_sizes(bits, "and-or").most == theory.MOST_GATES_WITHOUT_XOR[bits]


def test_the_published_table_of_four_bits_is_whole_and_below_the_count():
    table = theory.FUNCTIONS_BY_GATES_OF_FOUR
    assert sum(table) == 2**16
    assert len(table) - 1 == theory.MOST_GATES[4]
    assert table[0] == 2 * 4 + 2
    assert table[1] == 10 * math.comb(4, 2)
    for gates in range(len(table)):
        assert theory.fan_in_two_count(4, gates) >= sum(table[: gates + 1])


def test_the_published_table_of_four_bits_agrees_with_every_chain_of_three_gates():
    inputs = (0xFF00, 0xF0F0, 0xCCCC, 0xAAAA)
    least = dict.fromkeys((0, *inputs), 0)

    def extend(nodes: tuple[int, ...]) -> None:
        used = len(nodes) - 3
        for i, a in enumerate(nodes):
            for b in nodes[:i]:
                for new in (a & b, a | b, a ^ b, a & ~b, b & ~a):
                    least[new] = min(least.get(new, used), used)  # pyright: ignore[reportCallIssue]
                    if used < 3 and new not in nodes:
                        extend((*nodes, new))

    extend(inputs)
    sizes = list(least.values())  # of functions that are 0 on input 0; each has a negation of the same size
    assert tuple(2 * sizes.count(size) for size in range(4)) == theory.FUNCTIONS_BY_GATES_OF_FOUR[:4]


@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_what_counting_demands_is_at_most_what_is_needed(bits):
    assert theory.fan_in_two_gates(bits) <= theory.MOST_GATES[bits]


@pytest.mark.parametrize("bits", range(2, 12))
def test_the_least_number_of_gates_is_where_the_count_reaches_all_functions(bits):
    gates = theory.fan_in_two_gates(bits)
    assert theory.fan_in_two_count(bits, gates) >= theory.functions(bits)
    assert theory.fan_in_two_count(bits, gates - 1) < theory.functions(bits)


def test_gates_grow_like_shannons_rate():
    ratios = [theory.fan_in_two_gates(n) / theory.shannon_gates(n) for n in range(6, 15)]
    assert all(0.7 < ratio < 1.1 for ratio in ratios)
    assert ratios == sorted(ratios)


def test_threshold_functions_bound_the_known_numbers():
    known = {1: 4, 2: 14, 3: 104, 4: 1882, 5: 94572, 6: 15028134}  # OEIS A000609
    for inputs, count in known.items():
        assert count <= theory.threshold_functions(inputs) <= 2 ** max(inputs**2, 2)
    assert theory.threshold_functions(1) == 4
    assert theory.threshold_functions(2) == 14


def test_threshold_units_double_with_three_bits():
    units = {n: theory.threshold_units(n) for n in range(1, 15)}
    assert units[2] == 2  # XOR needs two
    assert all(units[n + 3] >= 2 * units[n] for n in range(8, 12))
    counts = [math.prod(theory.threshold_functions(9 + i) for i in range(units[9] - less)) for less in (0, 1)]
    assert counts[0] >= theory.functions(9) > counts[1]


def test_shares_are_the_ratio_of_the_counts():
    for bits, gates in ((3, 1), (4, 2), (5, 3), (6, 5)):
        exact = Fraction(theory.fan_in_two_count(bits, gates), theory.functions(bits))
        assert theory.fan_in_two_share(bits, gates) == pytest.approx(float(min(exact, Fraction(1))), rel=1e-9)
    assert theory.fan_in_two_share(3, 9) == 1.0
    assert theory.fan_in_two_share(14, 10) == 0.0


def test_small_descriptions():
    assert [theory.parity_dnf_terms(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert [theory.parity_units(n) for n in (1, 2, 3, 10)] == [1, 3, 4, 11]
    assert [theory.parity_relus(n) for n in (1, 2, 10)] == [theory.symmetric_relus(n) for n in (1, 2, 10)] == [1, 2, 10]
    assert [theory.minterm_relus(n) for n in (1, 2, 10)] == [1, 2, 512]
    assert theory.automaton_units(states=2, symbols=3) == 7
    assert [theory.automaton_states(n) for n in range(4)] == [1, 3, 5, 7]
    assert [theory.regular_alternatives(n) for n in range(4)] == [1, 2, 3, 4]


def test_sizes_outside_the_domain_are_refused():
    with pytest.raises(OutsideDomain, match="bits = 15"):
        theory.fan_in_two_gates(15)
    with pytest.raises(OutsideDomain, match="bits = 0"):
        theory.threshold_units(0)
