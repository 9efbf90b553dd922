"""Sign programs for a Boolean task: the ones its name suggests, and those found in its truth table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.tasks.boolean import Boolean
from theodolite.tasks.contract import Task
from theodolite.tasks.majority import Majority
from theodolite.tasks.parity import Parity
from theodolite.theory.boolean import minterm_relus, parity_relus, symmetric_relus
from theodolite.witness.registered_nets.sign_program import SignProgram, layer_of
from theodolite.witness.table import MOST_BITS, Table, constant_on_levels, truth_table

MOST_UNITS = 600  # found in a truth table; beyond, a witness is no longer a small network
_MOST_NAMED = 2048  # units of a program that the task's name suggests: a check on 2^14 inputs takes some seconds
_MOST_IN_CUBES = 12  # bits: a function of more that has no other program has too many cubes
# Bits; a program of a task too large for a truth table is checked by sampling later. A net that reads bits one by one
# has units for every place it remembers and a step for every bit, so that the check costs it the cube of the bits.
_LONGEST = 64
_LONGEST_IN = {"mlp": 4096}
_MOST_DIGITS = 15  # of each half read as a number: all 2^16 sums are listed

_COUNTED = "thresholds on the number of true bits"
_NUMBER = "thresholds on the input read as a number"


@lru_cache(maxsize=32)
def boolean_programs(task: Task, net: str) -> tuple[SignProgram, ...]:
    """Programs that compute the task, fewest units first; each was compared with the truth table where there is one."""
    spec = task.spec
    if spec.kind != "vector" or spec.loss != "hinge" or ((table := truth_table(task)) is None and _exceeds(task, net)):
        return ()
    if table is not None and not table.relevant:
        return ()  # a constant: nothing is left to compute
    found = list(_by_name(task))
    if table is not None:
        found += _along_sums(table)
        found = [p for p in found if (p(table.inputs) == table.values.ravel()).all()]
        if len(table.relevant) <= _MOST_IN_CUBES and min((p.units for p in found), default=MOST_UNITS) > table.bits:
            found.append(_from_cubes(table))
    return tuple(sorted((p for p in found if p.units <= _MOST_NAMED), key=lambda p: p.units))


def too_large(task: Task, net: str) -> str | None:
    """What to say of a task whose name suggests a program, but one that is too large here; None for any other."""
    if truth_table(task) is not None or (exceeded := _exceeds(task, net)) is None:
        return None
    what, given, most = exceeded
    return (
        f"{what} = {given} is too large for the construction that is known for {net} on {task.name}: use at most {most}"
    )


def _exceeds(task: Task, net: str) -> tuple[str, int, int] | None:
    """The field of the task that is too large for its program, its value, and the most that fits."""
    given: Any = task
    longest = _LONGEST_IN.get(net, _LONGEST)
    if isinstance(task, Parity) and given.relevant > min(longest, _MOST_NAMED):
        return "relevant", given.relevant, min(longest, _MOST_NAMED)
    if isinstance(task, Boolean):
        # Brackets take a unit for two bits, the inner product one for each, and numbers have few digits.
        numbers, units = 2 * _MOST_DIGITS, min(longest, _MOST_NAMED)
        known = {"carry": numbers, "equality": numbers, "inner-product": units, "multiplexer": MOST_BITS}
        known["brackets"] = min(longest, _MOST_NAMED // 2)
        longest = known.get(given.function, longest)
    if isinstance(task, Parity | Majority | Boolean) and given.bits > longest:
        return "bits", given.bits, longest
    return None


def _by_name(task: Task) -> Iterator[SignProgram]:
    given: Any = task  # its fields are those of its own kind
    if isinstance(task, Majority):
        yield conjunction("one threshold on the number of true bits", np.ones((1, given.bits)), np.array([0]))
    elif isinstance(task, Parity):
        used = (np.arange(given.bits) < given.relevant).astype(np.int64)
        thresholds = np.arange(2 - given.relevant, given.relevant + 1, 2) - 1
        counted = alternation(_COUNTED, used, thresholds, highest=1)
        yield replace(counted, predicted=_counts(parity_relus(given.relevant)))
    elif isinstance(task, Boolean):
        yield from _by_function(given.function, given.bits)


def _by_function(function: str, bits: int) -> Iterator[SignProgram]:
    half = bits // 2
    powers = 2 ** np.arange(half - 1, -1, -1)
    if function == "first":
        yield conjunction("the first bit alone", np.eye(1, bits), np.array([0]))
    elif function == "and":
        yield conjunction("one threshold on the number of true bits", np.ones((1, bits)), np.array([1 - bits]))
    elif function == "or":
        yield conjunction("one threshold on the number of true bits", np.ones((1, bits)), np.array([bits - 1]))
    elif function == "carry" and half <= _MOST_DIGITS:
        # Overflow: a + b ≥ 2^half. In signs −1 for a true bit, Σ powers·x = 2(2^half − 1) − 2(a + b).
        yield conjunction(
            "one threshold on the sum of both numbers", np.concatenate((powers, powers))[None], np.array([-1])
        )
    elif function == "equality" and half <= _MOST_DIGITS:
        difference = np.concatenate((powers, -powers))
        hat = alternation("two thresholds on the difference of both numbers", difference, np.array([-1, 1]), highest=1)
        yield replace(hat, predicted={"depth": 1}, at_most={"units": 3})  # up and down again: three bends
    elif function == "brackets":
        # Every prefix of odd length holds more openings (−1) than closings, and the whole as many.
        prefixes = -np.tril(np.ones((bits, bits), dtype=np.int64))
        weights = np.concatenate((prefixes[:-1:2], -prefixes[-1:]))
        thresholds = np.array([0] * half + [-1])
        yield _negated(conjunction("one threshold on every prefix of odd length and on the whole", weights, thresholds))
    elif function == "inner-product":
        pairs = np.concatenate((np.eye(half), np.eye(half)), axis=1).astype(np.int64)
        ands = layer_of(pairs, np.full(half, -1))  # −1 only where both bits are true
        counted = alternation("", np.ones(half, dtype=np.int64), np.arange(2 - half, half + 1, 2) - 1, highest=1)
        yield SignProgram(
            "an AND of every pair, then thresholds on how many are true",
            (ands, *counted.layers),
            counted.read,
            counted.offset,
            predicted=_counts(half + parity_relus(half), depth=2),
        )


def _along_sums(table: Table) -> Iterator[SignProgram]:
    bits, half = table.bits, table.bits // 2
    used = np.isin(np.arange(bits), table.relevant).astype(np.int64)
    order = np.zeros(bits, dtype=np.int64)
    order[list(table.relevant)] = 2 ** np.arange(len(table.relevant))[::-1]
    chow = (table.inputs * table.values.reshape(-1, 1)).sum(axis=0)
    powers = 2 ** np.arange(half)[::-1]
    named = [(_COUNTED, used), (_NUMBER, order)]
    if chow.any():  # Σ value · input, the best linear guess at the function (Chow 1961)
        named.append(("thresholds on the sum weighted by Chow's parameters", chow // np.gcd.reduce(chow)))
    if bits % 2 == 0:
        named += [
            ("thresholds on the sum of both halves", np.tile(powers, 2)),
            ("thresholds on the difference of both halves", np.append(powers, -powers)),
        ]
    for name, weights in named:
        if weights.any() and constant_on_levels(table, weights):
            made = _along(name, table, weights)
            if made is not None:
                bound = symmetric_relus if name == _COUNTED else minterm_relus
                yield replace(made, predicted={"depth": 1}, at_most={"units": bound(len(table.relevant))})


def _along(name: str, table: Table, weights: np.ndarray) -> SignProgram | None:
    """A function of ⟨weights, x⟩: one unit wherever its value changes from one sum to the next, unless too often."""
    sums, first = np.unique(table.inputs @ weights, return_index=True)
    values = table.values.ravel()[first]
    changes = np.flatnonzero(np.diff(values))
    if len(changes) > MOST_UNITS:
        return None
    return alternation(name, weights, (sums[changes] + sums[changes + 1]) / 2, highest=int(values[-1]))


def _from_cubes(table: Table) -> SignProgram:
    weights = np.zeros((len(table.cubes), table.bits), dtype=np.int64)
    for row, cube in zip(weights, table.cubes, strict=True):
        for bit, sign in cube:
            row[bit] = sign
    sizes = np.abs(weights).sum(axis=1)
    layer = layer_of(weights, sizes - 1)
    # At most one cube holds an input: −1 − … − 1 + 1 there, and two less where none does.
    read = np.full(len(weights), table.rarer)
    return SignProgram(
        "one unit for each path of a decision tree",
        (layer,),
        read,
        table.rarer * (len(weights) - 1),
        predicted={"depth": 1},
        at_most={"units": minterm_relus(len(table.relevant))},
    )


def alternation(name: str, weights: np.ndarray, thresholds: np.ndarray, highest: int) -> SignProgram:
    """The value changes at every threshold of one sum and is `highest` above all of them."""
    count = len(thresholds)
    read = highest * (-1) ** np.arange(count - 1, -1, -1)
    layer = layer_of(np.tile(weights, (count, 1)), np.sort(thresholds))
    # Above all thresholds the read signs sum to 0 or `highest`.
    return SignProgram(name, (layer,), read, highest - int(read.sum()))


def conjunction(name: str, weights: np.ndarray, thresholds: np.ndarray) -> SignProgram:
    """+1 where every sum is above its threshold: how far one falls short is one ReLU."""
    layer = layer_of(weights, thresholds)
    read = np.ones(layer.units, dtype=np.int64)
    return SignProgram(name, (layer,), read, 1 - layer.units, predicted=_counts(layer.units))


def _counts(units: int, depth: int = 1) -> dict[str, int]:
    return {"units": units, "depth": depth}


def _negated(program: SignProgram) -> SignProgram:
    return replace(program, read=-program.read, offset=-program.offset)
