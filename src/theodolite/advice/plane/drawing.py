"""The depth–width plane: public models, what is in use at a size, the published fit, and where the user's stands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from theodolite.advice.catalogue import models
from theodolite.advice.plane.legend import legend, legend_height
from theodolite.advice.plane.models import draw_models, model_table
from theodolite.advice.plane.style import NARROW, PAGE_STYLE, STYLE, WIDE, Layout
from theodolite.advice.recommend import fit_for
from theodolite.advice.result import Advice, layers, short
from theodolite.advice.shape import ModelShape
from theodolite.advice.usage import usage_at
from theodolite.errors import BadInput
from theodolite.report.svg.drawing import Labels, LogAxis, line
from theodolite.theory.shapes import FITTED_DEPTHS, Fit

_DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".svg", ".html"):
        raise BadInput(f"the plot '{path}' is neither .svg nor .html: choose one of these endings")


def draw_plane(advice: Advice, *, html: bool = False, narrow: bool = False) -> str:
    """A picture that stands alone: no library, nothing fetched, light or dark as the reader's system is.

    The page has a second one for `narrow` screens, and the models as a table, for who cannot hover.
    """
    if not html:
        return _picture(advice, NARROW if narrow else WIDE) + "\n"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(_title(advice))}</title><style>{PAGE_STYLE}</style></head>\n"
        f'<body>\n<div class="plane">\n{_picture(advice, WIDE)}\n{_picture(advice, NARROW)}\n</div>\n'
        f"{model_table(_marked(advice))}\n</body></html>\n"
    )


def _picture(advice: Advice, layout: Layout) -> str:
    x, y = _axes(advice, layout)
    labels = Labels((layout.left, layout.top, layout.width - layout.right, layout.bottom), size=layout.letters)
    curves = list(_curves(advice, x, y))
    sizes = list(_size_labels(x, y, labels, layout))
    marked = _marked(advice)
    placed = list(draw_models(marked, x, y, labels, layout, list(_curve_names(advice, x, y))))
    drawn = frozenset(
        name for part in (*curves, *placed) for names in re.findall(r'class="([^"]+)"', part) for name in names.split()
    )
    names = {"ring" if name == "advised" else "star": name for name in marked}
    drawn |= set(names)
    height = layout.bottom + legend_height(layout, drawn, names)
    name = layout.name
    frame = f'x="{layout.left}" y="{layout.top}" width="{layout.width - layout.left - layout.right}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="0 0 {layout.width} {height}" role="img" '
        f'aria-labelledby="{name}-title {name}-text">',
        f'<title id="{name}-title">{escape(_title(advice))}</title>',
        f'<desc id="{name}-text">{escape(_description(advice))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{layout.width}" height="{height}"/>',
        *_heading(advice, layout),
        *_grid(x, y, layout),
        f'<clipPath id="{name}-clip"><rect {frame} height="{layout.bottom - layout.top}"/></clipPath>',
        f'<g clip-path="url(#{name}-clip)">',
        *curves,
        "</g>",
        *sizes,
        *placed,
        *legend(layout, drawn, names),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(advice: Advice, layout: Layout) -> tuple[LogAxis, LogAxis]:
    shapes = [model.shape for model in models()] + list(_marked(advice).values())
    deep, wide = [shape.depth for shape in shapes], [shape.width for shape in shapes]
    x = LogAxis(min(4, *deep) / 1.15, max(200, *deep) * 1.15, layout.left, layout.width - layout.right)
    y = LogAxis(min(128, *wide) / 1.2, max(32768, *wide) * 1.2, layout.bottom, layout.top)
    return x, y


def _marked(advice: Advice) -> dict[str, ModelShape]:
    """What the advice speaks of, by what it is called in the picture."""
    if advice.advised is None:
        return {"yours": advice.judged.shape}
    if advice.given is None:
        return {"advised": advice.advised.shape}
    if advice.given.shape == advice.advised.shape:
        return {"yours, as advised": advice.given.shape}
    return {"yours": advice.given.shape, "advised": advice.advised.shape}


def _heading(advice: Advice, layout: Layout) -> Iterator[str]:
    left = layout.left if layout is WIDE else 10
    yield f'<text class="title" x="{left}" y="26">Depth and width of public Transformers</text>'
    lines = [_subtitle(advice)] if layout is WIDE else _subtitle(advice).split("; ")
    for place, text in enumerate(lines):
        yield f'<text class="soft" x="{left}" y="{46 + 17 * place}">{escape(text)}</text>'


def _grid(x: LogAxis, y: LogAxis, layout: Layout) -> Iterator[str]:
    bottom, every = layout.bottom, 2 if layout.sparse else 1
    depths = [depth for depth in _DEPTHS if x.shows(depth)]
    widths = [2**k for k in range(40) if y.shows(2**k)]
    for depth in depths[len(depths) % every :: every]:
        yield line([(x(depth), layout.top), (x(depth), bottom)], "grid")
        yield f'<text class="tick" x="{x(depth):.1f}" y="{bottom + 18}" text-anchor="middle">{depth}</text>'
    for width in widths[:: every * (1 + len(widths) // 16)]:
        yield line([(layout.left, y(width)), (layout.width - layout.right, y(width))], "grid")
        yield f'<text class="tick" x="{layout.left - 8}" y="{y(width) + 4:.1f}" text-anchor="end">{width}</text>'
    centre, middle = (layout.left + layout.width - layout.right) / 2, (layout.top + bottom) / 2
    yield f'<text class="axis" x="{centre}" y="{bottom + 38}" text-anchor="middle">depth (layers)</text>'
    if layout.left > 60:
        yield f'<text class="axis" transform="translate(16,{middle}) rotate(-90)" text-anchor="middle">width</text>'
    else:
        yield f'<text class="axis" x="10" y="{layout.top - 8}">width</text>'


def _curves(advice: Advice, x: LogAxis, y: LogAxis) -> Iterator[str]:
    yield from _in_use(advice, x, y)
    ends = (x.low, x.high)
    for power in range(4, 18):  # N = 12·L·d²
        points = [(x(depth), y(math.sqrt(10**power / 12 / depth))) for depth in ends]
        yield line(points, "size")
    depths = [x.low * (x.high / x.low) ** (k / 160) for k in range(161)]
    boundary = [(x(depth), y(3.0**depth)) for depth in depths if depth < math.log(4 * y.high, 3)]
    yield line(boundary, "boundary")
    for fit in dict.fromkeys((Fit(), fit_for(advice.modality))):
        inside = [depth for depth in depths if depth < fit.depth(100 * y.high)]
        if fit.ratio == 1:  # of another ratio no ± is published
            upper = [(x(d), y(max(c.width(d) for c in fit.corners()))) for d in inside]
            lower = [(x(d), y(min(c.width(d) for c in fit.corners()))) for d in inside]
            yield line([*upper, *reversed(lower)], "band", closed=True)
        scale = fit.ratio ** (2 / 3)
        low, high = (scale * depth for depth in FITTED_DEPTHS)
        for part, kind in (
            ([d for d in inside if d < low] + [low], "fit outside"),
            ([low, *(d for d in inside if low < d < high), high], "fit" if fit.ratio == 1 else "fit outside"),
            ([high] + [d for d in inside if d > high], "fit outside"),
        ):
            yield line([(x(d), y(fit.width(d))) for d in part], kind)


def _in_use(advice: Advice, x: LogAxis, y: LogAxis) -> Iterator[str]:
    """Along the sizes at which there are enough models of the judged one's kind: least to largest d/L, and median."""
    two_stacks = advice.judged.shape.two_stacks
    sizes = [10 ** (6 + k / 10) for k in range(71)]
    found = [(size, usage_at(size, advice.modality, two_stacks)) for size in sizes]

    def at(size: float, ratio: float) -> tuple[float, float]:
        """Where 12·L·d² is the size and d/L the ratio."""
        depth = (size / 12 / ratio**2) ** (1 / 3)
        return x(depth), y(ratio * depth)

    for enough, run in groupby(found, key=lambda one: one[1] is not None):
        near = [(size, usage) for size, usage in run if usage is not None]
        if not enough or len(near) < 2:
            continue
        deep, wide = ([at(size, getattr(one, end)) for size, one in near] for end in ("low", "high"))
        yield line([*deep, *reversed(wide)], "used", closed=True)
        yield line([at(size, one.median) for size, one in near], "median")


