"""Several groups side by side in this process, each on a CUDA stream of its own, taken up in turns block by block.

Networks too small to fill a GPU leave it waiting between their kernels. Work on other streams fills the gaps, which
other processes could not: without a further service, a GPU gives processes turns and never runs two at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch

from theodolite.device import resolve_device
from theodolite.lab.engines.pool import Message, failed
from theodolite.lab.group import Group
from theodolite.lab.work import Context, Update, work


@dataclass(frozen=True)
class _Running:
    group: str
    updates: Iterator[Update]
    stream: AbstractContextManager[object]


class Streams:
    """At most `workers` groups at once; every `poll` lets each of them enqueue one block."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._running: list[_Running] = []
        self._idle: list[torch.cuda.Stream] = []
        self._stopping = False

    @property
    def free(self) -> int:
        return self.workers - len(self._running)

    def submit(self, group: Group, context: Context) -> None:
        eager = replace(context, quiet=0.0)  # a turn is one block: no stream runs dry while another is fed
        updates = work(group, eager, lambda: self._stopping)
        self._running.append(_Running(group.id, updates, self._stream(group.settings["device"])))

    def poll(self, _timeout: float, /) -> list[Message]:
        messages: list[Message] = []
        for running in list(self._running):
            try:
                with running.stream:
                    update = next(running.updates, None)
            except Exception as error:
                messages.append(failed(running.group, error))
                self._end(running)
                continue
            if update is not None:
                messages.append(update)
            if update is None or update.done:
                self._end(running)
        return messages

    def drop(self, group: str) -> None:
        for running in [running for running in self._running if running.group == group]:
            self._end(running)

    def stop(self) -> list[Message]:
        """Let what runs save its state."""
        self._stopping = True
        messages: list[Message] = []
        while self._running:
            messages += self.poll(0)
        return messages

    def _stream(self, device: str | torch.device) -> AbstractContextManager[object]:
        """One that no running group uses; cuBLAS keeps memory for every stream it has ever run on."""
        device = resolve_device(device)
        if device.type != "cuda":
            return nullcontext()
        return torch.cuda.stream(self._idle.pop() if self._idle else torch.cuda.Stream(device))

    def _end(self, running: _Running) -> None:
        self._running.remove(running)
        if isinstance(running.stream, torch.cuda.StreamContext) and running.stream.stream is not None:
            self._idle.append(running.stream.stream)
