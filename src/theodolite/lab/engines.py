"""Engines by name: where the groups of a command run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from theodolite.errors import BadInput
from theodolite.lab.pool import Engine, Here, Pool
from theodolite.registry import unknown

ENGINES = ("local",)


def make_engine(name: str, workers: int | None, threads: int | None, locations: Mapping[str, Any]) -> Engine:
    """`local`: `workers` processes on this machine, or this very process where None is given."""
    if name not in ENGINES:
        raise BadInput(unknown("engine", name, ENGINES))
    if workers is None:
        return Here()
    if workers < 1:
        raise BadInput(f"workers must be at least 1, not {workers}")
    if any(not isinstance(net, str) for net in locations.values()):
        raise BadInput("a net given as an object cannot be sent to other processes: leave out workers, or use a file")
    return Pool(workers, threads or max(1, (os.cpu_count() or 1) // workers))


def default_workers(device: str) -> int:
    """One process per core; a GPU is kept busy by one."""
    return 1 if device.startswith("cuda") else os.cpu_count() or 1
