"""`theodolite claims list` and `theodolite claims check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, Printing, Site, grouped
from theodolite.cli.options import print_json, provenance
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import plainly, tabbed, terminal
from theodolite.loading import loading

app = typer.Typer(no_args_is_help=True, help="What the sources claim, and what measurement says of it.")


@app.command("list")
@grouped
def list_(output: Printing) -> None:
    """List the claims with the rule each is decided by."""
    from theodolite.claims.judge import list_claims

    found = list_claims()
    if output.json:
        print_json(found)
        return
    show_claims(found)


def show_claims(found: Sequence[Mapping[str, Any]]) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    console = terminal()
    for claim in found:
        rules = {"Decided by": claim} | ({"With --preset full": claim["full"]} if "full" in claim else {})
        words = [
            f"{title}: {rule['rule']} Sample: {rule['sample']}. Correction: {rule['correction']}. Stopping: "
            f"{rule['stopping'].rstrip('.')}. Record: {_record(rule)}."
            for title, rule in rules.items()
        ]
        if plainly():
            console.print(tabbed(*(claim[key] for key in ("id", "kind", "source", "statement", "quote")), *words))
            continue
        console.print(f"[bold]{claim['id']}[/bold]  [dim]{claim['kind']}, {claim['source']}[/dim]")
        console.print(Padding(escape(claim["statement"]), (0, 0, 0, 4)))
        if claim["quote"]:
            console.print(Padding(escape(f"“{claim['quote']}”"), (0, 0, 0, 4)))
        for rule in words:
            console.print(Padding(escape(rule), (0, 0, 0, 4)), style="dim")


@app.command("check")
@grouped
def check(
    site: Site,
    output: Computing,
    ids: Annotated[list[str] | None, Argument(metavar="[ID]...", help="Claims such as T4.")] = None,
    all_: Annotated[bool, Option("--all", help="Check every claim.")] = False,
    strict: Annotated[bool, Option("--strict", help="Exit 1 if a claim fails.")] = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="DIR", help="Keep what is finished there, and the scoreboard as report.html."),
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, help="Processes side by side; one per core with --all, else this one alone.")
    ] = None,
    archive: Annotated[
        Path | None,
        Option("--archive", metavar="FILE", help="Keep the verdicts in this JSON file, beside those of other claims."),
    ] = None,
    preset: Annotated[
        str, Option(help="quick, or full for claims with a rule at the size of their table (a GPU run).")
    ] = "quick",
    kept: Annotated[bool, Option("--kept", help="Decide by what is finished in --out; measure nothing.")] = False,
    device: Device = "cpu",
) -> None:
    """Measure what claims need and decide them by the rule fixed beforehand.

    With --out the same command again, also after a crash, goes on where it was.
    """
    with loading():
        from theodolite.claims.archive import keep
        from theodolite.claims.check import check_claims
        from theodolite.claims.tables.experiment import Preset
        from theodolite.errors import BadInput, Finding
        from theodolite.files import OutputFolder, check_writable
        from theodolite.lab.engines.by_name import default_workers
        from theodolite.measurement import finite
        from theodolite.report.page.page import RenderedSection, render_page
        from theodolite.surveys.scoreboard import scoreboard

    if bool(ids) == all_:
        raise BadInput("name the claims to check, such as T4, or say --all (and not both)")
    if archive is not None:
        check_writable(archive)
    folder = None if out is None else OutputFolder(out)
    with progress_bar() as bar:
        results = check_claims(
            ids or None,
            device,
            bar.count,
            out=out,
            engine=site.engine,
            cluster=site.cluster,
            workers=workers or (default_workers(device, site.engine) if all_ else None),
            preset=cast("Preset", preset),
            kept=kept,
        )
    where = provenance(device, site.engine)
    if archive is not None:
        keep(archive, [{**result, "version": where["theodolite"]} for result in results])
    if folder is not None:
        section = RenderedSection("claims", "Theory scoreboard", scoreboard(results))
        folder.write("report.html", render_page("Theory scoreboard", "claims of the sources", [section], where, ()))
    if output.json:
        print_json(finite(results))
    else:
        show_verdicts(results)
    failed = [r["id"] for r in results if r["verdict"] == "fails"]
    if strict and failed:
        raise Finding(f"{', '.join(failed)} failed as measured")


def show_verdicts(results: Sequence[Mapping[str, Any]]) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    console = terminal()
    colour = {"holds": "green", "fails": "red", "undecided": "yellow", "not run": "dim", "not a claim": "cyan"}
    for r in results:
        if plainly():
            about = (r["id"], r["verdict"], r["statement"], r["detail"], f"{r['cells']} cells", f"{r['seconds']:.1f} s")
            console.print(tabbed(*about, f"record {_record(r)}"))
            continue
        console.print(f"[bold]{r['id']}[/bold] [{colour[r['verdict']]}]{r['verdict']}[/]", end=" ")
        console.print(f"({r['cells']} cells, {r['seconds']:.1f} s; record {_record(r)})", style="dim")
        console.print(Padding(escape(r["statement"]), (0, 0, 0, 4)))
        console.print(Padding(escape(r["detail"]), (0, 0, 0, 4)), style="dim")


@app.command("page")
def page(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Files of `claims check --archive`.")],
    markdown: Annotated[
        Path | None, Option("--markdown", metavar="FILE", help="Write the page there instead of printing it.")
    ] = None,
) -> None:
    """Make the page of claims, docs/claims.md, of what is registered and of verdicts that were kept."""
    from theodolite.claims.archive import read
    from theodolite.cli.views.claims import claims_page
    from theodolite.files import check_writable, write_text

    if markdown is not None:
        check_writable(markdown)
    text = claims_page(read(files))
    if markdown is None:
        typer.echo(text, nl=False)
    else:
        write_text(markdown, text)


def _record(rule: Mapping[str, Any]) -> str:
    return f"{rule['record']} since {rule['registered'][:10]}" if rule["registered"] else f"{rule['record']}"
