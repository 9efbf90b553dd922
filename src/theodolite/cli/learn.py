"""`theodolite learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from theodolite.cli.options import (
    Address,
    Arguments,
    Device,
    Engine,
    Json,
    LogFile,
    Seed,
    Shared,
    Slurm,
    Verbose,
    Workers,
    WorkerThreads,
    cluster_of,
    parse_arguments,
    prepare,
    print_json,
    progress_bar,
    shape_arguments,
)
from theodolite.errors import BadInput, CellsFailed

if TYPE_CHECKING:
    from theodolite.bench.learn import Learning
    from theodolite.lab.campaign import Failure

_SHAPE, _TRAINING, _EVALUATION, _RUNNING = "Shape of the nets", "Training", "Evaluation", "Running"


def learn(
    net: Annotated[str, typer.Option(help="Nets with commas between them: built-in ones or file.py:Name.")],
    task: Annotated[str, typer.Option(help="Tasks with commas between them (see 'theodolite tasks').")],
    seeds: Annotated[int, typer.Option(help="Members per net, task and rates.")] = 8,
    lr: Annotated[
        str, typer.Option(rich_help_panel=_TRAINING, help="Learning rates with commas between them.")
    ] = "1e-3",
    weight_decay: Annotated[str, typer.Option(rich_help_panel=_TRAINING, help="Weight decays, likewise.")] = "0",
    steps: Annotated[int, typer.Option(rich_help_panel=_TRAINING, help="Steps at most; who solves it stops.")] = 2000,
    batch: Annotated[int, typer.Option(rich_help_panel=_TRAINING, help="Fresh rows per member and step.")] = 64,
    optimiser: Annotated[str, typer.Option(rich_help_panel=_TRAINING, help="adamw or sgd.")] = "adamw",
    momentum: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Of sgd.")] = 0.9,
    clip: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Largest gradient norm; 0 for none.")] = 1.0,
    to_the_end: Annotated[
        bool, typer.Option("--to-the-end", rich_help_panel=_TRAINING, help="Train on after solving the task.")
    ] = False,
    params: Annotated[
        str | None, typer.Option(rich_help_panel=_SHAPE, help="Parameters per net, such as 64k: sets the width.")
    ] = None,
    depth: Annotated[int | None, typer.Option(rich_help_panel=_SHAPE, help="Number of layers.")] = None,
    width: Annotated[int | None, typer.Option(rich_help_panel=_SHAPE, help="Numbers per token in a layer.")] = None,
    heads: Annotated[int | None, typer.Option(rich_help_panel=_SHAPE, help="Attention heads per layer.")] = None,
    arg: Arguments = None,
    task_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--task-arg", metavar="KEY=VALUE", help="A field of the task; TASK.KEY=VALUE for one of several tasks."
        ),
    ] = None,
    unseen: Annotated[
        str | None,
        typer.Option(rich_help_panel=_EVALUATION, help="Lengths beyond training: 41-500, 41-500/20, 50,100 or none."),
    ] = None,
    every: Annotated[int | None, typer.Option(rich_help_panel=_EVALUATION, help="Steps between evaluations.")] = None,
    rows: Annotated[int, typer.Option(rich_help_panel=_EVALUATION, help="Rows per length in an evaluation.")] = 32,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_EVALUATION, help="Evaluate these weights, without training."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", rich_help_panel=_RUNNING, help="Folder of the store; what it has is not run again.")
    ] = Path("runs"),
    keep_weights: Annotated[
        bool,
        typer.Option("--keep-weights", rich_help_panel=_RUNNING, help="Keep every member's weights in the folder."),
    ] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", rich_help_panel=_RUNNING, help="Write learning curves there too.")
    ] = None,
    engine: Engine = "local",
    address: Address = None,
    slurm: Slurm = None,
    shared: Shared = None,
    workers: Workers = None,
    threads: WorkerThreads = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1, rich_help_panel=_RUNNING, help="Members per batched call; 1 is the plain loop; else tried."
        ),
    ] = None,
    save_every: Annotated[
        float, typer.Option(min=0, rich_help_panel=_RUNNING, help="Seconds between checkpoints of what runs.")
    ] = 20.0,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", rich_help_panel=_RUNNING, help="Stop at the first cell that fails.")
    ] = False,
    max_failures: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_RUNNING, help="Stop after this many failed cells.")
    ] = None,
    json: Json = False,
    seed: Seed = 0,
    device: Device = "cpu",
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> None:
    """Train networks on tasks, many at once, and see how many of them learn what.

    Members of one shape run as one batched program. Everything finished is kept under --out: the same command again,
    also after a crash, goes on where it was.
    """
    prepare(None, verbose, log_file)
    from rich.console import Console

    from theodolite.bench.learn import learn as run_learn
    from theodolite.bench.learn import weights_file
    from theodolite.lab.campaign import Listener
    from theodolite.lab.engines.by_name import default_workers

    shape = shape_arguments({"depth": depth, "width": width, "heads": heads}, arg)
    errors = Console(stderr=True)

    def show(failure: Failure) -> None:
        errors.print(f"failed: {_described(failure)}", style="red", markup=False, highlight=False, soft_wrap=True)

    with progress_bar() as bar:
        result = run_learn(
            net,
            task,
            seeds=seeds,
            lr=_numbers("--lr", lr),
            weight_decay=_numbers("--weight-decay", weight_decay),
            steps=steps,
            params=params,
            shape=shape,
            task_args=parse_arguments(task_arg, "--task-arg"),
            batch=batch,
            optimiser=optimiser,
            momentum=momentum,
            clip=clip or None,
            every=every,
            rows=rows,
            unseen=unseen,
            to_the_end=to_the_end,
            checkpoint=checkpoint,
            chunk=chunk,
            seed=seed,
            out=out,
            keep_weights=keep_weights,
            save_every=save_every,
            device=device,
            engine=engine,
            cluster=cluster_of(address, slurm, shared),
            workers=workers or default_workers(device, engine),
            threads=threads,
            max_failures=1 if fail_fast else max_failures,
            tensorboard=tensorboard,
            listener=Listener(watch=bar.count, failure=show),
        )
    if json:
        print_json(result.to_json())
    else:
        _show(result, out)
    if keep_weights and (without := sum(1 for row in result.rows if not weights_file(out, row.cell.key).is_file())):
        message = f"weights are kept as members finish: {without} that finished in an earlier run have none"
        errors.print(message, style="dim", markup=False, highlight=False, soft_wrap=True)
    if result.failures:
        failed = sum(len(f.cells) for f in result.failures)
        message = f"{failed} of {result.asked} members failed, the first with: {result.failures[0].sentence}"
        left = result.asked - failed - len(result.rows)
        stopped = f", and {left} were not run" if left else ""
        raise CellsFailed(f"{message}{stopped}; the finished ones are kept, and the same command tries these again")


def _show(result: Learning, out: Path) -> None:
    from rich.console import Console

    from theodolite.cli.views.learn import print_learning

    console = Console()
    if result.summary:
        print_learning(console, result.summary)
    for reason in result.not_applicable:
        console.print(f"not applicable: {reason}", style="dim", markup=False, highlight=False)
    reused = f" ({result.reused} of them from an earlier run)" if result.reused else ""
    message = f"{len(result.rows)} members kept in {out}{reused}: see 'theodolite runs --out {out}'"
    console.print(message, style="dim", markup=False, highlight=False, soft_wrap=True)


def _described(failure: Failure) -> str:
    config = failure.cells[0].config if failure.cells else {}
    return f"{len(failure.cells)} members of '{config.get('net')}' on '{config.get('task')}': {failure.sentence}"


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadInput(f"{option} '{text}' is not a list of numbers: write for example {option} 1e-3,3e-4") from None
