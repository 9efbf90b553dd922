"""One group of members as a program: training steps and forward passes, batched or one member after another.

A block of steps is drawn first; then each chunk of members runs through the whole block, so that its weights stay in
the cache, before the next chunk starts. On CUDA a step is captured as a graph once its shape comes a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.errors import NotEnoughMemory
from theodolite.tasks.contract import Batch
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser
from theodolite.training.scoring import losses
from theodolite.training.step import Gradients, LossGradients, Step, Weights, gradients_of

logger = logging.getLogger(__name__)

_LENGTH_STEP = 8  # tokens: the step between lengths that are captured as graphs, and an eighth of longer ones


@dataclass(frozen=True)
class Batching:
    """How members are run: `chunk` of them in one batched call, or one by one in a plain loop."""

    chunk: int
    batched: bool
    graphs: bool = False

    def __str__(self) -> str:
        if not self.batched:
            return "loop"
        return f"ensemble of {self.chunk}" + (" with CUDA graphs" if self.graphs else "")


class Program:
    """Members with their optimiser and the way they are batched."""

    def __init__(self, members: Members, optimiser: Optimiser | None, batching: Batching, device: torch.device) -> None:
        self.members = members
        self.optimiser = optimiser
        self.device = device
        self.one_hot = members.pairing.one_hot(device)
        self.run_as(batching)

    def train(self, batches: Sequence[Batch], step: int) -> None:
        """One optimiser step per batch for every member; the first of them is step number `step`, from 1."""
        self.members.module.train()
        start = 0
        while start < len(self.members):
            stop = min(start + (self.batching.chunk if self.batching.batched else 1), len(self.members))
            with nullcontext() if self.batching.batched else self.members.alone(start):
                self._train_chunk(start, stop, batches, step)
            start = stop

    def outputs(
        self, inputs: Tensor, present: Tensor | None = None, most: int | None = None
    ) -> Iterator[tuple[int, int, Tensor]]:
        """(start, stop, outputs) for at most `most` members at a time, without gradients. `inputs` as the task's."""
        self.members.module.eval()
        pairing = self.members.pairing
        width = min(self.batching.chunk, most or self.batching.chunk) if self.batching.batched else 1
        start = 0
        while start < len(self.members):
            stop = min(start + width, len(self.members))
            read = pairing.feed(inputs[start:stop], self.one_hot)
            seen = None if present is None else present[start:stop]
            try:
                with torch.no_grad():
                    if self.batching.batched:
                        weights = {n: p[start:stop] for n, p in self.members.parameters.items()}
                        found = self.members.outputs(weights, start, stop, read, seen)
                    else:
                        with self.members.alone(start) as module:
                            arguments = (read[0],) if seen is None or not pairing.takes_present else (read[0], seen[0])
                            found = module(*arguments)[None]
            except RuntimeError as error:
                width = self._shrink(start, stop, error)
                continue
            yield start, stop, found
            start = stop

    def run_as(self, batching: Batching) -> None:
        self.batching = batching
        self._make_step()

    def keep(self, members: Tensor) -> None:
        """Only these members go on; the others cost nothing from here."""
        self.members.keep(members)
        if self.optimiser is not None:
            self.optimiser.keep(members, self.members.parameters)
        self._make_step()

    def _train_chunk(self, start: int, stop: int, batches: Sequence[Batch], step: int) -> None:
        for number, batch in enumerate(batches):
            own = Batch(*(t[start:stop] for t in (batch.inputs, batch.targets, batch.mask)))
            try:
                self._take_step(start, stop, own, step + number)
                continue
            except RuntimeError as error:
                self._shrink(start, stop, error)
            # Out here the error is gone, and with it the memory that the failed step still held.
            middle = (start + stop) // 2
            self._train_chunk(start, middle, batches[number:], step + number)
            self._train_chunk(middle, stop, batches[number:], step + number)
            return

    def _take_step(self, start: int, stop: int, batch: Batch, number: int) -> None:
        assert self._step is not None, "a program without an optimiser only evaluates"
        pairing, present = self.members.pairing, None
        if self._step.captured is not None and pairing.pads:
            batch, present = pad_to_step(batch, pairing.most)
        seen = (present,) if present is not None and pairing.takes_present else ()
        self._step.take((batch.inputs, batch.targets, batch.mask, *seen), number, start, stop)

    def _make_step(self) -> None:
        """Anew whenever the members or their chunks change: captured steps and leaves are those of before."""
        self._step = None
        if self.optimiser is not None:
            members, one_hot = self.members, self.one_hot
            together = LossGradients(members.parameters, _losses(members, one_hot))
            gradients = together if self.batching.batched else _gradients_alone(members, one_hot)
            self._step = Step(self.optimiser, gradients, graphs=self.batching.graphs and self.batching.batched)

    def _shrink(self, start: int, stop: int, error: RuntimeError) -> int:
        """Half the chunk after running out of memory; any other error goes on to the caller."""
        if not _out_of_memory(error):
            raise error
        if stop - start == 1:
            raise NotEnoughMemory(
                f"one member of '{self.members.pairing.name}' alone does not fit into the memory of {self.device}: "
                "use a smaller net, batch or length"
            ) from error
        chunk = (stop - start) // 2
        logger.warning("out of memory with %d members at once: going on with %d", stop - start, chunk)
        self.run_as(Batching(chunk, self.batching.batched, self.batching.graphs))
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return chunk


def _losses(members: Members, one_hot: Tensor | None) -> Callable[[Weights, Tensors, int, int], Tensor]:
    """Of a batch of the task, and its padding where the net is told of it. Not the program's own function: what it
    captured would stay in memory until cycles are collected."""

    def found(weights: Weights, tensors: Tensors, start: int, stop: int) -> Tensor:
        batch, present = Batch(*tensors[:3]), tensors[3] if len(tensors) > 3 else None
        read = members.pairing.feed(batch.inputs, one_hot)
        return losses(members.pairing.task.spec, members.outputs(weights, start, stop, read, present), batch)

    return found


def _gradients_alone(members: Members, one_hot: Tensor | None) -> Gradients:
    """Of the one member whose weights stand in the module."""

    def found(tensors: Tensors, _start: int, _stop: int) -> list[Tensor]:
        module, batch = members.module, Batch(*tensors)
        parameters = [p for p in module.parameters() if p.requires_grad]
        outputs = module(members.pairing.feed(batch.inputs[0], one_hot))[None]
        return [g[None] for g in gradients_of(losses(members.pairing.task.spec, outputs, batch), parameters)]

    return found


def pad_to_step(batch: Batch, most: int) -> tuple[Batch, Tensor]:
    """The batch padded on the right to one of a few numbers of tokens, `most` at most, and which of them are real: a
    graph is captured for every number there is, which takes far longer than the few tokens more. What is not real is
    not scored."""
    tokens = batch.inputs.shape[2]
    step = max(_LENGTH_STEP, 2 ** (tokens.bit_length() - 3))
    missing = min(-tokens % step, max(0, most - tokens))
    present = torch.arange(tokens + missing, device=batch.inputs.device) < tokens
    grow = lambda t: F.pad(t, (0, missing) if t.dim() == 3 else (0, 0, 0, missing))
    padded = Batch(grow(batch.inputs), grow(batch.targets), grow(batch.mask))
    return padded, present.expand(*batch.inputs.shape[:2], -1)


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
