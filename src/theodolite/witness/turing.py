"""Turing machines, run step by step, and compiled: T steps become a threshold network of O(T²) units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.errors import BadInput, NotEnoughMemory
from theodolite.registry import unknown
from theodolite.theory.domain import whole
from theodolite.witness.threshold import Affine, Edges, UnitNetwork

_MOST_UNITS = 5_000_000  # about a minute and some gigabytes
Move = Literal[-1, 0, 1]
Outcome = Literal["accept", "reject", "running"]


@dataclass(frozen=True)
class TuringMachine:
    """One tape without ends, the head at first on the first letter of the input.

    `transitions` maps (state, symbol) to (state, symbol written, move of −1, 0 or 1). Where there is none the machine
    rejects on the spot. In `accept` and `reject` it stands still.
    """

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    blank: str
    transitions: Mapping[tuple[str, str], tuple[str, str, Move]]
    start: str
    accept: str
    reject: str

    def __post_init__(self) -> None:
        for role in ("start", "accept", "reject"):
            self._state(getattr(self, role), f"the {role} state of the machine")
        if self.accept == self.reject:
            raise BadInput(f"the machine accepts and rejects in one state, '{self.accept}': give each its own")
        if len(set(self.states)) < len(self.states) or len(set(self.alphabet)) < len(self.alphabet):
            raise BadInput("a state or a symbol of the machine is listed twice: list each once")
        self.check_symbol(self.blank, "the blank")
        for key, rule in self.transitions.items():
            if not (isinstance(key, tuple) and len(key) == 2 and isinstance(rule, tuple) and len(rule) == 3):
                raise BadInput(
                    f"the transition {key!r}: {rule!r} is none: "
                    "write (state, symbol): (state, symbol, move of −1, 0 or 1)"
                )
            (state, symbol), (after, written, move) = key, rule
            where = f"the transition of '{state}' on '{symbol}'"
            self._state(state, where)
            self._state(after, where)
            self.check_symbol(symbol, where)
            self.check_symbol(written, where)
            if move not in (-1, 0, 1):
                raise BadInput(f"{where} moves by {move!r}: use -1, 0 or 1")
            if state in (self.accept, self.reject):
                raise BadInput(f"{where} leaves a state in which the machine has stopped: remove it")

    def _state(self, state: str, where: str) -> None:
        if state not in self.states:
            raise BadInput(f"for {where}: {unknown('state', state, self.states)}")

    def check_symbol(self, symbol: str, where: str) -> None:
        if symbol not in self.alphabet:
            raise BadInput(f"for {where}: {unknown('symbol', symbol, self.alphabet)}")

    def run(self, word: Sequence[str], steps: int) -> tuple[Outcome, dict[int, str], int]:
        """Outcome within so many steps, the tape's cells that are not blank, and the steps taken."""
        tape = dict(enumerate(word))
        for symbol in word:
            self.check_symbol(symbol, "the input")
        state, head, taken = self.start, 0, 0
        while taken < steps and state not in (self.accept, self.reject):
            state, written, move = self._next(state, tape.get(head, self.blank))
            tape[head] = written
            head, taken = head + move, taken + 1
        outcome = "accept" if state == self.accept else "reject" if state == self.reject else "running"
        return outcome, {place: symbol for place, symbol in sorted(tape.items()) if symbol != self.blank}, taken

    def _next(self, state: str, symbol: str) -> tuple[str, str, Move]:
        return self.transitions.get((state, symbol), (self.reject, symbol, 0))

    def rules(self) -> list[tuple[str, str, str, str, Move]]:
        """(state, symbol, next state, written, move) for every state that has not stopped and every symbol."""
        stopped = (self.accept, self.reject)
        return [(q, a, *self._next(q, a)) for q in self.states if q not in stopped for a in self.alphabet]


