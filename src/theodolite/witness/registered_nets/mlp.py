"""Witnesses in the multilayer perceptron with ReLU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from theodolite.nets.size import count_parameters
from theodolite.tasks.contract import Task
from theodolite.tasks.sawtooth import Sawtooth
from theodolite.theory.sawtooth import deep_units, shallow_units
from theodolite.witness.contract import Witness, constructs
from theodolite.witness.registered_nets.boolean_programs import boolean_programs
from theodolite.witness.registered_nets.profile import broken_line, profile
from theodolite.witness.registered_nets.shape import blank, fitted, put
from theodolite.witness.registered_nets.sign_program import SignProgram, answer_in_relus, in_relus

Affine = tuple[np.ndarray, np.ndarray]  # weights (out, in), biases (out,)

_SOURCE = "threshold networks of Minsky and Papert 1969, each step a ramp of ReLUs"


@constructs("mlp")
def deep_sawtooth(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """Two ReLUs a fold: relu(y) and relu(y − ½), of which 2·first − 4·second is the tent map on [0, 1]."""
    if not isinstance(task, Sawtooth):
        return None
    folds: int = vars(task)["folds"]
    tent = np.array([2.0, -4.0])
    into = (np.ones((2, 1)), np.array([0.0, -0.5]))
    again = (np.tile(tent, (2, 1)), np.array([0.0, -0.5]))
    affine = [into, *[again] * (folds - 1), (tent[None], np.zeros(1))]
    made = _build(affine, task, shape)
    if made is None:
        return None
    return Witness(
        name=f"the tent map {folds} times over, 2 ReLUs for each fold",
        module=made[0],
        source="Telgarsky 2015, Section 1; his 3 nodes in 2 layers a fold are 2 nodes in 1 layer here",
        units=2 * folds,
        depth=folds,
        shape=made[1],
        predicted={"units": deep_units(folds), "depth": folds},
    )


@constructs("mlp")
def broken_curve(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """One hidden layer: a ReLU for every bend along the direction that the task looks in."""
    curve = profile(task)
    line = None if curve is None else broken_line(curve)
    if curve is None or line is None:
        return None
    affine = [
        (np.full((len(line.knots), task.spec.features), curve.scale), -line.knots),
        (line.slopes[None], np.array([line.offset])),
    ]
    made = _build(affine, task, shape)
    if made is None:
        return None
    predicted = {"units": shallow_units(vars(task)["folds"]), "depth": 1} if isinstance(task, Sawtooth) else {}
    return Witness(
        name=f"a broken line of {len(line.knots)} pieces",
        module=made[0],
        source="a ReLU for every bend of a broken line",
        units=len(line.knots),
        depth=1,
        shape=made[1],
        predicted=predicted,
    )


@constructs("mlp")
def boolean_function(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """The sign program with the fewest parameters, its signs written as ramps of ReLUs."""
    made: list[Witness] = []
    for program in boolean_programs(task, "mlp"):
        built = _build(relu_program(program), task, shape)
        if built is not None:
            relus = [layer.mix.shape[1] for layer in (*map(in_relus, program.layers[:-1]), answer_in_relus(program))]
            known = {"predicted": program.predicted, "at_most": program.at_most}
            made.append(Witness(program.name, built[0], _SOURCE, sum(relus), len(relus), built[1], **known))
    return min(made, key=lambda w: (count_parameters(w.module), w.units), default=None)


def relu_program(program: SignProgram) -> list[Affine]:
    """The affine maps between the ReLU layers, the last one to the answer."""
    relus = [*map(in_relus, program.layers[:-1]), answer_in_relus(program)]
    maps: list[Affine] = []
    before, shift = np.eye(program.bits), np.zeros(program.bits)
    for layer in relus:
        maps.append((layer.weights @ before, layer.weights @ shift - layer.knots))
        before, shift = layer.mix, layer.shift
    return [*maps, (before, shift)]


def _build(affine: Sequence[Affine], task: Task, asked: Mapping[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """The net with these maps; where more layers are asked for, the answer y goes on as relu(y) and relu(−y)."""
    *hidden, (read, offset) = affine
    width = max(len(biases) for _, biases in hidden)
    needed = {"features": task.spec.features, "outputs": 1, "depth": len(hidden), "width": width}
    shape = fitted("mlp", needed, asked)
    if shape is None:
        return None
    if shape["depth"] > len(hidden):
        if shape["width"] < 2:
            return None
        both = np.concatenate((read, -read))
        hidden.append((both, np.concatenate((offset, -offset))))
        again = np.array([[1.0, -1.0], [-1.0, 1.0]])
        hidden += [(again, np.zeros(2))] * (shape["depth"] - len(hidden))
        read, offset = np.array([[1.0, -1.0]]), np.zeros(1)
    module: Any = blank("mlp", shape)
    for layer, (weights, biases) in zip(module.layers[::2], [*hidden, (read, offset)], strict=True):
        put(layer.weight, weights)
        put(layer.bias, biases)
    return module, shape
