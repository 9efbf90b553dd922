"""The depth–width plane: public models, the regime boundary, the published fit, and where the user's model stands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path

from theodolite.advice.catalogue import models
from theodolite.advice.recommend import fit_for
from theodolite.advice.result import Advice, layers, short
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput
from theodolite.report.svg.drawing import Labels, LogAxis, Point, line, marker
from theodolite.theory.shapes import FITTED_DEPTHS, Fit, dense_parameters

WIDTH, HEIGHT = 980, 800
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 64, 150
_STRONG = 15.0  # pixels kept for the letters of what the advice speaks of: 14, bold
_DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)

# Lineages that look alike in their shapes: (name, form, families as configurations name them).
_LINEAGES = (
    ("GPT-2, -3, -Neo, Pythia", "circle", ("gpt2", "gpt3", "gpt_neo", "gptj", "gpt_neox")),
    ("Llama, Mistral, Mixtral", "square", ("llama", "mistral", "mixtral")),
    ("Qwen", "triangle", ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")),
    ("Gemma", "diamond", ("gemma", "gemma2", "gemma3_text")),
    ("OPT, BLOOM, Falcon", "flipped", ("opt", "bloom", "falcon")),
    ("T5, mT5, ByT5", "plus", ("t5", "mt5", "umt5")),
    ("BERT, ALBERT, ELECTRA", "cross", ("bert", "roberta", "distilbert", "electra", "albert")),
    ("ViT, DeiT", "bar", ("vit", "deit")),
)
_OTHERS = ("others", "hexagon")
_FAR_FROM_DENSE = 1.5  # a factor between the parameters in the blocks and 12·L·d²
# Worth a label first: the ends of the lineages.
_KNOWN = (
    *("GPT-3", "GPT-2 XL", "GPT-2 small", "Llama 3.1 405B", "LLaMA 7B", "Llama 3.1 70B", "T5 11B", "ALBERT xxlarge"),
    *("PaLM 540B", "DeepSeek-V3", "BLOOM 176B", "Qwen3 235B-A22B", "ViT-H/14", "DeiT-Ti", "ByT5 XXL", "Gemma 3 27B"),
    *("BERT large", "Qwen3 0.6B", "Gemma 2B", "Falcon 7B", "Llama 3.2 1B", "ELECTRA small", "GPT-2 large", "T5 small"),
)


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".svg", ".html"):
        raise BadInput(f"the plot '{path}' is neither .svg nor .html: choose one of these endings")


def draw_plane(advice: Advice, *, html: bool = False) -> str:
    """A picture that stands alone: no library, nothing fetched, light or dark as the reader's system is."""
    picture = "\n".join(_picture(advice))
    if not html:
        return f"{picture}\n"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(_title(advice))}</title>"
        "<style>:root{color-scheme:light dark}body{margin:0;background:#fff}"
        "@media(prefers-color-scheme:dark){body{background:#15181b}}"
        ".plane{overflow-x:auto}"  # on a phone the picture moves inside its box: smaller, nobody could read it
        ".plane>svg{display:block;width:100%;min-width:880px;max-width:1200px;height:auto;margin:auto}"
        "</style></head>\n"
        f'<body>\n<div class="plane" tabindex="0" role="region" aria-label="The picture">\n{picture}\n</div>\n'
        "</body></html>\n"
    )


def _picture(advice: Advice) -> Iterator[str]:
    x, y = _axes(advice)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="plane-title plane-text">'
    )
    yield f'<title id="plane-title">{escape(_title(advice))}</title>'
    yield f'<desc id="plane-text">{escape(_description(advice))}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>'
    yield f'<text class="title" x="{_LEFT}" y="26">Depth and width of public Transformers</text>'
    yield f'<text class="soft" x="{_LEFT}" y="46">{escape(_subtitle(advice))}</text>'
    yield from _grid(x, y)
    labels = Labels((_LEFT, _TOP, WIDTH - _RIGHT, HEIGHT - _BOTTOM))
    yield f'<svg x="0" y="0" width="{WIDTH}" height="{HEIGHT}"><clipPath id="plane-clip"><rect x="{_LEFT}" y="{_TOP}" '
    yield f'width="{WIDTH - _LEFT - _RIGHT}" height="{HEIGHT - _TOP - _BOTTOM}"/></clipPath>'
    yield '<g clip-path="url(#plane-clip)">'
    yield from _curves(advice, x, y)
    yield "</g></svg>"
    yield from _size_labels(x, y, labels)
    yield from _models(advice, x, y, labels)
    yield from _legend()
    yield "</svg>"


