"""`theodolite reproduce`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from theodolite.cli.options import (
    Device,
    Json,
    LogFile,
    Seed,
    Threads,
    Verbose,
    prepare,
    print_json,
    progress_bar,
)

if TYPE_CHECKING:
    from rich.console import Console

_LABEL, _NUMBER = 32, 11


def reproduce(
    table: Annotated[str, typer.Argument(help="Which published results: failures.")] = "failures",
    only: Annotated[
        str | None, typer.Option("--only", metavar="A,B", help="Experiments of it, such as parity,curves.")
    ] = None,
    preset: Annotated[str, typer.Option(help="quick (minutes on one core) or published (the paper's size).")] = "quick",
    seeds: Annotated[int | None, typer.Option(min=1, help="Networks trained for each setting.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep what is finished there; it is not run again.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes side by side; this one alone otherwise.")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = None,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Run published experiments again: every published figure beside the measured one."""
    prepare(threads, verbose, log_file)
    from theodolite.claims.reproduce import remedies
    from theodolite.claims.reproduce import reproduce as measure
    from theodolite.instruments.failures.contract import Preset

    named = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    with progress_bar() as bar:
        results = measure(
            table, cast("Preset", preset), named, seeds, device, seed, bar.count, out=out, workers=workers
        )
    cures = remedies(results)
    if json:
        print_json({"table": table, "preset": preset, "results": results, "remedies": cures})
        return
    from rich.console import Console

    _show(Console(highlight=False), results, cures)


def _show(console: Console, results: Sequence[Mapping[str, Any]], cures: Sequence[Mapping[str, str]]) -> None:
    from rich.text import Text

    for experiment in dict.fromkeys(r["experiment"] for r in results):
        own = [r for r in results if r["experiment"] == experiment]
        console.print()
        console.print(Text(f"{own[0]['title']} ({own[0]['section']})", style="bold"))
        header = f"{'':{_LABEL}}  {'published':>{_NUMBER}}  {'measured':>{_NUMBER}}  range"
        console.print(Text(header, style="dim"))
        for r in own:
            if r["error"] is not None:
                console.print(Text(f"not run, {r['settings']}: {r['error']}", style="red"))
                continue
            console.print(Text(f"{r['setting']} ({r['seeds']} seed{'s' if r['seeds'] > 1 else ''})"))
            console.print(_table(r))
        short = {r["shorter"]: None for r in own if r["shorter"]}
        if short:
            console.print(Text(f"Shorter than published: {'; '.join(short)}.", style="yellow"))
        origins = {row["origin"] for r in own for row in r["rows"]}
        legend = ["median and range over seeds"] if any(r.get("seeds", 1) > 1 for r in own) else []
        legend += ["ᵈ read off a figure"] if "digitised" in origins else []
        legend += ["ʳ run again by others, two seeds"] if "re-run" in origins else []
        seconds = sum(r.get("seconds") or 0.0 for r in own)
        console.print(Text("; ".join([*legend, f"{seconds:.0f} s"]), style="dim"))
    if cures:
        console.print()
        console.print(Text("Remedies", style="bold"))
        for cure in cures:
            console.print(
                Text.assemble(
                    (f"{cure['remedy']}: ", "bold"),
                    f"{cure['failure']} → {cure['success']}, {cure['quantity']} {cure['before']} → {cure['after']}; ",
                    (cure["cost"], "dim"),
                )
            )


def _table(result: Mapping[str, Any]) -> Any:
    """The figures of one setting; tables of an experiment stand below each other, so their columns are equally wide."""
    from rich.table import Table
    from rich.text import Text

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
            _published(row),
            never if row["measured"] is None else _number(row["measured"]),
            f"{_number(row['lowest'])} … {_number(row['highest'])}" if row["reached"] > 1 else "",
        )
    return grid


def _published(row: Mapping[str, Any]) -> str:
    if row["published"] is None:
        return ""
    upper = "" if row["published_to"] is None else f"–{_number(row['published_to'])}"
    mark = {"text": "", "digitised": "ᵈ", "re-run": "ʳ"}[row["origin"]]
    return f"{'≈' if row['about'] else ''}{_number(row['published'])}{upper}{mark}"


def _number(value: float) -> str:
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    if isinstance(value, int) or (value == int(value) and abs(value) >= 10):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
