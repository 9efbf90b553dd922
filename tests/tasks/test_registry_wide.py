"""Every registered task: shapes, labels against the slow solver, fields that matter, reproducible draws."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.tasks import Task, tasks


def draw(task: Task, seed: int = 0, members: int = 2, batch: int = 16, length: int | None = None):
    generator = torch.Generator().manual_seed(seed)
    if task.spec.lengths is not None and length is None:
        length = min(5, task.spec.lengths[1])
    return task.sample(members, batch, length, generator)


@pytest.fixture(params=list(tasks))
def task(request) -> Task:
    return tasks[request.param]()


def test_contract(task):
    assert isinstance(task, Task)
    assert tasks[task.name] is type(task)
    assert 0 <= task.spec.chance < task.spec.solved <= 1


def test_shapes(task):
    batch = draw(task, members=3, batch=7)
    assert batch.inputs.shape[:2] == batch.targets.shape[:2] == (3, 7)
    assert batch.mask.shape == batch.targets.shape
    assert batch.mask.dtype == torch.bool
    assert batch.mask.any()
    if task.spec.vocab is not None:
        assert batch.inputs.dtype == torch.int64
        assert int(batch.inputs.max()) < task.spec.vocab
        assert int(batch.targets.max()) < task.spec.outputs
    else:
        assert batch.inputs.shape[-1] == task.spec.features


def test_labels_agree_with_the_slow_solver(task):
    batch = draw(task)
    for inputs, targets, mask in zip(
        *(t.flatten(0, 1) for t in (batch.inputs, batch.targets, batch.mask)), strict=True
    ):
        solved = torch.tensor(list(task.solve(inputs.tolist())), dtype=targets.dtype)
        assert torch.equal(solved[mask], targets[mask])


def test_draws_come_from_the_generator_alone(task):
    torch.manual_seed(0)
    first = draw(task, seed=1)
    torch.manual_seed(99)
    again, other = draw(task, seed=1), draw(task, seed=2)
    assert torch.equal(first.inputs, again.inputs)
    assert not torch.equal(first.inputs, other.inputs)
    assert not torch.equal(first.inputs[0], first.inputs[1])  # members differ


def test_every_field_changes_the_data_or_the_spec(task):
    for entry in fields(task):
        value = getattr(task, entry.name)
        changed = replace(task, **{entry.name: value + 1})
        same_spec = changed.spec == task.spec
        same_data = same_spec and torch.equal(draw(changed).targets, draw(task).targets)
        assert not same_data, entry.name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("parity", {"relevant": 0}), ("parity", {"relevant": 11}), ("copy", {"symbols": 1}), ("copy", {"shortest": 50})],
)
def test_fields_that_make_no_task_are_refused(name, arguments):
    with pytest.raises(BadInput):
        tasks[name](**arguments)
