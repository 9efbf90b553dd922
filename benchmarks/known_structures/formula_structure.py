"""The structure of a formula from its derivatives, which sympy takes: a truth that no search had a part in.

A set G of variables is a *module* of f where f = h(g(x_G), x_rest), which is so exactly where no variable outside G
entangles two inside: ∂_k (∂_i f / ∂_j f) = 0 for all i, j ∈ G and k ∉ G (Leontief 1947, Gorman 1968). The modules of a
function form a tree (those that overlap no other) and, at some of its nodes, every union of inputs: a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.graphs.equivalence import canonical
from theodolite.graphs.formula import Formula
from theodolite.graphs.graph import CompositionalGraph, Node, free_name
from theodolite.graphs.ordering import readers_of

Set = frozenset[str]
Family = frozenset[Set]
MOST = 16  # variables, since all sets of them are looked at
DIGITS = 60
NEGLIGIBLE = 10.0**-40  # of an elasticity, where every nonzero one that a formula has is far larger
POINTS = 5


@dataclass(frozen=True)
class FormulaStructure:
    """What a formula is a function of, and through which groups.

    Derivatives are symbolic and are evaluated at random rational points of the ranges with 60 digits. An elasticity
    that is not zero at one point proves that two variables are entangled; one that is zero at all of five, to 40
    digits, vanishes identically unless these points are roots of it, which has probability zero.
    """

    text: str
    ranges: Mapping[str, tuple[float, float]]
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.ranges) > MOST:
            raise BadInput(f"a formula of {len(self.ranges)} variables has too many sets of them: give at most {MOST}")
        missing = [name for name in Formula(self.text).variables if name not in self.ranges]
        if missing:
            raise BadInput(f"the formula '{self.text}' names '{missing[0]}', which has no range: give it one")

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(self.ranges)

    @cached_property
    def relevant(self) -> tuple[str, ...]:
        """The variables that the formula depends on, which may be fewer than it names."""
        return tuple(name for name in self.variables if any(abs(p.first[name]) > NEGLIGIBLE for p in self._points))

    @cached_property
    def entangled(self) -> frozenset[tuple[str, str, str]]:
        """(i, j, k): x_k changes the ratio ∂_i f : ∂_j f; i before j in the order of the variables."""
        return frozenset(
            (i, j, k)
            for i, j in combinations(self.relevant, 2)
            for k in self.relevant
            if k not in (i, j) and any(point.elasticity(i, j, k) > NEGLIGIBLE for point in self._points)
        )

    @cached_property
    def modules(self) -> Family:
        """Every module of at least two variables and fewer than all."""
        outside: dict[frozenset[str], set[str]] = {}
        for i, j, k in self.entangled:
            outside.setdefault(frozenset((i, j)), set()).add(k)
        return frozenset(
            group
            for group in map(frozenset, _subsets(self.relevant))
            if all(group >= outside.get(frozenset(pair), set()) for pair in combinations(group, 2))
        )

    @cached_property
    def graph(self) -> CompositionalGraph:
        """That of the formula as it is written, where it states every module; it says what is shared too. Otherwise,
        where the modules need algebra that the text does not show, the tree of the modules."""
        written = Formula(self.text, self.variables).graph
        return written if modules_of(written) == self.modules else modular_tree(self.variables, self.modules)

    @cached_property
    def _points(self) -> list[_Point]:
        import sympy

        order, expression = symbolic(self.text, self.variables)
        first = {name: sympy.diff(expression, symbol) for name, symbol in order.items()}
        second = {
            (a, b): sympy.diff(first[a], order[b]) for a, b in combinations(self.variables, 2) if not first[a].is_zero
        }
        symbols = list(order.values())
        rows = [*first.values(), *second.values()]
        # common subexpressions once: a second derivative repeats much of the first
        function = sympy.lambdify(symbols, rows, "mpmath", cse=True)
        generator = np.random.default_rng(self.seed)
        return [self._point(function, list(first), list(second), generator) for _ in range(POINTS)]

    def _point(self, function: Any, first: list[str], second: list[Any], generator: np.random.Generator) -> _Point:
        import mpmath

        with mpmath.workdps(DIGITS):
            at = {
                name: mpmath.mpf(low) + (mpmath.mpf(high) - low) * int(generator.integers(1, 10**6)) / 10**6
                for name, (low, high) in self.ranges.items()
            }
            values = [mpmath.mpf(value) for value in function(*at.values())]
            mixed = dict(zip(second, values[len(first) :], strict=True))
            mixed |= {(b, a): value for (a, b), value in mixed.items()}
            return _Point(at, dict(zip(first, values[: len(first)], strict=True)), mixed)


@dataclass(frozen=True)
class _Point:
    at: Mapping[str, Any]
    first: Mapping[str, Any]
    second: Mapping[tuple[str, str], Any]

    def elasticity(self, i: str, j: str, k: str) -> Any:
        """|x_k ∂_k log(∂_i f / ∂_j f)|; the numerator alone where a derivative vanishes."""
        import mpmath

        with mpmath.workdps(DIGITS):
            f_i, f_j = self.first[i], self.first[j]
            turned = abs(self.second[i, k] * f_j - f_i * self.second[j, k]) * abs(self.at[k])
            return turned / (abs(f_i * f_j) or 1)


def symbolic(text: str, variables: Iterable[str]) -> tuple[dict[str, Any], Any]:
    """The variables as sympy's positive symbols, and the expression."""
    import sympy

    symbols = {name: sympy.Symbol(name, positive=True) for name in variables}
    aliases = {f"arc{name}": getattr(sympy, f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    known: dict[str, Any] = {**aliases, "pi": sympy.pi, "e": sympy.E, "abs": sympy.Abs, **symbols}
    return symbols, sympy.sympify(text, locals=known)  # type: ignore[call-overload]


def modules_of(graph: CompositionalGraph) -> Family:
    """The modules that a graph states: sets that enter through one node and nothing else, and at a sum or product of
    three and more inputs every union of inputs that share nothing with the others. Those of at least two variables and
    fewer than all; what the graph could be written shorter without is left out first."""
    form = canonical(graph)
    readers = readers_of(form.node)
    found: set[Set] = set()
    for node in form.nodes:
        chosen = [node.inputs] if node.kind == "general" else [*_subsets(node.inputs), node.inputs]
        found.update(
            form.reach[node.name] if len(c) == len(node.inputs) else _below(form, c)
            for c in chosen
            if _enters_alone(form, readers, node, c)
        )
    return frozenset(group for group in found if 1 < len(group) < len(form.used))


def _below(graph: CompositionalGraph, names: Iterable[str]) -> Set:
    return frozenset().union(*(graph.reach[name] for name in names))


def _enters_alone(graph: CompositionalGraph, readers: Mapping[str, Any], node: Node, chosen: Iterable[str]) -> bool:
    """Whether what lies below the chosen inputs of a node is read there and by the chosen inputs of the node alone."""
    inside, waiting = set(), list(chosen)
    while waiting:
        name = waiting.pop()
        if name not in inside:
            inside.add(name)
            waiting += graph.node[name].inputs if name in graph.node else ()
    entered = set(chosen)
    return all(
        reader in inside or (reader == node.name and name in entered) for name in inside for reader in readers[name]
    )


def modular_tree(variables: Iterable[str], modules: Family) -> CompositionalGraph:
    """The tree of the modules that overlap no other; a node whose inputs form modules in any union is a sum."""
    variables = tuple(variables)
    whole = frozenset(variables)
    strong = [group for group in modules if not any(_overlap(group, other) for other in modules)]
    ordered = sorted([*strong, whole], key=lambda group: (len(group), sorted(group)))
    nodes: list[Node] = []
    name: dict[Set, str] = {}
    for place, group in enumerate(ordered):
        below = [inner for inner in ordered[:place] if inner < group]
        inputs = [inner for inner in below if not any(inner < between for between in below)]
        singles = [variable for variable in variables if variable in group and not any(variable in i for i in inputs)]
        label = free_name("y" if group == whole else f"h{place + 1}", variables)
        joined = any(other < group and not any(other <= inner for inner in inputs) for other in modules)
        name[group] = label
        nodes.append(Node(label, (*singles, *(name[inner] for inner in inputs)), "sum" if joined else "general"))
    return CompositionalGraph(variables, tuple(nodes))


def _overlap(a: Set, b: Set) -> bool:
    return bool(a & b) and not a <= b and not b <= a


def _subsets(items: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Of at least two items and fewer than all."""
    items = tuple(items)
    for size in range(2, len(items)):
        yield from combinations(items, size)
