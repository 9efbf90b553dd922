"""The compositional graph of a formula, and the formula as a function of many points at once.

Chains of + and − become one sum, chains of × and ÷ one product. Functions of one quantity make no node: they belong to
whatever reads it. So `sin(x1*x2) + x3` is a sum that reads a product and x3. Constant factors, offsets and powers are
such functions too, which is why `x1*x2` and `3/(x1*x2)**2` are one node, used twice. Under `sqrt`, powers and `log`
chains go on where the algebra allows: `log(x1*x2) + x3` is a sum of three, `exp(x1 + x2)*x3` a product of three.
At the output nothing reads: with two inputs its node becomes general there, with more it gets a univariate node on top.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from theodolite.errors import BadInput
from theodolite.graphs.algebra import CONSTANTS, FUNCTIONS, Applied, Chain, Constant, Term, Variable, normal
from theodolite.graphs.graph import CompositionalGraph, Node, free_name
from theodolite.registry import unknown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def formula_graph(text: str) -> CompositionalGraph:
    """The graph of `sin(x1*x2) + x3**2/x4` and the like."""
    return Formula(text).graph


@dataclass(frozen=True)
class Formula:
    """Variables are what the text names, sorted (x2 before x10); `order` gives them another order, or adds some."""

    text: str
    order: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))
            taken = sorted({*CONSTANTS, *FUNCTIONS}.intersection(self.order))
            if taken:
                raise BadInput(f"no variable of a formula can be called '{taken[0]}', which means something: rename it")
            missing = sorted(_named(self._tree) - set(self.order))
            if missing:
                raise BadInput(f"the formula '{self.text}' names '{missing[0]}', which is not among the variables")
        _guarded(self.text, lambda: self.graph)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.order or tuple(sorted(_named(self._tree), key=_by_number))

    @cached_property
    def graph(self) -> CompositionalGraph:
        return _Reading(self.variables).graph(normal(self._tree), self.text)

    def function(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (point,) at points (point, variable); NaN or infinite where the formula is not defined."""
        import numpy as np

        points = np.asarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.variables):
            raise BadInput(
                f"points of shape {points.shape} do not fit the formula '{self.text}': pass (points, "
                f"{len(self.variables)}), a column for each of {', '.join(self.variables)}"
            )
        columns = dict(zip(self.variables, points.T, strict=True))
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(_value(self._tree, columns), len(points)), dtype=np.float64)

    @cached_property
    def _tree(self) -> ast.expr:
        return _guarded(self.text, lambda: _parsed(self.text))


def _guarded(text: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (RecursionError, MemoryError):
        raise BadInput(f"the formula '{text[:40]}…' is nested too deeply: write it shorter") from None
    except OverflowError:
        raise BadInput(f"the formula '{text}' has a constant too large to compute with: write it smaller") from None


def _parsed(text: str) -> ast.expr:
    """Python's own grammar; what the formula may hold is checked here once, so that everything after may rely on it."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise BadInput(f"'{text}' is no formula: write one like sin(x1*x2) + x3**2/x4") from None
    for part in ast.walk(tree):
        _check(part, text)
    for part in ast.walk(tree):  # a function's name is no variable
        if isinstance(part, ast.Name) and part.id in FUNCTIONS and not _is_called(part, tree):
            raise BadInput(f"the function '{part.id}' has no argument in '{text}': write {part.id}(x1)")
    return tree


def _check(part: ast.AST, text: str) -> None:
    match part:
        case ast.BinOp(op=ast.BitXor()):
            raise BadInput(f"'^' is no power in '{text}': write **")
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()) | ast.Name():
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()) | ast.operator() | ast.unaryop() | ast.expr_context():
            return
        case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(float(value)):
                raise OverflowError
            return
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                raise BadInput(unknown("function of a formula", name, FUNCTIONS))
            if len(args) != 1 or isinstance(args[0], ast.Starred):
                raise BadInput(f"'{name}' takes one argument in a formula, not {len(args)}: '{text}'")
            return
    piece = ast.unparse(part) if isinstance(part, ast.expr) else type(part).__name__
    raise BadInput(
        f"'{piece}' cannot be part of a formula: use + - * / **, numbers, variables and {', '.join(FUNCTIONS)}"
    )


def _is_called(name: ast.Name, tree: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) and part.func is name for part in ast.walk(tree))


def _named(tree: ast.expr) -> set[str]:
    names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    return names - set(FUNCTIONS) - set(CONSTANTS)


def _by_number(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"(\d+)", name) if piece]


def _value(tree: ast.expr, columns: dict[str, Any]) -> Any:
    import numpy as np

    match tree:
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return columns[name] if name in columns else np.float64(CONSTANTS[name])
        case ast.UnaryOp(op=op, operand=inside):
            value = _value(inside, columns)
            return -value if isinstance(op, ast.USub) else value
        case ast.Call(func=ast.Name(id=name), args=[inside]):
            return getattr(np, FUNCTIONS[name])(_value(inside, columns))
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATIONS[type(op)](_value(left, columns), _value(right, columns))
    raise AssertionError("the text was checked when it was parsed")


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


class _Reading:
    """Nodes of one formula, each quantity once."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.variables = tuple(variables)
        self.nodes: dict[Any, Node] = {}

    def graph(self, term: Term, text: str) -> CompositionalGraph:
        top = self.quantity(term)
        if top is None:
            raise BadInput(f"the formula '{text}' depends on no variable: name at least one")
        *below, last = self.nodes.values() or (None,)
        name = free_name("y", (*self.variables, *(node.name for node in below if node)))
        if last is None or top in self.variables:
            return CompositionalGraph(self.variables, (Node(name, (top,)),))
        nodes = [node for node in below if node]
        if self.is_itself(term):
            nodes.append(Node(name, last.inputs, last.kind))
        elif len(last.inputs) == 2:
            nodes.append(Node(name, last.inputs))
        else:
            nodes += [last, Node(name, (last.name,))]
        return CompositionalGraph(self.variables, tuple(nodes))

    def quantity(self, term: Term) -> str | None:
        """The variable or node that the term is a function of one input of; None for a constant."""
        match term:
            case Constant():
                return None
            case Variable(name):
                return name
            case Applied(inside=inside):
                return self.quantity(inside)
        inputs = self.inputs(term)
        if len(inputs) < 2:
            return inputs[0] if inputs else None
        # Up to a factor of a sum, or a power of a product, which are functions of the chain.
        leading = term.parts[0][1]
        key = (term.kind, tuple((part, number / leading) for part, number in term.parts))
        if key not in self.nodes:
            name = free_name(f"h{len(self.nodes) + 1}", self.variables)
            self.nodes[key] = Node(name, inputs, term.kind)
        return self.nodes[key].name

    def inputs(self, chain: Chain) -> tuple[str, ...]:
        found = [self.quantity(part) for part, _ in chain.parts]
        return tuple(sorted({name for name in found if name is not None}, key=self.place))

    def place(self, name: str) -> tuple[int, int]:
        """Variables in their order, then nodes in theirs."""
        if name in self.variables:
            return 0, self.variables.index(name)
        return 1, [node.name for node in self.nodes.values()].index(name)

    def is_itself(self, term: Term) -> bool:
        """Whether the term is its node's sum or product, and not a further function of it; factors are part of both."""
        if not isinstance(term, Chain):
            return False
        if len(self.inputs(term)) > 1:
            return True
        return term.kind == "sum" and len(term.parts) == 1 and term.offset == 0.0 and self.is_itself(term.parts[0][0])
