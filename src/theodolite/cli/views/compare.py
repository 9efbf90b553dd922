"""Two choices of members, pair by pair, in a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from theodolite.bench.compare import Comparison, TaskComparison
from theodolite.cli.views.learn import score
from theodolite.report.numbers import DASH, format_value
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths

_HEADERS = ("task", "A", "B", "B − A", "95 % interval", "won/tied/lost", "p")
_METRICS = {
    "accuracy": "score on fresh data of trained lengths",
    "unseen": "score at lengths never trained on",
    "steps": "steps to solve the task, where both members did",
}
_LEFT_OUT = {
    "accuracy": "with a member that diverged",
    "unseen": "without that score on both sides",
    "steps": "that did not both solve it",
}
_FOOTER = (
    "A, B: means over the pairs. The interval is Student's for the mean of paired differences. Won are pairs in which "
    "B is better, and p is their sign test's. Solved shares are over all pairs, with Newcombe's paired interval. Each "
    "task stands for itself: of twenty tasks without any difference, one is expected to show one."
)


def print_comparison(console: Console, found: Comparison) -> None:
    """A row per task, with the verdict and the solved shares below it."""
    console.print(Text.assemble(("A ", "bold"), found.first, ("  the baseline", "dim")))
    console.print(Text.assemble(("B ", "bold"), found.second))
    console.print(Text(_METRICS[found.metric], style="dim"))
    console.print()
    several = {one.task for one in found.tasks if sum(1 for other in found.tasks if other.task == one.task) > 1}
    rows = [_row(one, found.metric, one.task in several) for one in found.tasks]
    print_noted(console, _HEADERS, rows, widths(_HEADERS, rows))
    console.print()
    if any(found.unpaired):
        text = f"without a partner: {found.unpaired[0]} members of A, {found.unpaired[1]} of B"
        console.print(Text(text, style="yellow"))
    console.print(Text(_FOOTER, style="dim"))


def _row(one: TaskComparison, metric: str, several: bool) -> NotedRow:
    number = _steps if metric == "steps" else score
    low, high = one.interval or (None, None)
    cells = (
        one.task,
        DASH if one.means is None else number(one.means[0]),
        DASH if one.means is None else number(one.means[1]),
        DASH if one.difference is None else _signed(one.difference, number),
        DASH if low is None or high is None else f"{_signed(low, number)} to {_signed(high, number)}",
        f"{one.wins}/{one.ties}/{one.losses}",
        format_value(float(f"{one.p:.2g}")),
    )
    text = Text.assemble((verdict(one, metric), "" if one.verdict == "undecided" else "bold"))
    notes: list[str | Text] = [text.append(f"; {_counts(one, metric)}", "dim")]
    if several:
        notes.insert(0, ", ".join(f"{name} {format_value(value)}" for name, value in one.task_args.items()))
    low, high = one.solved_interval
    notes.append(
        f"solved: A {one.solved[0]}/{one.pairs}, B {one.solved[1]}/{one.pairs}, B − A "
        f"{_points(one.solved_difference)} points ({_points(low)} to {_points(high)})"
    )
    return NotedRow(cells, notes, ("bold",))


def verdict(one: TaskComparison, metric: str) -> str:
    """In plain words, from the interval."""
    if one.verdict == "too few pairs":
        return "too few pairs for an interval"
    if one.verdict == "undecided":
        return "no difference shown at 95 %"
    name = {"first": "A", "second": "B"}[one.verdict]
    return f"{name} needs more steps" if metric == "steps" else f"{name} higher"


def _counts(one: TaskComparison, metric: str) -> str:
    text = f"{one.compared} pairs" if one.compared != 1 else "1 pair"
    if one.compared < one.pairs:
        text += f" ({one.pairs - one.compared} more {_LEFT_OUT[metric]})"
    if any(one.unpaired):
        text += f", without a partner {one.unpaired[0]} of A and {one.unpaired[1]} of B"
    return text


def _signed(value: float, number: Callable[[float], str]) -> str:
    return f"{'−' if value < 0 else '+'}{number(abs(value))}"


def _points(share: float) -> str:
    """Percentage points."""
    return f"{round(100 * share):+d}".replace("-", "−").replace("+0", "0")


def _steps(value: float) -> str:
    return format_value(round(value))