@dataclass(frozen=True)
class CompiledMachine:
    """`network` reads the first cells of the tape, one-hot in the alphabet, and answers accept, then reject, then the
    tape after the last step, one-hot, from cell `first` on."""

    machine: TuringMachine
    steps: int
    length: int
    network: UnitNetwork
    first: int

    def encode(self, words: Sequence[Sequence[str]]) -> Tensor:
        """(word, cell · symbol) float64; words shorter than `length` are followed by blanks."""
        symbols = {symbol: place for place, symbol in enumerate(self.machine.alphabet)}
        rows = torch.zeros(len(words), self.length, len(symbols), dtype=torch.float64)
        for row, word in enumerate(words):
            if len(word) > self.length:
                raise BadInput(f"a word of {len(word)} letters does not fit into {self.length} cells: compile for more")
            for letter in word:
                self.machine.check_symbol(letter, "the input")
            padded = [*word, *[self.machine.blank] * (self.length - len(word))]
            rows[row, range(self.length), [symbols[letter] for letter in padded]] = 1.0
        return rows.flatten(1)

    def outcomes(self, answers: Tensor) -> list[Outcome]:
        """What the answers of `network` say: accept, reject or running."""
        return ["accept" if row[0] else "reject" if row[1] else "running" for row in answers[:, :2].bool().tolist()]

    def tapes(self, answers: Tensor) -> list[dict[int, str]]:
        """The cells that are not blank after the last step."""
        alphabet, blank = self.machine.alphabet, self.machine.blank
        which = answers[:, 2:].unflatten(1, (-1, len(alphabet))).argmax(dim=-1).tolist()
        return [{self.first + i: alphabet[s] for i, s in enumerate(row) if alphabet[s] != blank} for row in which]


def compile_machine(machine: TuringMachine, steps: int, length: int) -> CompiledMachine:
    """The tableau: layer t + 1 holds the machine after t + 1 steps, each cell computed from three cells before it.

    Units of a layer, for the cells that can matter (the head is at most t away after t steps, and never reads a cell
    T or further away): one for every rule that may fire in a cell ("the head is here in state q and reads a"), one for
    each stopped state, one for each symbol that no head changes. What a cell holds next, and whether the head stands
    there in some state, is a sum of such units of which at most one is 1, so it needs no unit of its own. Accept and
    reject are one unit each; the tape is read as such sums.
    """
    whole("steps", steps)
    whole("length", length)
    units = machine_units(machine, steps)
    if units > _MOST_UNITS:
        most = next(t for t in range(steps) if machine_units(machine, t + 1) > _MOST_UNITS)
        raise NotEnoughMemory(f"{steps} steps of this machine need {units:,} units: use {most} steps or fewer")
    plan = _Plan(machine, steps, length)
    layers = [plan.layer(t) for t in range(steps)]
    accept, reject = (plan.stopped_at(steps, state) for state in (0, 1))
    start = plan.inputs + plan.units_before(steps)
    layers.append(Edges.of([accept + -1, reject + -1]))
    outputs = [Affine.of(start), Affine.of(start + 1)]
    outputs += [plan.symbol_at(steps, p, a) for p in plan.cells for a in range(len(machine.alphabet))]
    network = UnitNetwork(plan.inputs, layers, outputs)
    return CompiledMachine(machine, steps, length, network, plan.cells[0])


