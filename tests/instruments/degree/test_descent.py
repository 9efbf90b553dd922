"""Members trained side by side, against one at a time with torch's own optimiser and against least squares."""

# pyright: reportCallIssue=false

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.degree.descent import Descent, Examples, Member, train_members
from theodolite.nets.load import seeded

CPU = torch.device("cpu")


def _net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def _examples(sources: int, rows: int, fresh: bool, outputs: int = 1) -> Examples:
    generator = torch.Generator().manual_seed(3)
    parts = []
    for count in (rows, 200, 300):
        x = torch.randn(sources, count, 3, generator=generator)
        y = torch.stack([(x[..., 0] * x[..., 1]).sin() + (k + 1) * x[..., 2] for k in range(outputs)], dim=-1)
        parts.append((x, y / y.std()))
    return Examples(*parts, loss="square", outputs=outputs, fresh=fresh, constant=1.0, constant_error=1.0)


def test_a_member_is_trained_as_torchs_adam_would_train_it_alone() -> None:
    examples, descent = _examples(2, 40 * 16, fresh=True), Descent(steps=40, batch=16, looks=1)
    members = [Member(0, 7, 0.03), Member(1, 8, 0.1), Member(1, 7, 0.003)]
    reached = train_members(_net, members, examples, descent, CPU, seed=0)
    for member, found in zip(members, reached, strict=True):
        with seeded(member.seed):
            net = _net()
        optimiser = torch.optim.Adam(net.parameters(), lr=member.rate, betas=(0.9, 0.99))
        shape = lambda t: (t + 1) / 2 if t < 2 else (1 + math.cos(math.pi * (t - 1) / 38)) / 2
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, shape)
        for step in range(40):
            rows = slice(16 * step, 16 * step + 16)
            x, y = (part[member.source, rows] for part in examples.train)
            optimiser.zero_grad()
            (net(x) - y).square().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        x, y = (part[member.source] for part in examples.test)
        expected = float((net(x).detach() - y).square().mean() / y.var(correction=0))
        assert found.error == pytest.approx(expected, rel=2e-4)
        assert expected < 0.9


def test_a_linear_net_on_a_finite_set_comes_to_the_least_squares_solution() -> None:
    examples = _examples(2, 60, fresh=False, outputs=2)
    found = train_members(lambda: nn.Linear(3, 2), [Member(1, 0, 0.05)], examples, Descent(300, 64, 1), CPU, seed=1)[0]
    x, y = (part[1].numpy() for part in examples.train)
    weights = np.linalg.lstsq(np.c_[x, np.ones(60)], y, rcond=None)[0]
    x, y = (part[1].numpy() for part in examples.test)
    left = ((np.c_[x, np.ones(len(x))] @ weights - y) ** 2).mean() / y.var(axis=0).mean()
    assert found.error == pytest.approx(left, rel=0.05)


def test_a_member_that_diverges_counts_as_the_constant_answer_and_leaves_the_others_alone() -> None:
    examples, descent = _examples(1, 30 * 8, fresh=True), Descent(30, 8, 5)
    build, good, bad = lambda: nn.Linear(3, 1), Member(0, 0, 0.1), Member(0, 1, 1e30)
    both = train_members(build, [good, bad], examples, descent, CPU, seed=0)
    alone = train_members(build, [good], examples, descent, CPU, seed=0)
    assert both[1].diverged
    assert both[1].error == both[1].validation == 1.0
    assert not both[0].diverged
    assert both[0].error == pytest.approx(alone[0].error, rel=1e-5)
    assert both[0].error < 1


