"""What makes a training doubtful before it has begun: a net that sees more than its input, or the answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from theodolite.bench.plan import Net
from theodolite.errors import TheodoliteError
from theodolite.instruments.leakage import leakage
from theodolite.tasks.contract import Task
from theodolite.training.pairing import Pairing, sample, task_sizes, with_shape


def leak_warnings(pairs: Sequence[tuple[Net, Pairing]]) -> tuple[str, ...]:
    """A sentence for each leak of users' nets; of built-in ones only whether they see the answers."""
    found: list[str] = []
    for net, pairing in pairs:
        ahead = answers_are_later(pairing.task)
        if pairing.registered and not ahead:
            continue
        try:
            told = leakage(net, **with_shape(task_sizes(net, pairing.task), pairing.shape)).diagnostics
        except TheodoliteError:  # what training makes of such a net, training says
            continue
        found += [f"'{pairing.name}': {each}: its scores depend on more than its weights" for each in told["says"]]
        if ahead and told["causal"] is False:
            found.append(
                f"'{pairing.name}' sees later tokens, and those are the answers of '{pairing.task.name}': "
                "its scores say nothing, unless it is made causal"
            )
    return tuple(dict.fromkeys(found))


def answers_are_later(task: Task) -> bool:
    """Whether what is asked at a token is the next token, as in text."""
    spec = task.spec
    if spec.kind != "sequence" or spec.vocab is None or spec.outputs != spec.vocab or spec.lengths is None:
        return False
    batch = sample(task, spec.lengths[1], rows=8)
    inputs, targets, asked = batch.inputs[0], batch.targets[0], batch.mask[0]
    if targets.shape != inputs.shape or inputs.shape[1] < 3:
        return False
    asked = asked[:, :-1].bool()
    return bool(asked.any()) and bool(torch.equal(inputs[:, 1:][asked], targets[:, :-1][asked]))
