"""The truth table of a Boolean task, and what it says about how the function can be computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from theodolite.errors import BadInput
from theodolite.tasks.contract import Task

MOST_BITS = 16  # the solver of a task answers row by row: 65,536 of them take about a second

Cube = tuple[tuple[int, int], ...]  # (bit, sign) pairs that an input has to agree with


@dataclass(frozen=True, eq=False)
class Table:
    """`values`, of shape (2,) * bits, holds ±1: along an axis, index 0 is the sign +1 of that bit, 1 the sign −1."""

    values: np.ndarray

    @property
    def bits(self) -> int:
        return self.values.ndim

    @cached_property
    def inputs(self) -> np.ndarray:
        """(2^bits, bits): all sign vectors, in the order of the flattened values."""
        return all_signs(self.bits)

    @cached_property
    def relevant(self) -> tuple[int, ...]:
        """The bits that change the value of some input when they are flipped."""
        return tuple(i for i in range(self.bits) if self.influence(i) > 0)

    def influence(self, bit: int) -> float:
        """The share of inputs whose value changes with this bit."""
        plus, minus = np.take(self.values, 0, axis=bit), np.take(self.values, 1, axis=bit)
        return float(np.mean(plus != minus))

    @property
    def rarer(self) -> int:
        """The value with fewer inputs, −1 where both have half of them."""
        return 1 if (self.values > 0).sum() < self.values.size / 2 else -1

    @cached_property
    def cubes(self) -> tuple[Cube, ...]:
        """Disjoint cubes that hold the inputs of the rarer value and no others: the paths of a decision tree that asks
        for the most influential bit first."""
        return tuple(_paths(self.values, tuple(range(self.bits)), self.rarer))


def truth_table(task: Task) -> Table | None:
    """What the task's independent solver says of every sign vector; None where the task is not a function of a few
    signs."""
    spec = task.spec
    if spec.kind != "vector" or spec.loss != "hinge" or spec.outputs != 1:
        return None
    if spec.features > MOST_BITS:
        return None
    return _table(task)


@lru_cache(maxsize=32)
def _table(task: Task) -> Table:
    return Table(answers(task).reshape((2,) * task.spec.features))


def answers(task: Task) -> np.ndarray:
    """±1 for all 2^bits sign vectors, in the order of `all_signs`, by the task's solver."""
    rows = all_signs(task.spec.features).tolist()
    return np.array([-1 if task.solve(row)[0] < 0 else 1 for row in rows], dtype=np.int8)


def all_signs(bits: int) -> np.ndarray:
    """(2^bits, bits) of ±1, the first bit slowest, +1 before −1."""
    if bits > 24:
        raise BadInput(f"{bits} bits have {2**bits} sign vectors, too many to list: use 24 bits or fewer")
    numbers = np.arange(2**bits)[:, None] >> np.arange(bits - 1, -1, -1)
    return 1 - 2 * (numbers & 1)


def constant_on_levels(table: Table, weights: np.ndarray) -> bool:
    """Whether the function depends on ⟨weights, x⟩ alone."""
    values, levels = table.values.ravel(), table.inputs @ weights
    order = np.lexsort((values, levels))
    same_level = np.diff(levels[order]) == 0
    return not bool(np.any(same_level & (np.diff(values[order]) != 0)))


def _paths(values: np.ndarray, bits: tuple[int, ...], wanted: int) -> list[Cube]:
    if (values == values.flat[0]).all():
        return [()] if values.flat[0] == wanted else []
    changes = [np.mean(np.take(values, 0, axis=axis) != np.take(values, 1, axis=axis)) for axis in range(values.ndim)]
    axis = int(np.argmax(changes))
    rest = bits[:axis] + bits[axis + 1 :]
    return [
        ((bits[axis], sign), *path)
        for side, sign in ((0, 1), (1, -1))
        for path in _paths(np.take(values, side, axis=axis), rest, wanted)
    ]
