"""New functions from a seed, with the rows that a method gets to see and the truth about them: none can be tuned to.

Kinds: engineers' functions on drawn parts of their ranges, random trees and DAGs, sums of terms that overlap, a
function of such a sum, products, steps, and functions of a few directions. Sizes, distributions of the inputs, columns
that mean nothing, and noise are drawn too. Seeds below HELD_OUT are to develop with; figures are of seeds from there
on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from benchmarks.known_structures.engineering import ENGINEERING
from numpy.typing import NDArray

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import random_dag, random_tree
from theodolite.graphs.formula import Formula
from theodolite.graphs.graph import Kind
from theodolite.tasks.shared.constituents import ComposedFunction

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
HELD_OUT = 10_000
KINDS = ("engineering", "tree", "dag", "sum", "hidden sum", "product", "steps", "index")
SHARES = (0.3, 0.15, 0.05, 0.15, 0.1, 0.1, 0.1, 0.05)
DISTRIBUTIONS = ("uniform", "normal", "skewed", "heavy", "correlated", "derived")
DISTRIBUTION_SHARES = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
NOISES, NOISE_SHARES = (0.0, 0.01, 0.1, 0.3), (0.25, 0.45, 0.2, 0.1)
SIZES, SIZE_SHARES = (300, 1000, 2000), (0.2, 0.6, 0.2)
TRUTH_POINTS = 20_000
CORRELATION = 0.7


@dataclass(frozen=True)
class RandomFunction:
    """`function` of `graph` on the first columns, each within −1 to 1 before `low` and `width` give it its range; the
    columns behind it mean nothing. Noise is a share of the target's standard deviation."""

    seed: int
    kind: str
    name: str
    graph: CompositionalGraph
    function: Function
    low: Array
    width: Array
    distribution: str
    noise: float
    rows: int
    idle: int

    @property
    def variables(self) -> tuple[str, ...]:
        extra = ("derived",) if self.distribution == "derived" else ()
        return (*self.graph.variables, *extra, *(f"idle{i + 1}" for i in range(self.idle)))

    def points(self, count: int, generator: np.random.Generator) -> Array:
        """Rows of all columns."""
        inputs = len(self.graph.variables)
        unit = _unit(self.distribution, count, inputs, generator)
        used = self.low + self.width * (unit + 1) / 2
        extra = []
        if self.distribution == "derived":  # a column that is a function of two others
            extra.append(np.tanh(unit[:, 0] + 0.5 * unit[:, 1] ** 2) + unit[:, 1])
        extra += [generator.uniform(-1, 1, count) for _ in range(self.idle)]
        return np.column_stack([used, *extra])

    def values(self, points: Array) -> Array:
        return self.function(points[:, : len(self.graph.variables)])

    def sample(self) -> tuple[Array, Array]:
        """The rows a method learns from."""
        generator = np.random.default_rng([self.seed, 1])
        x = self.points(self.rows, generator)
        y = self.values(x)
        return x, y + self.noise * y.std() * generator.standard_normal(self.rows)

    def fresh(self, count: int = 4_000) -> tuple[Array, Array]:
        """Other rows, without noise."""
        x = self.points(count, np.random.default_rng([self.seed, 2]))
        return x, self.values(x)

    @cached_property
    def carried(self) -> dict[str, float]:
        """The share of the variance that is lost at least without a variable (Sobol's total index): for independent
        columns E[(f(x) − f(x with it redrawn))²] / 2."""
        x, other, f = self._pairs_of_points
        found = {}
        for place, name in enumerate(self.graph.variables):
            found[name] = float(np.mean((f - self.values(_with(x, other, place))) ** 2) / (2 * f.var()))
        return found

    @cached_property
    def together(self) -> dict[frozenset[str], float]:
        """The share of the variance in which two variables act together (Liu and Owen's superset importance):
        E[(f − f with one redrawn − f with the other + f with both)²] / 4."""
        x, other, f = self._pairs_of_points
        alone = [self.values(_with(x, other, place)) for place in range(len(self.graph.variables))]
        found = {}
        for (i, a), (j, b) in combinations(enumerate(self.graph.variables), 2):
            mixed = f - alone[i] - alone[j] + self.values(_with(x, other, i, j))
            found[frozenset((a, b))] = float(np.mean(mixed**2) / (4 * f.var()))
        return found

    @cached_property
    def _pairs_of_points(self) -> tuple[Array, Array, Array]:
        generator = np.random.default_rng([self.seed, 3])
        x, other = (self.points(TRUTH_POINTS, generator) for _ in range(2))
        return x, other, self.values(x)


def random_function(seed: int) -> RandomFunction:
    generator = np.random.default_rng([seed, 0])
    choose = lambda items, shares: items[int(generator.choice(len(items), p=shares))]
    kind = choose(KINDS, SHARES)
    distribution = choose(DISTRIBUTIONS, DISTRIBUTION_SHARES)
    noise, rows = choose(NOISES, NOISE_SHARES), choose(SIZES, SIZE_SHARES)
    idle = int(generator.choice([0, 0, 0, 2, 5]))
    if kind == "engineering":
        chosen = ENGINEERING[int(generator.integers(len(ENGINEERING)))]
        ends = np.array(list(chosen.ranges.values()), dtype=np.float64)
        cut = 0.2 * generator.random((2, len(ends)))
        low, high = ends[:, 0] + cut[0] * np.ptp(ends, axis=1), ends[:, 1] - cut[1] * np.ptp(ends, axis=1)
        formula = Formula(chosen.text, tuple(chosen.ranges))
        parts = (chosen.name, formula.graph, formula.function, low, high - low)
    else:
        graph, function = _MAKERS[kind](generator)
        count = len(graph.variables)
        parts = (kind, graph, function, np.full(count, -1.0), np.full(count, 2.0))
    return RandomFunction(seed, kind, *parts, distribution, noise, rows, idle)


