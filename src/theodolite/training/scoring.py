"""Loss and score per member. `outputs` are (member, row, …, output), targets and mask as in `Batch`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, TaskSpec

_FEW = 32  # classes: below, torch's softmax over the last axis takes three times as long as these few steps


def losses(spec: TaskSpec, outputs: Tensor, batch: Batch) -> Tensor:
    """The mean loss over the scored positions of every member."""
    members = outputs.shape[0]
    if spec.loss == "cross-entropy":
        each = _cross_entropy(outputs, batch.targets).view(members, -1)
    elif spec.loss == "hinge":
        each = F.relu(1 - outputs * batch.targets).flatten(1)
    else:
        each = (_answers(outputs, batch) - batch.targets).square().flatten(1)
    mask = batch.mask.flatten(1)
    # Not a product: what a net says at padding may be infinite, and 0 · ∞ is no number.
    return each.masked_fill(~mask, 0).sum(dim=1) / mask.sum(dim=1)


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    if outputs.shape[-1] < _FEW:
        return torch.logsumexp(outputs, dim=-1) - outputs.gather(-1, targets[..., None]).squeeze(-1)
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")


def row_scores(spec: TaskSpec, outputs: Tensor, batch: Batch) -> Tensor:
    """The score of every row, (member, row): the share of its scored positions that are right, or its squared error
    over the variance of all targets, taken from 1, so that the mean over rows is the explained variance."""
    mask = batch.mask
    if spec.loss == "square":
        error = (_answers(outputs, batch) - batch.targets).square()
        error = (error * mask).flatten(2).sum(dim=2) / mask.flatten(2).sum(dim=2)
        return 1 - error / _variance(spec, batch)[:, None]
    if spec.loss == "hinge":
        right = (outputs >= 0) == (batch.targets >= 0)
    else:
        right = outputs.argmax(dim=-1) == batch.targets
    counted = mask.flatten(2)
    return (right.flatten(2) & counted).sum(dim=2) / counted.sum(dim=2)


def _answers(outputs: Tensor, batch: Batch) -> Tensor:
    """One number at a token, as targets are; what a net says where nothing counts may be infinite."""
    if outputs.dim() == batch.targets.dim():
        return outputs
    return torch.where(batch.mask, outputs.squeeze(-1), 0.0)


def _variance(spec: TaskSpec, batch: Batch) -> Tensor:
    """Of the targets that count, for every member."""
    if spec.variance is not None:
        return torch.full_like(batch.targets[:, 0].flatten(1)[:, 0], spec.variance)
    if spec.kind == "vector":
        return batch.targets.flatten(1).var(dim=1, correction=0)
    mask, targets = batch.mask.flatten(1), batch.targets.flatten(1)
    mean = (targets * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True)
    return ((targets - mean).square() * mask).sum(dim=1) / mask.sum(dim=1)


def finite_members(outputs: Tensor) -> Tensor:
    """Which members gave only finite numbers."""
    return torch.isfinite(outputs).flatten(1).all(dim=1)
