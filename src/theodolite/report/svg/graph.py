"""A compositional graph as a picture, variables on the left and the output on the right, and as text for a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

from theodolite.graphs import CompositionalGraph, Node
from theodolite.report.svg.drawing import Point

Confidence = Mapping[tuple[str, str], float]

_SIGNS = {"sum": "+", "product": "×", "general": "ƒ"}
_WORDS = {"sum": "sum", "product": "product", "general": "function"}
_ROW, _COLUMN = 26.0, 112.0  # between variables, between levels
_NODE, _LANE = 20.0, 6.0  # room to either side of a node with its name, and of an edge that passes
_MARGIN, _RADIUS, _LETTER = 24.0, 11.0, 7.6  # a wide guess of a letter's width: fonts differ
MOST_IDLE = 12  # variables that nothing reads, to be named or drawn
_LONGEST, _LONGEST_NODE = 26, 12  # letters before a name is cut; all of it is in the tooltip


def draw_graph(graph: CompositionalGraph, confidence: Confidence | None = None) -> str:
    """An SVG that stands alone. Edges are the fainter and thinner the less `confidence` there is in them, between 0 and
    1; variables that nothing reads are pale, and left out where they are many."""
    return "\n".join(_picture(graph, confidence or {})) + "\n"


def sketch_graph(graph: CompositionalGraph) -> str:
    """An indented tree, the output first. What is read several times is written out once and named after that."""
    lines = list(_branches(graph, graph.output.name, set()))
    idle = [clean(name) for name in graph.variables if name not in graph.used]
    if idle:
        more = f" and {len(idle) - MOST_IDLE} more" if len(idle) > MOST_IDLE else ""
        lines.append(f"not used: {', '.join(idle[:MOST_IDLE])}{more}")
    return "\n".join(lines)


def _branches(graph: CompositionalGraph, name: str, drawn: set[str]) -> Iterator[str]:
    if name not in graph.node:
        yield clean(name)
        return
    node = graph.node[name]
    if name in drawn:
        yield f"{clean(name)}  (as above)"
        return
    drawn.add(name)
    uses = sum(name in other.inputs for other in graph.nodes)
    yield f"{clean(name)} = {_inside(node)}" + (f"  (used {uses} times)" if uses > 1 else "")
    for place, below in enumerate(node.inputs):
        last = place == len(node.inputs) - 1
        for row, line in enumerate(_branches(graph, below, drawn)):
            stem = ("└─ " if last else "├─ ") if row == 0 else ("   " if last else "│  ")
            yield stem + line


def _inside(node: Node) -> str:
    names = [clean(name) for name in node.inputs]
    return f" {_SIGNS[node.kind]} ".join(names) if node.kind != "general" else f"ƒ({', '.join(names)})"


def clean(text: str) -> str:
    """A name on one line, without characters that a picture or a terminal cannot show."""
    return "".join(
        " " if letter.isspace() else letter if unicodedata.category(letter)[0] != "C" else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


@dataclass(frozen=True)
class _Layout:
    """Where variables and nodes stand, and the heights at which something passes the levels between it and a reader."""

    at: Mapping[str, Point]
    passing: Mapping[tuple[str, int], Point]
    width: float
    height: float


def _layout(graph: CompositionalGraph) -> _Layout:
    """A variable has a row of its own, in the order in which the output's branches come to it; a node stands at the
    middle of its inputs, as near as the other nodes of its level, and what passes between them, leave room."""
    names = _in_branch_order(graph)
    left = _MARGIN + max(_width(_short(name, _LONGEST)) for name in names) + 8
    height: dict[tuple[str, int], float] = {(name, 0): _ROW * place for place, name in enumerate(names)}
    last = _last_reading(graph)
    for level in range(1, graph.depth + 1):
        wished = {
            (name, level): height[name, level - 1] for name, top in last.items() if graph.level[name] < level < top
        }
        for node in graph.nodes:
            if graph.level[node.name] == level:
                near = [height[name, level - 1] for name in node.inputs]
                wished[node.name, level] = sum(near) / len(near)
        order = sorted(wished, key=lambda item: wished[item])
        room = [_NODE if graph.level[name] == level else _LANE for name, _ in order]
        height |= zip(order, spread([wished[item] for item in order], room), strict=True)
    top = min(height.values()) - _MARGIN - _NODE
    place = {(name, level): (left + _COLUMN * level, y - top) for (name, level), y in height.items()}
    return _Layout(
        at={name: point for (name, level), point in place.items() if level == graph.level[name]},
        passing={(name, level): point for (name, level), point in place.items() if level != graph.level[name]},
        width=left + _COLUMN * graph.depth + _LONGEST_NODE * _LETTER / 2 + _MARGIN,
        height=max(height.values()) - top + _MARGIN,
    )


def _last_reading(graph: CompositionalGraph) -> dict[str, int]:
    """The highest level at which something is read."""
    found: dict[str, int] = {}
    for source, name in graph.edges:
        found[source] = max(found.get(source, 0), graph.level[name])
    return found


def spread(wished: Sequence[float], room: Sequence[float]) -> list[float]:
    """Places in the order given (rising), each with its `room` to either side, that have the least sum of squares to
    what was wished."""
    offsets = [0.0]
    for before, after in pairwise(room):
        offsets.append(offsets[-1] + before + after)
    blocks: list[tuple[float, int]] = []  # mean place and size; neighbours that would be too near stand together
    for wish, offset in zip(wished, offsets, strict=True):
        mean, size = wish - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other, count = blocks.pop()
            mean, size = (other * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    means = [mean for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _in_branch_order(graph: CompositionalGraph) -> list[str]:
    """Variables as a walk from the output meets them, then those it does not."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [graph.output.name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in graph.node:
            waiting.extend(reversed(graph.node[name].inputs))
        else:
            found[name] = None
    return [*found, *(name for name in graph.variables if name not in found)]


