"""`theodolite scale`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from theodolite.cli.groups import Arguments, Device, Output, Seed, Site, Workers, WorkerThreads, grouped
from theodolite.cli.options import numbers, panel, parse_arguments, print_json, provenance
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput, CellsFailed
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.scaling.experiment import Planned

_text, _training, _running = panel("Text"), panel("Training"), panel("Running")


@grouped
def scale(
    site: Site,
    output: Output,
    text: Annotated[
        str, Argument(metavar="TEXT", help="A file, a folder, or python: the library of the Python that runs.")
    ] = "python",
    net: Annotated[
        str, Option(help="decoder, or any net with a depth and a width, file.py:Name included.")
    ] = "decoder",
    sizes: Annotated[
        str, Option(metavar="A,B", help="Parameters without embedding and readout, with commas between them.")
    ] = "30k,100k,300k",
    depths: Annotated[
        str, Option(metavar="A,B", help="Layers; those without a shape of a size are left out.")
    ] = "1,2,3,4,6,8,12,16,24,32,48",
    within: Annotated[float, Option(help="How far a shape may be from its size, as a share of it.")] = 0.01,
    seeds: Annotated[int, Option(min=1, help="Networks for every shape and rate.")] = 4,
    lr: Annotated[
        str, _training(help="Learning rates with commas between them; every shape has its best.")
    ] = "1e-3,2e-3,4e-3",
    per_width: Annotated[
        bool, _training("--per-width", help="Divide every rate by the shape's width, as in --lr 0.1,0.2.")
    ] = False,
    tokens: Annotated[float, _training(help="Tokens for every parameter.")] = 20.0,
    batch: Annotated[int, _training(min=1, help="Windows of text a step.")] = 32,
    precision: Annotated[str, _training(help="Of products of matrices: float32, tf32 (CUDA) or bf16.")] = "float32",
    vocabulary: Annotated[int, _text(help="256 for bytes; more for pieces of words, found in the text.")] = 256,
    context: Annotated[int, _text(help="Symbols that a network sees.")] = 128,
    rows: Annotated[int, _text(min=1, help="Windows of what is held out, on which losses are measured.")] = 256,
    arg: Arguments = None,
    out: Annotated[
        Path, _running("--out", help="Folder of the store and the report; what it has is not trained again.")
    ] = Path("scale"),
    workers: Workers = None,
    threads: WorkerThreads = None,
    compile: Annotated[
        str, _running(help="Compile training steps: auto (on CUDA, where the run earns it), always or never.")
    ] = "auto",
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Depth against width on real text: networks of equal size, which depth learns best, and how much it matters.

    Losses are bits a byte on documents that are held out. Everything finished is kept under --out: the same command
    again goes on where it was; more sizes, depths or seeds join what is there.
    """
    with loading():
        from theodolite.cli.views.scale import page, print_scaling
        from theodolite.files import OutputFolder, refuse_foreign
        from theodolite.lab.campaign import Listener
        from theodolite.lab.engines.by_name import default_workers
        from theodolite.lab.running import Running
        from theodolite.scaling.scale import scale as measure

    console, errors = terminal(), terminal(stderr=True)
    refuse_foreign(out)
    workers = workers or default_workers(device, site.engine)

    def announce(planned: Planned, seconds: float) -> None:
        shapes = {(s.size, s.depth) for s in planned.shapes.values()}
        each = seconds / (workers or 1)
        about = f"{each / 60:.0f} minutes" if each > 90 else "a minute or less"
        time = f"{about} of training by a short trial here, without evaluation and compiling"
        errors.print(
            f"{len(planned.cells)} networks of {len(shapes)} shapes, {planned.operations():.1e} operations in all; "
            + (time if seconds else "all of them are finished"),
            style="dim",
            soft_wrap=True,
        )

    with progress_bar() as bar:
        found = measure(
            text,
            net,
            sizes=[part.strip() for part in sizes.split(",") if part.strip()],
            depths=_whole("--depths", depths),
            seeds=seeds,
            seed=seed,
            rates=numbers("--lr", lr, "1e-3,2e-3"),
            per_width=per_width,
            tokens=tokens,
            vocabulary=vocabulary,
            context=context,
            batch=batch,
            rows=rows,
            precision=precision,
            shape=parse_arguments(arg),
            within=within,
            running=Running(device, out, site.engine, site.cluster, workers, threads, compile=compile),
            listener=Listener(watch=bar.count),
            before=announce,
        )
    if found.valleys:
        OutputFolder(out).write("report.html", page(found, provenance(device, site.engine)))
    if output.json:
        print_json(found.to_json())
    else:
        print_scaling(console, found)
        if found.valleys:
            console.print(f"report: {out / 'report.html'}", markup=False, soft_wrap=True)
    if found.failures:
        failed = sum(len(f.cells) for f in found.failures)
        raise CellsFailed(
            f"{failed} networks failed, the first with: {found.failures[0].sentence}; the finished ones are kept, and "
            "the same command tries these again"
        )


def _whole(option: str, text: str) -> list[int]:
    found = numbers(option, text, "1,2,4")
    wrong = [value for value in found if value != int(value)]
    if wrong:
        raise BadInput(f"{option} are whole numbers such as 1,2,4, not {wrong[0]}")
    return [int(value) for value in found]
