"""One group of members as a program: training steps and forward passes, batched or one member after another.

A block of steps is drawn first; then each chunk of members runs through the whole block, so that its weights stay in
the cache, before the next chunk starts. On CUDA a step is captured as a graph once its shape comes a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.errors import NotEnoughMemory
from theodolite.kernels.launch import fusing
from theodolite.tasks.contract import Batch
from theodolite.training.compiled_step import CompiledSteps
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser
from theodolite.training.perceptron_step import PerceptronSteps
from theodolite.training.precision import full
from theodolite.training.scoring import losses
from theodolite.training.step import Gradients, LossGradients, Step, Weights, gradients_of

logger = logging.getLogger(__name__)

_LENGTH_STEP = 8  # tokens: the least step between lengths that are captured as graphs or compiled
_FINE, _COARSE = 8, 4  # and this part of the next power of two: a capture takes a tenth of a second, compiling many


@dataclass(frozen=True)
class Batching:
    """How members are run: `chunk` of them in one batched call, or one by one in a plain loop; on CUDA with captured
    `graphs`; `compiled` by torch's inductor, or operation by operation; on a CPU with so many `threads`, all that the
    process has unless a trial found a number."""

    chunk: int
    batched: bool
    graphs: bool = False
    compiled: bool = False
    threads: int | None = None

    def __str__(self) -> str:
        threads = f", {self.threads} threads" if (self.threads or 1) > 1 else ""
        if not self.batched:
            return f"loop{threads}"
        how = ", compiled" * self.compiled + (" with CUDA graphs" if self.graphs else "")
        return f"ensemble of {self.chunk}{how}{threads}"


class Program:
    """Members with their optimiser and the way they are batched."""

    def __init__(self, members: Members, optimiser: Optimiser | None, batching: Batching, device: torch.device) -> None:
        self.members = members
        self.optimiser = optimiser
        self.device = device
        self.one_hot = members.pairing.one_hot(device)
        self.compiled: CompiledSteps | None = None
        self.kernels: PerceptronSteps | None = None
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
                with torch.no_grad(), fusing():
                    if self.batching.batched:
                        weights = {n: p[start:stop] for n, p in self.members.parameters.items()}
                        found = self.members.outputs(weights, start, stop, read, seen)
                    else:
                        with self.members.alone(start) as module:
                            arguments = (read[0],) if seen is None or not pairing.takes_present else (read[0], seen[0])
                            found = full(module(*arguments))[None]
            except RuntimeError as error:
                width = self._shrink(start, stop, error)
                continue
            yield start, stop, found
            start = stop

    def run_as(self, batching: Batching) -> None:
        """With no more threads than the process has: a trial or checkpoint may be of one that had more."""
        threads = None if batching.threads is None else min(batching.threads, torch.get_num_threads())
        self.batching = replace(batching, threads=threads)
        self._make_step()

    def compiled_before(self, batch: Batch) -> bool:
        """Whether steps on batches like this were compiled once and are on the disk."""
        if self.optimiser is None or not self.batching.batched:
            return False
        stop = min(self.batching.chunk, len(self.members))
        steps = CompiledSteps(self.members, self.optimiser, self.one_hot, _member_losses)
        return steps.kept(self._read(batch, 0, stop, compiled=True), 0, stop)

    def prepare(self, batch: Batch) -> bool:
        """Compile the step for batches like this, without taking it; whether there is a program then."""
        assert self.compiled is not None, "its steps are not compiled"
        stop = min(self.batching.chunk, len(self.members))
        return self.compiled.prepare(self._read(batch, 0, stop, compiled=True), 0, stop)

    def keep(self, members: Tensor) -> None:
        """Only these members go on; the others cost nothing from here."""
        self.members.keep(members)
        if self.optimiser is not None:
            self.optimiser.keep(members, self.members.parameters)
        self._make_step()

    def _train_chunk(self, start: int, stop: int, batches: Sequence[Batch], step: int) -> None:
        done = 0
        while done < len(batches):
            try:
                done += self._take_steps(start, stop, batches[done:], step + done)
                continue
            except RuntimeError as error:
                self._shrink(start, stop, error)
            # Out here the error is gone, and with it the memory that the failed step still held.
            middle = (start + stop) // 2
            self._train_chunk(start, middle, batches[done:], step + done)
            self._train_chunk(middle, stop, batches[done:], step + done)
            return

    def _take_steps(self, start: int, stop: int, batches: Sequence[Batch], number: int) -> int:
        """All of a block at once where its batches are alike and captured together, else the first; how many."""
        step = self._step
        assert step is not None, "a program without an optimiser only evaluates"
        step.begin(number)
        if step.captured is not None and len({batch.inputs.shape for batch in batches}) == 1:
            step.take([self._read(batch, start, stop, self.batching.compiled) for batch in batches], start, stop)
            return len(batches)
        step.take([self._read(batches[0], start, stop, self.batching.compiled)], start, stop)
        return 1

    def _read(self, batch: Batch, start: int, stop: int, compiled: bool) -> Tensors:
        """The members' own part, padded to one of few lengths where every length costs time once."""
        assert self._step is not None
        own = Batch(*(t[start:stop] for t in (batch.inputs, batch.targets, batch.mask)))
        pairing, present = self.members.pairing, None
        if (compiled or self._step.fixed_shapes) and pairing.pads:
            own, present = pad_to_step(own, pairing.most, _COARSE if compiled else _FINE)
        seen = (present,) if present is not None and pairing.takes_present else ()
        return tuple(tensor.contiguous() for tensor in (own.inputs, own.targets, own.mask, *seen))

    def _make_step(self) -> None:
        """Anew whenever the members or their chunks change: captured steps and leaves are those of before."""
        self._step = None
        if self.optimiser is not None:
            members, one_hot = self.members, self.one_hot
            together = LossGradients(members.parameters, _losses(members, one_hot))
            gradients = together if self.batching.batched else _gradients_alone(members, one_hot)
            self.compiled = None
            self.kernels = PerceptronSteps.of(members, self.optimiser, one_hot) if self.batching.batched else None
            if self.batching.compiled and self.batching.batched:
                self.compiled = CompiledSteps(members, self.optimiser, one_hot, _member_losses)
            self._step = Step(
                self.optimiser,
                gradients,
                graphs=self.batching.graphs and self.batching.batched,
                programs=[each.run for each in (self.kernels, self.compiled) if each is not None],
            )

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
        self.run_as(replace(self.batching, chunk=chunk))
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return chunk


