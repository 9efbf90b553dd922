"""Bad input for every command, option and address: python benchmarks/bad_input.py [--cases 600] [--files 600]
[--requests 600] [--seed 0].

Every option and argument of every command is given values that nobody means (not a number, infinite, negative, huge,
empty, letters of other scripts, brackets, paths out of the folder, …), in a call that is fine otherwise; what is drawn
follows from the seed. Then every command that reads a file is given those of bad_files.py, and every address of the
page the requests of bad_requests.py. A case ends well if it exits
with 0, 1 or 2, or is still at work after some seconds and stops when it is asked to; a traceback, an internal error or
a file whose content was run is a fault, and is printed with the call that shows it.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import typer.main

from bad_files import RAN, READERS, make_files
from bad_requests import requested
from theodolite.cli.main import app, run
from timing import hardware

SECONDS = 4  # of processor time that a case may work
SEVERAL = "refused in several lines"  # counted besides
PATIENCE = 60  # seconds by the clock
AT_REST = 5  # seconds that a server is left alone
MEMORY = 12 << 30  # bytes of addresses
FINE = {
    "survey": ["survey", "mlp", "--only", "sensitivity", "--alone", "--out", "s"],
    "advise": ["advise", "--params", "1B", "--vocab", "50000"],
    "discover": ["discover", "table.csv", "--target", "y", "--seconds", "5", "--out", "d"],
    "predict": ["predict", "d", "table.csv"],
    "rank": ["rank", "self-attention", "--depth", "1", "--width", "2", "--tokens", "2"],
    "verify": ["verify", "table.csv"],
    "degree": ["degree", "--budget", "6", "--width", "2"],
    "express": ["express", "parity", "--net", "lstm", "--task-arg", "bits=4", "--task-arg", "relevant=2"],
    "signal": ["signal", "--bits", "4", "--width", "4"],
    "learn": ["learn", "--net", "mlp", "--task", "parity", "--steps", "2", "--seeds", "1", "--out", "l"],
    "scale": ["scale", "table.csv", "--sizes", "2k", "--depths", "1", "--context", "16", "--tokens", "1", "--out", "t"],
    "runs": ["runs", "--out", "l"],
    "compare": ["compare", "mlp", "mlp", "--out", "l"],
    "fixed-points": ["fixed-points", "tanh", "--size", "4"],
    "reproduce": ["reproduce", "chomsky", "--kept", "--out", "r"],
    "serve": ["serve", "--out", "l", "--port", "0"],
    "new": ["new", "net", "Mine", "--out", "n"],
    "nets": ["nets"],
    "tasks": ["tasks"],
    "claims list": ["claims", "list"],
    "claims check": ["claims", "check", "T1", "--out", "c"],
    "claims page": ["claims", "page", "table.csv"],
}
NUMBERS = ["nan", "inf", "-inf", "-1", "0", "1.5", "1e400", "", " ", "１２", "٣", "0x10", "1_0", "∞"]
NUMBERS += [str(10**30), "9" * 5000]
WORDS = ["", " ", "nan", "☃", "a" * 20_000, "[", "{}", "[" * 20_000, "x=1", "a,b", "=", ",", "-", "--", "None", "1"]
WORDS += ["../../../etc/passwd", "/", "file.py:Name", "missing.csv", "table.csv", ".", "[red]x[/red]", "%s", "'\";"]


def cases(generator: random.Random, only: str | None = None) -> Iterator[list[str]]:
    """Endless: a command, one of its options, a value."""
    commands: Any = typer.main.get_command(app)
    named = dict(commands.commands)
    named |= {f"claims {name}": command for name, command in named.pop("claims").commands.items()}
    options = [
        (name, parameter)
        for name, command in named.items()
        if name in FINE and only in (None, name)
        for parameter in command.params
        if not getattr(parameter, "is_flag", False)
    ]
    while True:
        name, parameter = generator.choice(options)
        kind = str(parameter.type.name)
        value = generator.choice(NUMBERS if kind.startswith(("int", "float")) else [*WORDS, *NUMBERS])
        call = list(FINE[name])
        if parameter.param_type_name == "argument":
            place = len(name.split())
            if len(call) > place and not call[place].startswith("-"):
                call[place] = value
            else:
                call.insert(place, value)
        else:
            option = parameter.opts[0]
            if option in call:
                call[call.index(option) + 1] = value
            else:
                call += [option, value]
        yield call


def file_cases(names: list[str], generator: random.Random) -> Iterator[list[str]]:
    """Every command that reads a file with every file, in a drawn order."""
    calls = [[word.replace("FILE", name) for word in call] for call in READERS.values() for name in names]
    generator.shuffle(calls)
    yield from calls


def prepare(folder: Path) -> None:
    rows = ["a,b,y", *(f"{i / 7:.3f},{i % 5},{i / 7 + (i % 5) ** 2:.3f}" for i in range(120))]
    (folder / "table.csv").write_text("\n".join(rows))
    os.chdir(folder)
    ended(FINE["learn"])
    ended(FINE["discover"])


def ended(call: list[str], seconds: float = 60) -> dict[str, Any]:
    """The call in a process of its own, forked after everything is imported; `seconds` are the processor's."""
    patience = AT_REST if call[0] == "serve" else PATIENCE
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        out, err = io.StringIO(), io.StringIO()
        sys.argv = ["theodolite", *call]
        try:
            with redirect_stdout(out), redirect_stderr(err):
                run()
            code: Any = 0
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            code = traceback.format_exc()
        os.write(writing, json.dumps({"code": code, "said": err.getvalue()[:7000]}).encode())
        os._exit(0)
    os.close(writing)
    deadline, stopped = time.monotonic() + patience, False
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline or (not stopped and worked(child) > seconds):
            os.kill(child, signal.SIGKILL if stopped else signal.SIGINT)
            if stopped:
                os.waitpid(child, 0)
                break
            stopped, deadline = True, time.monotonic() + PATIENCE
        time.sleep(0.02)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    found = json.loads(text) if text else {"code": "killed: it did not stop when asked to", "said": ""}
    return {**found, "stopped": stopped}


