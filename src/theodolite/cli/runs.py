"""`theodolite runs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from theodolite.cli.groups import Output, grouped
from theodolite.cli.options import print_json
from theodolite.cli.progress import catching_up
from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput
from theodolite.loading import loading
from theodolite.report.numbers import counted

if TYPE_CHECKING:
    from theodolite.bench.runs import Runs

_STDOUT = "-"


@grouped
def runs(
    output: Output,
    out: Annotated[Path, Option("--out", help="Folder of the store that 'theodolite learn' wrote to.")] = Path("runs"),
    net: Annotated[str | None, Option(help="Only these nets, with commas between them.")] = None,
    task: Annotated[str | None, Option(help="Only these tasks, with commas between them.")] = None,
    status: Annotated[str | None, Option(help="Only members that are solved, unsolved or diverged.")] = None,
    where: Annotated[
        list[str] | None,
        Option(metavar="KEY=VALUE", help="Only members with this value, such as lr=0.001; may be repeated."),
    ] = None,
    members: Annotated[bool, Option("--members", help="One line per member, not per net and task.")] = False,
    failures: Annotated[bool, Option("--failures", help="What could not be run; with -v the tracebacks.")] = False,
    csv: Annotated[
        str | None, Option(metavar="FILE", help="Write one line per member to this file; - is stdout.")
    ] = None,
    export: Annotated[
        tuple[str, Path] | None,
        Option(metavar="FORMAT DIR", help="Write members as runs of tensorboard, wandb (offline) or mlflow there."),
    ] = None,
) -> None:
    """List what was trained: how many members solved what, or each of them, also as CSV or JSON."""
    with loading():
        from theodolite.bench.runs import failures as stored_failures
        from theodolite.bench.runs import runs as read_runs
        from theodolite.files import check_writable, write_text

    if failures:
        if members or any(v is not None for v in (csv, export, net, task, status, where)):
            raise BadInput("--failures shows all that failed: leave out filters, --members, --csv and --export")
        _show_failures(stored_failures(out), output.json, output.verbose)
        return
    if csv == _STDOUT and output.json:
        raise BadInput("--csv - and --json would both write to stdout: give --csv a file")
    if csv not in (None, _STDOUT):
        check_writable(csv)
    with catching_up() as tell:
        found = read_runs(out, net=net, task=task, status=status, where=_pairs(where), tell=tell)
    if export is not None:
        new = found.export(*export)
        there = f", {found.members - new} were there" if new < found.members else ""
        typer.echo(f"{counted(new, 'member')} written to {export[1]} for {export[0]}{there}", err=True)
    if csv == _STDOUT:
        typer.echo(found.to_csv(), nl=False)
    elif csv is not None:
        write_text(csv, found.to_csv())
    if output.json:
        print_json(found.to_json())
    elif csv is None and export is None:
        show(found, members)
    elif csv not in (None, _STDOUT):
        typer.echo(f"{counted(found.members, 'member')} written to {csv}", err=True)


def _pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """Values stay text: what they are read as depends on the column."""
    result: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise BadInput(f"--where '{text}' is not KEY=VALUE: write for example --where lr=0.001")
        if key in result:
            raise BadInput(f"--where '{key}' is given twice: give it once")
        result[key] = value
    return result


def show(found: Runs, members: bool = False) -> None:
    from theodolite.cli.views.learn import print_learning, print_members

    console = terminal()
    if not found.members:
        console.print("no trained member is there, or none fits the filters")
    elif members:
        print_members(console, found.table)
    else:
        print_learning(console, found.summary)


def _show_failures(found: Sequence[dict[str, Any]], json: bool, verbose: bool) -> None:
    if json:
        print_json({"failures": list(found)})
        return
    from rich.padding import Padding
    from rich.text import Text

    console = terminal()
    for one in found:
        cells = f"{len(one['cells'])} cells" if len(one["cells"]) != 1 else f"cell {one['cells'][0]}"
        retried = ", tried again" if one["retried"] else ""
        console.print(Text.assemble((one["time"], "bold"), (f"  {cells}{retried}, pid {one['pid']}", "dim")))
        console.print(Padding(Text(one["sentence"]), (0, 0, 0, 2)))
        if verbose and one["traceback"]:
            console.print(Padding(Text(one["traceback"].rstrip(), style="dim"), (0, 0, 0, 4)))
    if not found:
        console.print("nothing failed")
    elif not verbose:
        console.print(Text("with -v, the tracebacks", style="dim"))
