"""Is a part of a found graph false, and does it matter? By the true function, not by how its formula is written."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from benchmarks.known_structures.formula_structure import modules_of
from benchmarks.known_structures.random_functions import RandomFunction

from theodolite.graphs import CompositionalGraph
from theodolite.structure.search.moves import without

LEFT_OUT = 0.01  # of the variance: what a variable that is left out may carry
APART = 0.03  # in which two variables that the graph puts apart may act together
TURN = 1e-3  # mean squared sine of the angle by which slopes may turn in a module, by rounding of differences
POINTS = 200


@dataclass(frozen=True)
class Judgement:
    """`material` are sentences, empty where nothing that matters is false: a variable left out, a pair put apart, or,
    which is stricter, a group said to enter through one number that does not, while the error is above 3 %. `exact`:
    the variables that matter, and the same modules; `coarser`: fewer modules, all of them true."""

    material: tuple[str, ...]
    exact: bool
    coarser: bool


def judge(truth: RandomFunction, graph: CompositionalGraph, error: float) -> Judgement:
    """`error` is that of a network of the graph, over the variance, on fresh rows without noise. Columns being
    independent, a graph that leaves a part of the function out has at least this part as its error; so a network whose
    error is below a bound shows that nothing above the bound is missing, whatever the columns are."""
    carried = truth.carried
    found = without(graph, [name for name in graph.used if name not in carried])
    material = []
    if error > LEFT_OUT:
        gone = [] if found is None else found.used
        material += [
            f"{name} is left out, which carries {share:.1%}"
            for name, share in carried.items()
            if name not in gone and share > LEFT_OUT
        ]
    if found is None:
        return Judgement(tuple(material), False, False)
    left = [name for name in truth.graph.used if name not in found.used]
    real = without(truth.graph, left)
    assert real is not None
    said, true = modules_of(found), modules_of(real)
    wrong = [group for group in said - true if not is_module(truth, sorted(group))]
    if error > APART:
        together = truth.together
        material += [
            f"{a} and {b} are put apart, which act together in {together[frozenset((a, b))]:.1%}"
            for a, b in apart(found)
            if together[frozenset((a, b))] > APART
        ]
        material += [f"{', '.join(sorted(group))} do not enter through one number" for group in wrong]
    weighty = {name for name, share in carried.items() if share > LEFT_OUT}
    same = not wrong and set(found.used) >= weighty and len(graph.used) == len(found.used)
    return Judgement(tuple(material), same and said >= true, not material and not wrong and not said >= true)


def apart(graph: CompositionalGraph) -> list[tuple[str, str]]:
    """Pairs that a sum at the output adds up: no summand reads both."""
    if graph.output.kind != "sum":
        return []
    summands = [graph.reach[name] for name in graph.output.inputs]
    return [pair for pair in combinations(graph.used, 2) if not any(set(pair) <= summand for summand in summands)]


def is_module(truth: RandomFunction, group: list[str]) -> bool:
    """Whether the slopes of two of the group keep their ratio while everything else is redrawn: by differences."""
    generator = np.random.default_rng([truth.seed, 4])
    x, other = truth.points(POINTS, generator), truth.points(POINTS, generator)
    places = [truth.variables.index(name) for name in group]
    moved = other.copy()
    moved[:, places] = x[:, places]
    here, there = (_slopes(truth, points, places) for points in (x, moved))
    for i, j in combinations(range(len(places)), 2):
        cross = here[:, i] * there[:, j] - here[:, j] * there[:, i]
        size = (here[:, i] ** 2 + here[:, j] ** 2) * (there[:, i] ** 2 + there[:, j] ** 2)
        if size.sum() == 0 or (cross**2).sum() > TURN * size.sum():
            return False
    return True


def _slopes(truth: RandomFunction, points: np.ndarray, places: list[int]) -> np.ndarray:
    found = []
    for place in places:
        step = 1e-5 * truth.width[place]
        up, down = points.copy(), points.copy()
        up[:, place] += step
        down[:, place] -= step
        found.append((truth.values(up) - truth.values(down)) / 2e-5)
    return np.stack(found, axis=1)
