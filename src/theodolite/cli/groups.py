"""Groups of options that commands share: a parameter that is one of these dataclasses stands for all of its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Option

from theodolite.cli.options import Json, panel, parse_arguments, prepare, shape_arguments
from theodolite.cli.terminal import speak_plainly

if TYPE_CHECKING:
    from theodolite.lab.engines.by_name import Cluster

_shape, _running = panel("Shape of the net"), panel("Running")

Seed = Annotated[int, Option("--seed", min=0, help="Seed of every draw.")]
Device = Annotated[str, Option("--device", help="cpu, cuda or cuda:1.")]
Arguments = Annotated[
    list[str] | None, Option("--arg", metavar="KEY=VALUE", help="Any other argument of the net; may be repeated.")
]
Explain = Annotated[
    bool, Option("--explain", help="Say in one line how the net is built, fed and read, and what was assumed.")
]
Workers = Annotated[
    int | None,
    _running("--workers", min=1, help="Processes; one per core, 1 on CUDA, all that fit on ray."),
]
WorkerThreads = Annotated[
    int | None,
    _running("--threads", min=1, help="CPU threads per worker at most; OMP_NUM_THREADS, else cores over workers."),
]


@dataclass(frozen=True)
class Printing:
    """Of a command that shows something."""

    json: Json = False
    plain: Annotated[
        bool, Option("--plain", help="For logs: no colour, no boxes, no bars; tabs in tables, a line a finding.")
    ] = False


@dataclass(frozen=True)
class Output(Printing):
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Log what is done; show tracebacks of internal errors.")
    ] = False
    log_file: Annotated[Path | None, Option("--log-file", help="Write the log to this file too.")] = None


@dataclass(frozen=True)
class Computing(Output):
    """Of a command that computes in this process."""

    threads: Annotated[
        int | None, Option("--threads", min=1, help="CPU threads; OMP_NUM_THREADS, else torch's choice.")
    ] = None


@dataclass(frozen=True)
class Shape:
    depth: Annotated[int | None, _shape(help="Number of layers.")] = None
    width: Annotated[int | None, _shape(help="Numbers per token in a layer.")] = None
    heads: Annotated[int | None, _shape(help="Attention heads per layer.")] = None
    arg: Arguments = None

    def arguments(self, **named: Any) -> dict[str, Any]:
        """Of the net: what was given of these and of the `named`."""
        return shape_arguments({"depth": self.depth, "width": self.width, "heads": self.heads, **named}, self.arg)


@dataclass(frozen=True)
class Site:
    """Where groups of cells run."""

    engine: Annotated[
        str,
        _running(
            "--engine",
            help="local (this machine), streams (one process, side by side on a GPU), ray, slurm or slurm-local.",
        ),
    ] = "local"
    address: Annotated[
        str | None, _running(metavar="HOST:PORT", help="With ray: the cluster's head, or auto; else one starts.")
    ] = None
    slurm: Annotated[
        list[str] | None,
        _running(
            "--slurm",
            metavar="KEY=VALUE",
            help="With slurm: an option of its jobs, such as partition=gpu or time=120 (minutes); may be repeated.",
        ),
    ] = None
    shared: Annotated[
        Path | None, _running(metavar="DIR", help="With slurm: a folder that every node sees; in --out.")
    ] = None

    @property
    def cluster(self) -> Cluster:
        from theodolite.lab.engines.by_name import Cluster

        return Cluster(self.address, parse_arguments(self.slurm, "--slurm"), self.shared)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose groups are spelt out for typer; logging and threads are set before it runs."""
    hints = get_type_hints(command, include_extras=True)
    own, shared, groups = [], [], {}
    for parameter in inspect.signature(command).parameters.values():
        if not is_dataclass(group := hints[parameter.name]):
            own.append(parameter.replace(annotation=group, kind=parameter.KEYWORD_ONLY))
            continue
        inner = get_type_hints(group, include_extras=True)
        groups[parameter.name] = group
        shared += [
            inspect.Parameter(f.name, parameter.KEYWORD_ONLY, default=f.default, annotation=inner[f.name])
            for f in fields(group)
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        for output in made.values():
            if isinstance(output, Printing):
                speak_plainly(output.plain)
            if isinstance(output, Output):
                prepare(getattr(output, "threads", None), output.verbose, output.log_file)
        command(**given, **made)

    run.__signature__ = inspect.Signature([*own, *shared])  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return run
