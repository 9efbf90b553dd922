"""`theodolite survey`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option

from theodolite.cli.groups import Arguments, Device, Explain, Output, Site, Workers, WorkerThreads, grouped
from theodolite.cli.options import parse_arguments, print_explained, print_json, provenance
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import plainly, terminal
from theodolite.loading import loading
from theodolite.report.numbers import counted

if TYPE_CHECKING:
    from theodolite.surveys.against import Against
    from theodolite.surveys.run import Survey


@grouped
def survey(
    site: Site,
    output: Output,
    nets: Annotated[
        list[str] | None, Argument(help="Built-in nets or file.py:Name; the common architectures when left out.")
    ] = None,
    preset: Annotated[
        str, Option(help="quick (under 3 minutes on 2 cores), standard (under 30) or full (for a GPU).")
    ] = "quick",
    arg: Arguments = None,
    weights: Annotated[
        Path | None,
        Option(metavar="FILE", help="Weights of the one net named: measured built anew and with these; not trained."),
    ] = None,
    params: Annotated[
        str | None, Option(help="Parameters of built-in nets, such as 64k; as many as your net's otherwise.")
    ] = None,
    alone: Annotated[bool, Option("--alone", help="Survey your net without built-in ones beside it.")] = False,
    only: Annotated[
        str | None, Option(metavar="SECTION,…", help="Only these sections, such as matrix or learnability,cost.")
    ] = None,
    out: Annotated[
        Path, Option("--out", help="Folder for report.html and the store; what it has is not measured again.")
    ] = Path("survey"),
    against: Annotated[
        Path | None,
        Option("--against", metavar="OLD", help="Folder of an earlier survey: say what changed since, or between two."),
    ] = None,
    tables: Annotated[bool, Option("--tables", help="Print the report's tables, too.")] = False,
    workers: Workers = None,
    threads: WorkerThreads = None,
    explain: Explain = False,
    device: Device = "cpu",
) -> None:
    """Turn all instruments on networks: what can they do, and what not?

    Prints a card per network and writes a report that opens offline. Everything measured is kept under --out: the same
    command again, also after a crash, goes on where it was.
    """
    with loading():
        from theodolite.errors import BadInput
        from theodolite.files import OutputFolder
        from theodolite.lab.campaign import Listener
        from theodolite.lab.engines.by_name import default_workers
        from theodolite.report.page.page import RenderedSection, render_page
        from theodolite.surveys.run import ALL
        from theodolite.surveys.run import survey as run_survey
        from theodolite.surveys.section import Preset

    print_explained([net for net in nets or () if net != ALL], parse_arguments(arg), explain)
    with progress_bar() as bar:
        result = run_survey(
            nets or (),
            cast("Preset", preset),
            args=parse_arguments(arg),
            weights=weights,
            params=params,
            alone=alone,
            only=[name.strip() for name in only.split(",")] if only else (),
            device=device,
            engine=site.engine,
            cluster=site.cluster,
            workers=workers or default_workers(device, site.engine),
            threads=threads,
            out=out,
            against=against,
            listener=Listener(watch=bar.count),
        )
    if not result.asked and not result.sections:
        here = f"--only {only} has nothing to measure with --preset {preset}: use a larger one, or another section"
        raise BadInput(f"nothing could be measured: {next(iter(result.not_applicable), here)}")
    changes = [RenderedSection("against", f"Against {against}", result.against.summary())] if result.against else []
    page = render_page(
        "Theodolite survey",
        f"{', '.join(result.nets)} · preset {result.preset}; what is not learnt in steps so few may be in more",
        [*changes, *(RenderedSection(s.id, s.title, s.summary) for s in result.sections)],
        {**provenance(device, site.engine), "measurements": result.asked},
        result.not_applicable,
        nets=result.nets,
        command=result.command,
        sentences=result.conclusions,
    )
    OutputFolder(out).write("report.html", page)
    report = out / "report.html"
    if output.json:
        print_json(_document(result, report))
    else:
        _show(result, report, tables)


def _document(result: Survey, report: Path) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "report": str(report),
        "preset": result.preset,
        "nets": list(result.nets),
        "conclusions": list(result.conclusions),
        "answers": [asdict(answer) for answer in result.answers],
        "sections": [
            {
                "id": section.id,
                "title": section.title,
                "headline": section.summary.headline,
                "rows": [
                    {"config": dict(row.cell.config), "result": dict(row.result), "error": row.error}
                    for row in section.rows
                ],
            }
            for section in result.sections
        ],
        "against": _against(result.against),
        "not_applicable": list(result.not_applicable),
        "failures": list(result.failures),
        "reused": result.reused,
        "asked": result.asked,
        "seconds": round(result.seconds, 3),
        "command": result.command,
    }


def _against(found: Against | None) -> dict[str, Any] | None:
    from dataclasses import asdict

    if found is None:
        return None
    changes = [{**asdict(change), "verdict": change.verdict} for change in found.changes]
    return {**asdict(found), "changes": changes, "headline": found.headline}


def _show(result: Survey, report: Path, tables: bool) -> None:
    from theodolite.cli.views.survey import print_survey
    from theodolite.report.terminal.tables import print_summary

    console = terminal()
    print_survey(console, result, plainly())
    if tables:
        for section in result.sections:
            print_summary(console, section.title, section.summary)
        for reason in result.not_applicable:
            console.print(f"not applicable: {reason}", style="dim", markup=False, highlight=False)
    reused = f", {result.reused} of them from an earlier run" if result.reused else ""
    message = f"{counted(result.asked, 'measurement')}{reused}, {result.seconds:.0f} s; report: {report}"
    console.print(message, style="dim", markup=False, highlight=False, soft_wrap=True)