def _axes(advice: Advice) -> tuple[LogAxis, LogAxis]:
    shapes = [model.shape for model in models()] + list(_marked(advice).values())
    deep, wide = [shape.depth for shape in shapes], [shape.width for shape in shapes]
    x = LogAxis(min(4, *deep) / 1.15, max(200, *deep) * 1.15, _LEFT, WIDTH - _RIGHT)
    y = LogAxis(min(128, *wide) / 1.2, max(32768, *wide) * 1.2, HEIGHT - _BOTTOM, _TOP)
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


def _grid(x: LogAxis, y: LogAxis) -> Iterator[str]:
    bottom = HEIGHT - _BOTTOM
    widths = [2**k for k in range(40) if y.shows(2**k)]
    for depth in (d for d in _DEPTHS if x.shows(d)):
        yield line([(x(depth), _TOP), (x(depth), bottom)], "grid")
        yield f'<text class="tick" x="{x(depth):.1f}" y="{bottom + 18}" text-anchor="middle">{depth}</text>'
    for width in widths[:: 1 + len(widths) // 16]:
        yield line([(_LEFT, y(width)), (WIDTH - _RIGHT, y(width))], "grid")
        yield f'<text class="tick" x="{_LEFT - 8}" y="{y(width) + 4:.1f}" text-anchor="end">{width}</text>'
    centre, middle = (_LEFT + WIDTH - _RIGHT) / 2, (_TOP + bottom) / 2
    yield f'<text class="axis" x="{centre}" y="{bottom + 38}" text-anchor="middle">depth (layers)</text>'
    yield f'<text class="axis" transform="translate(16,{middle}) rotate(-90)" text-anchor="middle">width</text>'


def _curves(advice: Advice, x: LogAxis, y: LogAxis) -> Iterator[str]:
    ends = (x.low, x.high)
    for power in range(4, 18):  # N = 12·L·d²
        points = [(x(depth), y(math.sqrt(10**power / 12 / depth))) for depth in ends]
        yield line(points, "size")
    depths = [x.low * (x.high / x.low) ** (k / 160) for k in range(161)]
    boundary = [(x(depth), y(3.0**depth)) for depth in depths if depth < math.log(4 * y.high, 3)]
    yield line(boundary, "boundary")
    for fit in dict.fromkeys((Fit(), fit_for(advice.modality))):
        inside = [depth for depth in depths if depth < fit.depth(100 * y.high)]
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


def _size_labels(x: LogAxis, y: LogAxis, labels: Labels) -> Iterator[str]:
    """Where the line of each size enters the plane: on the left, or at the top."""
    for count in (10**power for power in range(4, 18)):
        width, depth = math.sqrt(count / 12 / x.low), count / 12 / y.high**2
        if y.low * 1.1 < width < y.high / 1.1:
            left, base = x(x.low) + 6, y(width) - 3
        elif x.low * 1.1 < depth < x.high / 1.3:
            left, base = x(depth) + 16, _TOP + 12.0
        else:
            continue
        labels.taken.append((left, base - 9, left + 7 * len(short(count)), base + 2))
        yield f'<text class="faint" x="{left:.1f}" y="{base:.1f}">{short(count)}</text>'


def _models(advice: Advice, x: LogAxis, y: LogAxis, labels: Labels) -> Iterator[str]:
    """Markers first, so that no label covers one; models of the same shape stand side by side."""
    places: dict[tuple[int, int], dict[int, list[str]]] = {}
    at: dict[str, Point] = {}
    for model in models():
        shape = model.shape
        titles = _sizes(model.name, shape)
        places.setdefault((shape.depth, shape.width), {}).setdefault(_lineage(shape), []).append(titles)
        at[model.name] = (x(shape.depth), y(shape.width))
    for (depth, width), lineages in places.items():
        for place, (lineage, titles) in enumerate(sorted(lineages.items())):
            point = (x(depth) + 9 * (place - (len(lineages) - 1) / 2), y(width))
            labels.keep_free(point, 5)
            yield marker(_form(lineage), point, f"model series-{lineage}", "\n".join(titles))
    marked = {name: (x(shape.depth), y(shape.width)) for name, shape in _marked(advice).items()}
    if len(marked) == 2:
        (left, high), (right, low) = marked.values()
        yield line(list(marked.values()), "move")
        for step in range(1, 20):
            labels.keep_free((left + step / 20 * (right - left), high + step / 20 * (low - high)), 2)
    for name, point in marked.items():
        labels.keep_free(point, 10)
        shape = _marked(advice)[name]
        yield marker("ring" if name == "advised" else "star", point, "mark", _sizes(name, shape))
    for name, point in marked.items():
        yield labels.place(point, name, "strong", 13, always=True, size=_STRONG)
    yield from _curve_labels(advice, x, y, labels)
    for name in (*_KNOWN, *(name for name in at if name not in _KNOWN)):
        if name in at:
            yield labels.place(at[name], name)


def _curve_labels(advice: Advice, x: LogAxis, y: LogAxis, labels: Labels) -> Iterator[str]:
    fit = Fit()
    yield labels.place((x(math.log(600, 3)), y(600)), "L = log3 d", "curve", always=True)
    depth = min(fit.depth(y.high) * 0.93, x.high * 0.93)
    yield labels.place((x(depth), y(fit.width(depth))), "published fit", "curve", always=True)
    own = fit_for(advice.modality)
    if own != fit:
        depth = min(own.depth(y.high) * 0.8, x.high * 0.8)
        yield labels.place((x(depth), y(own.width(depth))), "fit for images, rough", "curve", always=True)


def _legend() -> Iterator[str]:
    top, column = HEIGHT - _BOTTOM + 62, (WIDTH - _LEFT - _RIGHT) / 4
    names = [name for name, *_ in _LINEAGES] + [_OTHERS[0]]
    for place, name in enumerate(names):
        left, base = _LEFT + 8 + column * (place % 4), top + 20 * (place // 4)
        yield marker(_form(place), (left, base - 4), f"model series-{place}", name)
        yield f'<text class="legend" x="{left + 12:.1f}" y="{base}">{escape(name)}</text>'
    base = top + 20 * (len(names) // 4)
    text = "Thin lines: N = 12·L·d² parameters. Band: the fit's published ±; dashed outside depths 6 to 48."
    yield f'<text class="soft" x="{_LEFT + 8 + column:.1f}" y="{base}">{text}</text>'


def _sizes(name: str, shape: ModelShape) -> str:
    """For the reader who hovers; a model far from its line of equal size is told with both numbers."""
    text = f"{name}: {layers(shape)} of width {shape.width}, {short(shape.params)} parameters"
    dense, blocks = dense_parameters(shape.depth, shape.width), shape.params_in_blocks
    if not dense / _FAR_FROM_DENSE < blocks < dense * _FAR_FROM_DENSE:
        text += f"; {short(blocks)} in the blocks, where 12·L·d² is {short(dense)}"
    return text


def _lineage(shape: ModelShape) -> int:
    found = (place for place, (_, _, families) in enumerate(_LINEAGES) if shape.family in families)
    return next(found, len(_LINEAGES))


def _form(lineage: int) -> str:
    return (*_LINEAGES, _OTHERS)[lineage][1]


def _title(advice: Advice) -> str:
    return f"{advice.name} in the depth–width plane"


def _subtitle(advice: Advice) -> str:
    shape = (advice.advised or advice.judged).shape
    return f"advised for {short(advice.budget)} parameters: {layers(shape)} of width {shape.width}"


def _description(advice: Advice) -> str:
    return (
        f"{len(models())} public models by depth and width, on logarithmic axes. The boundary L = log3 d lies left of "
        f"nearly all of them; the published fit rises from width {Fit().width(6):.0f} at 6 layers to "
        f"{Fit().width(48):.0f} at 48. {advice.headline}"
    )


_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5195", "#e69f00", "#6b7580")
_STYLE = (
    ".page{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1b1f23}.title{font-size:18px;font-weight:600}"
    ".soft,.tick,.legend{fill:#4f5861}.axis{font-size:13px}.grid{stroke:#e9ebee;fill:none}"
    ".size{stroke:#b9c0c7;stroke-width:.8;fill:none}.faint{fill:#6b7580;font-size:11px}"
    ".boundary{stroke:#b02e0c;stroke-width:1.8;fill:none;stroke-dasharray:2 3}"
    ".fit{stroke:#00598c;stroke-width:2.4;fill:none}.outside{stroke-dasharray:7 5}.band{fill:#00598c;opacity:.16}"
    ".model{stroke:#fff;stroke-width:.8}.mark{fill:#b0005e;stroke:#fff;stroke-width:1}"
    ".move{stroke:#b0005e;stroke-width:1.4;fill:none}.strong{font-weight:700;font-size:14px;fill:#b0005e}"
    ".curve{font-style:italic;fill:#00598c}.label,.strong,.curve{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    + "".join(f".series-{place}{{fill:{colour}}}" for place, colour in enumerate(_COLOURS))
    + "@media(prefers-color-scheme:dark){.page{fill:#15181b}text{fill:#e6e8ea}.soft,.tick,.legend{fill:#a9b1b9}"
    ".grid{stroke:#282d32}.size{stroke:#4a525a}.faint{fill:#a9b1b9}.boundary{stroke:#ff9b73}.fit{stroke:#7cc0ee}"
    ".band{fill:#7cc0ee}.model{stroke:#15181b}.mark{fill:#ff7ab8;stroke:#15181b}.move{stroke:#ff7ab8}"
    ".strong{fill:#ff7ab8}.curve{fill:#7cc0ee}.label,.strong,.curve{stroke:#15181b}"
    ".series-0{fill:#2f95d3}.series-4{fill:#c9a227}.series-6{fill:#b08cd0}.series-8{fill:#a9b1b9}}"
)