def worked(process: int) -> float:
    """Seconds of processor time, of its children too."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def verdict(found: dict[str, Any]) -> str:
    if "Traceback" in found["said"] or "internal error" in found["said"] or not isinstance(found["code"], int | None):
        return "fault"
    if found["stopped"]:
        return "at work until stopped"
    return {0: "taken", None: "taken", 1: "a finding", 2: "refused"}.get(found["code"], "fault")


def told(found: dict[str, Any]) -> bool:
    """A refusal is one sentence, or what the parser of options says; notes may stand before it."""
    lines = found["said"].strip().splitlines()
    errors = [number for number, line in enumerate(lines) if line.startswith("error:")]
    return not lines or lines[0].startswith(("Usage:", "╭─ Error")) or errors == [len(lines) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=600, help="values of options")
    parser.add_argument("--files", type=int, default=600, help="files")
    parser.add_argument("--requests", type=int, default=600, help="requests to the page")
    parser.add_argument("--command", choices=FINE, help="values of this command's options only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600.0, help="no case begins later")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    file = options.out.absolute() if options.out else None
    counts: dict[str, Counter[str]] = {"options": Counter(), "files": Counter()}
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        names = make_files(Path(folder))
        drawn = [("options", call) for call in itertools.islice(cases(generator, options.command), options.cases)]
        drawn += [("files", call) for call in itertools.islice(file_cases(names, generator), options.files)]
        generator.shuffle(drawn)
        last = time.monotonic() + 60 * options.minutes
        for kind, call in drawn:
            if time.monotonic() > last:
                break
            found = ended(call, SECONDS)
            said = verdict(found)
            if (Path(folder) / RAN).exists():
                (Path(folder) / RAN).unlink()
                said, found["code"] = "fault", "what the file holds was run"
            counts[kind][said] += 1
            if said == "refused" and not told(found):
                counts[kind][SEVERAL] += 1
                print(f"{shown(call)}\n    several lines: {found['said'].strip()[-400:]}", flush=True)
            if said == "fault":
                print(f"{shown(call)}\n    {str(found['code'])[-300:]} {found['said'].strip()[-400:]}", flush=True)
            if said == "at work until stopped":
                print(f"{shown(call)}\n    at work until stopped", flush=True)
        os.chdir("/")
    for route, ended_there in requested(options.requests, options.seed, print).items() if options.requests else ():
        counts[f"requests {route}"] = ended_there
    print({kind: dict(ended) for kind, ended in counts.items()})
    cases_run = sum(number for ended in counts.values() for word, number in ended.items() if word != SEVERAL)
    if file is not None:
        about = {"benchmark": "bad input", "hardware": hardware(torch.device("cpu")), "seed": options.seed}
        file.write_text(json.dumps({**about, "cases": cases_run, "ended": counts}, indent=2) + "\n")


def shown(call: list[str]) -> str:
    return " ".join(word if len(word) < 80 else f"{word[:20]}…({len(word)})" for word in call)


if __name__ == "__main__":
    main()
