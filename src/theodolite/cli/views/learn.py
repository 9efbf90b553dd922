"""Trained members in a terminal: what was learnt, net by net, and member by member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from theodolite.measurement import canonical
from theodolite.report import Column, Table
from theodolite.report.numbers import DASH, format_value
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths
from theodolite.report.terminal.tables import rich_table

_LENGTHS = 5  # shown of those that were evaluated
_HEADERS = ("net", "solved", "mean score", "range", "unseen", "steps")
_FOOTER = (
    "solved: members at or above the threshold on fresh data of trained lengths, with Wilson's 95 % interval for the "
    "share. mean score, range: over the members that did not diverge, with a 95 % interval for the mean. unseen: mean "
    "score at lengths never trained on. steps: median to solve it, among those that did. Chance: the score of the "
    "best constant answer."
)


def print_learning(console: Console, summary: Sequence[Mapping[str, Any]]) -> None:
    """One block per task and one row per net, with what it was and how it ran below it."""
    blocks: dict[str, list[Mapping[str, Any]]] = {}
    for entry in summary:
        blocks.setdefault(canonical([entry["task"], entry["task_args"]]), []).append(entry)
    rows = {name: [_row(entry) for entry in entries] for name, entries in blocks.items()}
    sizes = widths(_HEADERS, [row for block in rows.values() for row in block])
    for name, entries in blocks.items():
        console.print(_heading(entries[0]))
        print_noted(console, _HEADERS, rows[name], sizes)
        console.print()
    console.print(Text(_FOOTER if summary else "no trained members", style="dim"))


def print_members(console: Console, members: Sequence[Mapping[str, Any]]) -> None:
    """One line per member; settings that are the same for all are left out."""
    columns = [
        Column("net", "net", numeric=False),
        Column("task", "task", numeric=False),
        Column("seed", "seed"),
        Column("lr", "lr"),
        *(column for column in _OPTIONAL if _varies(members, column.key)),
        Column("status", "status", numeric=False),
        Column("accuracy", "score"),
        Column("unseen", "unseen"),
        Column("solved_at", "steps"),
        Column("key", "key", numeric=False),
    ]
    caption = "score: on fresh data of trained lengths. unseen: at lengths never trained on. steps: taken to solve it."
    console.print(rich_table(Table("", columns, members, caption), console.width))


_OPTIONAL = (
    Column("weight_decay", "decay"),
    Column("optimiser", "optimiser", numeric=False),
    Column("steps", "of steps"),
    Column("batch", "batch"),
    Column("shape", "shape", numeric=False),
    Column("task_args", "fields of the task", numeric=False),
)


def _varies(members: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Within one net and task: what another net or task has is told by their names."""
    return len({(m["net"], m["task"], m[key]) for m in members}) > len({(m["net"], m["task"]) for m in members})


def _heading(entry: Mapping[str, Any]) -> Text:
    fields = ", ".join(f"{name} {format_value(value)}" for name, value in entry["task_args"].items())
    scoring = f"score: {entry['score']}, chance {score(entry['chance'])}, solved from {score(entry['threshold'])}"
    unseen = _unseen_lengths(entry)
    lengths = f"; unseen lengths {_span(unseen)}" if unseen else ""
    return Text.assemble((entry["task"], "bold"), (f"  {fields}\n{scoring}{lengths}", "dim"))


def _row(entry: Mapping[str, Any]) -> NotedRow:
    solved, accuracy, steps = entry["solved"], entry["accuracy"], entry["steps_to_solve"]
    cells = (
        entry["net"],
        share(solved["count"], solved["of"], solved["interval"]),
        _mean(accuracy),
        DASH if accuracy is None else f"{score(accuracy['min'])}–{score(accuracy['max'])}",
        DASH if entry["unseen"] is None else score(entry["unseen"]["mean"]),
        DASH if steps is None else format_value(round(steps["median"])),
    )
    colour = "green" if solved["count"] == solved["of"] > 0 else "yellow" if solved["count"] else ""
    return NotedRow(cells, [note for note in (_what(entry), _rates(entry), _lengths(entry)) if note], ("bold", colour))