def test_the_best_weights_by_validation_are_kept_and_the_test_rows_do_not_choose_them() -> None:
    """Targets of the training rows are noise: every step makes things worse, the first look is the best."""
    examples = _examples(1, 20, fresh=False)
    noise = torch.randn(1, 20, 1, generator=torch.Generator().manual_seed(0))
    wide = lambda: nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 1))
    noisy = Examples((examples.train[0], noise), examples.validation, examples.test, "square", 1, False, 9.0, 9.0)
    often = train_members(wide, [Member(0, 0, 0.05)], noisy, Descent(120, 20, 24), CPU, seed=0)[0]
    once = train_members(wide, [Member(0, 0, 0.05)], noisy, Descent(120, 20, 1), CPU, seed=0)[0]
    assert often.validation < 0.8 * once.validation
    assert often.error < once.error
    with_other_test = Examples(noisy.train, noisy.validation, noisy.train, "square", 1, False, 9.0, 9.0)
    again = train_members(wide, [Member(0, 0, 0.05)], with_other_test, Descent(120, 20, 24), CPU, seed=0)[0]
    assert again.validation == often.validation


def test_classes_are_learnt_by_cross_entropy_and_the_error_is_the_share_of_wrong_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 400, 2, generator=generator)
    y = (x[..., 0] > 0).long() + 2 * (x[..., 1] > 0).long()
    parts = [(x[:, rows], y[:, rows]) for rows in (slice(200), slice(200, 300), slice(300, 400))]
    examples = Examples(*parts, "cross-entropy", 4, fresh=False, constant=math.log(4), constant_error=0.75)
    found = train_members(lambda: nn.Linear(2, 4), [Member(0, 0, 0.1)], examples, Descent(200, 64), CPU, seed=0)[0]
    assert found.error <= 0.06
    assert found.loss < 0.3
    assert found.error * 100 == pytest.approx(round(found.error * 100), abs=1e-4)


def test_joined_examples_are_padded_with_zeros_and_keep_their_order() -> None:
    first, second = _examples(2, 10, fresh=True), _examples(1, 10, fresh=True)
    wide = Examples(
        *((torch.cat([x, x], dim=-1), y) for x, y in (second.train, second.validation, second.test)),
        loss="square",
        outputs=1,
        fresh=True,
        constant=1.0,
        constant_error=1.0,
    )
    joined = Examples.join([first, wide])
    assert joined.sources == 3
    assert joined.features == 6
    assert torch.equal(joined.train[0][:2, :, :3], first.train[0])
    assert not joined.train[0][:2, :, 3:].any()
    assert torch.equal(joined.test[0][2:], wide.test[0])
    assert torch.equal(joined.test[1][2:], wide.test[1])
    with pytest.raises(BadInput, match="outputs 1 and 2"):
        Examples.join([first, _examples(1, 10, fresh=True, outputs=2)])


def test_too_few_fresh_rows_and_senseless_schedules_are_refused() -> None:
    with pytest.raises(BadInput, match="need 80 of them and there are 79"):
        train_members(_net, [Member(0, 0, 0.1)], _examples(1, 79, fresh=True), Descent(10, 8), CPU, seed=0)
    with pytest.raises(BadInput, match="steps must be"):
        Descent(0)
    with pytest.raises(BadInput, match="batch must be"):
        Descent(1, batch=-2)


@pytest.mark.gpu
def test_a_captured_step_trains_as_the_cpu_does() -> None:
    examples, descent = _examples(2, 60 * 16, fresh=True), Descent(60, 16, 3)
    members = [Member(0, 7, 0.03), Member(1, 8, 0.1)]
    here = train_members(_net, members, examples, descent, CPU, seed=0)
    cuda = torch.device("cuda")
    moved = Examples(
        *(tuple(t.to(cuda) for t in part) for part in (examples.train, examples.validation, examples.test)),  # pyright: ignore[reportArgumentType]
        loss="square",
        outputs=1,
        fresh=True,
        constant=1.0,
        constant_error=1.0,
    )
    there = train_members(_net, members, moved, descent, cuda, seed=0)
    for a, b in zip(here, there, strict=True):
        assert b.error == pytest.approx(a.error, rel=0.02)
