"""Engines by name: where the groups of a command run."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from theodolite.device import resolve_device, threads_each
from theodolite.errors import BadInput
from theodolite.lab.engines.pool import Engine, Here, Pool
from theodolite.lab.engines.streams import Streams
from theodolite.nets.checkpoint import Checkpoint
from theodolite.registry import unknown

logger = logging.getLogger(__name__)

ENGINES = ("local", "streams", "ray", "slurm", "slurm-local")
HERE = ("local", "streams")  # on this machine
_STREAMS = 4  # groups side by side on one GPU, unless a number is given
_JOBS = 4  # Slurm jobs side by side, unless a number is given


@dataclass(frozen=True)
class Cluster:
    """What only some engines take: Ray's address, or Slurm's options and a folder that all of its nodes see."""

    address: str | None = None
    slurm: Mapping[str, Any] = field(default_factory=dict)
    shared: str | Path | None = None

    def beside(self, out: str | Path | None) -> Cluster:
        """Jobs meet in the folder of the store unless another one is given."""
        return self if out is None or self.shared is not None else replace(self, shared=Path(out) / "jobs")


def make_engine(
    name: str,
    workers: int | None,
    threads: int | None,
    locations: Mapping[str, Any],
    device: str = "cpu",
    cluster: Cluster | None = None,
) -> Engine:
    """`local`: `workers` processes on this machine, or this very process where None is given. `streams`: this process,
    `workers` groups side by side.

    `ray`: actors, on the cluster at an address or on this machine. `slurm`: jobs, each of which runs one group after
    another; `slurm-local`: the same jobs as processes of this machine.
    """
    cluster = cluster or Cluster()
    check_engine(name, device, workers, cluster)
    if name == "local" and workers is None:
        return Here()
    if name == "streams":
        if not device.startswith("cuda"):
            logger.warning("on a CPU --engine streams takes turns and gains nothing: use --engine local")
        return Streams(workers or _STREAMS)
    if any(not isinstance(net.net if isinstance(net, Checkpoint) else net, str) for net in locations.values()):
        raise BadInput("a net given as an object cannot be sent to other processes: leave out workers, or use a file")
    if name == "local":
        assert workers is not None
        return Pool(workers, threads or threads_each(workers))
    from theodolite.lab.engines.fleet import Fleet, Remote

    if name == "ray":
        from theodolite.lab.engines.ray_engine import RayFleet

        return Remote(RayFleet(cluster.address, workers, threads or 1, device))
    from theodolite.lab.engines.slurm_site import SlurmSite

    if cluster.shared is None:
        raise BadInput(f"the jobs of --engine {name} need a folder that every node sees: give out, or shared")
    local = name == "slurm-local"
    return Remote(Fleet(SlurmSite(Path(cluster.shared), workers or _JOBS, threads or 1, device, cluster.slurm, local)))


def check_engine(name: str, device: str = "cpu", workers: int | None = None, cluster: Cluster | None = None) -> None:
    """What can be refused before anything is planned: options of another engine, a device that cannot be there."""
    cluster = cluster or Cluster()
    if name not in ENGINES:
        raise BadInput(unknown("engine", name, ENGINES))
    if workers is not None and workers < 1:
        raise BadInput(f"workers must be at least 1, not {workers}")
    if cluster.address is not None and name != "ray":
        raise BadInput(f"--address '{cluster.address}' is Ray's: use it with --engine ray")
    if cluster.slurm and not name.startswith("slurm"):
        raise BadInput(f"--slurm {next(iter(cluster.slurm))} is for jobs: use it with --engine slurm")
    if name.startswith("slurm") and importlib.util.find_spec("submitit") is None:
        raise BadInput(f"--engine {name} needs submitit: pip install 'theodolite[slurm]'")
    if name == "ray" and importlib.util.find_spec("ray") is None:
        raise BadInput("--engine ray needs Ray: pip install 'theodolite[ray]'")
    if name in HERE or device == "cpu":
        resolve_device(device)
    elif device != "cuda":  # which of a node's devices a worker gets is the cluster's choice, and is looked at there
        raise BadInput(f"--device {device} names a device of one machine: use cpu or cuda with --engine {name}")


def default_workers(device: str, engine: str = "local") -> int | None:
    """One process per core; a GPU is kept busy by one. A cluster's engine knows its own number."""
    if engine != "local":
        return None
    return 1 if device.startswith("cuda") else os.cpu_count() or 1
