"""Pictures of graphs: everything is there once, nothing covers a label, and names cannot break the picture."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.optimize import minimize

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.families import binary_tree, convolutional_tree, kolmogorov_arnold, random_dag, random_tree
from theodolite.graphs.formula import formula_graph
from theodolite.report.svg.graph import draw_graph, sketch_graph, spread

SVG = "{http://www.w3.org/2000/svg}"
LONG = [f"a rather <long> name & number of a column, {i}" for i in range(32)]


def graphs() -> dict[str, CompositionalGraph]:
    random = np.random.default_rng(2)
    return {
        "binary tree of 32": binary_tree(32),
        "random tree of 32 long names": random_tree(LONG, 3, random),
        "random DAG of 32": random_dag(32, 3, 10, None, random),
        "windows": convolutional_tree(16, 3),
        "Kolmogorov and Arnold": kolmogorov_arnold(3),
        "one variable": binary_tree(1),
        "dense": CompositionalGraph.dense(LONG),
        "unused variables": CompositionalGraph(("a", "b", "c", "d"), (Node("y", ("b", "d"), "product"),)),
    }


GRAPHS = graphs()


@pytest.fixture(params=list(GRAPHS))
def case(request) -> tuple[CompositionalGraph, ElementTree.Element]:
    graph = GRAPHS[request.param]
    return graph, ElementTree.fromstring(draw_graph(graph))


def titles(root: ElementTree.Element, kind: str) -> list[str]:
    found = [e for e in root.iter() if kind in (e.get("class") or "").split()]
    return [e.findtext(f"{SVG}title") or "" for e in found]


def test_every_variable_node_and_edge_is_drawn_once(case):
    graph, root = case
    assert sorted(titles(root, "variable")) == sorted(graph.used)
    assert len(titles(root, "idle")) == len(graph.variables) - len(graph.used)
    assert sorted(title.split(": ")[0] for title in titles(root, "node")) == sorted(node.name for node in graph.nodes)
    assert sorted(titles(root, "edge")) == sorted(f"{source} → {name}" for source, name in graph.edges)
    assert len(titles(root, "top")) == 1


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Of all texts but the signs inside nodes, with a narrow guess of letters, and of all circles."""
    found = []
    for text in root.iter(f"{SVG}text"):
        if text.get("class") == "sign":
            continue
        x, y, width = float(text.get("x")), float(text.get("y")), 6.5 * len(text.text)
        left = x - width * {"end": 1.0, "middle": 0.5}[text.get("text-anchor")]
        found.append((left, y - 9, left + width, y + 2))
    for circle in root.iter(f"{SVG}circle"):
        x, y, r = (float(circle.get(key)) for key in ("cx", "cy", "r"))
        found.append((x - r, y - r, x + r, y + r))
    return found


