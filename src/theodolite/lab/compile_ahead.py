"""Training steps compiled by other processes while the group trains on as it is; they meet in the cache on the disk.

A process is told by JSON what the group is: `python -m theodolite.lab.compile_ahead < ORDER`. It builds the same
members, traces their step for some of the lengths and leaves the programs where the group looks for them.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.lab.run_cells import net_of, place

logger = logging.getLogger(__name__)

_SPARE = 2  # processors left to those who train


@dataclass
class CompileAhead:
    """For the groups of a configuration that run `chunk` members at once, with weight decay (`decays`) or without;
    `lengths` has one of the task's for every program that is needed."""

    config: Mapping[str, Any]
    locations: Mapping[str, Any]
    device: str
    chunk: int
    decays: bool
    lengths: Sequence[int | None]
    _running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def processes(self) -> int:
        """As many as there are processors to spare; none where the net is known to this process alone."""
        if not isinstance(net_of(self.config, self.locations), str):
            return 0
        return max(0, min(len(self.lengths), (os.cpu_count() or 1) - _SPARE))

    def begin(self) -> None:
        for first in range(self.processes):
            order = {
                "config": dict(self.config),
                "location": net_of(self.config, self.locations),
                "device": self.device,
                "chunk": self.chunk,
                "decays": self.decays,
                "lengths": list(self.lengths[first :: self.processes]),
            }
            started = subprocess.Popen(
                [sys.executable, "-m", __spec__.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "2"},
            )
            assert started.stdin is not None
            started.stdin.write(json.dumps(order))
            started.stdin.close()
            self._running.append(started)

    @property
    def finished(self) -> bool:
        """Whether none is at work; what a process could not compile, the group tries itself, and says why."""
        return all(process.poll() is not None for process in self._running)

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait()
        self._running = []


def fulfil(order: Mapping[str, Any]) -> int:
    """Compile what is asked for; how many programs are on the disk then."""
    import torch

    from theodolite.device import resolve_device
    from theodolite.lab.work import paired
    from theodolite.training.group import Schedule
    from theodolite.training.members import Members
    from theodolite.training.optimiser import Optimiser, Rates, Rule
    from theodolite.training.precision import check_precision, multiplying
    from theodolite.training.program import Batching, Program

    config, chunk, device = order["config"], order["chunk"], resolve_device(order["device"])
    pairing = paired(config, {place(config): order["location"]})
    members = Members(pairing, [pairing.build(0)] * chunk, device, batched=True)
    rates = [Rates(1e-3, 0.1 if order["decays"] else 0.0)] * chunk
    optimiser = Optimiser(Rule.from_json(config["optimiser"]), rates, members.parameters)
    program = Program(members, optimiser, Batching(chunk, batched=True, compiled=True), device)
    rows = Schedule.from_json(config["schedule"]).batch
    generator = torch.Generator(device)
    with multiplying(check_precision(config.get("precision", "float32"), str(device)), device):
        return sum(program.prepare(pairing.task.sample(chunk, rows, n, generator)) for n in order["lengths"])


if __name__ == "__main__":
    fulfil(json.load(sys.stdin))
