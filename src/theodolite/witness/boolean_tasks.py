"""Circuits and single threshold units for the Boolean tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.tasks.contract import Task, settings
from theodolite.witness.circuit import Circuit, Gate
from theodolite.witness.dnf import minimal_dnf
from theodolite.witness.gates import parity
from theodolite.witness.table import answers
from theodolite.witness.threshold import Affine, UnitNetwork

_EXACT_DIGITS = 50  # weights up to 2^50 add up exactly in float64


class OnSigns(nn.Module):
    """A network on 0/1 bits as the tasks ask for it: −1 is a true bit, and a true answer is −1.

    Both are affine changes that the first weights and the last threshold could take up: they count as nothing.
    """

    def __init__(self, network: UnitNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Float[Tensor, "batch bit"]) -> Float[Tensor, "batch output"]:
        return 1.0 - 2.0 * self.network((1.0 - x) / 2.0)


def parity_circuit(task: Task, form: str) -> Circuit:
    """Parity of the first bits in one of the forms of `gates.parity`; the others are inputs that nobody reads."""
    names = tuple(f"x{i}" for i in range(task.spec.features))
    own = parity(settings(task)["relevant"], form).circuit
    return Circuit(names, own.gates, own.outputs)


def circuit_of(task: Task) -> Circuit | None:
    """Gates that compute the task, fan-in unbounded; None where no circuit is written down."""
    names = tuple(f"x{i}" for i in range(task.spec.features))
    half = len(names) // 2
    a, b = names[:half], names[half:]
    function = settings(task).get("function")
    if task.name == "parity":
        return parity_circuit(task, "two-layer")
    if task.name == "majority":
        return _of(names, {"out": Gate("majority", names)})
    if task.name != "boolean":
        return None
    if function == "first":
        return Circuit(names, {}, (names[0],))
    if function in ("and", "or"):
        return _of(names, {"out": Gate(function, names)})
    if function == "carry":
        return _of(names, _ripple(a, b))
    if function == "inner-product":
        both = {f"both{i}": Gate("and", pair) for i, pair in enumerate(zip(a, b, strict=True))}
        return _of(names, {**both, "out": Gate("xor", tuple(both))})
    if function == "equality":
        same = {f"same{i}": Gate("xnor", pair) for i, pair in enumerate(zip(a, b, strict=True))}
        return _of(names, {**same, "out": Gate("and", tuple(same))})
    if function == "multiplexer":
        return _of(names, _multiplexer(names))
    if function == "brackets":
        return _of(names, _brackets(names))
    return None


def dnf_circuit(task: Task) -> Circuit:
    """A smallest disjunction of conjunctions, from the truth table."""
    bits = task.spec.features
    names = tuple(f"x{i}" for i in range(bits))
    dnf = minimal_dnf((answers(task) < 0).tolist())
    gates = {f"not{i}": Gate("not", (name,)) for i, name in enumerate(names)}
    terms = []
    for number, term in enumerate(dnf.terms):
        reads = tuple(names[i] if true else f"not{i}" for i, true in term.literals(bits))
        gates[f"term{number}"] = Gate("and", reads) if reads else Gate("true")
        terms.append(f"term{number}")
    gates["out"] = Gate("or", tuple(terms)) if terms else Gate("false")
    return Circuit(names, gates, ("out",))


def single_unit(task: Task) -> Affine | None:
    """constant + Σ weight · bit, whole numbers, which is ≥ 0 exactly where the answer is true; None where there is no
    such unit, or none is written down."""
    bits = task.spec.features
    half, every = bits // 2, range(bits)
    function = settings(task).get("function")
    if task.name == "parity" and settings(task)["relevant"] == 1:
        return Affine(-1, {0: 1})
    if task.name == "majority":
        return Affine(-(bits // 2) - 1, dict.fromkeys(every, 1))
    if task.name != "boolean":
        return None
    if function == "first":
        return Affine(-1, {0: 1})
    if function in ("and", "or"):
        return Affine(-bits if function == "and" else -1, dict.fromkeys(every, 1))
    if function == "carry" and half <= _EXACT_DIGITS:  # a + b ≥ 2^half
        return Affine(-(2**half), {i: 2 ** (half - 1 - i % half) for i in every})
    return None


def equality_forms(task: Task) -> Sequence[Affine] | None:
    """Two units, a ≥ b and b ≥ a for the halves read as numbers, whose conjunction is equality."""
    half = task.spec.features // 2
    if not (task.name == "boolean" and settings(task)["function"] == "equality" and half <= _EXACT_DIGITS):
        return None
    digits = [2 ** (half - 1 - i) for i in range(half)]
    difference = Affine(0, {**dict(enumerate(digits)), **{half + i: -digit for i, digit in enumerate(digits)}})
    return difference, difference * -1


def _of(names: tuple[str, ...], gates: dict[str, Gate]) -> Circuit:
    return Circuit(names, gates, ("out",))


def _ripple(a: Sequence[str], b: Sequence[str]) -> dict[str, Gate]:
    """From the lowest digits on, a carry is the majority of two digits and the carry before."""
    gates: dict[str, Gate] = {}
    before = None
    for place in reversed(range(len(a))):
        name = "out" if place == 0 else f"carry{place}"
        reads = (a[place], b[place])
        gates[name] = Gate("and", reads) if before is None else Gate("majority", (*reads, before))
        before = name
    return gates


def _multiplexer(names: Sequence[str]) -> dict[str, Gate]:
    """One conjunction for every address, of its digits and the bit it points to."""
    address = max(k for k in range(1, len(names)) if k + 2**k <= len(names))
    gates: dict[str, Any] = {f"not{i}": Gate("not", (names[i],)) for i in range(address)}
    chosen = []
    for number in range(2**address):
        digits = [number >> (address - 1 - i) & 1 for i in range(address)]
        reads = [names[i] if digit else f"not{i}" for i, digit in enumerate(digits)]
        gates[f"at{number}"] = Gate("and", (*reads, names[address + number]))
        chosen.append(f"at{number}")
    return {**gates, "out": Gate("or", tuple(chosen))}


def _brackets(names: Sequence[str]) -> dict[str, Gate]:
    """Of every prefix at least half opens, and of the whole exactly half."""
    bits = len(names)
    gates = {f"level{j}": Gate("threshold", tuple(names[:j]), math.ceil(j / 2)) for j in range(1, bits + 1, 2)}
    gates |= {"enough": Gate("threshold", tuple(names), bits // 2)}
    gates |= {"more": Gate("threshold", tuple(names), bits // 2 + 1), "no more": Gate("not", ("more",))}
    return {**gates, "out": Gate("and", (*(name for name in gates if name != "more"),))}
