"""How fast errors fall with the number of parameters: one approximant in n variables against one for every constituent.

The functions are periodic and have a known finite smoothness m: sums of waves w(a·x), w(t) = Σ_ν ν^−(m+½) cos(2πνt +
φ_ν), so that what lies above frequency K has root mean square of order K^−m. The best trigonometric polynomial with
frequencies up to K in n variables has N = (2K + 1)^n coefficients and an error of order N^(−m/n), the rate of a shallow
network in Theorem 1; it is read off a Fourier transform, without training. A function composed along a graph of d
inputs a node is approximated node by node, N = Σ_v (2K + 1)^d, and the approximants are composed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput
from theodolite.graphs.families import binary_tree
from theodolite.graphs.graph import CompositionalGraph

Array = NDArray[np.float64]

_TABLE = 1 << 15  # points of a wave, between which it is taken as straight
_HIGHEST = 512  # frequency of a wave
_TERMS = 3  # waves of a constituent
_SPREAD = (
    0.12  # standard deviation of a constituent's value, in periods of what reads it: errors hardly grow on the way
)
_GRID = {1: 4096, 2: 128, 3: 64, 4: 40}  # points along an axis at which an approximant of so many variables is fitted


@dataclass(frozen=True)
class Constituent:
    """A function of [0, 1)^d, periodic in each variable: mean ½ and a small spread, of smoothness m."""

    directions: Array  # (term, d), ±1: all variables enter every wave
    shifts: Array
    table: Array  # (term, point) of one period, and the first point again

    @staticmethod
    def draw(inputs: int, smoothness: float, random: np.random.Generator) -> Constituent:
        frequency = np.arange(1, _HIGHEST + 1)
        waves = []
        for _ in range(_TERMS):
            sizes = np.zeros(_TABLE // 2 + 1, dtype=complex)
            sizes[1 : _HIGHEST + 1] = frequency ** -(smoothness + 0.5) * np.exp(2j * np.pi * random.random(_HIGHEST))
            wave = np.fft.irfft(sizes, _TABLE)
            waves.append(np.append(wave, wave[0]) / wave.std())
        signs = random.choice((-1.0, 1.0), (_TERMS, inputs))
        return Constituent(signs, random.random(_TERMS), np.array(waves) * _SPREAD / math.sqrt(_TERMS))

    def __call__(self, x: Array) -> Array:
        """(…, d) to (…)."""
        found = np.full(x.shape[:-1], 0.5)
        place = np.arange(self.table.shape[1]) / (self.table.shape[1] - 1)
        for direction, shift, wave in zip(self.directions, self.shifts, self.table, strict=True):
            found += np.interp((x @ direction + shift) % 1.0, place, wave)
        return found


@dataclass(frozen=True)
class Polynomial:
    """A trigonometric polynomial of d variables with frequencies up to K in each."""

    coefficients: NDArray[np.complex128]  # (2K + 1)^d, from −K to K

    def __call__(self, x: Array) -> Array:
        highest = self.coefficients.shape[0] // 2
        waves = np.exp(2j * np.pi * x[..., None] * np.arange(-highest, highest + 1))  # (point, d, frequency)
        found = np.einsum("pk,k...->p...", waves[:, 0], self.coefficients)
        for variable in range(1, x.shape[1]):
            found = np.einsum("pk,pk...->p...", waves[:, variable], found)
        return found.real


def spectrum(function: Any, variables: int, offset: Array) -> NDArray[np.complex128]:
    """Fourier coefficients from a grid, lowest frequencies in the middle; those too high fold back as on any grid."""
    if variables not in _GRID:
        raise BadInput(f"a grid of {variables} variables is too large: use 1 to {max(_GRID)}")
    count = _GRID[variables]
    axes = np.meshgrid(*[np.arange(count) / count] * variables, indexing="ij")
    values = function(np.stack(axes, axis=-1) + offset)
    return np.fft.fftshift(np.fft.fftn(values) / count**variables)


def fit(coefficients: NDArray[np.complex128], highest: int, offset: Array) -> Polynomial:
    """The least-squares polynomial on the grid: the lowest frequencies, moved back by the grid's offset."""
    middle, frequency = coefficients.shape[0] // 2, np.arange(-highest, highest + 1)
    found = coefficients[(slice(middle - highest, middle + highest + 1),) * coefficients.ndim]
    for axis in range(coefficients.ndim):
        turn = np.exp(-2j * np.pi * frequency * offset[axis])
        found = found * turn.reshape([-1 if a == axis else 1 for a in range(coefficients.ndim)])
    return Polynomial(found)


