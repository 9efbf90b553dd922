"""Training steps as CUDA graphs: one launch for the whole step instead of hundreds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from theodolite.tasks.contract import Batch

logger = logging.getLogger(__name__)

Step = Callable[[Batch, Tensor | None, Tensor], None]


@dataclass(frozen=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    batch: Batch
    present: Tensor | None
    step: Tensor


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for every regrouping: cuBLAS keeps tens of megabytes for each stream it has ever run on."""
    return torch.cuda.Stream(device)


class CapturedSteps:
    """Graphs by (members, shape of the batch). The first step of a shape runs as it is and warms up the libraries;
    the second is captured; they share one pool of memory, since they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: set[Any] = set()
        self._graphs: dict[Any, _Captured] = {}
        self._stream = _side_stream(device)
        self._refused = False

    def step(self, members: tuple[int, int], batch: Batch, present: Tensor | None, number: int, run: Step) -> None:
        """`present` is a batch's padding, for nets that are told of it."""
        key = (members, tuple(batch.inputs.shape))
        if self._refused or key not in self._seen:
            self._seen.add(key)
            self._warm(batch, present, number, run)
            return
        captured = self._graphs.get(key)
        if captured is None:
            try:
                captured = self._graphs[key] = self._capture(batch, present, run)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                logger.warning("this net's step cannot be captured as a CUDA graph (%s): going on without", error)
                self._refused = True
                self._warm(batch, present, number, run)
                return
        captured.batch.inputs.copy_(batch.inputs)
        captured.batch.targets.copy_(batch.targets)
        captured.batch.mask.copy_(batch.mask)
        if captured.present is not None and present is not None:
            captured.present.copy_(present)
        captured.step.fill_(float(number))
        captured.graph.replay()

    def _warm(self, batch: Batch, present: Tensor | None, number: int, run: Step) -> None:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            run(batch, present, torch.full((), float(number), device=self._device))
        torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def _capture(self, batch: Batch, present: Tensor | None, run: Step) -> _Captured:
        held = Batch(batch.inputs.clone(), batch.targets.clone(), batch.mask.clone())
        seen = None if present is None else present.clone()
        step = torch.zeros((), device=self._device)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self._device)
        with torch.cuda.graph(graph, pool=self._pool):
            run(held, seen, step)
        return _Captured(graph, held, seen, step)