def _what(entry: Mapping[str, Any]) -> str:
    parts = [", ".join(f"{name} {format_value(value)}" for name, value in entry["shape"].items())]
    parts.append(f"{format_value(entry['parameters'])} parameters")
    parts.append(_state(entry["state_size"]))
    if entry.get("converged") is not None:
        parts.append(f"{entry['converged']['mean']:.0%} of inputs converge")
    if entry.get("mean_steps") is not None:
        parts.append(f"{entry['mean_steps']['mean']:.1f} steps a token")
    parts.append(f"{entry['batching']} on {entry['device']}" if entry["batching"] and entry["device"] else "")
    parts.append(f"{_rounded(entry['seconds'])} s")
    return " · ".join(part for part in parts if part)


def _rounded(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"


def _state(size: Any) -> str:
    """A number, or what is known where there is none: `size` is one only where it is resolved."""
    if size is None:
        return ""
    if not isinstance(size, Mapping):
        return f"state {format_value(size)}"
    least, most = size.get("at_least"), size.get("at_most")
    if size.get("size") is not None:
        # A size with no bounds beside it was given, not measured.
        if least is None or least == most:
            return f"state {format_value(size['size'])}"
        return f"state ≥ {format_value(least)}" if most is None else f"state ≤ {format_value(most)}"
    if size.get("growth_per_token"):
        return f"state grows by {format_value(size['growth_per_token'])} a token"
    return f"state ≥ {format_value(least)}" if least else ""


def _rates(entry: Mapping[str, Any]) -> str:
    """Which rates solved it, where there were several; how long all of them had; who diverged."""
    rates = entry["rates"]
    decays = len({rate["weight_decay"] for rate in rates}) > 1
    parts = []
    for rate in rates if len(rates) > 1 else ():
        name = f"lr {format_value(rate['lr'])}" + (f", decay {format_value(rate['weight_decay'])}" if decays else "")
        parts.append(f"{name}: {rate['solved']['count']}/{rate['solved']['of']} solved")
    if len(rates) == 1:
        parts.append(f"lr {format_value(rates[0]['lr'])}")
    parts.append(f"{format_value(entry['steps'])} steps at most" if entry["steps"] else "not trained here")
    if entry["diverged"]:
        parts.append(f"{entry['diverged']} diverged")
    return " · ".join(parts)


def _lengths(entry: Mapping[str, Any]) -> str:
    """The score at a few of the lengths: the shortest, the longest trained and the longest of all among them."""
    found = entry["by_length"]
    if len(found) < 2:
        return ""
    count = min(_LENGTHS, len(found))
    chosen = {round(i * (len(found) - 1) / (count - 1)) for i in range(count)}
    longest = entry["trained_lengths"][-1] if entry["trained_lengths"] else None
    trained = [at for at, one in enumerate(found) if longest is not None and one["length"] <= longest]
    chosen |= set(trained[-1:])
    upto = "" if longest is None else f", trained up to {longest}"
    return f"by length{upto}: " + " · ".join(
        f"{found[at]['length']} → {score(found[at]['accuracy'])}" for at in sorted(chosen)
    )


def _unseen_lengths(entry: Mapping[str, Any]) -> list[int]:
    trained = entry["trained_lengths"] or [entry["task_args"].get("longest")]
    longest = trained[-1]
    return [] if longest is None else [one["length"] for one in entry["by_length"] if one["length"] > longest]


def _span(lengths: Sequence[int]) -> str:
    return str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]}–{lengths[-1]}"


def _mean(spread: Mapping[str, Any] | None) -> str:
    if spread is None:
        return DASH
    if spread["interval"] is None:
        return score(spread["mean"])
    low, _ = spread["interval"]  # the upper end is cut off where no score is above 1
    return f"{score(spread['mean'])} ± {score(spread['mean'] - low)}"


def share(count: int, of: int, interval: Sequence[float] | None) -> str:
    """`13/16 (57–93 %)`."""
    if interval is None:
        return f"{count}/{of}"
    low, high = (round(100 * end) for end in interval)
    return f"{count}/{of} ({low}–{high} %)"


def score(value: float) -> str:
    """Three decimals, so that scores stand below each other; an explained variance may be far below 0."""
    return f"{value:.3f}" if abs(value) < 100 else format_value(value)
