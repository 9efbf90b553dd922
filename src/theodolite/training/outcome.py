"""What is told of a member that is done, in plain JSON."""

from __future__ import annotations

from typing import Any, Literal

import torch

from theodolite.nets.contract import Converging, Pondering
from theodolite.tasks.contract import TaskSpec
from theodolite.training.evaluation import Evaluation
from theodolite.training.program import Program

Status = Literal["solved", "unsolved", "diverged"]


def scores(spec: TaskSpec, status: Status, row: int, trained: Evaluation, unseen: Evaluation | None) -> dict[str, Any]:
    """Of the member at this `row` of the last evaluations."""
    by_length = []
    for shown in (trained, unseen):
        if shown is not None and spec.lengths is not None:
            by_length += [list(pair) for pair in zip(shown.lengths, shown.scores[row].tolist(), strict=True)]
    diverged = status == "diverged"
    return {
        "status": status,
        "score": spec.score,
        "accuracy": None if diverged else float(trained.mean[row]),
        "loss": None if diverged else float(trained.loss[row]),
        "unseen": None if diverged or unseen is None else float(unseen.mean[row]),
        "exact": None if diverged else _exact(spec, trained, row),
        "unseen_exact": None if diverged or unseen is None else _exact(spec, unseen, row),
        "by_length": [] if diverged else by_length,
        "trained_lengths": None if spec.lengths is None else list(spec.lengths),
        "chance": spec.chance,
        "threshold": spec.solved,
    }


def inside(program: Program, row: int, rows: int, generator: torch.Generator) -> dict[str, float | None]:
    """What a net tells of its own computation, at `rows` inputs of the longest training length: the share of them that
    reach their fixed point, and the mean number of steps a token takes."""
    found: dict[str, float | None] = {"converged": None, "mean_steps": None}
    pairing = program.members.pairing
    lengths = pairing.task.spec.lengths
    if lengths is None or not isinstance(program.members.module, Converging | Pondering):
        return found
    read = pairing.feed(pairing.task.sample(1, rows, lengths[1], generator).inputs[0], program.one_hot)
    with torch.no_grad(), program.members.alone(row) as module:
        if isinstance(module, Converging):
            found["converged"] = module.convergence(read).share
        if isinstance(module, Pondering):
            found["mean_steps"] = float(module.steps_taken(read).float().mean())
    return found


def _exact(spec: TaskSpec, shown: Evaluation, row: int) -> float | None:
    """Share of inputs answered without a fault; real-valued answers are never exact."""
    return None if spec.loss == "square" else float(shown.exact[row].mean())