def _losses(members: Members, one_hot: Tensor | None) -> Callable[[Weights, Tensors, int, int], Tensor]:
    """Of a batch of the task, and its padding where the net is told of it. Not the program's own function: what it
    captured would stay in memory until cycles are collected."""

    def found(weights: Weights, tensors: Tensors, start: int, stop: int) -> Tensor:
        return _member_losses(members, weights, tensors, one_hot, start, stop)

    return found


def _member_losses(
    members: Members,
    weights: Mapping[str, Tensor],
    tensors: Tensors,
    one_hot: Tensor | None,
    start: int = 0,
    stop: int | None = None,
) -> Tensor:
    batch, present = Batch(*tensors[:3]), tensors[3] if len(tensors) > 3 else None
    read = members.pairing.feed(batch.inputs, one_hot)
    stop = len(batch.inputs) if stop is None else stop
    return losses(members.pairing.task.spec, members.outputs(dict(weights), start, stop, read, present), batch)


def _gradients_alone(members: Members, one_hot: Tensor | None) -> Gradients:
    """Of the one member whose weights stand in the module."""

    def found(tensors: Tensors, _start: int, _stop: int) -> list[Tensor]:
        module, batch = members.module, Batch(*tensors)
        parameters = [p for p in module.parameters() if p.requires_grad]
        outputs = full(module(members.pairing.feed(batch.inputs[0], one_hot)))[None]
        return [g[None] for g in gradients_of(losses(members.pairing.task.spec, outputs, batch), parameters)]

    return found


def pad_to_step(batch: Batch, most: int, parts: int = _FINE) -> tuple[Batch, Tensor]:
    """The batch padded on the right to one of a few numbers of tokens, `most` at most, and which of them are real: a
    graph is captured for every number there is, which takes far longer than the few tokens more. What is not real is
    not scored."""
    tokens = batch.inputs.shape[2]
    missing = _padded(tokens, most, parts) - tokens
    present = torch.arange(tokens + missing, device=batch.inputs.device) < tokens
    grow = lambda t: F.pad(t, (0, missing) if t.dim() == 3 else (0, 0, 0, missing))
    padded = Batch(grow(batch.inputs), grow(batch.targets), grow(batch.mask))
    return padded, present.expand(*batch.inputs.shape[:2], -1).contiguous()


def compiled_tokens(tokens: int, most: int) -> int:
    """What so many tokens are padded to where steps are compiled."""
    return _padded(tokens, most, _COARSE)


def _padded(tokens: int, most: int, parts: int) -> int:
    step = max(_LENGTH_STEP, 2 ** tokens.bit_length() // parts)
    return tokens + min(-tokens % step, max(0, most - tokens))


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
