"""A parsed formula as sums, products and functions of one quantity, with chains of each kind made one."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass

from theodolite.graphs.graph import Kind

CONSTANTS = {"pi": math.pi, "e": math.e}
# Names in a formula → names in numpy.
FUNCTIONS = {
    **{name: name for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "abs", "sinh", "cosh", "tanh")},
    **{name: name for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")},
    **{"ln": "log", "asin": "arcsin", "acos": "arccos", "atan": "arctan"},
    **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"},
}


@dataclass(frozen=True)
class Constant:
    value: float


@dataclass(frozen=True)
class Variable:
    name: str


@dataclass(frozen=True)
class Chain:
    """`sum`: offset + Σ number·part; `product`: offset · Π part^number. Parts are sorted and differ."""

    kind: Kind
    offset: float
    parts: tuple[tuple[Term, float], ...]


@dataclass(frozen=True)
class Applied:
    function: str
    inside: Term


Term = Constant | Variable | Chain | Applied


def normal(tree: ast.expr) -> Term:
    match tree:
        case ast.Constant(value=value):
            return Constant(float(value))  # type: ignore[arg-type]
        case ast.Name(id=name):
            return Constant(CONSTANTS[name]) if name in CONSTANTS else Variable(name)
        case ast.UnaryOp(op=op, operand=inside):
            return chain("sum", [(normal(inside), -1.0 if isinstance(op, ast.USub) else 1.0)])
        case ast.Call(func=ast.Name(id=name), args=[inside]):
            return applied(FUNCTIONS[name], normal(inside))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            return chain("sum", [(normal(left), 1.0), (normal(right), -1.0 if isinstance(op, ast.Sub) else 1.0)])
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return chain("product", [(normal(left), 1.0), (normal(right), -1.0 if isinstance(op, ast.Div) else 1.0)])
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = normal(left), normal(right)
            if isinstance(exponent, Constant):
                return chain("product", [(base, exponent.value)])
            return applied("exp", chain("product", [(exponent, 1.0), (applied("log", base), 1.0)]))
    raise AssertionError("the text was checked when it was parsed")


def applied(function: str, inside: Term) -> Term:
    if function == "sqrt":
        return chain("product", [(inside, 0.5)])
    if isinstance(inside, Constant):
        return Constant(math.nan)  # which constant does not matter to a graph
    return Applied(function, inside)


def chain(kind: Kind, parts: Iterable[tuple[Term, float]]) -> Term:
    """One chain of whatever goes on with it; equal parts are collected, constants go to the offset."""
    start = 0.0 if kind == "sum" else 1.0
    offset, waiting, found = start, list(parts), dict[Term, float]()
    while waiting:
        part, number = waiting.pop()
        match part:
            case Constant(value):
                offset = offset + number * value if kind == "sum" else offset * _power(value, number)
            case Chain(kind=other) if other == kind:
                waiting += [(inner, number * own) for inner, own in part.parts]
                offset = offset + number * part.offset if kind == "sum" else offset * _power(part.offset, number)
            case Chain(kind="product") if part.offset != 1.0:  # a constant factor of a term
                waiting.append((chain("product", part.parts), number * part.offset))
            case _:
                found[part] = found.get(part, 0.0) + number
    found = {part: number for part, number in found.items() if number != 0.0}
    if len(found) > 1:
        for part, number in found.items():
            if further := _goes_on(kind, part):
                rest = [(other, own) for other, own in found.items() if other != part]
                further = [(term, number * own) for term, own in further]
                return chain(kind, [*rest, *further, (Constant(offset), 1.0)])
    if not found:
        return Constant(offset)
    if len(found) == 1 and offset == start and set(found.values()) == {1.0}:
        return next(iter(found))
    return Chain(kind, offset, tuple(sorted(found.items(), key=repr)))


def _goes_on(kind: Kind, part: Term) -> list[tuple[Term, float]]:
    """A logarithm of a product among the terms of a sum is a sum; exp of a sum and abs of a product among factors are
    products."""
    if not isinstance(part, Applied) or not isinstance(part.inside, Chain) or len(part.inside.parts) < 2:
        return []
    if (kind, part.function, part.inside.kind) not in {
        ("sum", "log", "product"),
        ("product", "exp", "sum"),
        ("product", "abs", "product"),
    }:
        return []
    return [(applied(part.function, term), number) for term, number in part.inside.parts]


def _power(value: float, exponent: float) -> float:
    """NaN where it is not real, infinite where it is too large: a graph does not ask which constant it is."""
    try:
        found = value**exponent
    except ZeroDivisionError:
        return math.nan
    return found if isinstance(found, float) else math.nan
