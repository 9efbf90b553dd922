"""`theodolite learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from theodolite.cli.groups import Device, Explain, Output, Seed, Shape, Site, Workers, WorkerThreads, grouped
from theodolite.cli.options import numbers, panel, parse_arguments, print_json, say
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.errors import CellsFailed
from theodolite.loading import loading
from theodolite.report.numbers import counted

if TYPE_CHECKING:
    from theodolite.bench.learn import Learning
    from theodolite.lab.campaign import Failure

_shape, _training = panel("Shape of the net"), panel("Training")
_evaluation, _running = panel("Evaluation"), panel("Running")


@grouped
def learn(
    shape: Shape,
    site: Site,
    output: Output,
    net: Annotated[str, Option(help="Nets with commas between them: built-in ones or file.py:Name.")],
    task: Annotated[
        str, Option(help="Tasks with commas between them: built-in ones (see 'theodolite tasks') or file.py:Name.")
    ] = "",
    data: Annotated[
        Path | None, Option(metavar="FILE", help="Rows of your own as a task: .jsonl or .csv of inputs and targets.")
    ] = None,
    seeds: Annotated[int, Option(help="Members per net, task and rates.")] = 8,
    lr: Annotated[str, _training(help="Learning rates with commas between them.")] = "1e-3",
    weight_decay: Annotated[str, _training(help="Weight decays, likewise.")] = "0",
    steps: Annotated[int, _training(help="Steps at most; who solves it stops.")] = 2000,
    batch: Annotated[int, _training(help="Fresh rows per member and step.")] = 64,
    optimiser: Annotated[str, _training(help="adamw or sgd.")] = "adamw",
    momentum: Annotated[float, _training(help="Of sgd.")] = 0.9,
    clip: Annotated[float, _training(help="Largest gradient norm; 0 for none.")] = 1.0,
    to_the_end: Annotated[bool, _training("--to-the-end", help="Train on after solving the task.")] = False,
    precision: Annotated[str, _training(help="Of products of matrices: float32, tf32 (CUDA) or bf16.")] = "float32",
    weights: Annotated[
        Path | None, _training(metavar="FILE", help="Start from these weights (safetensors, or torch.save's).")
    ] = None,
    params: Annotated[str | None, _shape(help="Parameters per net, such as 64k: sets the width.")] = None,
    task_arg: Annotated[
        list[str] | None,
        Option("--task-arg", metavar="KEY=VALUE", help="A field of the task; TASK.KEY=VALUE for one of several tasks."),
    ] = None,
    unseen: Annotated[
        str | None, _evaluation(help="Lengths beyond training: 41-500, 41-500/20, 50,100 or none.")
    ] = None,
    every: Annotated[int | None, _evaluation(help="Steps between evaluations.")] = None,
    rows: Annotated[int, _evaluation(help="Rows per length in an evaluation.")] = 32,
    checkpoint: Annotated[
        Path | None, _evaluation(metavar="FILE", help="Evaluate these weights, without training.")
    ] = None,
    out: Annotated[Path, _running("--out", help="Folder of the store; what it has is not run again.")] = Path("runs"),
    keep_weights: Annotated[
        bool, _running("--keep-weights", help="Keep every member's weights in the folder.")
    ] = False,
    tensorboard: Annotated[Path | None, _running(metavar="DIR", help="Write learning curves there too.")] = None,
    plot: Annotated[
        Path | None, _evaluation(metavar="FILE", help="Draw scores over lengths into this file, as SVG.")
    ] = None,
    workers: Workers = None,
    threads: WorkerThreads = None,
    chunk: Annotated[
        int | None, _running(min=1, help="Members per batched call; 1 is the plain loop; else tried.")
    ] = None,
    compile: Annotated[
        str, _running(help="Compile training steps: auto (on CUDA, where the run earns it), always or never.")
    ] = "auto",
    save_every: Annotated[float, _running(min=0, help="Seconds between checkpoints of what runs.")] = 20.0,
    fail_fast: Annotated[bool, _running("--fail-fast", help="Stop at the first cell that fails.")] = False,
    max_failures: Annotated[int | None, _running(min=1, help="Stop after this many failed cells.")] = None,
    explain: Explain = False,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Train networks on tasks, many at once, and see how many of them learn what.

    Members of one shape run as one batched program. Everything finished is kept under --out: the same command again,
    also after a crash, goes on where it was.
    """
    with loading():
        from theodolite.bench.learn import explained, weights_file
        from theodolite.bench.learn import learn as run_learn
        from theodolite.bench.settings import Evaluation, Saving, Training
        from theodolite.cli.views.length_curves import length_curves
        from theodolite.files import check_writable, write_text
        from theodolite.lab.campaign import Listener
        from theodolite.lab.engines.by_name import default_workers
        from theodolite.lab.running import Running

    if plot is not None:
        check_writable(plot)
    errors = terminal(stderr=True)

    def tell(failure: Failure) -> None:
        errors.print(f"failed: {_described(failure)}", style="red", markup=False, highlight=False, soft_wrap=True)

    training = Training(
        steps,
        numbers("--lr", lr, "1e-3,3e-4"),
        numbers("--weight-decay", weight_decay, "0,0.1"),
        batch,
        optimiser,
        momentum,
        clip or None,
        to_the_end,
        precision,
        weights,
    )
    workers = workers or default_workers(device, site.engine)
    if explain:
        say(explained(net, task, data, shape.arguments(), parse_arguments(task_arg, "--task-arg")))
    most = 1 if fail_fast else max_failures
    with progress_bar() as bar:
        result = run_learn(
            net,
            task,
            data=data,
            seeds=seeds,
            seed=seed,
            params=params,
            shape=shape.arguments(),
            task_args=parse_arguments(task_arg, "--task-arg"),
            training=training,
            evaluation=Evaluation(every, rows, unseen, checkpoint),
            saving=Saving(keep_weights, save_every, tensorboard),
            running=Running(device, out, site.engine, site.cluster, workers, threads, chunk, most, compile),
            listener=Listener(watch=bar.count, failure=tell),
        )
    if not explain:
        say(result.assumed)
    if plot is not None:
        write_text(plot, length_curves(result.rows))
    say(f"warning: {line}" for line in result.warnings)
    if output.json:
        print_json(result.to_json())
    else:
        show(result, out)
    if keep_weights and (without := sum(1 for row in result.rows if not weights_file(out, row.cell.key).is_file())):
        message = f"weights are kept as members finish: {without} that finished in an earlier run have none"
        errors.print(message, style="dim", markup=False, highlight=False, soft_wrap=True)
    if result.failures:
        failed = sum(len(f.cells) for f in result.failures)
        message = f"{failed} of {result.asked} members failed, the first with: {result.failures[0].sentence}"
        left = result.asked - failed - len(result.rows)
        stopped = f", and {left} were not run" if left else ""
        raise CellsFailed(f"{message}{stopped}; the finished ones are kept, and the same command tries these again")


def show(result: Learning, out: Path | None = None) -> None:
    from theodolite.cli.views.learn import print_learning

    console = terminal()
    if result.summary:
        print_learning(console, result.summary)
    for reason in result.not_applicable:
        console.print(f"not applicable: {reason}", style="dim", markup=False, highlight=False)
    if out is None:
        return
    reused = f" ({result.reused} of them from an earlier run)" if result.reused else ""
    message = f"{counted(len(result.rows), 'member')} kept in {out}{reused}: see 'theodolite runs --out {out}'"
    console.print(message, style="dim", markup=False, highlight=False, soft_wrap=True)


def _described(failure: Failure) -> str:
    config = failure.cells[0].config if failure.cells else {}
    return f"{len(failure.cells)} members of '{config.get('net')}' on '{config.get('task')}': {failure.sentence}"
