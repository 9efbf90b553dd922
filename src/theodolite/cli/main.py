"""`theodolite`: the commands put together, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import codecs
import errno
import os
import signal as signals
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

import typer
import typer.main

from theodolite.cli import (
    advise,
    claims,
    compare,
    degree,
    discover,
    express,
    fixed_points,
    learn,
    listing,
    new,
    predict,
    rank,
    reproduce,
    runs,
    scale,
    serve,
    signal,
    survey,
    verify,
)
from theodolite.cli.options import print_error_json, start
from theodolite.cli.plain_numbers import plain
from theodolite.cli.terminal import near, on_one_line
from theodolite.errors import TheodoliteError
from theodolite.version import __version__

_heard: list[int] = []  # signals that ask for an end

app = typer.Typer(
    name="theodolite",
    help="Survey what a neural architecture can express, and what gradient descent can make it learn.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("survey")(survey.survey)
app.command("advise")(advise.advise)
app.command("discover")(discover.discover)
app.command("predict")(predict.predict)
app.command("rank")(rank.rank)
app.command("verify")(verify.verify)
app.command("degree")(degree.degree)
app.command("express")(express.express)
app.command("signal")(signal.signal)
app.command("learn")(learn.learn)
app.command("scale")(scale.scale)
app.command("runs")(runs.runs)
app.command("compare")(compare.compare)
app.command("serve")(serve.serve)
app.command("fixed-points")(fixed_points.fixed_points)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(claims.app, name="claims")
app.command("new")(new.new)
app.command("nets")(listing.nets)
app.command("tasks")(listing.tasks)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"theodolite {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def run() -> None:
    """Entry point: exit 0 fine, 1 a finding the user asked to fail on, 2 bad input, 3 a fault of ours.

    Under --json an error is one document on stdout too, beside the sentence on stderr.
    """
    json = "--json" in sys.argv
    start()
    _meet_the_terminal()
    try:
        code = plain(typer.main.get_command(app))(prog_name="theodolite", standalone_mode=not json)
        sys.stdout.flush()
        if json:
            sys.exit(code if isinstance(code, int) else 0)
    except TheodoliteError as error:
        _unless_stopped()
        _fail(json, type(error).__name__, str(error), error.exit_code, f"error: {error}")
    except KeyboardInterrupt:
        _stopped()
    except SystemExit as end:
        if end.code == 130:  # what typer makes of Ctrl-C, without a word
            _stopped()
        with suppress(BrokenPipeError):
            _end_output(json)
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        _unless_stopped()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _full(json)
        if isinstance(error, OSError) and isinstance(error.filename, str):
            message = f"'{error.filename[:200]}' cannot be used ({error.strerror}): name another place"
            _fail(json, "FileTrouble", message, 2, f"error: {message}")
        if isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error).lower():
            message = "this takes more memory than there is: make it smaller, or use a larger machine"
            _fail(json, "NotEnoughMemory", message, 2, f"error: {message}")
        if json and hasattr(error, "format_message"):  # of the parser of options, in its own copy of click or not
            message = " ".join(error.format_message().split())  # pyright: ignore[reportAttributeAccessIssue]
            _fail(json, "UsageError", message, 2, f"error: {message}")
        if "-v" in sys.argv or "--verbose" in sys.argv:
            traceback.print_exc()
        message = f"internal error: {type(error).__name__}: {error}".splitlines()[0]
        advice = "a fault of theodolite's: run again with -v for the traceback"
        _fail(json, "InternalError", message, 3, f"{message} ({advice})")


def _meet_the_terminal() -> None:
    """One that cannot show a letter shows what comes near; one that is closed (SIGHUP), or a request to end (SIGTERM),
    is as Ctrl-C."""
    codecs.register_error("near", near)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="near")  # pyright: ignore[reportAttributeAccessIssue]
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        number = getattr(signals, name, None)
        usual = (signals.SIG_DFL, signals.default_int_handler)
        if number is not None and signals.getsignal(number) in usual:  # nohup has it ignored
            with suppress(ValueError):  # not in the main thread, which alone hears signals
                signals.signal(number, _interrupt)


def _interrupt(number: int, _: Any) -> None:
    _heard.append(number)
    raise KeyboardInterrupt


def _unless_stopped() -> None:
    """What fails after a command was stopped fails for that: an import broken off is caught by some libraries, which
    then miss a half of themselves."""
    if _heard:
        _stopped()


def _stopped() -> NoReturn:
    kept = {"learn", "survey"} & set(sys.argv) or ("--out" in sys.argv and "discover" not in sys.argv)
    words = "stopped: what is finished is kept, and the same command goes on" if kept else "stopped"
    with suppress(OSError):
        print(words, file=sys.stderr)  # noqa: T201
    sys.exit(130)


def _end_output(json: bool) -> None:
    """What was printed is out, or it is said that it is not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _full(json)
        raise


def _full(json: bool) -> NoReturn:
    _give_up_output()
    message = "the output cannot be written (no space left on the device): write it to another place"
    _fail(json, "DiskFull", message, 2, f"error: {message}")


def _fail(json: bool, kind: str, message: str, code: int, sentence: str) -> NoReturn:
    with suppress(OSError):
        print(on_one_line(sentence), file=sys.stderr)  # noqa: T201
    if json:
        try:
            print_error_json(kind, message, code)
            sys.stdout.flush()
        except OSError:  # the sentence was said
            _give_up_output()
    sys.exit(code)


def _give_up_output() -> None:
    """Nothing more goes to the output: the interpreter would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
