"""The advice in a terminal: the decision first, then given beside advised, then what theory says and what it costs."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from theodolite.advice.bottlenecks import Bottleneck, percent
from theodolite.advice.result import Advice, Rated, said, short
from theodolite.cli.views.advise_theory import decision, theory
from theodolite.cli.views.budget import print_plan
from theodolite.report.numbers import DASH
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths

_LINES: tuple[tuple[str, Callable[[Rated], str]], ...] = (
    ("layers", lambda r: r.shape.layers if r.shape.depth else DASH),
    ("width", lambda r: f"{r.shape.width}" if r.shape.width else DASH),
    ("heads × their width", lambda r: f"{r.shape.heads} × {r.shape.head_width}" if r.shape.heads else DASH),
    ("parameters", lambda r: _counted(r, r.shape.params)),
    ("  in the blocks", lambda r: _counted(r, r.shape.params_in_blocks)),
    ("  used by one token", lambda r: _counted(r, r.shape.active)),
    ("training, FLOPs a token", lambda r: _some(r.cost.training_flops)),
    ("inference, FLOPs a token", lambda r: _some(r.cost.inference_flops)),
    ("cache, bytes a token", lambda r: _some(r.cost.cache_bytes)),
    ("cache of the context", lambda r: _some(r.cost.context_cache_bytes, "B")),
    ("weights", lambda r: f"{_short(r.cost.weight_bytes)}B {_stored(r)}"),
    ("training with Adam", lambda r: f"{_short(r.cost.training_bytes)}B"),
    ("log3 sep ≥, published", lambda r: _bound(r.lower_log3)),
    ("log3 sep ≤, published", lambda r: "refuted" if r.upper_refuted else _bound(r.upper_log3)),
    ("log3 sep ≥, one head", lambda r: _bound(r.growth_log3)),
    ("log3 sep ≤, proven cap", lambda r: _bound(r.cap_log3)),
)
_OTHERS = ("layers", "width", "heads", "params", "training", "inference", "cache", "log3 sep ≥", "cap")


def print_advice(console: Console, advice: Advice) -> None:
    """At most 80 columns; nobody needs to have read the papers."""
    console.print(Text(advice.headline, style="bold"))
    for warning in advice.warnings:
        console.print(Text(warning, style="yellow"))
    for title, text in decision(advice):
        _line(console, title, text)
    console.print()
    columns = {"given": advice.given, "advised": advice.advised}
    columns = {name: one for name, one in columns.items() if one is not None}
    rows = [NotedRow((label, *(show(one) for one in columns.values()))) for label, show in _LINES]
    headers = ("", *columns)
    sizes = widths(headers, rows)
    sizes[0] = max(len(label) for label, _ in _LINES)
    print_noted(console, headers, rows, sizes)
    console.print()
    _line(console, "Parts", ", ".join(f"{part} {short(n)}" for part, n in advice.judged.shape.parts.items() if n))
    for title, text in theory(advice):
        _line(console, title, text)
    _line(
        console, "Costs", f"at {advice.judged.cost.context} tokens of context; see docs/advise.md for what is counted."
    )
    if advice.judged.shape.two_stacks:
        text = (
            "layers are those of the encoder + those of the decoder. One token passes one of them: training is the "
            "mean of both, the other numbers a token are of one that the decoder writes."
        )
        _line(console, "Encoder and decoder", text)
    for note in advice.judged.shape.notes:
        _line(console, "Note", note)
    if advice.judged.shape.speaks:
        _bottlenecks(console, advice)
    if advice.alternatives:
        _alternatives(console, advice)
    if advice.plan is not None:
        print_plan(console, advice.plan)
    _measured(console, advice)


def _bottlenecks(console: Console, advice: Advice) -> None:
    if not advice.bottlenecks:
        _line(console, "Bottlenecks", "none found.")
    for one in advice.bottlenecks:
        _line(console, f"Bottleneck, {one.kind}", f"{_beyond(one)}{one.why} {_fate(one, advice)}", "yellow")
    kinds = {one.kind for one in advice.bottlenecks}
    for one in advice.left:
        if one.kind not in kinds:
            _line(console, f"Bottleneck of the advised shape alone, {one.kind}", f"{_beyond(one)}{one.why}", "yellow")


def _beyond(one: Bottleneck) -> str:
    share = one.beyond_cap_share
    return f"{percent(share)} of the blocks' parameters lie beyond the cap. " if share else ""


def _fate(one: Bottleneck, advice: Advice) -> str:
    """What becomes of it in the advised shape."""
    if advice.given is None:
        return "This is the advised shape's own."
    if advice.advised is None:
        return ""
    if advice.advised.shape == advice.given.shape:
        return "The advised shape is the given one: it is still there."
    left = next((other for other in advice.left if other.kind == one.kind), None)
    if left is None:
        return "Gone in the advised shape."
    share = f", {percent(left.beyond_cap_share)} of its blocks" if left.beyond_cap_share else ""
    return f"Still there in the advised shape{share}."


def _alternatives(console: Console, advice: Advice) -> None:
    console.print()
    console.print(Text("The same budget at other depths", style="bold"))
    rows = []
    for one in advice.alternatives:
        shape = one.shape
        cells = (
            shape.layers,
            f"{shape.width}",
            f"{shape.heads}",
            said(shape),
            _some(one.cost.training_flops),
            _some(one.cost.inference_flops),
            _some(one.cost.cache_bytes),
            _bound(one.lower_log3),
            _bound(one.cap_log3),
        )
        rows.append(
            NotedRow(cells, styles=["bold"] * len(cells) if advice.advised and shape == advice.advised.shape else ())
        )
    print_noted(console, _OTHERS, rows, widths(_OTHERS, rows))
    text = "FLOPs and bytes a token. Layers run one after the other: latency grows with their number."
    console.print(Text(text, style="dim"))


def _measured(console: Console, advice: Advice) -> None:
    for name, one in (advice.measured or {}).items():
        text = (
            f"{one.tokens_per_second:,.0f} tokens/s, {_short(one.peak_bytes)}B at most, on {one.device} in {one.dtype}"
            f": {one.what}."
        )
        _line(console, f"Measured, {name}", text)


def _line(console: Console, title: str, text: str, style: str = "") -> None:
    console.print(Text.assemble((f"{title}: ", f"bold {style}".strip()), text))


def _short(count: float) -> str:
    """Three digits and the letter of the SI."""
    return short(count).replace("B", "G")


def _some(count: float | None, unit: str = "") -> str:
    return DASH if not count else f"{_short(count)}{unit}"


def _counted(rated: Rated, count: int) -> str:
    """To the last parameter, or about so many."""
    return f"{count:,}" if rated.shape.exact else f"about {short(count)}"


def _stored(rated: Rated) -> str:
    how = rated.shape.quantised
    return f"in {how.method}" if how is not None and how.bits else "in bfloat16"


def _bound(value: float | None) -> str:
    if value is None:
        return DASH
    return "vacuous" if value <= 0 else _short(value)
