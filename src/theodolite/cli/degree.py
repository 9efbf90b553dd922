"""`theodolite degree`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from theodolite.cli.groups import Computing, Device, Seed, grouped
from theodolite.cli.options import panel, parse_arguments, print_json
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.loading import loading

_exact, _training = panel("Exact rank"), panel("Training")


@grouped
def degree(
    output: Computing,
    budget: Annotated[str, Option(help="Square matrices to spend on blocks; several with commas: 12,24,36.")] = "12",
    width: Annotated[
        int | None, Option(help="Numbers in a layer: a matrix is width × width; 4, or 2 for attention and mixer.")
    ] = None,
    family: Annotated[
        str, Option(help="fully-connected, attention, mixer, or file.py:Name of a net with a degree.")
    ] = "fully-connected",
    matrices: Annotated[str, Option(help="How many a block of degree d has: d-1, d, d+1, or all three counts.")] = "d",
    degrees: Annotated[
        str | None,
        Option(
            help="Degrees to compare: 2,3,4; those from 2 to 6 that divide the budget otherwise. Real ones are for "
            "--train, which also takes those given here that do not divide."
        ),
    ] = None,
    mixed: Annotated[
        bool, Option("--mixed", help="Add the best networks of mixed degrees (of --degrees), in several orders.")
    ] = False,
    inputs: Annotated[
        int | None, Option(help="Fully connected and file.py:Name: inputs on each side; half the width otherwise.")
    ] = None,
    tokens: Annotated[
        int | None, Option(help="Attention and mixer: tokens in all; 2, or as many as the width.")
    ] = None,
    max_points: Annotated[
        int | None,
        _exact(
            help="Points a side at most, ranks above being lower bounds only; 2048 unless given, fewer for wide nets."
        ),
    ] = None,
    repeats: Annotated[int, _exact(help="Fresh primes, weights and points that must agree.")] = 3,
    train: Annotated[bool, _training("--train", help="Train networks of these degrees too.")] = False,
    task: Annotated[str | None, _training(help="prescribed-rank unless given; digits and diabetes too.")] = None,
    task_arg: Annotated[
        list[str] | None, _training("--task-arg", metavar="KEY=VALUE", help="A field of the task; may be repeated.")
    ] = None,
    seeds: Annotated[int | None, _training(help="Trained networks per degree; 8 unless given.")] = None,
    steps: Annotated[int | None, _training(help="Steps of training; 1,000 unless given.")] = None,
    out: Annotated[Path | None, Option("--out", help="Folder for degree.json and degree.svg.")] = None,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Which degree should a block have? Networks of blocks of degree 2, 3, 4, … that cost the same, side by side.

    Each one's total degree, its exact separation rank and the cap that holds for all weights; --train adds errors.
    """
    with loading():
        from theodolite.files import OutputFolder
        from theodolite.instruments.degree.which_degree import degree as compare

    task_args = parse_arguments(task_arg, "--task-arg")
    folder = None if out is None else OutputFolder(out)
    notes: list[str] = []
    with progress_bar() as bar:
        rows = compare(
            budget,
            width,
            family=family,
            matrices=matrices,
            degrees=degrees,
            mixed=mixed,
            inputs=inputs,
            tokens=tokens,
            max_points=max_points,
            repeats=repeats,
            train=train,
            task=task,
            task_args=task_args,
            seeds=seeds,
            steps=steps,
            seed=seed,
            device=device,
            progress=bar.step,
            on_note=notes.append,
        )
    written: list[Path] = []
    if folder is not None:
        import json as json_text

        from theodolite.cli.views.degree_plot import draw_degrees

        text = json_text.dumps([row.to_json() for row in rows], indent=2, ensure_ascii=False, allow_nan=False)
        written = [folder.write("degree.json", f"{text}\n"), folder.write("degree.svg", draw_degrees(rows))]
    if output.json:
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        print_json([row.to_json() for row in rows])
        return

    from theodolite.cli.views.degree import print_degrees

    console = terminal()
    print_degrees(console, rows, notes)
    for path in written:
        console.print(f"written: {path}", markup=False, soft_wrap=True)
