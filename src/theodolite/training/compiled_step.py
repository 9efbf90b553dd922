"""One training step of a group's members as one compiled program: forward, backward and update.

Everything a step reads or changes is handed to it, so that one program serves every chunk of as many members, whatever
their weights and rates; the number of the step is counted inside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from theodolite.training.compiler import CannotCompile, Compiled, compile_function, is_kept
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.members import Members
from theodolite.training.optimiser import Corrections, Optimiser, clipped, move
from theodolite.training.pairing import Pairing
from theodolite.training.step import gradients_of

logger = logging.getLogger(__name__)

MemberLosses = Callable[[Members, Mapping[str, Tensor], Tensors, Tensor | None], Tensor]


class CompiledSteps:
    """Programs by the shapes they are for. One that cannot be had is said once; its steps run as they are."""

    def __init__(self, members: Members, optimiser: Optimiser, one_hot: Tensor | None, losses: MemberLosses) -> None:
        self._members, self._optimiser, self._one_hot, self._losses = members, optimiser, one_hot, losses
        self._programs: dict[Any, Compiled | None] = {}
        self.refused: str | None = None

    @property
    def made(self) -> int:
        """Programs there are."""
        return len(self._programs)

    def run(self, batch: Tensors, start: int, stop: int, number: Tensor) -> bool:
        """Members [start, stop) one step on, and `number` with them; False if that is left to the caller."""
        tensors = self._tensors(batch, start, stop, number)
        found = self._program(batch, tensors)
        if found is None:
            return False
        found.run(*tensors)
        return True

    def prepare(self, batch: Tensors, start: int, stop: int) -> bool:
        """Have the program for these shapes; whether there is one."""
        return self._program(batch, self._tensors(batch, start, stop, _no_step(batch))) is not None

    def _program(self, batch: Tensors, tensors: list[Tensor]) -> Compiled | None:
        if self.refused is not None:
            return None
        key = tuple(t.shape for t in batch)
        if key not in self._programs:
            self._programs[key] = self._compiled(tensors, batch)
        return self._programs[key]

    def kept(self, batch: Tensors, start: int, stop: int) -> bool:
        """Whether the program for these shapes is on the disk."""
        pairing = self._members.pairing
        return is_known(pairing) and is_kept(self._recipe(), self._tensors(batch, start, stop, _no_step(batch)))

    def _recipe(self) -> dict[str, Any]:
        return recipe_of(self._members.pairing) | {"rule": asdict(self._optimiser.rule), "decays": self._decay}

    def _tensors(self, batch: Tensors, start: int, stop: int, number: Tensor) -> list[Tensor]:
        optimiser = self._optimiser
        own = [p.detach()[start:stop] for p in optimiser.parameters.values()]
        own += [m[start:stop] for kind in optimiser.moments for m in kind.values()]
        own += [b[start:stop] for b in self._members.buffers.values()]
        own += [optimiser.lrs[start:stop], optimiser.decays[start:stop], optimiser.log_betas, number]
        return [*own, *([] if self._one_hot is None else [self._one_hot]), *batch]

    def _compiled(self, tensors: list[Tensor], batch: Tensors) -> Compiled | None:
        pairing = self._members.pairing
        rows = "×".join(str(size) for size in batch[0].shape)
        logger.info("compiling the step of '%s' for %s (members×rows×tokens)", pairing.name, rows)
        try:
            found = compile_function(self._step(len(batch)), tensors, self._recipe() if is_known(pairing) else None)
        except CannotCompile as error:
            logger.warning("the step of '%s' cannot be compiled (%s): going on without", pairing.name, error)
            self.refused = str(error)
            return None
        logger.info("%s in %.1f s", "found compiled" if found.kept else "compiled", found.seconds)
        return found

    @property
    def _decay(self) -> bool:
        return any(r.weight_decay for r in self._optimiser.rates)

    def _step(self, batched: int) -> Callable[..., None]:
        rule, names, kinds = self._optimiser.rule, list(self._optimiser.parameters), len(self._optimiser.moments)
        buffers, decays, has_one_hot = list(self._members.buffers), self._decay, self._one_hot is not None

        def step(*tensors: Tensor) -> None:
            left = list(tensors)
            take = lambda count: [left.pop(0) for _ in range(count)]
            parameters, moments = take(len(names)), [take(len(names)) for _ in range(kinds)]
            members = self._members.with_buffers(dict(zip(buffers, take(len(buffers)), strict=True)))
            lrs, own_decays, log_betas, number = take(4)
            one_hot = take(1)[0] if has_one_hot else None
            leaves = {n: p.detach().requires_grad_() for n, p in zip(names, parameters, strict=True)}
            found = self._losses(members, leaves, tuple(take(batched)), one_hot)
            gradients = gradients_of(found, list(leaves.values()))
            with torch.no_grad():
                if rule.clip is not None:
                    gradients = clipped(gradients, rule.clip)
                correct = Corrections.on_device(number, log_betas)
                move(rule, parameters, gradients, moments, lrs, own_decays if decays else None, correct)
                number.add_(1)

        return step


def _no_step(batch: Tensors) -> Tensor:
    return torch.zeros((), device=batch[0].device)


def recipe_of(pairing: Pairing) -> dict[str, Any]:
    """What decides the operations of a net on a task beside the shapes of the tensors, in plain JSON. Tasks alike in
    these share their programs. What a registered net makes of the longest input shows in its weights."""
    built_for = None if pairing.registered else pairing.most
    return {
        "net": [pairing.name, pairing.version, pairing.source, dict(pairing.shape), built_for],
        "reads": [pairing.reads_ids, pairing.takes_present],
        "loss": pairing.task.spec.loss,
    }


def is_known(pairing: Pairing) -> bool:
    """Whether the recipe tells this net from every other: that of a user has a hash of its code."""
    return pairing.registered or pairing.source is not None
