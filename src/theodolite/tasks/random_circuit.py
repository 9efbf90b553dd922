"""The function of a random Boolean circuit, on ±1 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.tasks.boolean import solved_share
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.tables import on_device

MOST_BITS = 16
MOST_GATES = 256
_RARER = 0.1  # the least share of inputs that the rarer answer has

# A gate is a number of four bits, its answer to the bits (left, right) the one of weight 2^(2·left + right). These ten
# depend on both: the others are constant (0, 15), one input (10, 12) or its negation (3, 5).
GATES = tuple(truth for truth in range(16) if truth not in (0, 3, 5, 10, 12, 15))


@register("random-circuit", "the function of a random Boolean circuit of ±1 bits")
class RandomCircuit(Named):
    """What the last of `gates` random gates says of `bits` signs, −1 for true; `draw` numbers the circuits.

    −1 +1 −1   (bits = 3, gates = 2, draw = 3: the first xor the second, and the third)
     └xor┘ │
       └and┴─→ −1

    Each gate is one of the ten functions that depend on both of two bits, and reads two wires: inputs or earlier
    gates. One of them is a wire that nothing reads yet, so that every gate, and of the inputs as many as can, lead to
    the last. A circuit is drawn anew until its function depends on all inputs it reads, and says true and false to a
    tenth of all inputs at least.
    """

    bits: int = 10
    gates: int = 15
    draw: int = 0

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, bits=self.bits)
        check_at_least(self.name, 1, gates=self.gates)
        check_at_least(self.name, 0, draw=self.draw)
        if self.bits > MOST_BITS:
            raise BadInput(
                f"bits={self.bits} of the task '{self.name}' are too many to enumerate: use {MOST_BITS} or less"
            )
        if self.gates > MOST_GATES:
            raise BadInput(f"gates={self.gates} are too many for the task '{self.name}': use {MOST_GATES} or less")
        draw_circuit(self.bits, self.gates, self.draw)

    @property
    def spec(self) -> TaskSpec:
        share = draw_circuit(self.bits, self.gates, self.draw).share
        chance = max(share, 1 - share)
        return TaskSpec("vector", self.bits, 1, None, None, loss="hinge", chance=chance, solved=solved_share(chance))

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        number = torch.randint(2**self.bits, (members, batch, 1), generator=generator, device=generator.device)
        truth = on_device(draw_circuit(self.bits, self.gates, self.draw).truth, generator.device)[number]
        bits = number >> torch.arange(self.bits, device=generator.device) & 1
        return Batch(1.0 - 2.0 * bits.float(), 1.0 - 2.0 * truth.float(), torch.ones_like(truth, dtype=torch.bool))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        wires = [int(sign < 0) for sign in row]
        for left, right, truth in draw_circuit(self.bits, self.gates, self.draw).gates:
            wires.append(truth >> (2 * wires[left] + wires[right]) & 1)
        return [1.0 - 2.0 * wires[-1]]


@dataclass(frozen=True)
class Circuit:
    """Gates (left wire, right wire, truth) in order; wires are the inputs, then the gates; the last is the answer."""

    bits: int
    gates: tuple[tuple[int, int, int], ...]

    @cached_property
    def truth(self) -> np.ndarray:
        """(2^bits,) uint8: the answer to the input whose bit i has weight 2^i."""
        numbers = np.arange(2**self.bits, dtype=np.int64)
        wires = [(numbers >> i & 1).astype(np.uint8) for i in range(self.bits)]
        for left, right, truth in self.gates:
            wires.append(np.uint8(truth) >> (2 * wires[left] + wires[right]) & np.uint8(1))
        return wires[-1]

    @property
    def share(self) -> float:
        """How many of all inputs it says true to."""
        return float(self.truth.mean(dtype=np.float64))

    @property
    def inputs(self) -> set[int]:
        """Those whose flip changes some answer."""
        numbers = np.arange(2**self.bits)
        return {i for i in range(self.bits) if (self.truth != self.truth[numbers ^ 1 << i]).any()}


@lru_cache(maxsize=64)
def draw_circuit(bits: int, gates: int, draw: int) -> Circuit:
    """The circuit of that number, the same on every machine."""
    source = Random(f"random-circuit {bits} {gates} {draw}")
    while True:  # about every fourth circuit will do, or more
        circuit = _wire(bits, gates, source)
        if _RARER <= circuit.share <= 1 - _RARER and len(circuit.inputs) == min(bits, gates + 1):
            return circuit


def _wire(bits: int, gates: int, source: Random) -> Circuit:
    """Gates that leave no wire unread but the last one's."""
    pick = lambda among: among[int(source.random() * len(among))]  # `random` alone is the same in every Python
    unread = list(range(bits))
    while len(unread) > gates + 1:  # two wires become one in each gate
        unread.remove(pick(unread))
    wires = list(unread)
    placed: list[tuple[int, int, int]] = []
    for left_over in range(gates, 0, -1):
        left = pick(unread)
        must_merge = len(unread) == left_over + 1
        right = pick([wire for wire in (unread if must_merge else wires) if wire != left])
        unread = [wire for wire in unread if wire not in (left, right)]
        new = bits + len(placed)
        placed.append((left, right, pick(GATES)))
        unread.append(new)
        wires.append(new)
    return Circuit(bits, tuple(placed))