def _picture(graph: CompositionalGraph, confidence: Confidence) -> Iterator[str]:
    told = sketch_graph(graph)
    if len(graph.variables) - len(graph.used) > MOST_IDLE:
        graph = replace(graph, variables=tuple(name for name in graph.variables if name in set(graph.used)))
    layout = _layout(graph)
    width, height = round(layout.width), round(layout.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph-drawing" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
    )
    yield f"<title>{_text(_summary(graph))}</title>"
    yield f"<desc>{_text(told)}</desc>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{width}" height="{height}"/>'
    for source, name in graph.edges:
        passed = [layout.passing[source, level] for level in range(graph.level[source] + 1, graph.level[name])]
        points = [layout.at[source], *passed, layout.at[name]]
        yield _edge(points, source, name, confidence.get((source, name)))
    for name in graph.variables:
        yield _variable(name, layout.at[name], idle=name not in graph.used)
    for node in graph.nodes:
        yield _node(node, layout.at[node.name], top=node == graph.output)
    yield "</svg>"


def _summary(graph: CompositionalGraph) -> str:
    return f"{graph.output.name} of {len(graph.used)} variables in {len(graph.nodes)} functions"


def _edge(points: Sequence[Point], source: str, name: str, trust: float | None) -> str:
    """From point to point: level while it passes a column, bent between columns."""
    (x, y), *between, (right, end) = points
    path = [f"M{x + 4:.1f},{y:.1f}"]
    x += 4
    for start, stop, height in (*((a - _RADIUS, a + _RADIUS, b) for a, b in between), (right - _RADIUS, None, end)):
        bend = 0.5 * (start - x)
        path.append(f"C{x + bend:.1f},{y:.1f} {start - bend:.1f},{height:.1f} {start:.1f},{height:.1f}")
        if stop is not None:
            path.append(f"H{stop:.1f}")
            x, y = stop, height
    share = 1.0 if trust is None else min(1.0, max(0.0, trust))
    title = f"{source} → {name}" + ("" if trust is None else f", confidence {trust:.2f}")
    look = f'stroke-opacity="{0.15 + 0.75 * share:.2f}" stroke-width="{0.8 + 1.4 * share:.2f}"'
    return f'<path class="edge" d="{"".join(path)}" {look}><title>{_text(title)}</title></path>'


def _variable(name: str, at: Point, *, idle: bool) -> str:
    x, y = at
    kind = "idle" if idle else "variable"
    title = f"{name}: not used" if idle else name
    return (
        f'<g class="{kind}"><title>{_text(title)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{_text(_short(name, _LONGEST))}</text></g>'
    )


def _node(node: Node, at: Point, *, top: bool) -> str:
    x, y = at
    title = f"{node.name}: {_WORDS[node.kind]} of {', '.join(node.inputs)}"
    label = _text(_short(node.name, _LONGEST_NODE))
    return (
        f'<g class="{"node top" if top else "node"}"><title>{_text(title)}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:g}"/>'
        f'<text class="sign" x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle">{_SIGNS[node.kind]}</text>'
        f'<text class="name" x="{x:.1f}" y="{y - _RADIUS - 4:.1f}" text-anchor="middle">{label}</text></g>'
    )


def _text(text: str) -> str:
    return escape("\n".join(clean(line) for line in re.split(r"\n", text)))


def _short(name: str, longest: int) -> str:
    """Cut in the middle, since columns often differ at their ends."""
    name = clean(name)
    if _width(name) <= longest * _LETTER:
        return name
    front, back = name[: longest // 2], name[-(longest // 2 - 1) :]
    while _width(front + back) > (longest - 1) * _LETTER:
        front, back = (front[:-1], back) if len(front) > len(back) else (front, back[1:])
    return f"{front}…{back}"


def _width(text: str) -> float:
    return _LETTER * sum(
        2 if unicodedata.east_asian_width(letter) in "WF" else 1.3 if letter.isupper() or letter in "mw@%" else 1
        for letter in text
    )


_STYLE = (
    ".graph-drawing .page{fill:#fff}.graph-drawing text{font:12px system-ui,sans-serif;fill:#1b1f23}"
    ".graph-drawing .name{font-size:11px;fill:#4f5861;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".graph-drawing .sign{font-size:14px;font-weight:600}.graph-drawing .edge{stroke:#00598c;fill:none}"
    ".graph-drawing .variable circle{fill:#00598c}.graph-drawing .idle circle{fill:#d5d9dd}"
    ".graph-drawing .idle text{fill:#9aa3ab}.graph-drawing .node circle{fill:#fff;stroke:#00598c;stroke-width:1.6}"
    ".graph-drawing .top circle{stroke:#b0005e;stroke-width:2.4}"
    ".graph-drawing .top .name{font-weight:700;fill:#b0005e}"
    "@media(prefers-color-scheme:dark){.graph-drawing .page{fill:#15181b}.graph-drawing text{fill:#e6e8ea}"
    ".graph-drawing .name{fill:#a9b1b9;stroke:#15181b}.graph-drawing .edge{stroke:#7cc0ee}"
    ".graph-drawing .variable circle{fill:#7cc0ee}.graph-drawing .idle circle{fill:#3a4148}"
    ".graph-drawing .idle text{fill:#6b7580}.graph-drawing .node circle{fill:#15181b;stroke:#7cc0ee}"
    ".graph-drawing .top circle{stroke:#ff7ab8}.graph-drawing .top .name{fill:#ff7ab8}}"
)
