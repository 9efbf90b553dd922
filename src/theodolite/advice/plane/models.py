"""Public models in the depth–width plane, each exactly in its place, and the same as a table.

Models of one shape share one marker, which says how many they are and names them all; none is moved. A label that
would cover something is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from theodolite.advice.catalogue import models
from theodolite.advice.plane.style import LINEAGES, Layout, lineage
from theodolite.advice.result import layers, short
from theodolite.advice.shape import ModelShape
from theodolite.report.svg.drawing import Labels, LogAxis, Point, line, marker
from theodolite.theory.shapes import dense_parameters

_FAR_FROM_DENSE = 1.5  # a factor between the parameters in the blocks and 12·L·d²
# Worth a label first: the ends of the lineages.
_KNOWN = (
    *("GPT-3", "GPT-2 XL", "GPT-2 small", "Llama 3.1 405B", "LLaMA 7B", "Llama 3.1 70B", "T5 11B", "ALBERT xxlarge"),
    *("PaLM 540B", "DeepSeek-V3", "BLOOM 176B", "Qwen3 235B-A22B", "ViT-H/14", "DeiT-Ti", "ByT5 XXL", "Gemma 3 27B"),
    *("BERT large", "Qwen3 0.6B", "Gemma 2B", "Falcon 7B", "Llama 3.2 1B", "ELECTRA small", "GPT-2 large", "T5 small"),
)


def draw_models(
    marked: Mapping[str, ModelShape],
    x: LogAxis,
    y: LogAxis,
    labels: Labels,
    layout: Layout,
    curves: Sequence[tuple[Point, str]],
) -> Iterator[str]:
    """Markers first, so that no label covers one; then the marks' names, the curves' and as many models' as fit."""
    places: dict[tuple[int, int], dict[str, ModelShape]] = {}
    for model in models():
        shape = model.shape
        places.setdefault((shape.depth, shape.width), {})[model.name] = shape
    for (depth, width), here in sorted(places.items(), key=lambda place: len(place[1])):  # numbers on top
        point = (x(depth), y(width))
        title = "\n".join(_sizes(name, shape) for name, shape in here.items())
        if len(here) == 1:
            place = lineage(next(iter(here.values())))
            labels.keep_free(point, 8)  # so far that no label seems to be another marker's
            yield marker(LINEAGES[place][1], point, f"model series-{place}", title, scale=layout.scale)
        else:
            labels.keep_free(point, 11)
            yield marker("disc", point, "model several", title, scale=layout.scale)
            yield (
                f'<text class="number" x="{point[0]:.1f}" y="{point[1] + 3.5 * layout.scale:.1f}" '
                f'text-anchor="middle">{len(here)}</text>'
            )
    same = {name: ", ".join(places.get((shape.depth, shape.width), ())) for name, shape in marked.items()}
    yield from _marks(marked, same, x, y, labels, layout)
    for point, name in curves:
        yield labels.place(point, name, "curve", always=True)
    named = sorted(places.items(), key=lambda place: min(map(_rank, place[1])))
    for (depth, width), here in named:
        first = min(here, key=_rank)
        text = first if len(here) == 1 else f"{first} +{len(here) - 1}"
        yield labels.place((x(depth), y(width)), text, gap=9 if len(here) == 1 else 12)


def model_table(marked: Mapping[str, ModelShape]) -> str:
    """What hovering says, for who cannot: one row a model, by size."""
    rows = [*marked.items(), *sorted(((m.name, m.shape) for m in models()), key=lambda one: one[1].params)]
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{shape.layers}</td><td>{shape.width}</td>"
        f"<td>{shape.width / shape.depth:.0f}</td><td>{short(shape.params)}</td>"
        f"<td>{short(shape.params_in_blocks)}</td></tr>"
        for name, shape in rows
    )
    head = "".join(f"<th>{name}</th>" for name in ("model", "layers", "width", "ratio", "parameters", "in blocks"))
    return (
        f'<details><summary>The {len(models())} public models as a table</summary><div class="models">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _marks(
    marked: Mapping[str, ModelShape],
    same: Mapping[str, str],
    x: LogAxis,
    y: LogAxis,
    labels: Labels,
    layout: Layout,
) -> Iterator[str]:
    """`same` are the public models that a mark covers."""
    points = {name: (x(shape.depth), y(shape.width)) for name, shape in marked.items()}
    if len(points) == 2:
        (left, high), (right, low) = points.values()
        yield line(list(points.values()), "move")
        for step in range(1, 20):
            labels.keep_free((left + step / 20 * (right - left), high + step / 20 * (low - high)), 2)
    for name, point in points.items():
        labels.keep_free(point, 10)
        title = _sizes(name, marked[name]) + (f"; of the same shape: {same[name]}" if same[name] else "")
        yield marker("ring" if name == "advised" else "star", point, "mark", title)
    for name, point in points.items():
        yield labels.place(point, name, "strong", 13, always=True, size=layout.letters + 3)


def _rank(name: str) -> int:
    return _KNOWN.index(name) if name in _KNOWN else len(_KNOWN)


def _sizes(name: str, shape: ModelShape) -> str:
    """For the reader who hovers; a model far from its line of equal size is told with both numbers."""
    text = f"{name}: {layers(shape)} of width {shape.width}, {short(shape.params)} parameters"
    dense, blocks = dense_parameters(shape.depth, shape.width), shape.params_in_blocks
    if not dense / _FAR_FROM_DENSE < blocks < dense * _FAR_FROM_DENSE:
        text += f"; {short(blocks)} in the blocks, where 12·L·d² is {short(dense)}"
    return text
