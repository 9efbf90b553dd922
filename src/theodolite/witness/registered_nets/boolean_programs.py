"""Sign programs for a Boolean task: the ones its name suggests, and those found in its truth table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.tasks.boolean import Boolean
from theodolite.tasks.contract import Task
from theodolite.tasks.majority import Majority
from theodolite.tasks.parity import Parity
from theodolite.witness.registered_nets.sign_program import SignProgram, layer_of
from theodolite.witness.table import Table, constant_on_levels, truth_table

MOST_UNITS = 600  # beyond, a witness is no longer a small network
_MOST_IN_CUBES = 12  # bits: a function of more that has no other program has too many cubes
_LONGEST = 64  # bits: a program of a task too large for a truth table is checked by sampling later


@lru_cache(maxsize=32)
def boolean_programs(task: Task) -> tuple[SignProgram, ...]:
    """Programs that compute the task, fewest units first; each was compared with the truth table where there is one."""
    spec = task.spec
    if spec.kind != "vector" or spec.loss != "hinge" or spec.features > _LONGEST:
        return ()
    table = truth_table(task)
    if table is not None and not table.relevant:
        return ()  # a constant: nothing is left to compute
    found = list(_by_name(task))
    if table is not None:
        found += _along_sums(table)
        found = [p for p in found if (p(table.inputs) == table.values.ravel()).all()]
        if len(table.relevant) <= _MOST_IN_CUBES and min(map(_units, found), default=MOST_UNITS) > table.bits:
            found.append(_from_cubes(table))
    return tuple(sorted((p for p in found if _units(p) <= MOST_UNITS), key=_units))


def _units(program: SignProgram) -> int:
    return sum(layer.units for layer in program.layers)


def _by_name(task: Task) -> Iterator[SignProgram]:
    given: Any = task  # its fields are those of its own kind
    if isinstance(task, Majority):
        yield conjunction("thresholds on the number of true bits", np.ones((1, given.bits)), np.array([0]))
    elif isinstance(task, Parity):
        used = (np.arange(given.bits) < given.relevant).astype(np.int64)
        yield alternation(
            "thresholds on the number of true bits",
            used,
            np.arange(2 - given.relevant, given.relevant + 1, 2) - 1,
            highest=1,
        )
    elif isinstance(task, Boolean):
        yield from _by_function(given.function, given.bits)


def _by_function(function: str, bits: int) -> Iterator[SignProgram]:
    half = bits // 2
    powers = 2 ** np.arange(half - 1, -1, -1)
    if function == "first":
        yield conjunction("the first bit alone", np.eye(1, bits), np.array([0]))
    elif function == "and":
        yield conjunction("thresholds on the number of true bits", np.ones((1, bits)), np.array([1 - bits]))
    elif function == "or":
        yield conjunction("thresholds on the number of true bits", np.ones((1, bits)), np.array([bits - 1]))
    elif function == "carry" and half <= 15:
        # Overflow: a + b ≥ 2^half. In signs −1 for a true bit, Σ powers·x = 2(2^half − 1) − 2(a + b).
        yield conjunction(
            "a threshold on the sum of both numbers", np.concatenate((powers, powers))[None], np.array([-1])
        )
    elif function == "equality" and half <= 15:
        yield alternation(
            "no difference of both numbers", np.concatenate((powers, -powers)), np.array([-1, 1]), highest=1
        )
    elif function == "brackets":
        # Every prefix of odd length holds more openings (−1) than closings, and the whole as many.
        prefixes = -np.tril(np.ones((bits, bits), dtype=np.int64))
        weights = np.concatenate((prefixes[:-1:2], -prefixes[-1:]))
        thresholds = np.array([0] * half + [-1])
        yield _negated(conjunction("thresholds on every prefix", weights, thresholds))
    elif function == "inner-product":
        pairs = np.concatenate((np.eye(half), np.eye(half)), axis=1).astype(np.int64)
        ands = layer_of(pairs, np.full(half, -1))  # −1 only where both bits are true
        counted = alternation("", np.ones(half, dtype=np.int64), np.arange(2 - half, half + 1, 2) - 1, highest=1)
        yield SignProgram(
            "the parity of the number of true pairs", (ands, *counted.layers), counted.read, counted.offset
        )


def _along_sums(table: Table) -> Iterator[SignProgram]:
    bits, half = table.bits, table.bits // 2
    used = np.isin(np.arange(bits), table.relevant).astype(np.int64)
    order = np.zeros(bits, dtype=np.int64)
    order[list(table.relevant)] = 2 ** np.arange(len(table.relevant))[::-1]
    chow = (table.inputs * table.values.reshape(-1, 1)).sum(axis=0)
    powers = 2 ** np.arange(half)[::-1]
    named = (
        [
            ("thresholds on the number of true bits", used),
            ("thresholds on the input read as a number", order),
            ("thresholds on Chow's weighted sum", chow // np.gcd.reduce(chow)),
        ]
        if chow.any()
        else [("thresholds on the number of true bits", used), ("thresholds on the input read as a number", order)]
    )
    if bits % 2 == 0:
        named += [
            ("thresholds on the sum of both halves", np.tile(powers, 2)),
            ("thresholds on the difference of both halves", np.append(powers, -powers)),
        ]
    for name, weights in named:
        if weights.any() and constant_on_levels(table, weights):
            yield _along(name, table, weights)


def _along(name: str, table: Table, weights: np.ndarray) -> SignProgram:
    """A function of ⟨weights, x⟩: one unit wherever its value changes from one sum to the next."""
    sums, first = np.unique(table.inputs @ weights, return_index=True)
    values = table.values.ravel()[first]
    changes = np.flatnonzero(np.diff(values))
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
    return SignProgram("disjoint cubes", (layer,), read, table.rarer * (len(weights) - 1))


def alternation(name: str, weights: np.ndarray, thresholds: np.ndarray, highest: int) -> SignProgram:
    """The value changes at every threshold of one sum and is `highest` above all of them."""
    count = len(thresholds)
    read = highest * (-1) ** np.arange(count - 1, -1, -1)
    layer = layer_of(np.tile(weights, (count, 1)), np.sort(thresholds))
    # Above all thresholds the read signs sum to 0 or `highest`.
    return SignProgram(name, (layer,), read, highest - int(read.sum()))


def conjunction(name: str, weights: np.ndarray, thresholds: np.ndarray) -> SignProgram:
    """+1 where every sum is above its threshold."""
    layer = layer_of(weights, thresholds)
    return SignProgram(name, (layer,), np.ones(layer.units, dtype=np.int64), 1 - layer.units)


def _negated(program: SignProgram) -> SignProgram:
    return SignProgram(program.name, program.layers, -program.read, -program.offset)
