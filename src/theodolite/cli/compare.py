"""`theodolite compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from theodolite.cli.groups import Output, grouped
from theodolite.cli.options import print_json
from theodolite.cli.progress import catching_up
from theodolite.cli.terminal import terminal
from theodolite.loading import loading


@grouped
def compare(
    output: Output,
    first: Annotated[
        str, Argument(metavar="A", help="The baseline: a net's name, or KEY=VALUE,… such as lstm,width=16.")
    ],
    second: Annotated[str, Argument(metavar="B", help="What is compared with it, named likewise.")],
    out: Annotated[Path, Option("--out", help="Folder of the store that 'theodolite learn' wrote to.")] = Path("runs"),
    task: Annotated[str | None, Option(help="Only these tasks, with commas between them.")] = None,
    metric: Annotated[
        str, Option(help="accuracy, unseen (at lengths never trained on) or steps (to solve it).")
    ] = "accuracy",
) -> None:
    """Compare trained members pair by pair with a baseline, task by task, with intervals.

    The two of a pair agree in task, seed, rates, optimiser and schedule, except in what A and B name.
    """
    with loading():
        from theodolite.bench.compare import compare as compare_runs

    with catching_up() as tell:
        found = compare_runs(first, second, out, task=task, metric=metric, tell=tell)
    if output.json:
        print_json(found.to_json())
        return

    from theodolite.cli.views.compare import print_comparison

    print_comparison(terminal(), found)
