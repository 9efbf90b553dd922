"""`theodolite survey`."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import Annotated, cast

import typer

from theodolite.cli.options import Device, Json, LogFile, Threads, Verbose, prepare, print_json, progress_bar


def survey(
    nets: Annotated[
        list[str] | None, typer.Argument(help="Built-in nets or file.py:Name; six polynomial ones when left out.")
    ] = None,
    preset: Annotated[str, typer.Option(help="quick (under a minute), standard or full.")] = "quick",
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html and rows.jsonl.")] = Path("survey"),
    json: Json = False,
    device: Device = "cpu",
    threads: Threads = None,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Turn all instruments on networks: print the tables and write a report that opens offline."""
    prepare(threads, verbose, log_file)
    from theodolite.instruments.device import resolve_device
    from theodolite.lab.cell import Row
    from theodolite.lab.files import OutputFolder
    from theodolite.measurement import Provenance
    from theodolite.report.page import RenderedSection, render_page
    from theodolite.survey.run import run_survey
    from theodolite.survey.section import Preset

    resolve_device(device)
    folder = OutputFolder(out)
    lines: list[str] = []

    def keep(row: Row) -> None:
        """Rows are on disk the moment they are measured."""
        entry = {"measure": row.cell.measure, "config": row.cell.config, "result": row.result, "error": row.error}
        lines.append(json_text.dumps(entry, ensure_ascii=False))
        folder.write("rows.jsonl", "\n".join(lines) + "\n")

    with progress_bar() as bar:
        result = run_survey(nets or (), cast("Preset", preset), device, bar.count, keep)
    provenance = Provenance.here(0, device)
    about = {
        "theodolite": provenance.version,
        "torch": provenance.torch,
        "python": provenance.python,
        "device": provenance.device,
        "date": provenance.date,
    }
    page = render_page(
        "Theodolite survey",
        f"{', '.join(result.nets)} · preset {result.preset}",
        [RenderedSection(s.id, s.title, s.summary) for s in result.sections],
        about,
        result.not_applicable,
    )
    report = folder.write("report.html", page)
    if json:
        rows = [dict(row.result) for section in result.sections for row in section.rows]
        print_json({"report": str(report), "preset": result.preset, "nets": list(result.nets), "rows": rows})
        return
    from rich.console import Console

    from theodolite.report.terminal import print_summary

    console = Console()
    for section in result.sections:
        print_summary(console, section.title, section.summary)
    for reason in result.not_applicable:
        console.print(f"not applicable: {reason}", style="dim", markup=False)
    console.print(f"report: {report}", markup=False, soft_wrap=True)