class _Plan:
    """Where every unit of the tableau stands, and what the cells are as sums of units."""

    def __init__(self, machine: TuringMachine, steps: int, length: int) -> None:
        self.symbols, self.length = len(machine.alphabet), length
        symbol = {name: place for place, name in enumerate(machine.alphabet)}
        state = {name: place for place, name in enumerate(machine.states)}
        self.rules = [(state[q], symbol[a], state[r], symbol[b], d) for q, a, r, b, d in machine.rules()]
        self.stopped = [state[machine.accept], state[machine.reject]]
        self.start, self.blank = state[machine.start], symbol[machine.blank]
        self.steps, self.inputs = steps, length * self.symbols
        self.cells = range(1 - steps, steps)
        # Which rules bring the head into a state, by how they move, and which write a symbol.
        self.into = {q: [(i, d) for i, (*_, r, _, d) in enumerate(self.rules) if r == q] for q in state.values()}
        self.writes = [[i for i, rule in enumerate(self.rules) if rule[3] == b] for b in range(self.symbols)]

    @property
    def per_head(self) -> int:
        return len(self.rules) + len(self.stopped)

    def units_before(self, step: int) -> int:
        """Units of the layers 0 … step − 1: Σ (2t + 1) cells a head may stand in, 2T − 1 cells that hold a symbol."""
        return step**2 * self.per_head + step * len(self.cells) * self.symbols

    def head_unit(self, step: int, cell: int, number: int) -> int | None:
        """Rule `number` firing in that cell at that step; after the rules the stopped states. None: no head there."""
        if abs(cell) > step:
            return None
        return self.inputs + self.units_before(step) + (cell + step) * self.per_head + number

    def keep_unit(self, step: int, cell: int, symbol: int) -> int:
        offset = (2 * step + 1) * self.per_head
        return self.inputs + self.units_before(step) + offset + (cell - self.cells[0]) * self.symbols + symbol

    def symbol_at(self, step: int, cell: int, symbol: int) -> Affine:
        if step == 0:
            if 0 <= cell < self.length:
                return Affine.of(cell * self.symbols + symbol)
            return Affine(int(symbol == self.blank))
        written = [self.head_unit(step - 1, cell, rule) for rule in self.writes[symbol]]
        nodes = [node for node in written if node is not None]
        return Affine(0, dict.fromkeys([*nodes, self.keep_unit(step - 1, cell, symbol)], 1))

    def head_at(self, step: int, cell: int, state: int) -> Affine:
        if step == 0:
            return Affine(int(cell == 0 and state == self.start))
        nodes = [self.head_unit(step - 1, cell - move, rule) for rule, move in self.into[state]]
        if state in self.stopped:
            nodes.append(self.head_unit(step - 1, cell, len(self.rules) + self.stopped.index(state)))
        return Affine(0, {node: 1 for node in nodes if node is not None})

    def stopped_at(self, step: int, which: int) -> Affine:
        """Whether the head stands in the stopped state, wherever."""
        nodes = []
        for cell in range(1 - step, step):
            nodes += [self.head_unit(step - 1, cell, rule) for rule, _ in self.into[self.stopped[which]]]
            nodes.append(self.head_unit(step - 1, cell, len(self.rules) + which))
        return Affine(0, {node: 1 for node in nodes if node is not None})

    def layer(self, step: int) -> Edges:
        """Fire = 1[head in q + symbol a ≥ 2]; stay = 1[head stopped ≥ 1]; keep = 1[symbol a − any moving head ≥ 1]."""
        forms: list[Affine] = []
        active = sorted({rule[0] for rule in self.rules})
        heads, symbols = {}, {}
        for cell in self.cells:
            symbols[cell] = [self.symbol_at(step, cell, a) for a in range(self.symbols)]
            if abs(cell) <= step:
                heads[cell] = {q: self.head_at(step, cell, q) for q in (*active, *self.stopped)}
        for cell in range(-step, step + 1):
            forms += [heads[cell][q] + symbols[cell][a] + -2 for q, a, *_ in self.rules]
            forms += [heads[cell][q] + -1 for q in self.stopped]
        for cell in self.cells:
            moving = Affine()
            for q in active if cell in heads else ():
                moving = moving + heads[cell][q]
            forms += [symbol - moving + -1 for symbol in symbols[cell]]
        return Edges.of(forms)


def machine_units(machine: TuringMachine, steps: int) -> int:
    """What `compile_machine` needs: (r + 2 + 2s)·T² − s·T + 2 for r rules and s symbols."""
    rules, symbols = len(machine.rules()), len(machine.alphabet)
    return (rules + 2 + 2 * symbols) * steps**2 - symbols * steps + 2


def quadratic_through(points: Mapping[int, int]) -> tuple[float, float, float] | None:
    """(a, b, c) with a·T² + b·T + c at every point, or None where no such polynomial passes through all of them."""
    times = sorted(points)
    if len(times) < 4:
        raise BadInput(f"{len(times)} points do not test a quadratic: give 4 or more")
    a, b, c = np.linalg.solve(np.vander(np.array(times[:3], float), 3), [points[t] for t in times[:3]])
    a, b, c = (round(float(number), 6) for number in (a, b, c))
    fits = all(round(a * t * t + b * t + c) == points[t] for t in times)
    return (a, b, c) if fits else None
