"""The whole command by the clock: python benchmarks/discover_clock.py --out clock.jsonl --tables 30 [--before DIR].

Tables of 1,000 rows and 9 to 11 columns, of the held-out functions of `known_structures/random_functions.py`, in the
order of their seeds from `--first` on; `theodolite discover TABLE` as anybody would call it, one at a time, with all
of this machine's cores. `--before` names the `src` folder of another state of the package, which is asked about the
same tables in turn. The first table of each is asked twice and only the second time counts, since files are read from
disk at the first. From the root of the repository, with PYTHONPATH=.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.known_structures.judge import judge
from benchmarks.known_structures.random_functions import HELD_OUT, RandomFunction, random_function

import theodolite
from theodolite.graphs import CompositionalGraph
from theodolite.statistics.paired import error_ratio
from timing import hardware

ROWS, COLUMNS = 1000, range(9, 12)
GOAL = 15.0  # seconds


def tables(first: int, count: int) -> Iterator[RandomFunction]:
    seed = HELD_OUT + first
    while count:
        truth = random_function(seed)
        if truth.rows == ROWS and len(truth.variables) in COLUMNS:
            count -= 1
            yield truth
        seed += 1


def asked(truth: RandomFunction, source: Path, folder: Path) -> dict[str, Any]:
    """Seconds of the command, and what became of the graph."""
    x, y = truth.sample()
    table = folder / "table.csv"
    header = ",".join([*truth.variables, "target"])
    np.savetxt(table, np.column_stack([x, y]), delimiter=",", header=header, comments="")
    command = [sys.executable, "-m", "theodolite", "discover", str(table), "--target", "target", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    found = json.loads(done.stdout)
    outcome = "abstained"
    if not found["abstained"]:
        error = _of_function(truth, found["network_test_error"])
        told = judge(truth, CompositionalGraph.from_json(found["graph"]), error)
        outcome = "exact" if told.exact else "coarser" if told.coarser else "other, nothing that matters"
        outcome = "materially false" if told.material else outcome
    return {"seconds": seconds, "outcome": outcome, "error": found["test_error"], "dense": found["dense_test_error"]}


def _of_function(truth: RandomFunction, error: float) -> float:
    """The error over the variance of the function, about, of one over that of the noisy target."""
    noise = truth.noise**2 / (1 + truth.noise**2)
    return max(0.0, error - noise) / (1 - noise)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    taken = [row["seconds"] for row in rows]
    return {
        "tables": len(rows),
        "within_goal": sum(one <= GOAL for one in taken),
        "median": statistics.median(taken),
        "most": max(taken),
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of one JSON line a measurement")
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="pass over so many held-out seeds")
    parser.add_argument("--before", type=Path, help="the src folder of another state")
    parser.add_argument("--minutes", type=float, help="begin no table after so long")
    options = parser.parse_args()
    states = {"now": Path(theodolite.__file__).parents[1], **({"before": options.before} if options.before else {})}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in states}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, options.out.open("a") as lines:
        for number, truth in enumerate(tables(options.first, options.tables)):
            if options.minutes is not None and time.monotonic() - start > 60 * options.minutes:
                break
            for name, source in states.items():
                if number == 0:
                    asked(truth, source, Path(folder))
                row = asked(truth, source, Path(folder))
                row |= {"state": name, "seed": truth.seed, "kind": truth.kind, "columns": len(truth.variables)}
                rows[name].append(row)
                lines.write(json.dumps(row) + "\n")
                lines.flush()
                print(name, truth.seed, truth.kind, f"{row['seconds']:.1f} s", row["outcome"], file=sys.stderr)
    found: dict[str, Any] = {"benchmark": "discover_clock", "hardware": hardware(torch.device("cpu"))}
    found |= {name: summary(own) for name, own in rows.items()}
    if options.before:
        now, before = ([np.log(row["seconds"]) for row in rows[name]] for name in ("now", "before"))
        ratio = error_ratio(now, before)
        found["seconds_over_before"] = {"geometric_mean": ratio.value, "interval": ratio.interval}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
