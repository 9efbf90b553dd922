"""When the steps of a group are compiled, and by whom: by the session itself, or by other processes while it trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from theodolite.tasks.contract import Batch
from theodolite.training.earning import Ahead, Compiling, Earning
from theodolite.training.evaluation import token_counts
from theodolite.training.pairing import Pairing
from theodolite.training.program import Batching, Program, compiled_tokens

Draw = Callable[[int | None], Batch]  # of this length, in the shape of a training step's


class CompileChoice:
    """Told of the seconds that are trained, asked at every look how to go on: the caller runs its program as it is
    answered.

    `lengths`: one for each shape of a batch that steps are compiled for.
    """

    def __init__(self, way: Compiling, pairing: Pairing, device: torch.device) -> None:
        self.lengths = _compiled_lengths(pairing)
        self._earning = Earning(way, device.type, len(self.lengths))
        self._device = device
        self._spent, self._looked = 0.0, 0  # seconds of training since the last look, and when that was
        self._ahead: Ahead | None = None
        self._awaited = False

    @property
    def said(self) -> str | None:
        """What was decided, in words for the row."""
        return self._earning.said

    def begin(self, batching: Batching) -> Batching:
        if self._earning.way != "always":
            return batching
        if not batching.batched:
            self._earning.said = "not compiled: members run one by one"
        return replace(batching, compiled=batching.batched)

    def compile_by(self, ahead: Ahead) -> None:
        """Let other processes compile, if there are processors for them, and train on meanwhile."""
        if ahead.processes:
            self._ahead, self._earning.processes = ahead, ahead.processes

    def leave(self) -> None:
        """Nobody works for this group any more."""
        if self._ahead is not None:
            self._ahead.stop()

    def trained(self, seconds: float) -> None:
        self._spent += seconds

    def at_look(self, program: Program, step: int, left: int, draw: Draw) -> Batching:
        """By the time of the steps since the last look."""
        waited = time.perf_counter()
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()  # others may be at work beside this group
        spent, steps = self._spent + time.perf_counter() - waited, step - self._looked
        self._spent, self._looked = 0.0, step
        batching = program.batching
        if not batching.batched or not steps or not left:
            return batching
        if program.kernels is not None and program.kernels.taken:
            self._earning.said = "not compiled: one kernel takes the whole step"
            return replace(batching, compiled=False)
        if self._awaited:
            return self._awaiting(batching, step)
        if program.compiled is not None and program.compiled.refused is not None:
            self._earning.refused(program.compiled.refused)
            return replace(batching, compiled=False)
        if not batching.compiled and self._earning.way == "auto" and self._earning.kept is None:
            self._earning.kept = self.on_disk(program, draw)
        now = self._earning.compiles(batching.compiled, step, spent / steps, left)
        if now and not batching.compiled and self._ahead is not None and self._earning.missing:
            self._awaited, self._earning.said = True, "not compiled: the run ended before its programs were made"
            self._ahead.begin()
            return batching
        return replace(batching, compiled=now)

    def with_fewer(self, batching: Batching) -> Batching:
        """How to go on with members that have left, for which nothing is compiled."""
        if not batching.compiled or self._earning.way != "auto":
            return batching
        self._earning.begin_again()
        return replace(batching, compiled=False)

    def on_disk(self, program: Program, draw: Draw) -> int:
        """How many of the programs."""
        return sum(program.compiled_before(draw(length)) for length in self.lengths)

    def note(self, program: Program) -> str:
        """What takes time beside training: steps of every shape are compiled when it first comes."""
        if self._awaited:
            return "steps are being compiled beside"
        made, all_of_them = None if program.compiled is None else program.compiled.made, len(self.lengths)
        if made is None or made >= all_of_them or self._earning.settled:
            return ""
        return f"compiling steps, {made} of {all_of_them}"

    def _awaiting(self, batching: Batching, step: int) -> Batching:
        assert self._ahead is not None
        if not self._ahead.finished:
            return batching
        self._awaited, self._earning.said = False, f"compiled from step {step} on"
        return replace(batching, compiled=True)


def _compiled_lengths(pairing: Pairing) -> list[int | None]:
    """One for each number of tokens that steps are compiled for."""
    lengths = pairing.task.spec.lengths
    if lengths is None:
        return [None]
    all_lengths = list(range(lengths[0], lengths[1] + 1))
    tokens = token_counts(pairing.task, all_lengths)
    padded = [compiled_tokens(n, pairing.most) if pairing.pads else n for n in tokens]
    return list(dict(zip(padded, all_lengths, strict=True)).values())