def test_no_label_or_node_covers_another_and_all_lie_on_the_page(case):
    _, root = case
    width, height = (float(value) for value in root.get("viewBox").split()[2:])
    found = boxes(root)
    assert len(found) > 3
    for left, top, right, bottom in found:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
    for a, b in itertools.combinations(found, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (a, b)


def test_no_edge_passes_through_a_node_it_does_not_enter(case):
    graph, root = case
    places, passed = {}, 0
    for group in root.iter(f"{SVG}g"):
        if "node" in group.get("class").split():
            circle = group.find(f"{SVG}circle")
            name = group.findtext(f"{SVG}title").split(": ")[0]
            places[name] = float(circle.get("cx")), float(circle.get("cy"))
    for path in root.iter(f"{SVG}path"):
        source, name = path.findtext(f"{SVG}title").split(" → ")
        # Level pieces at a column: C … x,y H stop.
        for x, y, stop in re.findall(r" ([\d.]+),([\d.]+)H([\d.]+)", path.get("d")):
            passed += 1
            for other, (cx, cy) in places.items():
                if other not in (source, name) and float(x) <= cx <= float(stop):
                    assert abs(cy - float(y)) > 11, f"{source} → {name} passes {other}"
    assert passed == sum(graph.level[name] - graph.level[source] - 1 for source, name in graph.edges)


def test_edges_of_less_confidence_are_fainter_and_thinner():
    graph = binary_tree(4)
    confidence = {edge: place / 5 for place, edge in enumerate(graph.edges)}
    root = ElementTree.fromstring(draw_graph(graph, confidence))
    drawn = {}
    for path in root.iter(f"{SVG}path"):
        told, trust = path.findtext(f"{SVG}title").split(", confidence ")
        drawn[tuple(told.split(" → "))] = (float(trust), float(path.get("stroke-opacity")), path.get("stroke-width"))
    assert {edge: trust for edge, (trust, _, _) in drawn.items()} == pytest.approx(confidence)
    assert sorted(drawn.values()) == [drawn[edge] for edge in graph.edges], "opacity and width rise with confidence"
    assert len({opacity for _, opacity, _ in drawn.values()}) == len(graph.edges)


def test_no_confidence_is_drawn_in_full_and_one_outside_the_range_as_its_end():
    plain, high = draw_graph(binary_tree(2)), draw_graph(binary_tree(2), {("x1", "y"): 7.0, ("x2", "y"): -1.0})
    assert plain.count('stroke-opacity="0.90"') == 2
    assert high.count('stroke-opacity="0.90"') == high.count('stroke-opacity="0.15"') == 1


def test_names_cannot_break_the_picture_and_are_whole_in_the_tooltip():
    names = ["<script>alert(1)</script>", 'a"b&c', "two\nlines\x00", "\ud800", "列" * 40, ""]
    root = ElementTree.fromstring(draw_graph(CompositionalGraph.dense(names)))
    assert root.find(f".//{SVG}script") is None
    shown = [text.text for text in root.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert 'a"b&c' in shown
    assert "two lines\N{REPLACEMENT CHARACTER}" in shown
    assert "列" * 40 in titles(root, "variable")
    cut = next(text for text in shown if text and "…" in text and "列" in text)
    assert len(cut) < 16, "wide letters count twice"


def test_the_picture_stands_alone():
    text = draw_graph(binary_tree(8))
    assert "href" not in text
    assert "@import" not in text
    rules = re.search(r"<style>(.*?)</style>", text)[1].replace("@media(prefers-color-scheme:dark){", "")  # type: ignore[index]
    assert all(rule.startswith(".graph-drawing ") for rule in re.findall(r"(?:^|\})([^{}]+)\{", rules))


@pytest.mark.parametrize("seed", range(5))
def test_spreading_is_the_least_squares_solution(seed):
    random = np.random.default_rng(seed)
    wished = np.sort(random.uniform(0, 60, size=6))
    room = random.choice([4.0, 12.0], size=6)
    gaps = room[:-1] + room[1:]
    found = spread(list(wished), list(room))
    assert (np.diff(found) >= gaps - 1e-9).all()
    rule = {"type": "ineq", "fun": lambda x: np.diff(x) - gaps}
    best = minimize(lambda x: ((x - wished) ** 2).sum(), np.cumsum([0, *gaps]), constraints=[rule], method="SLSQP")
    assert found == pytest.approx(best.x, abs=1e-3)


def test_the_sketch_by_hand():
    graph = formula_graph("(a*b + c)*sin(a*b)*f")
    graph = CompositionalGraph((*graph.variables, "idle"), graph.nodes)
    assert sketch_graph(graph).splitlines() == [
        "y = f × h1 × h2",
        "├─ f",
        "├─ h1 = a × b  (used 2 times)",
        "│  ├─ a",
        "│  └─ b",
        "└─ h2 = c + h1",
        "   ├─ c",
        "   └─ h1  (as above)",
        "not used: idle",
    ]


@pytest.mark.parametrize("name", list(GRAPHS))
def test_the_sketch_tells_every_node_once(name):
    graph = GRAPHS[name]
    lines = sketch_graph(graph).splitlines()
    told = [re.sub(r"^[│├└─ ]+", "", line).split(" = ")[0] for line in lines if " = " in line]
    assert sorted(told) == sorted(node.name for node in graph.nodes)
    assert lines[0].startswith(graph.output.name)


def test_many_variables_that_nothing_reads_are_counted_not_listed() -> None:
    graph = CompositionalGraph(tuple(f"v{i}" for i in range(300)), (Node("y", ("v0", "v1")),))
    assert sketch_graph(graph).endswith("v13 and 286 more")
    drawn = draw_graph(graph)
    assert drawn.count("<circle") == 3
    assert "and 286 more" in drawn