def _size_labels(x: LogAxis, y: LogAxis, labels: Labels, layout: Layout) -> Iterator[str]:
    """Where the line of each size enters the plane: on the left, or at the top."""
    for count in (10**power for power in range(4, 18)):
        width, depth = math.sqrt(count / 12 / x.low), count / 12 / y.high**2
        if y.low * 1.1 < width < y.high / 1.1:
            left, base = x(x.low) + 6, y(width) - 3
        elif x.low * 1.1 < depth < x.high / 1.3:
            left, base = x(depth) + 16, layout.top + 12.0
        else:
            continue
        labels.taken.append((left, base - 9, left + 7 * len(short(count)), base + 2))
        yield f'<text class="faint" x="{left:.1f}" y="{base:.1f}">{short(count)}</text>'


def _curve_names(advice: Advice, x: LogAxis, y: LogAxis) -> Iterator[tuple[tuple[float, float], str]]:
    fit = Fit()
    yield (x(math.log(600, 3)), y(600)), "L = log3 d"
    depth = min(fit.depth(y.high) * 0.93, x.high * 0.93)
    yield (x(depth), y(fit.width(depth))), "published fit"
    own = fit_for(advice.modality)
    if own != fit:
        depth = min(own.depth(y.high) * 0.8, x.high * 0.8)
        yield (x(depth), y(own.width(depth))), "for images, rough"


def _title(advice: Advice) -> str:
    return f"{advice.name} in the depth–width plane"


def _subtitle(advice: Advice) -> str:
    parts = {
        "yours": "yours: {}",
        "advised": f"advised for {short(advice.budget)} parameters: {{}}",
        "yours, as advised": "yours, as advised: {}",
    }
    said = [parts[name].format(f"{layers(shape)} of width {shape.width}") for name, shape in _marked(advice).items()]
    return "; ".join(said)


def _description(advice: Advice) -> str:
    return (
        f"{len(models())} public models by depth and width, on logarithmic axes. The boundary L = log3 d lies left of "
        f"nearly all of them; the published fit rises from width {Fit().width(6):.0f} at 6 layers to "
        f"{Fit().width(48):.0f} at 48. {advice.headline}"
    )
