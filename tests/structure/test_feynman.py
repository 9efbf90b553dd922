"""Formulas of physics: their modules by sympy against hand-worked ones and the graph as it is written."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import sympy
from benchmarks.known_structures.feynman import FORMULAS, FeynmanFormula
from benchmarks.known_structures.formula_structure import FormulaStructure, modular_tree, modules_of, symbolic

from tests.each import each
from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.formula import Formula

FEYNMAN = {formula.id: formula for formula in FORMULAS}
DOZEN = ["I.6.20b", "I.8.14", "I.10.7", "I.11.19", "I.12.11", "I.13.4", "I.24.6", "I.27.6", "I.50.26"]
DOZEN += ["I.44.4", "II.35.21", "II.36.38", "III.17.37"]


def family(*groups: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(group.split()) for group in groups)


def structure(formula: FeynmanFormula) -> FormulaStructure:
    return FormulaStructure(formula.text, formula.ranges)


def test_there_are_at_least_sixty_different_formulas_of_three_and_more_variables():
    assert len(FORMULAS) >= 60
    assert len(FEYNMAN) == len(FORMULAS)
    assert all(len(formula.variables) >= 3 for formula in FORMULAS)


@each("formula", FORMULAS)
def test_a_formula_names_its_variables_and_is_finite_and_varies_on_its_ranges(formula):
    assert set(Formula(formula.text).variables) == set(formula.variables)
    low, high = np.array(list(formula.ranges.values())).T
    points = low + (high - low) * np.random.default_rng(0).random((500, len(low)))
    values = Formula(formula.text, formula.variables).function(points)
    assert np.isfinite(values).all()
    assert values.std() > 1e-4 * np.abs(values).mean()


@pytest.mark.parametrize(
    ("id", "modules"),
    [
        # (x2 − x1)² + (y2 − y1)² under a root: two differences
        ("I.8.14", family("x1 x2", "y1 y2")),
        # m (v² + u² + w²): a sum of three, hence all its pairs
        ("I.13.4", family("v u w", "v u", "v w", "u w")),
        # (m1 r1 + m2 r2) / (m1 + m2) = r1 + (r2 − r1) / (1 + m1/m2): the masses enter by their ratio
        ("I.18.4", family("m1 m2")),
        # q (E + B v sin θ): the force without the charge, and a product of three in it
        ("I.12.11", family("Ef B v theta", "B v theta", "B v", "B theta", "v theta")),
        # (u + v) / (1 + u v / c²): nothing
        ("I.16.6", family()),
    ],
)
def test_modules_are_those_worked_out_by_hand(id, modules):
    assert structure(FEYNMAN[id]).modules == modules


@each("id", DOZEN)
def test_every_module_of_the_written_graph_is_one_by_the_derivatives(id):
    written = modules_of(Formula(FEYNMAN[id].text, FEYNMAN[id].variables).graph)
    found = structure(FEYNMAN[id])
    assert written <= found.modules
    assert written, "there must be something to compare"
    assert modules_of(found.graph) == found.modules


@pytest.mark.parametrize("id", ["I.8.14", "I.13.4", "I.18.4", "I.12.11", "III.17.37"])
def test_what_vanishes_at_five_points_is_simplified_to_zero(id):
    formula = FEYNMAN[id]
    found = structure(formula)
    symbols, expression = symbolic(formula.text, formula.variables)
    slope = {name: sympy.diff(expression, symbol) for name, symbol in symbols.items()}
    untied = 0
    for i, j in combinations(formula.variables, 2):
        for k in set(formula.variables) - {i, j}:
            turn = sympy.simplify(sympy.diff(slope[i] / slope[j], symbols[k]))
            assert (turn != 0) == ((i, j, k) in found.entangled)
            untied += turn == 0
    assert untied


def test_a_variable_that_cancels_is_not_relevant_and_forms_no_module():
    found = FormulaStructure("a*b*c*d/d", dict.fromkeys("abcd", (1.0, 2.0)))
    assert found.relevant == ("a", "b", "c")
    assert found.modules == family("a b", "a c", "b c")


def test_modules_of_a_graph_are_those_of_a_random_function_of_it():
    """The derivatives of a formula of that DAG, with generic constituents, say which sets enter through one number."""
    text = "(x1*exp(x2) + x2**2*x1**3)*x3 + sin(x3*x4 + x3**2)*(x5 + x6 + x7**2)**2"
    found = FormulaStructure(text, {f"x{i}": (0.5, 1.5) for i in range(1, 8)})
    graph = CompositionalGraph(
        found.variables,
        (
            Node("a", ("x1", "x2")),
            Node("s", ("x5", "x6", "x7"), "sum"),
            Node("l", ("a", "x3")),
            Node("r", ("x3", "x4", "s")),
            Node("y", ("l", "r")),
        ),
    )
    assert modules_of(graph) == found.modules == family("x1 x2", "x5 x6 x7", "x5 x6", "x5 x7", "x6 x7")


def test_a_sum_with_a_shared_variable_has_the_union_of_what_shares_it_as_a_module():
    nodes = (Node("a", ("x1", "x2")), Node("b", ("x2", "x3")), Node("y", ("a", "b", "x4", "x5"), "sum"))
    graph = CompositionalGraph(("x1", "x2", "x3", "x4", "x5"), nodes)
    assert modules_of(graph) == family("x1 x2 x3", "x1 x2 x3 x4", "x1 x2 x3 x5", "x4 x5")


def test_a_tree_of_modules_states_them_again():
    modules = family("a b c", "a b", "a c", "b c", "d e", "a b c d e")
    tree = modular_tree("abcdef", modules)
    assert modules_of(tree) == modules
    assert [node.kind for node in tree.nodes if len(node.inputs) == 3] == ["sum"]


def test_a_formula_without_a_range_for_a_variable_is_refused_by_its_name():
    with pytest.raises(BadInput, match="'b', which has no range"):
        FormulaStructure("a*b", {"a": (1.0, 2.0)})
