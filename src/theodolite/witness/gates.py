"""Circuits that textbooks begin with: XOR, adders, parity in several shapes, and the same from NAND gates alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from theodolite.errors import BadInput
from theodolite.theory.domain import whole
from theodolite.witness.circuit import Circuit, Gate


@dataclass(frozen=True)
class Example:
    """A circuit and what it should say of one row of bits, by plain arithmetic."""

    circuit: Circuit
    truth: Callable[[Sequence[int]], Sequence[int]]

    def errors(self) -> int:
        """Inputs, of all 2^n, that the circuit gets wrong."""
        bits = every_input(len(self.circuit.inputs))
        wanted = np.array([self.truth(row) for row in bits.tolist()], dtype=bool)
        return int((self.circuit.evaluate(bits) != wanted).any(axis=-1).sum())


def every_input(bits: int) -> np.ndarray:
    """(2^bits, bits) of 0 and 1, the first bit the highest."""
    return (np.arange(2**bits)[:, None] >> np.arange(bits - 1, -1, -1)) & 1


def xor() -> Example:
    """a ⊕ b = (a or b) and not (a and b)."""
    gates = {"or": Gate("or", ("a", "b")), "nand": Gate("nand", ("a", "b")), "sum": Gate("and", ("or", "nand"))}
    return Example(Circuit(("a", "b"), gates, ("sum",)), lambda row: [(row[0] + row[1]) % 2])


def half_adder() -> Example:
    """Two bits to their sum modulo 2 and the carry."""
    gates = {"sum": Gate("xor", ("a", "b")), "carry": Gate("and", ("a", "b"))}
    return Example(Circuit(("a", "b"), gates, ("sum", "carry")), lambda row: [sum(row) % 2, sum(row) // 2])


def full_adder() -> Example:
    """Three bits to their sum modulo 2 and the carry: two half adders, whose carries are joined."""
    gates = {
        "first": Gate("xor", ("a", "b")),
        "sum": Gate("xor", ("first", "c")),
        "both": Gate("and", ("a", "b")),
        "passed": Gate("and", ("first", "c")),
        "carry": Gate("or", ("both", "passed")),
    }
    return Example(Circuit(("a", "b", "c"), gates, ("sum", "carry")), lambda row: [sum(row) % 2, sum(row) // 2])


PARITIES = ("two-layer", "iterated", "tree")


def parity(bits: int, form: str = "two-layer") -> Example:
    """Whether an odd number of bits is true.

    `two-layer`: one XOR gate of all bits, which becomes `bits` counting units and one that sums them with signs.
    `iterated`: bits − 1 XORs of two, one after the other, each three gates (or, nand, and). `tree`: as many, in pairs.
    """
    whole("bits", bits)
    names = tuple(f"x{i}" for i in range(bits))
    if form == "two-layer":
        circuit = Circuit(names, {"parity": Gate("xor", names)}, ("parity",))
    elif form in PARITIES:
        gates: dict[str, Gate] = {}
        output = _fold(names, lambda a, b: _xor_of_two(gates, a, b), tree=form == "tree")
        circuit = Circuit(names, gates, (output,))
    else:
        raise BadInput(f"parity has no form '{form}': use {', '.join(PARITIES)}")
    return Example(circuit, lambda row: [sum(row) % 2])


def _fold(names: Sequence[str], join: Callable[[str, str], str], tree: bool) -> str:
    waiting = list(names)
    while len(waiting) > 1:
        if tree:
            pairs = [join(*waiting[i : i + 2]) for i in range(0, len(waiting) - 1, 2)]
            waiting = pairs + waiting[len(waiting) // 2 * 2 :]
        else:
            waiting = [join(waiting[0], waiting[1]), *waiting[2:]]
    return waiting[0]


def _xor_of_two(gates: dict[str, Gate], a: str, b: str) -> str:
    number = len(gates) // 3
    gates[f"or{number}"] = Gate("or", (a, b))
    gates[f"nand{number}"] = Gate("nand", (a, b))
    gates[f"xor{number}"] = Gate("and", (f"or{number}", f"nand{number}"))
    return f"xor{number}"


def nand_only(circuit: Circuit) -> Circuit:
    """The same function from NAND gates of two inputs; XOR of two is the known four. Shared gates stay shared."""
    gates: dict[str, Gate] = {}
    seen: dict[tuple[str, str], str] = {}

    def nand(a: str, b: str) -> str:
        key = (min(a, b), max(a, b))
        if key not in seen:
            seen[key] = f"nand {len(gates)}"
            gates[seen[key]] = Gate("nand", key)
        return seen[key]

    def inverse(a: str) -> str:
        own = gates.get(a)
        return own.reads[0] if own and own.reads[0] == own.reads[1] else nand(a, a)

    def both(a: str, b: str) -> str:
        return inverse(nand(a, b))

    def either(a: str, b: str) -> str:
        return nand(inverse(a), inverse(b))

    def differ(a: str, b: str) -> str:
        middle = nand(a, b)
        return nand(nand(a, middle), nand(b, middle))

    joins: Mapping[str, tuple[Callable[[str, str], str], bool]] = {
        "and": (both, False),
        "nand": (both, True),
        "or": (either, False),
        "nor": (either, True),
        "xor": (differ, False),
        "xnor": (differ, True),
        "copy": (both, False),
        "not": (both, True),
    }
    values = {name: name for name in circuit.inputs}
    for name in circuit.order:
        gate = circuit.gates[name]
        reads = [values[read] for read in gate.reads]
        if gate.kind == "nand" and len(reads) == 2:
            values[name] = nand(*reads)
        elif gate.kind == "majority" and len(reads) == 3:  # ab + c(a or b)
            a, b, c = reads
            values[name] = nand(nand(a, b), nand(c, either(a, b)))
        elif gate.kind in joins:
            join, negated = joins[gate.kind]
            found = _fold(reads, join, tree=gate.kind not in ("xor", "xnor"))
            values[name] = inverse(found) if negated else found
        else:
            raise BadInput(f"the gate '{name}' of kind '{gate.kind}' has no NAND form here: write it with and, or, xor")
    for name in circuit.outputs:
        if values[name] in circuit.inputs:  # an output that is an input is negated twice
            once = nand(values[name], values[name])
            values[name] = nand(once, once)
    outputs = tuple(values[name] for name in circuit.outputs)
    used, waiting = set(), [name for name in outputs if name in gates]
    while waiting:  # negations that cancelled leave gates that nobody reads
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [read for read in gates[name].reads if read in gates]
    return Circuit(circuit.inputs, {name: gate for name, gate in gates.items() if name in used}, outputs)
