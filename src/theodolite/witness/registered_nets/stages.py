"""Sums, then ReLUs, then sums of these: what a residual network with GELU is given to compute, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from theodolite.tasks.contract import Task
from theodolite.tasks.sawtooth import Sawtooth
from theodolite.theory.sawtooth import shallow_units
from theodolite.witness.registered_nets.boolean_programs import boolean_programs
from theodolite.witness.registered_nets.profile import broken_line, profile
from theodolite.witness.registered_nets.sign_program import SignProgram, answer_in_relus, in_relus


@dataclass(frozen=True, eq=False)
class Stage:
    """From sums p to write · relu(p[group] − knots) + shift: the sums of the next stage, or the answer."""

    group: np.ndarray  # (relus,)
    knots: np.ndarray  # (relus,)
    write: np.ndarray  # (next, relus)
    shift: np.ndarray  # (next,)

    @property
    def relus(self) -> int:
        return len(self.knots)


@dataclass(frozen=True, eq=False)
class Plan:
    """`directions` give the sums of the first stage, from the entries of the input.

    `large` is what holds the norms of a Transformer nearly constant: the larger, the less they vary, and the fewer
    digits are left for the rest.

    GELU stands for ReLU: gelu(sharp·z) / sharp is relu(z) to rounding for |z| ≥ 9 / sharp and at 0, and nowhere further
    from it than 0.17 / sharp.
    """

    name: str
    directions: np.ndarray  # (sums, entries)
    stages: tuple[Stage, ...]
    sharp: float
    large: float
    predicted: Mapping[str, int] = field(default_factory=dict)  # theory's counts of ReLUs and stages
    at_most: Mapping[str, int] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        return self.directions.shape[1]

    @property
    def alike(self) -> bool:
        """Whether all entries have the same weight in every sum."""
        return bool((self.directions == self.directions[:, :1]).all())


def plans(task: Task, net: str) -> list[Plan]:
    """Every known plan of a vector task for a net."""
    curve = profile(task)
    line = None if curve is None else broken_line(curve)
    if curve is not None and line is not None:
        units = np.zeros(len(line.knots), dtype=np.int64)
        stage = Stage(units, line.knots, line.slopes[None], np.array([line.offset]))
        name = f"a broken line of {len(line.knots)} pieces"
        predicted = {"units": shallow_units(vars(task)["folds"]), "depth": 1} if isinstance(task, Sawtooth) else {}
        direction = np.full((1, task.spec.features), curve.scale)
        return [Plan(name, direction, (stage,), sharp=1e10, large=1e5, predicted=predicted)]
    return [_of_signs(program) for program in boolean_programs(task, net)]


def _of_signs(program: SignProgram) -> Plan:
    layers = [*map(in_relus, program.layers[:-1]), answer_in_relus(program)]
    stages = [
        Stage(layer.group, layer.knots, after.directions @ layer.mix, after.directions @ layer.shift)
        for layer, after in pairwise(layers)
    ]
    last = layers[-1]
    return Plan(
        program.name,
        layers[0].directions,
        (*stages, Stage(last.group, last.knots, last.mix, last.shift)),
        sharp=50.0,
        large=1e3,
        predicted=program.predicted,
        at_most=program.at_most,
    )
