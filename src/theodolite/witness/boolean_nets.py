"""Constructions for the architectures of circuits: threshold units, NAND gates, one linear unit, a recurrence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.parts.as_vector import AsVector
from theodolite.registry import unknown
from theodolite.tasks.contract import Task, settings
from theodolite.theory.boolean import parity_dnf_terms, parity_units
from theodolite.witness.boolean_tasks import (
    OnSigns,
    circuit_of,
    dnf_circuit,
    equality_forms,
    parity_circuit,
    single_unit,
)
from theodolite.witness.circuit import Circuit
from theodolite.witness.compile import to_threshold
from theodolite.witness.contract import Impossible, Witness, constructs
from theodolite.witness.dnf import MOST_BITS
from theodolite.witness.domain import is_boolean
from theodolite.witness.gates import PARITIES, nand_only
from theodolite.witness.linear import separate
from theodolite.witness.table import all_signs, answers
from theodolite.witness.threshold import Builder

# What a user may ask of the architectures that only witnesses have.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "threshold": ("form",),
    "nand": ("form",),
    "linear": (),
    "recurrent-threshold": (),
}
FORMS = (*PARITIES, "dnf")
_LISTED_BITS = 20  # truth tables up to here
_DRAWN = 4096  # inputs a proof is looked for among, beyond that
_PERCEPTRON = "Minsky and Papert 1969, Perceptrons"
_DNF = "a smallest DNF, an OR of ANDs"
_PARITIES = {
    "two-layer": "'at least k true bits' for every k, summed with alternating signs",
    "iterated": "a chain of XORs of two",
    "tree": "a tree of XORs of two",
}


@constructs("threshold")
def threshold(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """The fewest units known; `form` chooses among those of parity (two-layer, iterated, tree), or `dnf`."""
    if not is_boolean(task):
        return None
    form, bits = _form(shape), task.spec.features
    if form is None:
        unit = single_unit(task)
        if unit is not None:
            builder = Builder(bits)
            network = builder.build([builder.unit(unit)])
            return Witness("one threshold unit", OnSigns(network), "McCulloch and Pitts 1943", 1, 1, {}, _one())
        halves = equality_forms(task)
        if halves is not None:
            builder = Builder(bits)
            a, b = map(builder.unit, halves)
            network = builder.build([builder.unit(a + b + -2)])
            source = "a ≥ b and b ≥ a: two units, and their conjunction"
            name, predicted = "the halves read as numbers, compared both ways", {"units": 3, "depth": 2}
            return Witness(name, OnSigns(network), source, network.units, network.depth, dict(shape), predicted)
    found = _circuit(task, form)
    if found is None:
        return None
    name, circuit, predicted = found
    network = to_threshold(circuit)
    at_most = {"units": parity_dnf_terms(bits) + 1} if name == _DNF and not predicted else {}
    return Witness(
        name, OnSigns(network), _source(task, form), network.units, network.depth, dict(shape), predicted, at_most
    )


@constructs("nand")
def nand(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """NAND gates of two inputs, each a threshold unit."""
    if not is_boolean(task):
        return None
    form = _form(shape)
    if task.name == "parity" and form in (None, "iterated"):
        circuit = nand_only(parity_circuit(task, "two-layer"))  # one XOR of all bits becomes a chain of fours
        joints = settings(task)["relevant"] - 1
        predicted = {"units": 4 * joints, "depth": 3 * joints} if joints else {}
    else:
        found = _circuit(task, form)
        if found is None:
            return None
        try:
            circuit, predicted = nand_only(found[1]), {}
        except BadInput:  # a gate that counts
            if task.spec.features > MOST_BITS:
                return None
            circuit, predicted = nand_only(dnf_circuit(task)), {}
    network = to_threshold(circuit)
    source = "XOR of two bits is four NAND gates; every Boolean function is a circuit of them (Sheffer 1913)"
    return Witness(
        "a circuit of NAND gates", OnSigns(network), source, network.units, network.depth, dict(shape), predicted
    )


@constructs("linear")
def linear(task: Task, _shape: Mapping[str, Any]) -> Witness | Impossible | None:
    """One linear unit, or a proof that there is none; beyond 20 bits a proof is looked for among drawn inputs."""
    if not is_boolean(task):
        return None
    bits = task.spec.features
    unit = single_unit(task)
    if unit is not None:  # bit = (1 − sign) / 2, and a true answer is −1
        weights = np.array([unit.weights.get(i, 0) for i in range(bits)], dtype=float)
        module = _linear(weights / 2, -(unit.constant + 0.5 + weights.sum() / 2))
        return Witness("one linear unit", module, _PERCEPTRON, 0, 0, {}, {"units": 0, "depth": 0})
    if bits <= _LISTED_BITS:
        found = separate(all_signs(bits).astype(np.float64), answers(task).astype(np.float64))
    else:
        inputs = task.sample(1, _DRAWN, None, torch.Generator().manual_seed(0)).inputs[0].double().numpy()
        found = separate(inputs, np.array([task.solve(row)[0] for row in inputs.tolist()]))
    if found.weights is not None:
        module = _linear(found.weights, found.bias)
        return Witness("one linear unit", module, "a linear program (HiGHS)", 0, 0, {}, {})
    if found.proof is None:
        return None
    proof = found.proof
    shown = ", ".join(map(str, proof.weights))
    weighted = f"weighted {shown}" if len(shown) < 40 else "with whole positive weights"
    return Impossible(
        "no linear unit",
        f"{len(proof.inputs)} inputs, {weighted} and signed with their answers, sum to 0, so no linear unit has the "
        "right sign on all of them",
        _PERCEPTRON + "; Farkas' lemma",
        {
            "linear_program": found.status,
            "programs": found.programs,
            "inputs": [list(row) for row in proof.inputs],
            "answers": list(proof.answers),
            "weights": list(proof.weights),
            "arithmetic": "whole numbers",
            "holds": proof.holds(),
        },
    )


class RecurrentThreshold(nn.Module):
    """Parity in two threshold units that read one token after the other, whatever the length.

    h₁ = 1[s + x ≥ 1], h₂ = 1[s + x ≥ 2], where s = h₁ − h₂ is the parity so far and x = `read` · token + `shift`.
    """

    def __init__(self, read: Tensor, shift: float, write: Tensor, answer: Tensor) -> None:
        super().__init__()
        self.state = nn.Parameter(torch.tensor([[1.0, -1.0], [1.0, -1.0]], dtype=torch.float64))
        self.token = nn.Parameter(read.double().expand(2, -1).clone())
        self.bias = nn.Parameter(torch.tensor([shift - 1.0, shift - 2.0], dtype=torch.float64))
        self.write = nn.Parameter(write.double())
        self.answer = nn.Parameter(answer.double())

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        hidden, said = x.new_zeros(len(x), 2), []
        for token in x.unbind(dim=1):
            sums = hidden @ self.state.T + token @ self.token.T + self.bias
            hidden = (sums >= 0).to(x.dtype)
            said.append(hidden @ self.write.T + self.answer)
        return torch.stack(said, dim=1)


@constructs("recurrent-threshold")
def recurrent(task: Task, _shape: Mapping[str, Any]) -> Witness | None:
    """Parity of all bits, read one after the other, in two units for any number of bits."""
    spread = torch.tensor([[1.0, -1.0]])
    if task.name == "parity-check":  # token 1 is a one; 0 and the marker change nothing
        write, answer = torch.cat([torch.zeros(1, 2), 2 * spread]), torch.tensor([0.0, -1.0])
        net: nn.Module = RecurrentThreshold(torch.tensor([[0.0, 1.0, 0.0]]), 0.0, write, answer)
    elif task.name == "parity" and settings(task)["relevant"] == task.spec.features:
        net = AsVector(RecurrentThreshold(torch.tensor([[-0.5]]), 0.5, -2 * spread, torch.tensor([1.0])))
    else:
        return None
    source = "XOR of the bit and the parity so far, the same units at every step"
    name, constant = "the parity so far, XORed with every bit", {"units": 2, "depth": 1}
    return Witness(name, net, source, units=2, depth=1, predicted=constant)


def _form(shape: Mapping[str, Any]) -> str | None:
    form = shape.get("form")
    if form is not None and form not in FORMS:
        raise BadInput(unknown("form of a circuit", str(form), FORMS))
    return form


def _circuit(task: Task, form: str | None) -> tuple[str, Circuit, dict[str, int]] | None:
    """A circuit in the form asked for, and how many threshold units and layers theory counts for it."""
    bits = task.spec.features
    if form == "dnf":
        if bits > MOST_BITS:
            raise BadInput(f"a smallest DNF of {bits} bits is out of reach: use {MOST_BITS} bits or fewer")
        relevant = settings(task)["relevant"] if task.name == "parity" else 1
        predicted = {"units": parity_dnf_terms(relevant) + 1, "depth": 2} if relevant > 1 else {}
        return _DNF, dnf_circuit(task), predicted
    if task.name == "parity":
        n, chosen = settings(task)["relevant"], form or "two-layer"
        counts = {
            "two-layer": {"units": parity_units(n), "depth": 2},
            "iterated": {"units": 3 * (n - 1), "depth": 2 * (n - 1)},
            "tree": {"units": 3 * (n - 1), "depth": 2 * math.ceil(math.log2(n))},
        }
        return _PARITIES[chosen], parity_circuit(task, chosen), counts[chosen] if n > 1 else _one()
    if form is not None:
        raise BadInput(f"the form '{form}' is one of parity's: leave it out for the task '{task.name}', or use dnf")
    circuit = circuit_of(task)
    if circuit is not None:
        return "a circuit of gates, each a few threshold units", circuit, _gate_counts(task)
    return (_DNF, dnf_circuit(task), {}) if bits <= MOST_BITS else None


def _source(task: Task, form: str | None) -> str:
    if form == "dnf" or circuit_of(task) is None:
        return "prime implicants (Quine, McCluskey) and a smallest cover"
    return "gate by gate; XOR of n bits counts 'at least k of n'"


def _gate_counts(task: Task) -> dict[str, int]:
    """What the circuits of `circuit_of` take, where it is a formula of the number of bits."""
    function, half = settings(task).get("function"), task.spec.features // 2
    if function == "inner-product" and half > 1:  # an AND of each pair, then their parity
        return {"units": half + parity_units(half), "depth": 3}
    return {}


def _one() -> dict[str, int]:
    return {"units": 1, "depth": 1}


def _linear(weights: np.ndarray, bias: float) -> nn.Linear:
    unit = nn.Linear(len(weights), 1, dtype=torch.float64)
    with torch.no_grad():
        unit.weight.copy_(torch.from_numpy(np.asarray(weights)))
        unit.bias.fill_(bias)
    return unit
