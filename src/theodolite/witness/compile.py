"""From a Boolean circuit to a network of threshold units, or of ReLU units, exact on 0/1 inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from theodolite.witness.circuit import Circuit, Gate
from theodolite.witness.threshold import Affine, Builder, UnitNetwork


def to_threshold(circuit: Circuit, layered: bool = False) -> UnitNetwork:
    """Threshold units alone. A gate is one unit; XOR of k is k units, "at least 1, …, at least k", summed with signs.

    Negations cost nothing: they are signs of weights. `layered` adds copies so that layers read the layer before.
    """
    return _compile(circuit, "step", layered)


def to_relu(circuit: Circuit, layered: bool = False) -> UnitNetwork:
    """ReLU units and an affine output, exact on 0/1 inputs. And, or and their negations are one unit, XOR of k is
    k − 1, a threshold inside the range two: 1[s ≥ 0] = relu(s + 1) − relu(s) for whole s."""
    return _compile(circuit, "relu", layered)


def _compile(circuit: Circuit, activation: str, layered: bool) -> UnitNetwork:
    step = activation == "step"
    builder = Builder(len(circuit.inputs), "step" if step else "relu")
    values = {name: Affine.of(place) for place, name in enumerate(circuit.inputs)}
    for name in circuit.order:
        gate = circuit.gates[name]
        values[name] = (_step if step else _relu)(builder, gate, [values[read] for read in gate.reads])
    return builder.build([values[name] for name in circuit.outputs], layered)


def _sum(values: Sequence[Affine]) -> Affine:
    return reduce(Affine.__add__, values, Affine())


def _least(gate: Gate) -> int:
    """How many must be true for a gate that counts; nand and nor are the negations of and and or."""
    count = len(gate.reads)
    return {"and": count, "nand": count, "or": 1, "nor": 1, "majority": count // 2 + 1}.get(gate.kind, gate.least)


def _free(gate: Gate, values: Sequence[Affine]) -> Affine | None:
    """What no unit is needed for."""
    if gate.kind in ("true", "false"):
        return Affine(int(gate.kind == "true"))
    if gate.kind == "not" or (len(values) == 1 and gate.kind in ("nand", "nor", "xnor")):
        return Affine(1) - values[0]
    if gate.kind == "copy" or (len(values) == 1 and gate.kind in ("and", "or", "xor", "majority")):
        return values[0]
    if gate.kind == "threshold" and not 1 <= gate.least <= len(values):
        return Affine(int(gate.least < 1))
    return None


def _step(builder: Builder, gate: Gate, values: Sequence[Affine]) -> Affine:
    free = _free(gate, values)
    if free is not None:
        return free
    total, negated = _sum(values), gate.kind in ("nand", "nor", "xnor")
    if gate.kind in ("xor", "xnor"):
        at_least = [builder.unit(total + -k) for k in range(1, len(values) + 1)]
        found = _sum([unit if k % 2 == 0 else unit * -1 for k, unit in enumerate(at_least)])
        return Affine(1) - found if negated else found
    least = _least(gate)
    return builder.unit(total * -1 + (least - 1)) if negated else builder.unit(total + -least)


def _relu(builder: Builder, gate: Gate, values: Sequence[Affine]) -> Affine:
    free = _free(gate, values)
    if free is not None:
        return free
    total, count = _sum(values), len(values)
    if gate.kind in ("xor", "xnor"):  # s − 2 relu(s − 1) + 2 relu(s − 2) − …
        found = total
        for k in range(1, count):
            found = found + builder.unit(total + -k) * (-2 if k % 2 else 2)
    else:
        least = _least(gate)
        if least == count:
            found = builder.unit(total + (1 - count))
        elif least == 1:
            found = Affine(1) - builder.unit(total * -1 + 1)
        else:
            found = builder.unit(total + (1 - least)) - builder.unit(total + -least)
    return Affine(1) - found if gate.kind in ("nand", "nor", "xnor") else found
