"""Measurements that can be stopped and gone on with: each finished one is a line of a file."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Job:
    """One method on one target: `name` is a draw's number or a formula's."""

    part: str
    name: str
    noise: float
    method: str


def read(file: Path) -> dict[Job, Row]:
    """What is there already; a line that was cut off in the middle, and one that failed, is measured again."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "failed" not in row:
            found[Job(row["part"], row["name"], row["noise"], row["method"])] = row
    return found


def run_all(
    jobs: Iterable[Job], measure: Callable[[Job], Row], file: Path, workers: int, minutes: float | None
) -> dict[Job, Row]:
    """Every job that the file does not have, each in a process of one thread; none is begun after `minutes`."""
    found = read(file)
    waiting = [job for job in jobs if job not in found][::-1]
    until = None if minutes is None else time.monotonic() + 60 * minutes
    file.parent.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"  # before the workers start
    context = multiprocessing.get_context("spawn")
    with file.open("a") as lines, ProcessPoolExecutor(workers, context, initializer=_one_thread) as pool:
        running: dict[Future[Row], Job] = {}
        while waiting or running:
            if until is not None and time.monotonic() > until:
                waiting = []
            while waiting and len(running) < workers:
                job = waiting.pop()
                running[pool.submit(_measured, measure, job)] = job
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                job, row = running.pop(future), future.result()
                lines.write(json.dumps(row) + "\n")
                lines.flush()
                if "failed" not in row:
                    found[job] = row
                said = row.get("failed") or row["said"]
                print(f"{len(waiting) + len(running):5d} left  {job}: {said}", file=sys.stderr, flush=True)
    return found


def seconds(rows: Iterable[Row]) -> dict[str, float]:
    """By the clock and of the processor, which is what counts where several share a core."""
    taken, used = zip(*((row["seconds"], row["cpu_seconds"]) for row in rows), strict=True)
    return {"median": statistics.median(taken), "most": max(taken), "median_cpu": statistics.median(used)}


def timed(work: Callable[[], Value]) -> tuple[Value, Row]:
    tick, used = time.perf_counter(), time.process_time()
    value = work()
    return value, {"seconds": time.perf_counter() - tick, "cpu_seconds": time.process_time() - used}


def _measured(measure: Callable[[Job], Row], job: Job) -> Row:
    """The time of the whole, unless the measure knows that of the method alone."""
    try:
        row, taken = timed(lambda: measure(job))
    except Exception as error:  # one formula that fails must not end a run of hours
        row, taken = {"failed": f"{type(error).__name__}: {error}"}, {}
    return {**asdict(job), **taken, **row}


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
