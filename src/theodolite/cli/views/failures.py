"""The failures of gradient descent in a terminal: every published figure beside the measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_LABEL, _NUMBER = 32, 11
_MARKS = {"text": "", "digitised": "ᵈ", "re-run": "ʳ"}


def print_failures(
    console: Console, results: Sequence[Mapping[str, Any]], remedies: Sequence[Mapping[str, str]]
) -> None:
    """One block per experiment, then each failure beside its remedy."""
    for experiment in dict.fromkeys(r["experiment"] for r in results):
        _print_experiment(console, [r for r in results if r["experiment"] == experiment])
    if remedies:
        console.print()
        console.print(Text("Remedies", style="bold"))
        for cure in remedies:
            console.print(
                Text.assemble(
                    (f"{cure['remedy']}: ", "bold"),
                    f"{cure['failure']} → {cure['success']}, {cure['quantity']} {cure['before']} → {cure['after']}; ",
                    (cure["cost"], "dim"),
                )
            )


def _print_experiment(console: Console, results: Sequence[Mapping[str, Any]]) -> None:
    console.print()
    console.print(Text(f"{results[0]['title']} ({results[0]['section']})", style="bold"))
    header = f"{'':{_LABEL}}  {'published':>{_NUMBER}}  {'measured':>{_NUMBER}}  range"
    console.print(Text(header, style="dim"))
    for r in results:
        if r["error"] is not None:
            console.print(Text(f"not run, {r['settings']}: {r['error']}", style="red"))
            continue
        console.print(Text(f"{r['setting']} ({r['seeds']} seed{'s' if r['seeds'] > 1 else ''})"))
        console.print(_table(r))
    short = {r["shorter"]: None for r in results if r["shorter"]}
    if short:
        console.print(Text(f"Shorter than published: {'; '.join(short)}.", style="yellow"))
    origins = {row["origin"] for r in results for row in r["rows"]}
    legend = ["median and range over seeds"] if any(r.get("seeds", 1) > 1 for r in results) else []
    legend += ["ᵈ read off a figure"] if "digitised" in origins else []
    legend += ["ʳ run again by others, two seeds"] if "re-run" in origins else []
    seconds = sum(r.get("seconds") or 0.0 for r in results)
    console.print(Text("; ".join([*legend, f"{seconds:.0f} s"]), style="dim"))


def _table(result: Mapping[str, Any]) -> Table:
    """The figures of one setting; tables of an experiment stand below each other, so their columns are equally wide."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(width=_LABEL)
    for _ in ("published", "measured"):
        grid.add_column(justify="right", width=_NUMBER, no_wrap=True)
    grid.add_column(style="dim", no_wrap=True)
    for row in result["rows"]:
        some = "" if row["reached"] == row["seeds"] else f" ({row['reached']} of {row['seeds']})"
        never = "mostly not" if row["reached"] else "never"
        grid.add_row(
            Text(f"  {row['quantity']}{some}"),
            published_figure(row),
            never if row["measured"] is None else number(row["measured"]),
            f"{number(row['lowest'])} … {number(row['highest'])}" if row["reached"] > 1 else "",
        )
    return grid


def published_figure(row: Mapping[str, Any]) -> str:
    if row["published"] is None:
        return ""
    upper = "" if row["published_to"] is None else f"–{number(row['published_to'])}"
    return f"{'≈' if row['about'] else ''}{number(row['published'])}{upper}{_MARKS[row['origin']]}"


def number(value: float) -> str:
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    if isinstance(value, int) or (value == int(value) and abs(value) >= 10):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
