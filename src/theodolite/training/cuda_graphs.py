"""Training steps as CUDA graphs: one launch for the whole step instead of hundreds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class _Captured:
    """`inputs`: of every part of a batch, those of all steps along the first axis."""

    graph: torch.cuda.CUDAGraph
    inputs: Tensors


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for every regrouping: cuBLAS keeps tens of megabytes for each stream it has ever run on."""
    return torch.cuda.Stream(device)


class CapturedSteps:
    """Graphs by what the caller tells apart and the shapes of the inputs. The first step of a kind runs as it is and
    warms up the libraries; the second is captured; they share one pool of memory, since they never run at the same
    time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._seen: set[Hashable] = set()
        self._graphs: dict[Hashable, _Captured] = {}
        self._stream = _side_stream(device)
        self._refused = False

    def run(self, kind: Hashable, batches: Sequence[Tensors], steps: Callable[[Sequence[Tensors]], None]) -> None:
        """`steps` of these batches, alike in shape; whatever else they read must stay where it is in memory."""
        key = (kind, len(batches), *(t.shape for t in batches[0]))
        if self._refused or key not in self._seen:
            self._seen.add(key)
            self._warm(batches, steps)
            return
        captured = self._graphs.get(key)
        if captured is None:
            try:
                captured = self._graphs[key] = self._capture(batches, steps)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                logger.warning("this net's step cannot be captured as a CUDA graph (%s): going on without", error)
                self._refused = True
                self._warm(batches, steps)
                return
        for number, held in enumerate(captured.inputs):
            torch.stack([batch[number] for batch in batches], out=held)  # one kernel for all steps
        captured.graph.replay()

    def _warm(self, batches: Sequence[Tensors], steps: Callable[[Sequence[Tensors]], None]) -> None:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            steps(batches)
        torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def _capture(self, batches: Sequence[Tensors], steps: Callable[[Sequence[Tensors]], None]) -> _Captured:
        held = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self._device)
        # What other threads ask of the device meanwhile, such as another library's, does not end the capture.
        recording = torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local")
        with _as_before_on_failure(self._device), recording:
            steps([tuple(part[number] for part in held) for number in range(len(batches))])
        return _Captured(graph, held)


@contextmanager
def _as_before_on_failure(device: torch.device) -> Iterator[None]:
    """A capture that fails leaves its own stream current and the device's generator capturing, so that the next draw is
    refused. A copy of the generator's state does not capture."""
    stream = torch.cuda.current_stream(device)
    try:
        yield
    except RuntimeError:
        torch.cuda.set_stream(stream)
        generator = torch.cuda.default_generators[stream.device_index]
        generator.graphsafe_set_state(generator.clone_state())
        raise
