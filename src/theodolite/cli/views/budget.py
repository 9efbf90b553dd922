"""The plan of a run in a terminal: the budget in its three coins, sizes beside it, memory."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from theodolite.advice.budget.frontier import Frontier
from theodolite.advice.budget.plan import Plan
from theodolite.advice.budget.published_runs import nearest_runs
from theodolite.advice.budget.spending import Spending
from theodolite.advice.result import short
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths

_SIZES = ("size", "params", "layers", "width", "tokens", "a param", "loss", "inference")
_PARTS = ("weights", "gradients", "optimiser", "activations")


def print_plan(console: Console, plan: Plan) -> None:
    """At most 80 columns."""
    console.print()
    if plan.spending is not None:
        _budget(console, plan, plan.spending)
    if plan.frontier is not None:
        _frontier(console, plan.frontier)
    _training(console, plan)
    _inference(console, plan)
    for note in plan.notes:
        _line(console, "Note", note)


def _budget(console: Console, plan: Plan, spent: Spending) -> None:
    text = (
        f"{short(spent.tokens)} tokens = {spent.flops:.3g} FLOPs, {spent.flops_per_token:.3g} a token at "
        f"{plan.setting.sequence} tokens of context"
    )
    if plan.rate is not None and spent.gpu_hours is not None and spent.days is not None:
        text += (
            f", = {short(spent.gpu_hours)} GPU-hours on {plan.rate.gpu.name} at {plan.rate.mfu:.0%} of its peak: "
            f"{_plain(spent.days)} days on {plan.rate.gpus}"
        )
    _line(console, "Budget", f"{text}.")
    near = ", ".join(f"{run.model} {_plain(run.tokens_per_parameter)}" for run in nearest_runs(_ratio(spent)))
    text = f"{_plain(_ratio(spent))}, {_plain(spent.times_chinchilla)} times Chinchilla's 20. In use: {near}."
    _line(console, "Tokens per parameter", text)


def _frontier(console: Console, sizes: Frontier) -> None:
    for best in sizes.optima:
        text = (
            f"{short(best.params)} parameters on {short(best.tokens)} tokens; {short(best.low)} to {short(best.high)} "
            "are within 1% of its loss."
        )
        _line(console, f"Best size by {best.source}", text)
    console.print()
    console.print(Text("The same FLOPs, and days, at other sizes", style="bold"))
    rows = [
        NotedRow(
            (
                point.label,
                short(point.params),
                f"{point.depth}",
                f"{point.width}",
                short(point.tokens),
                _plain(point.tokens_per_parameter),
                "best" if point.above_best == 0 else f"+{point.above_best:.2%}",
                short(point.inference_flops).replace("B", "G"),
            ),
            styles=["bold"] * len(_SIZES) if point.label.endswith(("this model", ", this")) else (),
        )
        for point in sizes.points
    ]
    print_noted(console, _SIZES, rows, widths(_SIZES, rows))
    text = f"Loss by the fit of {sizes.source}, above the least here; inference in FLOPs a token."
    console.print(Text(text, style="dim"))
    console.print()


def _training(console: Console, plan: Plan) -> None:
    found, how = plan.training, plan.setting
    parts = [f"{part} {_bytes(getattr(found, part))}" for part in _PARTS if getattr(found, part)]
    if found.working:
        parts.append(f"{'logits' if found.logits else 'a block at work'} {_bytes(found.working)}")
    if found.gathered:
        parts.append(f"gathered weights {_bytes(found.gathered)}")
    where = f"{how.batch} × {how.sequence} tokens, recompute {how.recompute}, ZeRO {how.zero}, GPUs {how.gpus}"
    if how.tensor * how.pipeline > 1:
        where += f" ({how.tensor} tensor × {how.pipeline} pipeline)"
    _line(console, "Memory of training", f"{', '.join(parts)}; {where}, {how.optimiser}, {how.kernels} kernels.")
    console.print(Text(plan.verdict, style="" if plan.fits in (None, True) else "bold yellow"))


def _inference(console: Console, plan: Plan) -> None:
    found = plan.inference
    cache = ", ".join(f"{_bytes(kept)} at {length}" for length, kept in found.cache.items() if kept)
    bits = f"{found.bits} bits" if found.bits else "as stored"
    text = f"weights {_bytes(found.weights)} ({bits})"
    if cache:
        text += f"; cache of {found.batch} {'sequence' if found.batch == 1 else 'sequences'} {cache} tokens"
    if plan.gpu is not None and plan.whole:
        fitting = [length for length in found.cache if found.total(length) <= plan.gpu.bytes]
        text += f"; {'fits' if fitting else 'does not fit'} on one {plan.gpu}"
        if 0 < len(fitting) < len(found.cache):
            text += f" up to {max(fitting)}"
    _line(console, "Memory of inference", f"{text}.")


def _line(console: Console, title: str, text: str) -> None:
    console.print(Text.assemble((f"{title}: ", "bold"), text))


def _bytes(count: float) -> str:
    return f"{short(count).replace('B', 'G')}B"


def _ratio(spent: Spending) -> float:
    return spent.tokens_per_parameter


def _plain(number: float) -> str:
    """Two digits of what is small, else whole."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
