"""Witnesses in the Elman network and in long short-term memory.

Both are written as layers of tanh units whose arguments are so large that they are ±1 to the last digit. An LSTM whose
gates are saturated is such a layer too, its units being ±tanh 1; one that keeps its cell counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from theodolite.nets.parts.as_vector import AsVector
from theodolite.nets.size import count_parameters
from theodolite.tasks.contract import Task
from theodolite.theory.boolean import automaton_units
from theodolite.witness.contract import Witness, constructs
from theodolite.witness.registered_nets.boolean_programs import boolean_programs
from theodolite.witness.registered_nets.machine import StateMachine
from theodolite.witness.registered_nets.profile import profile, smooth_steps
from theodolite.witness.registered_nets.shape import blank, fitted, put
from theodolite.witness.registered_nets.sign_program import SignLayer, SignProgram
from theodolite.witness.registered_nets.state_machine import state_machine

GAIN = 20.0  # tanh(20) is 1 in double precision
_OPEN = 40.0  # the logistic function of 40 is 1, that of −40 adds 4e-18
_SMALL = {"rnn": 1e-3, "lstm": 1e-1}  # what a counter's largest value stays below: tanh is nearly straight there

_MINSKY = "Minsky 1967: a unit for each state and symbol of a finite automaton"
_REGISTER = "a shift register of saturated units under a threshold network"
_COUNTER = "a counter (Weiss, Goldberg and Yahav 2018) under a threshold network"


@dataclass(frozen=True, eq=False)
class Layer:
    """unit = tanh(into·below + across·before + bias); `counts`: the state adds up what enters, in small numbers."""

    into: np.ndarray
    across: np.ndarray
    bias: np.ndarray
    counts: bool = False

    @property
    def units(self) -> int:
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers, and a linear read of the last one's units."""

    name: str
    source: str
    layers: tuple[Layer, ...]
    read: np.ndarray  # (outputs, units)
    offset: np.ndarray  # (outputs,)
    predicted: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)


