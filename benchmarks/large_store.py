"""A store of many rows, and what `runs` and `compare` take on it: python benchmarks/large_store.py [--rows 1000000].

The rows are those of a real member with other names, rates, seeds and scores, written straight into the tables. Times
are of whole calls of the functions, by the clock and of the processor; memory is the most that the process held.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from theodolite.bench.compare import compare
from theodolite.bench.learn import learn
from theodolite.bench.runs import runs
from theodolite.lab.cell import Cell, Row
from theodolite.lab.store.store import Store
from timing import hardware

NETS = ("mlp", "rnn", "lstm", "gru", "transformer", "stack-rnn", "tape-rnn", "delta-net", "state-space", "mixer")
TASKS = ("parity-check", "even-pairs", "cycle-navigation", "modular-arithmetic", "majority", "copy", "reverse", "dyck")
RATES = (1e-2, 3e-3, 1e-3, 3e-4)


def drawn(example: Row, count: int, generator: random.Random) -> Iterator[Row]:
    """Members of every network on every task at every rate, with as many seeds as that takes."""
    for seed in itertools.count():
        for net, task, rate in itertools.product(NETS, TASKS, RATES):
            if count == 0:
                return
            count -= 1
            score = generator.random()
            status = "solved" if score > 0.6 else "unsolved"
            result = {**example.result, "accuracy": score, "status": status, "solved_at": 10 if score > 0.6 else None}
            config = {**example.cell.config, "net": net, "task": task, "lr": rate, "seed": seed}
            yield Row(Cell(example.cell.measure, config), result, None, example.facts)


def build(folder: Path, count: int) -> None:
    [example] = learn("rnn", "parity-check", seeds=1, steps=20, every=10, task_args={"longest": 8}, unseen="10,12").rows
    with Store(folder):
        pass
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        for row in drawn(example, count, random.Random(0)):
            key = row.cell.key
            db.execute("INSERT INTO cells VALUES (?, ?, ?)", (key, row.cell.measure, json.dumps(row.cell.config)))
            values = (key, json.dumps(row.result), "null", json.dumps({"finished": "2026-11-16", **row.facts}))
            db.execute("INSERT INTO rows (key, result, error, facts) VALUES (?, ?, ?, ?)", values)
        db.execute("COMMIT")


def timed(call: Callable[[], Any]) -> dict[str, float]:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return {
        "seconds": round(time.perf_counter() - clock, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def measured(folder: Path, count: int) -> dict[str, Any]:
    built = timed(lambda: build(folder, count))
    return {
        "megabytes": round((folder / "store.db").stat().st_size / 1e6),
        "build": built,
        "open": timed(lambda: Store(folder, read_only=True).close()),
        "runs of one net and task": timed(lambda: runs(folder, net="lstm", task="copy").summary),
        "compare two nets on one task": timed(lambda: compare("lstm", "gru", folder, task="copy")),
        "runs": timed(lambda: runs(folder).summary),
        "compare two nets": timed(lambda: compare("lstm", "gru", folder)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for count in options.rows:
        with tempfile.TemporaryDirectory() as place:
            found.append({"rows": count, **measured(Path(place), count)})
        print(json.dumps(found[-1]), flush=True)
    if options.out is not None:
        about = {"benchmark": "large store", "hardware": hardware(torch.device("cpu"))}
        options.out.write_text(json.dumps({**about, "stores": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
