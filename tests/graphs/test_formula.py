"""Formulas: values against sympy, structure against derivatives that sympy takes, and texts that are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

from tests.each import each
from theodolite.errors import BadInput
from theodolite.graphs import Node
from theodolite.graphs.equivalence import equivalent
from theodolite.graphs.formula import Formula, formula_graph

TEXTS = [
    "sin(x1*x2) + x3**2/x4",
    "x1",
    "-x1**2 + 3",
    "exp(-(x1 - x2)**2/2)/sqrt(2*pi)",
    "q*(E + v*B*sin(th))",
    "G*m1*m2/((x2 - x1)**2 + (y2 - y1)**2 + (z2 - z1)**2)",
    "ln(a)*b + asin(c/2)*tanh(d)",
    "a**b + 2**c",
    "arctan(a + b) + arccos(c/3) + cosh(d)/(1 + sinh(d)**2)",
    "x1*x2 + x2*x3 + x1*x3 + e*x4",
    "abs(x1*x2)*x3 + log(x1*x4)",
    "sqrt(x1**2 + x2**2 - 2*x1*x2*cos(x3 - x4))",
    "1/(1/a + b/c)",
]


def points(formula: Formula, count: int = 20) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.3, 0.9, size=(count, len(formula.variables)))


def symbolic(text: str) -> tuple[list[sympy.Symbol], sympy.Expr]:
    names = {name: sympy.Symbol(name, positive=True) for name in Formula(text).variables}
    aliases = {f"arc{f}": getattr(sympy, f"a{f}") for f in ("sin", "cos", "tan")}
    known = {**aliases, **names, "abs": sympy.Abs, "e": sympy.E}
    return list(names.values()), sympy.sympify(text, locals=known)  # pyright: ignore[reportCallIssue]


@each("text", TEXTS)
def test_values_are_those_of_sympy(text):
    formula = Formula(text)
    symbols, expression = symbolic(text)
    at = points(formula)
    truth = [float(expression.subs(dict(zip(symbols, row, strict=True)))) for row in at[:5]]
    assert formula.function(at)[:5] == pytest.approx(truth, rel=1e-12)
    assert formula.function(at).shape == (20,)


@each("text", TEXTS)
def test_what_a_node_reads_enters_through_it_alone(text):
    """For variables u, v below a node and z not below it, the ratio of the derivatives by u and v depends on z only if
    another path leads from u or v to the output; sympy takes the derivatives."""
    formula = Formula(text)
    graph, (symbols, expression) = formula.graph, symbolic(text)
    of = {symbol.name: symbol for symbol in symbols}
    checked = 0
    for node in graph.nodes[:-1]:
        inside = graph.reach[node.name]
        private = [v for v in sorted(inside) if _only_through(graph, v, node.name)]
        for u, v in itertools.combinations(private, 2):
            ratio = sympy.diff(expression, of[u]) / sympy.diff(expression, of[v])
            for z in sorted(set(graph.used) - inside):
                assert _is_zero(sympy.diff(ratio, of[z]), symbols), (node, u, v, z)
                checked += 1
    assert checked or len(graph.nodes) == 1 or not any(private_pair(graph))


def private_pair(graph):
    for node in graph.nodes[:-1]:
        private = [v for v in graph.reach[node.name] if _only_through(graph, v, node.name)]
        outside = set(graph.used) - graph.reach[node.name]
        yield len(private) > 1 and bool(outside)


def _only_through(graph, variable: str, name: str) -> bool:
    if variable == name:
        return True
    readers = [node.name for node in graph.nodes if variable in node.inputs]
    return bool(readers) and all(_only_through(graph, reader, name) for reader in readers)


def _is_zero(expression: sympy.Expr, symbols: list[sympy.Symbol]) -> bool:
    random = np.random.default_rng(1)
    values = [
        float(expression.subs(dict(zip(symbols, random.uniform(0.3, 0.9, len(symbols)), strict=True))))
        for _ in range(2)
    ]
    return bool(np.abs(values).max() < 1e-8)


def test_terms_of_a_sum_do_not_interact_and_factors_add_up_in_the_logarithm():
    for text in TEXTS:
        graph, (symbols, expression) = Formula(text).graph, symbolic(text)
        of = {symbol.name: symbol for symbol in symbols}
        if graph.output.kind == "general":
            continue
        shown = expression if graph.output.kind == "sum" else sympy.log(sympy.Abs(expression))
        parts = [graph.reach[name] for name in graph.output.inputs]
        for one, other in itertools.combinations(parts, 2):
            for u, v in itertools.product(one, other):
                if sum(u in part for part in parts) == sum(v in part for part in parts) == 1:
                    assert _is_zero(sympy.diff(shown, of[u], of[v]), symbols), (text, u, v)


@each(
    ("text", "nodes"),
    [
        ("sin(x1*x2) + x3**2/x4", [("x1 x2", "product"), ("x3 x4", "product"), ("h1 h2", "sum")]),
        ("a - (b - c)", [("a b c", "sum")]),
        ("a/(b*c)", [("a b c", "product")]),
        ("(a + b)*(a + b + 1)*c", [("a b", "sum"), ("c h1", "product")]),
        ("2*a*b + 3/(a*b)**2 + sin(c)", [("a b", "product"), ("c h1", "sum")]),
        ("a**2*b**2 + c*exp(a*b)", [("a b", "product"), ("c h1", "product"), ("h1 h2", "sum")]),
        ("exp(a + b)*c", [("a b c", "product")]),
        ("log(a*b) + c", [("a b c", "sum")]),
        ("sqrt(a*b)*c", [("a b c", "product")]),
        ("sin(a + b) + c", [("a b", "sum"), ("c h1", "sum")]),
        ("sin(a*b)", [("a b", "general")]),
        ("sin(a + b + c)", [("a b c", "sum"), ("h1", "general")]),
        ("-3*(a*b*c)", [("a b c", "product")]),
        ("a*b + 3", [("a b", "general")]),
        ("a**b", [("a b", "general")]),
        ("x1 + sin(x1)", [("x1", "general")]),
        ("x1 - x1 + x2", [("x2", "general")]),
        ("h1*y + z", [("h1 y", "product"), ("z h1_", "sum")]),
    ],
)
def test_graphs_by_hand(text, nodes):
    assert [(" ".join(node.inputs), node.kind) for node in formula_graph(text).nodes] == nodes


def test_the_order_of_writing_does_not_matter():
    pairs = [("a*b + c/d", "c*d**-1 + b*a"), ("(a - b)*c + (b - a)**2", "(a - b)**2 - c*(b - a)"), ("a/b", "1/(b/a)")]
    for one, other in pairs:
        assert equivalent(formula_graph(one), formula_graph(other), kinds=True)


def test_variables_are_sorted_by_number_and_may_be_given():
    assert Formula("x10 + x2*x1").variables == ("x1", "x2", "x10")
    formula = Formula("b - a", order=("b", "idle", "a"))
    assert formula.graph.variables == ("b", "idle", "a")
    assert formula.graph.used == ("b", "a")
    assert formula.graph.output == Node("y", ("b", "a"), "sum")
    assert formula.function(np.array([[3.0, 9.0, 1.0]])) == [2.0]


def test_values_where_the_formula_is_not_defined_are_not_finite_and_warn_nobody():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(Formula("sqrt(x1)").function(np.array([[-1.0]]))).all()
        assert np.isinf(Formula("1/x1").function(np.array([[0.0]]))).all()


@each(
    ("text", "message"),
    [
        ("", "is no formula"),
        ("x1 +", "is no formula"),
        ("x\x00", "is no formula"),
        ("3", "depends on no variable"),
        ("x1 - x1", "depends on no variable"),
        ("x^2", r"write \*\*"),
        ("sinn(x)", "did you mean 'sin'"),
        ("__import__('os')", "'__import__'"),
        ("sin + 1", "'sin' has no argument"),
        ("sin(a, b)", "takes one argument in a formula, not 2"),
        ("sin(*a)", "takes one argument"),
        ("x.real", "'x.real' cannot be part"),
        ("x[0]", "cannot be part"),
        ("a if b else c", "cannot be part"),
        ("(lambda: x)()", "cannot be part"),
        ("x // 2", "cannot be part"),
        ("True*x", "'True' cannot be part"),
        ("1j*x", "'1j' cannot be part"),
        ("9**9**9*x", "too large"),
        ("1e400*x", "too large"),
        ("x" + " + x" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_formula_is_refused_in_a_sentence(text, message):
    with pytest.raises(BadInput, match=message) as raised:
        Formula(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_variables_and_points_that_do_not_fit_are_refused():
    with pytest.raises(BadInput, match="names 'b', which is not among"):
        Formula("a + b", order=("a", "c"))
    with pytest.raises(BadInput, match="can be called 'e'"):
        Formula("a + e", order=("a", "e"))
    with pytest.raises(BadInput, match=r"points of shape \(3,\) do not fit"):
        Formula("a + b").function(np.zeros(3))
    with pytest.raises(BadInput, match=r"\(points, 2\), a column for each of a, b"):
        Formula("a + b").function(np.zeros((4, 3)))