@constructs("rnn")
def rnn(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    """With tanh: none are known for relu."""
    return None if shape.get("activation", "tanh") != "tanh" else _smallest("rnn", task, shape)


@constructs("lstm")
def lstm(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    return _smallest("lstm", task, shape)


def _smallest(net: str, task: Task, asked: Mapping[str, Any]) -> Witness | None:
    made = [_build(net, stack, task, asked) for stack in _stacks(net, task)]
    return min((w for w in made if w is not None), key=lambda w: count_parameters(w.module), default=None)


def _stacks(net: str, task: Task) -> list[Stack]:
    """Every way that is known to compute the task."""
    found: list[Stack] = []
    machine = state_machine(task)
    if machine is not None:
        found.append(_automaton(machine, task))
    for program in boolean_programs(task, net):
        first = program.layers[0]
        if (first.weights == first.weights[:, :1]).all() and (first.weights != 0).all():
            found.append(_counter(net, program))
        if len(program.layers) == 1 and not first.weights[:, 1:].any() and first.units == 1:
            found.append(_latch(program))
        found.append(_register(program))
    curve = profile(task)
    steps = smooth_steps(task, _UNIT[net]) if curve is not None else None
    if curve is not None and steps is not None:
        small = _SMALL[net] / 1000  # errors of the sum are cubes of this
        units = len(steps.centres)
        slopes = np.full((units, 1), steps.gain * curve.scale / small)
        layer = Layer(slopes, np.zeros((units, units)), -steps.gain * steps.centres)
        found.append(
            Stack(
                f"a sum of {units} smooth steps along one direction",
                "a counter of real numbers under one layer of tanh units, read by least squares",
                (_adding(small), layer),
                steps.read[None],
                np.array([steps.offset]),
            )
        )
    return found


# What reads the tokens


def _adding(small: float) -> Layer:
    return Layer(np.array([[small]]), np.array([[1.0]]), np.zeros(1), counts=True)


def _counter(net: str, program: SignProgram) -> Stack:
    """A function of the sum of all bits: one unit that adds them up in small numbers."""
    bits, (first, *later) = program.bits, program.layers
    small = _SMALL[net] / bits
    value = _counted[net](small)
    # The unit's sign is that of w·(sum − threshold), w the common weight.
    weight = first.weights[:, 0]
    lower, upper = value(first.below / weight), value(first.above / weight)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    if first.units == 1 and not later:
        read = program.read[:, None] / half  # the sign is enough: no unit is needed to make it
        return Stack(
            "a counter of true bits, compared with a number",
            _COUNTER,
            (_adding(small),),
            read,
            program.offset - (read @ middle),
            predicted={"units": 1, "depth": 1},
        )
    signs = Layer((GAIN / half)[:, None], np.zeros((first.units,) * 2), -GAIN * middle / half)
    return Stack(
        f"a counter under {program.name}",
        _COUNTER,
        (_adding(small), signs, *map(_signs, later)),
        program.read[None],
        np.array([program.offset]),
    )


def _latch(program: SignProgram) -> Stack:
    """A function of the first bit alone: the first sign is kept by an argument that no later one outweighs."""
    layer = Layer(np.array([[GAIN]]), np.array([[3 * GAIN]]), np.zeros(1))
    read = program.read[None] * program.layers[0].weights[:, :1]
    one = {"units": 1, "depth": 1}
    return Stack("a latch that keeps the first bit", "a latch", (layer,), read, np.array([program.offset]), one)


def _register(program: SignProgram) -> Stack:
    """Unit i holds the bit of i tokens ago: at the last token, bit j is in unit n − 1 − j."""
    first = program.layers[0]
    length = program.bits - int(np.flatnonzero(first.weights.any(axis=0)).min(initial=program.bits - 1))
    into = np.zeros((length, 1))
    into[0] = GAIN
    register = Layer(into, GAIN * np.eye(length, k=-1), np.zeros(length))
    held = SignLayer(first.weights[:, ::-1][:, :length], first.below, first.above)
    layers = (register, _signs(held), *map(_signs, program.layers[1:]))
    name = f"a shift register under {program.name}"
    return Stack(name, _REGISTER, layers, program.read[None], np.array([program.offset]))


def _signs(layer: SignLayer) -> Layer:
    gain = GAIN / layer.half
    return Layer(layer.weights * gain[:, None], np.zeros((layer.units,) * 2), -gain * layer.middle)


def _automaton(machine: StateMachine, task: Task) -> Stack:
    """A unit for every arrow: on when the state was its own and the symbol is read. The last unit is on from the first
    token on: beside it an arrow's unit, on or off, is 2 or 0, and the state before the first token, all 0, is told."""
    arrows = list(machine.arrows)
    size = len(arrows)
    across = np.zeros((size + 1, size + 1))
    for i, (state, _) in enumerate(arrows):
        for j, arrow in enumerate(arrows):
            if machine.arrows[arrow] == state:
                across[i, j] += 1.0
                across[i, size] += 1.0
        if state == machine.start:
            across[i, size] -= 2.0  # before the first token this state is on without any arrow
    starts = np.array([2.0 if state == machine.start else 0.0 for state, _ in arrows])
    signs = task.spec.vocab is None
    symbols = np.array([symbol for _, symbol in arrows])
    reads = 1.0 - 2.0 * symbols[:, None] if signs else 2.0 * np.eye(machine.symbols)[symbols]
    # State on: 2, off: 0. Symbol read: 1 or 2, else −1 or 0. Both, and only then, exceed 3 (2 for signs).
    bias = starts - (2.0 if signs else 3.0)
    into = np.concatenate((reads, np.zeros((1, reads.shape[1]))))
    layer = Layer(GAIN * into, GAIN * across, GAIN * np.append(bias, 1.0))
    says = [machine.says[machine.arrows[arrow]] for arrow in arrows]
    if signs:
        read, offset = np.array([[*map(float, says), 0.0]]), np.array([float(sum(says))])
    else:
        read = np.array([[*(float(answer == k) for answer in says), 0.0] for k in range(task.spec.outputs)])
        offset = read.sum(axis=1)
    states = len({*machine.says})
    units = {"units": automaton_units(states, machine.symbols)}
    every = size == states * machine.symbols  # else some symbols cannot follow some states
    predicted, at_most = ({"depth": 1} | units, {}) if every else ({"depth": 1}, units)
    return Stack(machine.name, _MINSKY, (layer,), read, offset, predicted, at_most)


# From layers to parameters


def _twice_tanh(x: np.ndarray) -> np.ndarray:
    return np.tanh(np.tanh(x))


_UNIT: dict[str, Callable[[np.ndarray], np.ndarray]] = {"rnn": np.tanh, "lstm": _twice_tanh}


def _rnn_counted(small: float) -> Callable[[np.ndarray], np.ndarray]:
    """Each step is a tanh: in numbers this small the sum is straight but for a share of a millionth."""
    return lambda total: small * total


def _lstm_counted(small: float) -> Callable[[np.ndarray], np.ndarray]:
    """The cell adds exactly; its tanh is what is shown."""
    return lambda total: np.tanh(math.tanh(small) * total)


_ON = {"rnn": 1.0, "lstm": math.tanh(1.0)}  # what a unit shows that is on
_counted = {"rnn": _rnn_counted, "lstm": _lstm_counted}


def _build(net: str, stack: Stack, task: Task, asked: Mapping[str, Any]) -> Witness | None:
    spec = task.spec
    width = max(layer.units for layer in stack.layers)
    features = 1 if spec.kind == "vector" else spec.vocab
    needed = {"features": features, "outputs": spec.outputs, "depth": len(stack.layers), "width": width}
    shape = fitted(net, needed, asked)
    if shape is None or (spec.loss == "square" and shape["depth"] > len(stack.layers)):
        return None
    layers = list(stack.layers)
    if shape["depth"] > len(layers) and layers[-1].counts:
        return None
    units = layers[-1].units
    copies = Layer(GAIN * np.eye(units), np.zeros((units, units)), np.zeros(units))
    layers += [copies] * (shape["depth"] - len(layers))
    module: Any = blank(net, shape)
    fill = _fill_rnn if net == "rnn" else _fill_lstm
    fill(module, layers)
    # Signs are shown as ±1, or ±tanh 1; counters and smooth steps as what they are.
    signs = spec.loss != "square" and not layers[-1].counts
    put(module.read.weight, stack.read / (_ON[net] if signs else 1.0))
    put(module.read.bias, stack.offset)
    whole: nn.Module = AsVector(module) if spec.kind == "vector" else module
    units = sum(layer.units for layer in layers)
    known = {"predicted": stack.predicted, "at_most": stack.at_most} if len(layers) == len(stack.layers) else {}
    return Witness(stack.name, whole, stack.source, units, len(layers), shape, **known)


def _fill_rnn(module: Any, layers: Sequence[Layer]) -> None:
    for made, layer in zip(module.layers, layers, strict=True):
        put(made.into.weight, layer.into)
        put(made.across.weight, layer.across)
        put(made.into.bias, layer.bias)


def _fill_lstm(module: Any, layers: Sequence[Layer]) -> None:
    """A unit that is on shows tanh 1, so what reads such units is divided by that; a counter shows its cell."""
    on, below = _ON["lstm"], 1.0
    for made, layer in zip(module.layers, layers, strict=True):
        width = made.width
        forget = _OPEN if layer.counts else -_OPEN
        put(made.into.bias, np.repeat([forget, _OPEN, _OPEN, 0.0], width))
        put(made.into.weight, layer.into / below, row=3 * width)  # below the rows of the three gates
        put(made.into.bias, layer.bias, row=3 * width)
        if not layer.counts:
            put(made.across.weight, layer.across / on, row=3 * width)
        below = 1.0 if layer.counts else on
