"""Confidence in every edge of whatever graph a search may make, also where constituents share variables."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import KINDS
from theodolite.structure.search.moves import joins, other_kinds, splits, without
from theodolite.structure.search.summands import find_summands, summands_confidence, summands_graph

NAMES = ("a", "b", "c", "d", "e")
PAIRS = tuple(combinations(NAMES, 2))
certain = st.floats(0, 1)


@st.composite
def graphs(draw: st.DrawFn) -> CompositionalGraph:
    """Any graph: nodes read what they like of what came before, functions of one input and inputs used twice too."""
    nodes: list[Node] = []
    for number in range(draw(st.integers(1, 4))):
        before = [*NAMES, *(node.name for node in nodes)]
        inputs = draw(st.lists(st.sampled_from(before), min_size=1, max_size=4, unique=True))
        nodes.append(Node(f"h{number}", tuple(inputs), draw(st.sampled_from(KINDS))))
    fed = {name for node in nodes for name in node.inputs}
    ends = tuple(node.name for node in nodes if node.name not in fed)
    return CompositionalGraph(NAMES, (*nodes, Node("y", ends, draw(st.sampled_from(KINDS)))))


def check(graph: CompositionalGraph, single: dict[str, float], pairs: dict[tuple[str, str], float]) -> None:
    found = summands_confidence(graph, single, pairs)
    assert set(found) == set(graph.edges)
    assert set(found.values()) <= {*single.values(), *pairs.values()}


confidences = (
    st.fixed_dictionaries(dict.fromkeys(NAMES, certain)),
    st.fixed_dictionaries(dict.fromkeys(PAIRS, certain)),
)


@settings(max_examples=60, deadline=None)
@given(graphs(), *confidences)
def test_every_edge_of_any_graph_and_of_its_neighbours_has_a_confidence(
    graph: CompositionalGraph, single: dict[str, float], pairs: dict[tuple[str, str], float]
) -> None:
    near = [*joins(graph), *other_kinds(graph), *splits(graph, np.zeros((5, 5, 5)))[:2]]
    for made in (graph, *near, without(graph, ("a",))):
        if made is not None:
            check(made, single, pairs)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(list(combinations(range(5), 2)))), st.sampled_from(("sum", "product")), *confidences)
def test_so_has_every_edge_of_terms_that_overlap(
    interacting: set[tuple[int, int]], kind: str, single: dict[str, float], pairs: dict[tuple[str, str], float]
) -> None:
    terms = find_summands(range(5), interacting)
    if terms is not None:
        check(summands_graph(NAMES, terms, kind), single, pairs)  # type: ignore[arg-type]


def test_what_two_overlapping_terms_share_is_no_pair() -> None:
    """g(a, b) and h(b, c) in one function: the surest of ab, ac and bc."""
    graph = CompositionalGraph(("a", "b", "c"), (Node("g", ("a", "b")), Node("h", ("b", "c")), Node("y", ("g", "h"))))
    found = summands_confidence(graph, dict.fromkeys("abc", 1.0), {("a", "b"): 0.2, ("a", "c"): 0.3, ("b", "c"): 0.4})
    assert found["g", "y"] == found["h", "y"] == 0.4