def residuals(coefficients: NDArray[np.complex128], highest: Sequence[int]) -> list[float]:
    """Root mean square error of the best polynomial of each highest frequency, over the function's own deviation."""
    middle, power = coefficients.shape[0] // 2, np.abs(coefficients) ** 2
    power[(middle,) * power.ndim] = 0.0  # the mean
    inside = [power[(slice(middle - k, middle + k + 1),) * power.ndim].sum() for k in highest]
    return [math.sqrt(max(0.0, 1 - float(kept / power.sum()))) for kept in inside]


class Composed:
    """A function of a graph whose constituents are drawn, all of smoothness m."""

    def __init__(self, graph: CompositionalGraph, smoothness: float, random: np.random.Generator) -> None:
        self.graph = graph
        self.constituents: dict[str, Any] = {
            node.name: Constituent.draw(len(node.inputs), smoothness, random) for node in graph.nodes
        }

    def __call__(self, x: Array) -> Array:
        return compose(self.graph, self.constituents, x)


def compose(graph: CompositionalGraph, constituents: Mapping[str, Any], x: Array) -> Array:
    values = {name: x[..., place] for place, name in enumerate(graph.variables)}
    for node in graph.nodes:
        values[node.name] = constituents[node.name](np.stack([values[name] for name in node.inputs], axis=-1))
    return values[graph.output.name]


def tree(variables: int) -> CompositionalGraph:
    """A binary tree, or one node for a single variable."""
    return binary_tree(variables) if variables > 1 else CompositionalGraph.dense(("x0",))


def slope(sizes: Sequence[float], errors: Sequence[float]) -> float:
    """−d log(error) / d log(size), by least squares."""
    return -float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def measure_approximation_rate(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: variables, smoothness, approximant (shallow, graph), graph (tree, dense), highest (frequencies), draws.

    For every drawn function the errors, relative to its deviation, and the slope of log(1/error) over log N.
    """
    random = np.random.default_rng(seed)
    variables, highest = config["variables"], list(config["highest"])
    names = [f"x{i}" for i in range(variables)]
    graph = CompositionalGraph.dense(names) if config.get("graph", "tree") == "dense" else tree(variables)
    shallow = config["approximant"] == "shallow"
    sides = [2 * k + 1 for k in highest]
    sizes = [side**variables if shallow else sum(side**d for d in graph.fan_ins) for side in sides]
    curves = []
    for _ in range(config["draws"]):
        function = Composed(graph, config["smoothness"], random)
        if shallow:
            curves.append(residuals(spectrum(function, variables, random.random(variables)), highest))
        else:
            curves.append(_composed_errors(function, highest, random, config.get("points", 2000)))
    return {
        "sizes": sizes,
        "errors": curves,
        "slopes": [slope(sizes, errors) for errors in curves],
        "fan_in": max(graph.fan_ins),
    }


def _composed_errors(
    function: Composed, highest: Sequence[int], random: np.random.Generator, points: int
) -> list[float]:
    x = random.random((points, len(function.graph.variables)))
    truth = function(x)
    offsets = {name: random.random(len(function.graph.node[name].inputs)) for name in function.constituents}
    spectra = {
        name: spectrum(constituent, len(offsets[name]), offsets[name])
        for name, constituent in function.constituents.items()
    }
    found = []
    for k in highest:
        fitted = {name: fit(spectra[name], k, offsets[name]) for name in spectra}
        error = compose(function.graph, fitted, x) - truth
        found.append(float(np.sqrt(np.mean(error**2)) / truth.std()))
    return found