Made = tuple[CompositionalGraph, Function]


def _tree(generator: np.random.Generator) -> Made:
    graph = random_tree(int(generator.integers(4, 10)), 3, generator)
    return graph, ComposedFunction(graph, generator)


def _dag(generator: np.random.Generator) -> Made:
    graph = random_dag(int(generator.integers(4, 8)), 3, int(generator.integers(1, 3)), None, generator)
    return graph, ComposedFunction(graph, generator)


def _terms(generator: np.random.Generator, kind: Kind, top: bool) -> Made:
    """Terms of one to three variables, which may share some; `top` puts a function over them."""
    count = int(generator.integers(4, 9))
    variables = tuple(f"x{i + 1}" for i in range(count))
    terms: list[frozenset[str]] = []
    while frozenset().union(*terms) != set(variables) or len(terms) < 2:
        left = [v for v in variables if not any(v in term for term in terms)]
        size = int(generator.choice([1, 2, 2, 3]))
        pool = left if kind == "product" or (left and generator.random() < 0.6) else list(variables)
        term = frozenset(generator.choice(pool, min(size, len(pool)), replace=False).tolist())
        if not any(term <= other or other <= term for other in terms):
            terms.append(term)
    inner = [Node(f"t{i}", tuple(sorted(term))) for i, term in enumerate(terms) if len(term) > 1]
    reads = (*(node.name for node in inner), *(min(term) for term in terms if len(term) == 1))
    nodes = (*inner, Node("s" if top else "y", reads, kind))
    graph = CompositionalGraph(variables, (*nodes, Node("y", ("s",))) if top else nodes)
    drawn = ComposedFunction(replace_top(graph), generator) if top else ComposedFunction(graph, generator)
    if not top:
        return graph, drawn
    bend = generator.choice(["exp", "tanh", "square"])
    above = {"exp": np.exp, "tanh": lambda s: np.tanh(1.5 * s), "square": lambda s: (s + 2.5) ** 2}[str(bend)]
    return graph, lambda points: above(drawn(points))


def replace_top(graph: CompositionalGraph) -> CompositionalGraph:
    """Without the function of one input at the top."""
    return CompositionalGraph(graph.variables, graph.nodes[:-1])


def _steps(generator: np.random.Generator) -> Made:
    """A sum of terms that are constant on boxes: each a table over one or two variables cut at two places."""
    count = int(generator.integers(3, 7))
    variables = tuple(f"x{i + 1}" for i in range(count))
    order = generator.permutation(count)
    terms = [tuple(sorted(order[i : i + 2].tolist())) for i in range(0, count, 2)]
    cuts = [generator.uniform(-0.6, 0.6, (len(term), 2)) for term in terms]
    tables = [generator.standard_normal((3,) * len(term)) for term in terms]

    def function(points: Array) -> Array:
        total = np.zeros(len(points))
        for term, cut, table in zip(terms, cuts, tables, strict=True):
            cell = tuple((points[:, [v]] > np.sort(cut[k])).sum(1) for k, v in enumerate(term))
            total += table[cell]
        return total

    inner = [Node(f"t{i}", tuple(variables[v] for v in term)) for i, term in enumerate(terms) if len(term) > 1]
    single = [variables[term[0]] for term in terms if len(term) == 1]
    if len(inner) == 1 and not single:
        return CompositionalGraph(variables, (Node("y", inner[0].inputs),)), function
    top = Node("y", (*(node.name for node in inner), *single), "sum")
    return CompositionalGraph(variables, (*inner, top)), function


def _index(generator: np.random.Generator) -> Made:
    """A function of one or two directions: φ(w·x) + ψ(v·x)."""
    count, directions = int(generator.integers(4, 9)), int(generator.integers(1, 3))
    variables = tuple(f"x{i + 1}" for i in range(count))
    weights = generator.standard_normal((directions, count))
    weights *= 1.5 / np.linalg.norm(weights, axis=1, keepdims=True)
    shift = generator.uniform(-0.5, 0.5, directions)

    def function(points: Array) -> Array:
        along = points @ weights.T + shift
        return np.tanh(2 * along[:, 0]) + (0.0 if directions == 1 else np.sin(2 * along[:, 1]))

    inner = tuple(Node(f"h{k}", variables, "sum") for k in range(directions))
    return CompositionalGraph(variables, (*inner, Node("y", tuple(n.name for n in inner)))), function


_MAKERS: dict[str, Callable[[np.random.Generator], Made]] = {
    "tree": _tree,
    "dag": _dag,
    "sum": lambda generator: _terms(generator, "sum", top=False),
    "hidden sum": lambda generator: _terms(generator, "sum", top=True),
    "product": lambda generator: _terms(generator, "product", top=False),
    "steps": _steps,
    "index": _index,
}


def _unit(distribution: str, count: int, inputs: int, generator: np.random.Generator) -> Array:
    """Numbers between −1 and 1."""
    if distribution in ("uniform", "derived"):
        return generator.uniform(-1, 1, (count, inputs))
    if distribution == "normal":
        return np.clip(generator.standard_normal((count, inputs)) / 2.5, -1, 1)
    if distribution == "skewed":
        return 2 * generator.beta(1.2, 3.0, (count, inputs)) - 1
    if distribution == "heavy":
        return np.clip(generator.standard_t(3, (count, inputs)) / 5, -1, 1)
    common = generator.standard_normal((count, 1))
    mixed = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * generator.standard_normal((count, inputs))
    return np.clip(mixed / 2.5, -1, 1)


def _with(x: Array, other: Array, *places: int) -> Array:
    moved = x.copy()
    moved[:, places] = other[:, places]
    return moved
