"""Losses and scores against a slow loop over numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.each import each
from theodolite.tasks.contract import Batch, TaskSpec
from theodolite.training.scoring import finite_members, losses, row_scores

MEMBERS, ROWS, TOKENS = 3, 5, 4


def spec(loss: str, outputs: int) -> TaskSpec:
    kind = "sequence" if loss == "cross-entropy" else "vector"
    return TaskSpec(kind, 4, outputs, None, None, loss=loss, chance=0.0, solved=0.99)  # pyright: ignore


def case(loss: str, outputs: int) -> tuple[TaskSpec, Tensor, Batch]:
    generator = torch.Generator().manual_seed(outputs)
    if loss == "cross-entropy":
        found = 3 * torch.randn(MEMBERS, ROWS, TOKENS, outputs, generator=generator)
        targets = torch.randint(outputs, (MEMBERS, ROWS, TOKENS), generator=generator)
    else:
        found = torch.randn(MEMBERS, ROWS, outputs, generator=generator)
        targets = torch.randn(MEMBERS, ROWS, outputs, generator=generator)
        targets = torch.where(targets < 0, -1.0, 1.0) if loss == "hinge" else targets
    mask = torch.rand(targets.shape, generator=generator) < 0.6
    mask[..., -1] = True
    return spec(loss, outputs), found, Batch(torch.zeros(MEMBERS, ROWS, 1), targets, mask)


def slow(spec: TaskSpec, outputs: np.ndarray, targets: np.ndarray) -> tuple[float, float]:
    """(loss, right or squared error) at one position."""
    if spec.loss == "cross-entropy":
        exponents = [math.exp(o) for o in outputs]
        guess = max(range(len(outputs)), key=lambda i: outputs[i])
        return -math.log(exponents[int(targets)] / sum(exponents)), float(guess == targets)
    if spec.loss == "hinge":
        return max(0.0, 1 - float(outputs * targets)), float((outputs >= 0) == (targets > 0))
    return float((outputs - targets) ** 2), float((outputs - targets) ** 2)


CASES = [("cross-entropy", 3), ("cross-entropy", 31), ("cross-entropy", 32), ("cross-entropy", 50)]
CASES += [("hinge", 1), ("hinge", 3), ("square", 1), ("square", 3)]


@pytest.mark.parametrize(("loss", "outputs"), CASES)
def test_masked_losses_and_scores_are_those_of_a_slow_loop(loss, outputs):
    rule, found, batch = case(loss, outputs)
    total, rows = losses(rule, found, batch), row_scores(rule, found, batch)
    assert total.shape == (MEMBERS,)
    assert rows.shape == (MEMBERS, ROWS)
    assert outputs == 1 or not batch.mask.all()
    o, t, mask = (x.double().numpy() for x in (found, batch.targets, batch.mask))
    for m in range(MEMBERS):
        seen, by_row = [], []
        for r in range(ROWS):
            at = [slow(rule, o[m, r, i], t[m, r, i]) for i in range(mask.shape[2]) if mask[m, r, i]]
            seen += [a[0] for a in at]
            by_row.append(sum(a[1] for a in at) / len(at))
        assert float(total[m]) == pytest.approx(sum(seen) / len(seen), rel=1e-5)
        if loss == "square":
            by_row = [1 - error / np.var(t[m]) for error in by_row]
        assert rows[m].tolist() == pytest.approx(by_row, rel=1e-4, abs=1e-5)


def test_the_mean_over_rows_is_the_explained_variance():
    _, found, batch = case("square", 1)
    whole = Batch(batch.inputs, batch.targets, torch.ones_like(batch.mask))
    mean = row_scores(spec("square", 1), found, whole).mean(dim=1)
    error = (found - batch.targets).square().flatten(1).mean(1)
    expected = 1 - error / batch.targets.flatten(1).var(dim=1, correction=0)
    torch.testing.assert_close(mean, expected)
    perfect = row_scores(spec("square", 1), batch.targets.clone(), whole)
    constant = batch.targets.mean(dim=(1, 2), keepdim=True).expand_as(batch.targets)
    assert perfect.mean(dim=1).tolist() == [1.0] * MEMBERS
    torch.testing.assert_close(
        row_scores(spec("square", 1), constant, whole).mean(dim=1), torch.zeros(MEMBERS), atol=1e-6, rtol=0
    )


@each(("loss", "outputs"), CASES)
@each("other", [1e6, math.inf, math.nan])
def test_what_is_not_scored_does_not_count_whatever_it_is(loss, outputs, other):
    rule, found, batch = case(loss, outputs)
    unscored = ~batch.mask[..., None].expand_as(found) if loss == "cross-entropy" else ~batch.mask
    changed = found.masked_fill(unscored, other)
    assert torch.equal(losses(rule, changed, batch), losses(rule, found, batch))
    if loss != "square":
        assert torch.equal(row_scores(rule, changed, batch), row_scores(rule, found, batch))


@pytest.mark.parametrize(("loss", "outputs"), CASES)
def test_gradients_are_those_of_the_scored_positions(loss, outputs):
    rule, found, batch = case(loss, outputs)
    found.requires_grad_()
    (gradient,) = torch.autograd.grad(losses(rule, found, batch).sum(), found)
    scored = batch.mask[..., None].expand_as(found) if loss == "cross-entropy" else batch.mask
    assert not gradient[~scored].any()
    assert gradient[scored].any()


def test_large_logits_lose_nothing():
    outputs = torch.tensor([[[[1e4, 0.0, -1e4]]]])
    for classes in (3, 40):
        wide = torch.nn.functional.pad(outputs, (0, classes - 3))
        batch = Batch(torch.zeros(1, 1, 1), torch.tensor([[[1]]]), torch.ones(1, 1, 1, dtype=torch.bool))
        assert losses(spec("cross-entropy", classes), wide, batch).item() == pytest.approx(1e4)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_number_that_is_not_finite_marks_its_member(bad):
    outputs = torch.zeros(3, 2, 4, 2)
    outputs[1, 1, 3, 0] = bad
    assert finite_members(outputs).tolist() == [True, False, True]
