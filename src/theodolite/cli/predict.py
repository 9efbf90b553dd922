"""`theodolite predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from theodolite.cli.groups import Computing, grouped
from theodolite.cli.options import print_json
from theodolite.errors import BadInput
from theodolite.loading import loading


@grouped
def predict(
    output: Computing,
    folder: Annotated[Path, Argument(help="What `theodolite discover --out` wrote.")],
    data: Annotated[str, Argument(help="A table (.csv, .tsv, .parquet) with the columns that it learnt from.")],
    coverage: Annotated[float, Option(help="The share of rows whose target the intervals hold.")] = 0.9,
    no_header: Annotated[bool, Option("--no-header", help="The file has no names; they become x1, x2, …")] = False,
    out: Annotated[Path | None, Option("--out", help="A .csv file to write instead of printing it.")] = None,
) -> None:
    """Predict new rows by the network that discover found, with an interval for each."""
    with loading():
        from theodolite.files import write_text
        from theodolite.measurement import finite
        from theodolite.structure.predictions import predict as find

    if out is not None and out.suffix.lower() != ".csv":
        raise BadInput(f"--out '{out}' is no .csv file: predictions are written as one")
    told = find(folder, data, coverage=coverage, header=not no_header)
    if out is not None:
        write_text(out, told.to_csv())
    for note in told.notes:
        typer.echo(f"Note: {note}", err=True)
    if output.json:
        print_json(finite(told.to_json()))
    elif out is None:
        typer.echo(told.to_csv(), nl=False)
    else:
        typer.echo(str(out))
