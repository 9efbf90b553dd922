"""`theodolite reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, Seed, Site, grouped
from theodolite.cli.options import print_json, provenance
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.errors import CellsFailed
from theodolite.loading import loading


@grouped
def reproduce(
    site: Site,
    output: Computing,
    table: Annotated[
        str, Argument(help="Which published results: chomsky, universal-transformer, recall or failures.")
    ] = "failures",
    only: Annotated[
        str | None, Option("--only", metavar="A,B", help="Experiments of it, such as parity-check,reverse.")
    ] = None,
    nets: Annotated[
        str | None, Option("--nets", metavar="A,B", help="Columns of a table that compares networks.")
    ] = None,
    preset: Annotated[
        str, Option(help="quick (minutes on a CPU) or full (as near to the paper as a GPU gets).")
    ] = "quick",
    seeds: Annotated[
        int | None, Option(min=1, help="Networks trained for each setting, at each learning rate.")
    ] = None,
    steps: Annotated[int | None, Option(min=1, help="Steps of training instead of the preset's number.")] = None,
    precision: Annotated[
        str | None, Option(help="Of products of matrices: float32, tf32 (CUDA; the full preset's) or bf16.")
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Keep what is finished there, not to run it again; report.html too."),
    ] = None,
    kept: Annotated[bool, Option("--kept", help="Show what is finished in --out; train nothing.")] = False,
    workers: Annotated[
        int | None, Option(min=1, help="Processes side by side; this one alone, all that fit on ray.")
    ] = None,
    markdown: Annotated[
        Path | None, Option("--markdown", metavar="FILE", help="Write the table to this file too.")
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Run published experiments again: every published figure beside the measured one."""
    with loading():
        from theodolite.claims.reproduce import remedies, statements, tables
        from theodolite.claims.reproduce import reproduce as measure
        from theodolite.claims.tables.experiment import Preset
        from theodolite.cli.views.reproduce import markdown as as_markdown
        from theodolite.cli.views.reproduce import summary
        from theodolite.files import OutputFolder, check_writable, write_text
        from theodolite.report.page.page import RenderedSection, render_page

    if markdown is not None:
        check_writable(markdown)
    with progress_bar() as bar:
        results = measure(
            table,
            cast("Preset", preset),
            _names(only),
            seeds,
            device,
            seed,
            bar.count,
            nets=_names(nets),
            steps=steps,
            precision=precision,
            out=out,
            engine=site.engine,
            cluster=site.cluster,
            workers=workers,
            kept=kept,
        )
    if markdown is not None:
        write_text(markdown, as_markdown(results))
    cures, said = remedies(results), statements(table, results)
    if out is not None and table != "failures":
        about = tables[table]
        asked = {
            "only": only,
            "nets": nets,
            "preset": preset,
            "seeds": seeds,
            "steps": steps,
            "precision": precision,
            "seed": seed or None,
        }
        options = [f"--{name} {value}" for name, value in asked.items() if value is not None]
        shown = summary(table, results, said, " ".join(["theodolite reproduce", table, *options]))
        section = RenderedSection(table, about.title, shown)
        page = render_page(about.title, about.source, [section], provenance(device, site.engine), ())
        OutputFolder(out).write("report.html", page)
    if output.json:
        print_json({"table": table, "preset": preset, "results": results, "remedies": cures, "statements": said})
    else:
        show(table, results)
        if out is not None and table != "failures":
            terminal().print(f"report: {out / 'report.html'}", markup=False, soft_wrap=True)
    failed = [r["error"] for r in results if r["error"] is not None and r.get("applicable", True)]
    if failed and not kept:
        raise CellsFailed(
            f"{len(failed)} of {len(results)} entries are not complete, the first because {failed[0]}; what is "
            "finished is kept in --out, and the same command tries these again"
        )


def show(table: str, results: Sequence[dict[str, Any]]) -> None:
    from theodolite.claims.reproduce import remedies, statements
    from theodolite.cli.views.failures import print_failures
    from theodolite.cli.views.reproduce import print_table

    if table == "failures":
        print_failures(terminal(), results, remedies(results))
    else:
        print_table(terminal(), results, statements(table, results))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
