"""Options that commands share, and what they set up."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from typer import Option

from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput

Json = Annotated[bool, Option("--json", help="Print one JSON document on stdout and nothing else there.")]

ERROR_SCHEMA = 1
"""Of the document that an error is under `--json`; a higher number means that a field changed its meaning or went."""

_printed: list[bool] = []  # that a document is out: a command that fails on what it found prints no second one


def start() -> None:
    """No document is out yet: once for every command that runs in this process."""
    _printed.clear()


def panel(title: str) -> Callable[..., Any]:
    """`typer.Option` for the options that a command's help shows under this title."""
    return functools.partial(Option, rich_help_panel=title)


def prepare(threads: int | None, verbose: bool, log_file: Path | None) -> None:
    """Threads and logging, for this process only. Before torch is imported: its threads then sleep while they wait for
    each other. Spinning, they are a little sooner on an idle machine and starve each other on a busy one."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    handlers: list[logging.Handler] = [logging.StreamHandler()] if verbose else []
    if log_file is not None:
        try:
            handlers.append(logging.FileHandler(log_file, encoding="utf-8"))
        except OSError as error:
            raise BadInput(f"the log file '{log_file}' cannot be written ({error.strerror})") from error
    logger = logging.getLogger("theodolite")
    logger.handlers = handlers or [logging.NullHandler()]
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def parse_arguments(pairs: Sequence[str] | None, option: str = "--arg") -> dict[str, Any]:
    """`key=value` texts; a value that reads as JSON is one (numbers, true, null), any other is text."""
    result: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"{option} '{pair}' is not KEY=VALUE: write for example {option} width=8")
        owner, dot, field = key.strip().rpartition(".")  # a task's name before the dot keeps its dashes
        name = f"{owner}{dot}{field.replace('-', '_')}"
        if name in result:
            raise BadInput(f"{option} '{name}' is given twice: give it once")
        try:
            result[name] = json.loads(text)
        except json.JSONDecodeError:
            result[name] = text
        except (ValueError, RecursionError):
            raise BadInput(f"{option} '{name}' is too long or nested too deep to be read: give less") from None
        if not _plain(result[name]):
            raise BadInput(f"{option} '{pair}' has a number that is not finite, or too large to count with: change it")
    return result


def _plain(value: Any) -> bool:
    """Whether all numbers in it are such as the machine counts with."""
    if isinstance(value, list | dict):
        return all(map(_plain, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) <= 2**53  # which NaN is not


def numbers(option: str, text: str, example: str) -> list[float]:
    try:
        found = [float(part.replace("−", "-")) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(math.isfinite, found)) or not text.replace("−", "-").isascii():
        raise BadInput(f"{option} '{text}' is not a list of numbers: write for example {option} {example}")
    return found


def shape_arguments(named: Mapping[str, Any], pairs: Sequence[str] | None) -> dict[str, Any]:
    """The shape of a net: what its own options gave, and `--arg` for the rest."""
    shape = {name: value for name, value in named.items() if value is not None}
    for name, value in parse_arguments(pairs).items():
        if name in shape:
            raise BadInput(f"'{name}' is given as an option and with --arg: give it once")
        shape[name] = value
    return shape


def refuse_own_names(shape: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Arguments of a net that the function would take for its own."""
    own = [name for name, each in inspect.signature(function).parameters.items() if each.kind != each.VAR_KEYWORD]
    taken = [name for name in shape if name in own]
    if taken:
        raise BadInput(f"'{taken[0]}' is no argument of a net: remove it from --arg, or use the option of that name")


def print_json(document: Any) -> None:
    _printed.append(True)
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def print_error_json(kind: str, message: str, exit_code: int) -> None:
    """The error as the one document on stdout, unless the command has printed its own."""
    if not _printed:
        print_json({"schema": ERROR_SCHEMA, "error": error_fields(kind, message, exit_code)})


def error_fields(kind: str, message: str, exit_code: int) -> dict[str, Any]:
    return {"kind": kind, "message": message, "exit_code": exit_code}


def print_explained(nets: Sequence[str], shape: Mapping[str, Any], asked: bool) -> None:
    """How nets are built and read, on stderr: all of it where asked for, else what was assumed."""
    from theodolite.nets.explain import assumptions, explain

    say(explain(net, **shape) if asked else assumptions(net, **shape) for net in nets)


def say(lines: Iterable[str | None]) -> None:
    """Remarks, on stderr."""
    console = terminal(stderr=True)
    for line in lines:
        if line is not None:
            console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)


def labelled(gap: int = 2) -> Table:
    """A table of labels and texts without a head or lines, to be filled row by row."""
    label, text = Column(no_wrap=True), Column(overflow="fold")
    return Table(label, text, show_header=False, box=None, padding=(0, gap, 0, 0))


def provenance(device: str, engine: str = "local") -> dict[str, str]:
    """What a report says of where it was made."""
    from theodolite.device import device_name, resolve_device
    from theodolite.lab.engines.by_name import HERE
    from theodolite.measurement import Provenance

    name = device_name(resolve_device(device)) if engine in HERE else f"{device} ({engine})"
    here = Provenance.here(0, name)
    code = {"commit": here.commit} if here.commit else {"package": str(here.package)}
    about = {"theodolite": here.version, **code, "torch": here.torch, "python": here.python}
    return {**about, "device": here.device, "date": here.date}
