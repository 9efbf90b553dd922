"""A store of many rows, and what `runs`, `compare` and the page take on it: python -m benchmarks.large_store.

The rows are those of a real member with other names, widths, rates, seeds and scores. Up to WRITTEN of them are written
as a campaign writes them: planned, claimed and recorded in groups; more go straight into the tables of rows. Timed are
the commands as a user runs them, a process each, after the file was dropped from the system's memory (cold) and with it
there (warm); the same by functions of this process; requests of the page; and a store of the older layout brought up to
date. With `--at` stores stay where they are, and one that is there is used.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from benchmarks.timing import hardware

from theodolite.bench.compare import compare
from theodolite.bench.learn import learn
from theodolite.bench.runs import runs
from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import Group
from theodolite.lab.store.schema import DIGEST
from theodolite.lab.store.store import Store
from theodolite.lab.store.trained import bring_up_to_date

NETS = ("mlp", "rnn", "lstm", "gru", "transformer", "stack-rnn", "tape-rnn", "delta-net", "state-space", "mixer")
TASKS = ("parity-check", "even-pairs", "cycle-navigation", "modular-arithmetic", "majority", "copy", "reverse", "dyck")
WIDTHS = (32, 128)
RATES = (1e-2, 3e-3, 1e-3, 3e-4)
WRITTEN = 100_000  # rows, at most, that are written as a campaign writes them
SEEDS = 64
GROUP = SEEDS * len(RATES)
COMMANDS = {
    "runs": ["runs"],
    "runs of one net": ["runs", "--net", "lstm"],
    "runs of one rate": ["runs", "--where", "lr=0.001"],
    "runs of one seed": ["runs", "--where", "seed=3"],
    "runs that were solved": ["runs", "--status", "solved"],
    "compare two nets on all tasks": ["compare", "lstm,shape.width=32", "gru,shape.width=32"],
    "compare two nets on one task": ["compare", "lstm,shape.width=32", "gru,shape.width=32", "--task", "copy"],
    "compare two widths of a net": ["compare", "lstm,shape.width=32", "lstm,shape.width=128"],
}


# A small process in between: Linux counts as a command's own memory what the process that started it held.
WATCH = """
import json, os, subprocess, sys, time
clock = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
seconds, processor = time.perf_counter() - clock, used.ru_utime + used.ru_stime
process.returncode = os.waitstatus_to_exitcode(status)
assert process.returncode == 0, sys.argv
figures = {"seconds": round(seconds, 3), "processor_seconds": round(processor, 3)}
print(json.dumps({**figures, "memory_mib": round(used.ru_maxrss / 2**10)}))
"""


def drawn(example: Row, count: int, generator: random.Random) -> Iterator[Row]:
    """Members of every network and width on every task at every rate, in groups as they are trained together, with as
    many seeds as that takes."""
    every = (
        one
        for begin in itertools.count(0, SEEDS)
        for one in itertools.product(NETS, WIDTHS, TASKS, range(begin, begin + SEEDS), RATES)
    )
    for net, width, task, seed, rate in itertools.islice(every, count):
        config = {**example.cell.config, "net": net, "task": task, "lr": rate, "seed": seed}
        config["shape"] = {**config["shape"], "width": width}
        yield Row(Cell(example.cell.measure, config), _result(example, generator), None, _facts(example, generator))


def _result(example: Row, generator: random.Random) -> dict[str, Any]:
    score = generator.randrange(2049) / 2048
    status = "diverged" if score < 0.02 else "solved" if score > 0.6 else "unsolved"
    if status == "diverged":
        none = dict.fromkeys(("accuracy", "unseen", "solved_at"))
        return {**example.result, "status": status, "by_length": [], **none}
    by_length = [[length, generator.randrange(257) / 256] for length, _ in example.result["by_length"]]
    solved_at = 40 * generator.randrange(1, 51) if status == "solved" else None
    scores = {"accuracy": score, "unseen": generator.random(), "by_length": by_length, "solved_at": solved_at}
    return {**example.result, "status": status, **scores}


def _facts(example: Row, generator: random.Random) -> dict[str, Any]:
    return {**example.facts, "seconds": generator.uniform(1, 20)}


def build(folder: Path, count: int) -> None:
    """By the store's own writer; where that would take long, straight into the tables of rows, from which the store's
    own code then makes the digest."""
    [example] = learn(
        "rnn", "parity-check", seeds=1, steps=20, every=10, task_args={"longest": 12}, unseen="14,16,20,24,32"
    ).rows
    rows = drawn(example, count, random.Random(0))
    with Store(folder) as store:
        while count <= WRITTEN and (group := list(itertools.islice(rows, GROUP))):
            cells = [row.cell for row in group]
            store.plan(cells, lambda free: [Group.of(free)])
            claimed = store.claim([cell.key for cell in cells])
            assert claimed is not None
            store.record(claimed, group, done=True)
    if count > WRITTEN:
        fill(folder / "store.db", rows)
        bring_up_to_date(folder, lambda done, total: None)


def fill(file: Path, rows: Iterator[Row]) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        while some := list(itertools.islice(rows, 20_000)):
            db.execute("BEGIN")
            for row in some:
                key, config = row.cell.key, json.dumps(row.cell.config)
                db.execute("INSERT INTO cells VALUES (?, ?, ?)", (key, row.cell.measure, config))
                values = (key, json.dumps(row.result), "null", json.dumps({"finished": "2026-11-16", **row.facts}))
                db.execute("INSERT INTO rows (key, result, error, facts) VALUES (?, ?, ?, ?)", values)
            db.execute("COMMIT")


def older(folder: Path, to: Path) -> None:
    """The same store as a version without a digest left it."""
    to.mkdir(parents=True)
    shutil.copyfile(folder / "store.db", to / "store.db")
    with closing(sqlite3.connect(to / "store.db", isolation_level=None)) as db:
        for table in ("conditions", "tallies", "scores", "digested"):
            db.execute(f"DROP TABLE {table}")
        db.execute(f"PRAGMA user_version = {DIGEST - 1}")


def timed(call: Callable[[], Any]) -> dict[str, float]:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return {
        "seconds": round(time.perf_counter() - clock, 3),
        "processor_seconds": round(time.process_time() - processor, 3),
    }


def run_command(words: list[str], folder: Path | None) -> dict[str, float]:
    """As a user runs it: process, imports, and all that it prints."""
    given = [sys.executable, "-c", "from theodolite.cli.main import run; run()", *words]
    given += [] if folder is None else ["--out", str(folder)]
    watched = subprocess.run([sys.executable, "-S", "-c", WATCH, *given], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(watched.stdout)


def forget(folder: Path) -> None:
    """The system keeps nothing of the file in memory."""
    with (folder / "store.db").open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def commands(folder: Path, repeats: int) -> dict[str, Any]:
    found = {}
    for name, words in COMMANDS.items():
        forget(folder)
        cold = run_command(words, folder)
        warm = [run_command(words, folder) for _ in range(repeats)]
        found[name] = {"cold": cold, "warm": min(warm, key=lambda one: one["seconds"])}
        print(name, json.dumps(found[name]), flush=True)
    return found


def page(folder: Path) -> dict[str, Any]:
    from tests.serving.conftest import Client

    from theodolite.serving.serve import serve

    found = {}
    with serve(folder, port=0, wait=False) as opened:
        client = Client(opened)
        found["first list"] = timed(lambda: client.send("/api/runs", place="."))
        found["list of one net"] = timed(lambda: client.send("/api/runs", place=".", net="lstm"))
        found["list of the solved"] = timed(lambda: client.send("/api/runs", place=".", status="solved"))
        last = "4000"
        found["a page of members, far behind"] = timed(
            lambda: client.send("/api/runs", place=".", lines="members", page=last)
        )
        ids = client.send("/api/runs", place=".", task="copy").json["ids"]
        found["compare two lines"] = timed(lambda: client.send("/api/compare", place=".", first=ids[0], second=ids[1]))
    return found


def measured(place: Path, count: int, repeats: int) -> dict[str, Any]:
    folder = place / f"rows-{count}"
    built = None if folder.exists() else timed(lambda: build(folder, count))
    found = {
        "rows": count,
        "megabytes": round((folder / "store.db").stat().st_size / 1e6),
        "build": built,
        "open": timed(lambda: Store(folder, read_only=True).close()),
        "functions": {
            "runs": timed(lambda: runs(folder).summary),
            "compare two nets": timed(lambda: compare("lstm,shape.width=32", "gru,shape.width=32", folder)),
        },
        "commands": commands(folder, repeats),
        "page": page(folder),
    }
    if count <= WRITTEN:  # the time grows as the rows do
        old = place / "older"
        older(folder, old)
        found["bring an older layout up to date"] = timed(lambda: bring_up_to_date(old, lambda done, total: None))
        shutil.rmtree(old)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--at", type=Path, help="a folder for the stores, which stay there")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for count in options.rows:
            load = os.getloadavg()[0]
            one = measured(options.at or Path(temporary), count, options.repeats)
            loads = [round(load, 1), round(os.getloadavg()[0], 1)]
            found.append({**one, "load_average": loads, "niceness": os.nice(0)})
            print(json.dumps(found[-1]), flush=True)
    if options.out is not None:
        nothing = {"theodolite --version": min(run_command(["--version"], None)["seconds"] for _ in range(3))}
        about = {"benchmark": "large store", "hardware": hardware(torch.device("cpu")), "start": nothing}
        options.out.write_text(json.dumps({**about, "stores": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
