"""Counting: how many Boolean functions small circuits can compute at most, so how large a circuit most of them need.

The basis of gates is part of every statement. There are 2^(2^n) functions of n bits; a count of what s gates can
compute that stays below it proves that some function needs more, and their ratio bounds the share that does not.
"""

from __future__ import annotations

import math

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole

MOST_BITS = 14  # beyond it the counts are numbers of tens of thousands of digits


def functions(bits: int) -> int:
    """2^(2^n)."""
    return 2 ** (2 ** whole("bits", bits))


def fan_in_two_count(bits: int, gates: int) -> int:
    """At most this many functions of n bits have circuits of at most s gates, all 16 gates of two inputs allowed.

    Shannon 1949. Constants and literals (2n + 2) count as no gate. A smallest circuit of s gates has gates of
    different functions, each one of 10 that read both of two of the n + s − 1 other nodes; so its s! numberings are
    different choices out of (10·binom(n+s−1, 2))^s, times s for which one is the output.
    """
    whole("bits", bits)
    whole("gates", gates, least=0)
    total = 2 * bits + 2
    for s in range(1, gates + 1):
        in_order = math.prod(10 * math.comb(bits + i - 1, 2) for i in range(1, s + 1))
        numbered = s * (10 * math.comb(bits + s - 1, 2)) ** s // math.factorial(s)
        total += min(in_order, numbered)
    return total


def fan_in_two_gates(bits: int) -> int:
    """Some function of n bits needs at least this many gates of two inputs: the least s whose count reaches 2^(2^n)."""
    _check(bits)
    wanted, total, s = functions(bits), 2 * bits + 2, 0
    in_order = 1
    while total < wanted:
        s += 1
        in_order *= 10 * math.comb(bits + s - 1, 2)
        numbered = s * (10 * math.comb(bits + s - 1, 2)) ** s // math.factorial(s)
        total += min(in_order, numbered)
    return s


def fan_in_two_share(bits: int, gates: int) -> float:
    """At most this share of all functions of n bits has at most s gates of two inputs."""
    return _share(fan_in_two_count(bits, gates), bits)


def shannon_gates(bits: int) -> float:
    """2^n / n: Shannon's bound without its (1 − o(1))."""
    return 2.0**bits / whole("bits", bits)


def threshold_functions(inputs: int) -> int:
    """At most this many functions of k bits are one threshold unit: 2·Σ_{i ≤ k} binom(2^k − 1, i) (Cover 1965)."""
    points = 2 ** whole("inputs", inputs)
    return 2 * sum(math.comb(points - 1, i) for i in range(inputs + 1))


def threshold_units(bits: int) -> int:
    """Some function of n bits needs at least this many threshold units: Theorem 20.2, |V| exponential in n.

    Any graph without a cycle is part of the one in which unit i reads all inputs and all units before it, so that s
    units compute at most ∏ threshold_functions(n + i) functions. The logarithm of that is below Σ_{i<s} (n+i)² ~ s³/3,
    so s grows like 2^(n/3).
    """
    _check(bits)
    wanted, total, s = functions(bits), 1, 0
    while total < wanted:
        total *= threshold_functions(bits + s)
        s += 1
    return s


def parity_dnf_terms(bits: int) -> int:
    """2^(n−1): an implicant of parity fixes every bit, so each true input needs a conjunction of its own."""
    return 2 ** (whole("bits", bits) - 1)


def parity_units(bits: int) -> int:
    """n + 1 threshold units in two layers: "at least k of n", k = 1 … n, and a unit that sums them with signs."""
    return whole("bits", bits) + 1 if bits > 1 else 1


def parity_relus(bits: int) -> int:
    """n ReLUs in one hidden layer: a line through the n + 1 alternating values of the count has n pieces."""
    return whole("bits", bits)


def symmetric_relus(bits: int) -> int:
    """Any function of the number of true bits is a line through n + 1 points: at most n ReLUs in one hidden layer."""
    return whole("bits", bits)


def minterm_relus(bits: int) -> int:
    """Any function of n bits, in one hidden layer: one ReLU for each input of the rarer value, at most 2^(n−1)."""
    return 2 ** (whole("bits", bits) - 1)


def automaton_units(states: int, symbols: int) -> int:
    """Minsky 1967: a unit for each state and symbol of a finite automaton, here and one that tells the first token."""
    return whole("states", states) * whole("symbols", symbols) + 1


def automaton_states(most: int) -> int:
    """Live states of the smallest automaton for aⁿbⁿ with n ≤ N: after 0 … N letters a, with 0 … N − 1 b missing."""
    return 2 * whole("most", most, least=0) + 1


def regular_alternatives(most: int) -> int:
    """ε | ab | aabb | …: words aⁿbⁿ with n ≤ N."""
    return whole("most", most, least=0) + 1


CONTEXT_FREE_RULES = 2  # S → a S b | ε, for every n

# Circuits of gates of two inputs, constants and literals free: how many functions of n bits need how many gates, from
# 0 on, and the most that any needs (Knuth, The Art of Computer Programming 7.1.2, for n = 4 Table 1).
MOST_GATES = {2: 1, 3: 4, 4: 7, 5: 12}
MOST_GATES_WITHOUT_XOR = {2: 3, 3: 6, 4: 10}  # and, or, negations free: OEIS A057241
FUNCTIONS_BY_GATES_OF_FOUR = (10, 60, 456, 2474, 10624, 24184, 25008, 2720)


def _share(count: int, bits: int) -> float:
    """count / 2^(2^n), at most 1, without a float that overflows."""
    excess = count.bit_length() - 2**bits
    if excess > 1:
        return 1.0
    shift = max(0, count.bit_length() - 60)
    exponent = shift - 2**bits
    return min(1.0, math.ldexp(count >> shift, exponent)) if exponent > -1100 else 0.0


def _check(bits: int) -> None:
    if whole("bits", bits) > MOST_BITS:
        raise OutsideDomain(f"bits = {bits} is outside the domain: the counts are computed for 1 to {MOST_BITS} bits")
