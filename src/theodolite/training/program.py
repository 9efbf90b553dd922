"""One group of members as a program: training steps and forward passes, batched or one member after another.

A block of steps is drawn first; then each chunk of members runs through the whole block, so that its weights stay in
the cache, before the next chunk starts. On CUDA a step is captured as a graph once its shape comes a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.errors import NotEnoughMemory
from theodolite.tasks.contract import Batch
from theodolite.training.cuda_graphs import CapturedSteps
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser
from theodolite.training.scoring import losses

logger = logging.getLogger(__name__)

_RUNG = 8  # tokens: the step between lengths that are captured as graphs, and an eighth of longer ones


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
        self.batching = batching
        self.device = device
        self.spec = members.pairing.task.spec
        self.one_hot = members.pairing.one_hot(device)
        self._captured = CapturedSteps(device) if batching.graphs and device.type == "cuda" else None
        self._leaves: dict[tuple[int, int], dict[str, Tensor]] = {}

    def train(self, batches: Sequence[Batch], step: int) -> None:
        """One optimiser step per batch for every member; the first of them is step number `step`, from 1."""
        self.members.module.train()
        if not self.batching.batched:
            for member in range(len(self.members)):
                self._train_alone(member, batches, step)
            return
        start = 0
        while start < len(self.members):
            stop = min(start + self.batching.chunk, len(self.members))
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

    def keep(self, members: Tensor) -> None:
        """Only these members go on; the others cost nothing from here."""
        self.members.keep(members)
        if self.optimiser is not None:
            self.optimiser.keep(members, self.members.parameters)
        self._forget()

    def _train_chunk(self, start: int, stop: int, batches: Sequence[Batch], step: int) -> None:
        for number, batch in enumerate(batches):
            own = Batch(*(t[start:stop] for t in (batch.inputs, batch.targets, batch.mask)))
            try:
                self._step(start, stop, own, step + number)
                continue
            except RuntimeError as error:
                self._shrink(start, stop, error)
            # Out here the error is gone, and with it the memory that the failed step still held.
            middle = (start + stop) // 2
            self._train_chunk(start, middle, batches[number:], step + number)
            self._train_chunk(middle, stop, batches[number:], step + number)
            return

    def _step(self, start: int, stop: int, batch: Batch, step: int) -> None:
        if self._captured is not None:
            pairing = self.members.pairing
            batch, present = to_rung(batch, pairing.most) if pairing.pads else (batch, None)
            seen = present if pairing.takes_present else None
            self._captured.step((start, stop), batch, seen, step, lambda b, p, s: self._eager(start, stop, b, p, s))
        else:
            self._eager(start, stop, batch, None, torch.full((), float(step), device=self.device))

    def _eager(self, start: int, stop: int, batch: Batch, present: Tensor | None, step: Tensor) -> None:
        weights = self._leaves.get((start, stop))
        if weights is None:
            weights = self._leaves[(start, stop)] = self.members.leaves(start, stop)
        read = self.members.pairing.feed(batch.inputs, self.one_hot)
        outputs = self.members.outputs(weights, start, stop, read, present)
        total = losses(self.spec, outputs, batch).sum()
        leaves = list(weights.values())
        gradients = torch.autograd.grad(total, leaves, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, leaves, strict=True)]
        self._rule().update(start, stop, filled, step)

    def _train_alone(self, member: int, batches: Sequence[Batch], step: int) -> None:
        with self.members.alone(member) as module:
            parameters = [p for p in module.parameters() if p.requires_grad]
            for number, batch in enumerate(batches):
                own = Batch(*(t[member : member + 1] for t in (batch.inputs, batch.targets, batch.mask)))
                read = self.members.pairing.feed(own.inputs[0], self.one_hot)
                try:
                    total = losses(self.spec, module(read)[None], own).sum()
                    gradients = torch.autograd.grad(total, parameters, allow_unused=True)
                except RuntimeError as error:
                    self._shrink(member, member + 1, error)
                    raise
                filled = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, parameters, strict=True)]
                count = torch.full((), float(step + number), device=self.device)
                self._rule().update(member, member + 1, [g[None] for g in filled], count)

    def _rule(self) -> Optimiser:
        assert self.optimiser is not None, "a program without an optimiser only evaluates"
        return self.optimiser

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
        self.batching = Batching(chunk, self.batching.batched, self.batching.graphs)
        self._forget()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return chunk

    def _forget(self) -> None:
        self._leaves.clear()
        if self._captured is not None:
            self._captured = CapturedSteps(self.device)


def to_rung(batch: Batch, most: int) -> tuple[Batch, Tensor]:
    """The batch padded on the right to one of a few numbers of tokens, `most` at most, and which of them are real: a
    graph is captured for every number there is, which takes far longer than the few tokens more. What is not real is
    not scored."""
    tokens = batch.inputs.shape[2]
    rung = max(_RUNG, 2 ** (tokens.bit_length() - 3))
    missing = min(-tokens % rung, max(0, most - tokens))
    present = torch.arange(tokens + missing, device=batch.inputs.device) < tokens
    grow = lambda t: F.pad(t, (0, missing) if t.dim() == 3 else (0, 0, 0, missing))
    padded = Batch(grow(batch.inputs), grow(batch.targets), grow(batch.mask))
    return padded, present.expand(*batch.inputs.shape[:2], -1)


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
