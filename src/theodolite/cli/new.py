"""`theodolite new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from theodolite.cli.groups import Output, grouped
from theodolite.cli.options import print_json
from theodolite.cli.terminal import terminal


@grouped
def new(
    output: Output,
    kind: Annotated[str, Argument(help="net or task.")],
    name: Annotated[str, Argument(help="Of the class, such as MyNet.")],
    out: Annotated[Path, Option("--out", help="Folder that the two files are written into.")] = Path(),
) -> None:
    """Write a file to start a network or a task of your own from, and a test of it."""
    from theodolite.bench.new import new as write_new

    file, test = write_new(kind, name, out)
    if output.json:
        print_json({"file": str(file), "test": str(test)})
        return
    console = terminal()
    console.print(f"wrote {file} and {test}", markup=False, soft_wrap=True)
    first = file.read_text(encoding="utf-8").splitlines()[0].strip('"')
    console.print(f"try: {first.replace(file.name, str(file))}", markup=False, soft_wrap=True)
