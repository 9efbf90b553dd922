"""Every registered task: shapes, labels against the slow solver, chance, fields that matter, reproducible draws."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.tasks import Batch, Task, list_tasks, make_task, tasks
from theodolite.tasks.boolean import FUNCTIONS

# Every field that is a text takes some of them.
WORDS = (*FUNCTIONS, "S3", "Z7", "two", "additive", "smooth", "interleaved", "normal")
DTYPES = {"cross-entropy": torch.int64, "hinge": torch.float32, "square": torch.float32}


def draw(
    task: Task, seed: int = 0, members: int = 2, batch: int = 16, length: int | None = None, device: str = "cpu"
) -> Batch:
    generator = torch.Generator(device).manual_seed(seed)
    if task.spec.lengths is not None and length is None:
        length = min(12, task.spec.lengths[1])
    return task.sample(members, batch, length, generator)


def some_lengths(task: Task) -> list[int | None]:
    """1, one of training, the longest of training, one beyond; None for vectors."""
    if task.spec.lengths is None:
        return [None]
    longest = task.spec.lengths[1]
    return [1, 5, longest, longest + 7]


@pytest.fixture(params=list(tasks))
def task(request) -> Task:
    return tasks[request.param]()


def test_contract(task):
    assert isinstance(task, Task)
    assert tasks[task.name] is type(task)
    assert 0 <= task.spec.chance < task.spec.solved <= 1
    assert (task.spec.lengths is None) == (task.spec.kind == "vector") == (task.spec.vocab is None)
    assert task.spec.score == ("explained variance" if task.spec.loss == "square" else "accuracy")
    assert type(task).__doc__.count("\n") >= 3, "the docstring draws an example"


@pytest.mark.parametrize(("members", "batch"), [(1, 1), (3, 7)])
def test_shapes_and_dtypes(task, members, batch):
    for length in some_lengths(task):
        drawn = draw(task, members=members, batch=batch, length=length)
        assert drawn.inputs.shape[:2] == drawn.targets.shape[:2] == (members, batch)
        assert drawn.mask.shape == drawn.targets.shape
        assert drawn.mask.dtype == torch.bool
        assert drawn.mask.any(dim=-1).all(), "every row is scored somewhere"
        assert drawn.targets.dtype == DTYPES[task.spec.loss]
        if task.spec.kind == "sequence":
            assert drawn.inputs.dtype == torch.int64
            assert drawn.targets.shape == drawn.inputs.shape
            assert drawn.inputs.shape[-1] >= length  # pyright: ignore[reportOperatorIssue]
            assert 0 <= int(drawn.inputs.min()) <= int(drawn.inputs.max()) < task.spec.vocab
            assert 0 <= int(drawn.targets.min()) <= int(drawn.targets.max()) < task.spec.outputs
        else:
            assert drawn.inputs.dtype == torch.float32
            assert drawn.inputs.shape[-1] == task.spec.features
            assert drawn.targets.shape[-1] == task.spec.outputs
        if task.spec.loss == "hinge":
            assert set(drawn.targets.flatten().tolist()) <= {-1.0, 1.0}


def assert_solved(task: Task, drawn: Batch) -> None:
    """Every scored target is what the solver says; the solver speaks of every position."""
    parts = (part.flatten(0, 1).cpu() for part in (drawn.inputs, drawn.targets, drawn.mask))
    for inputs, targets, mask in zip(*parts, strict=True):
        solved = torch.tensor([float(y) for y in task.solve(inputs.tolist())])
        assert solved.shape == targets.shape
        torch.testing.assert_close(solved[mask], targets[mask].float(), atol=1e-5, rtol=0)


def test_labels_agree_with_the_slow_solver(task):
    for length in some_lengths(task):
        assert_solved(task, draw(task, length=length))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("parity", {"bits": 7, "relevant": 7}),
        ("majority", {"bits": 4}),
        ("linear-periodic", {"dimensions": 1, "frequency": 40.0}),
        ("sawtooth", {"folds": 1}),
        ("sawtooth", {"folds": 16}),
        ("copy", {"symbols": 2}),
        ("reverse", {"symbols": 2}),
        ("dyck", {"types": 1, "depth": 1}),
        ("dyck", {"types": 5, "depth": 2}),
        ("dyck", {"depth": 100_000}),
        ("recall", {"keys": 23, "values": 2}),
        ("composed", {"graph": "kolmogorov-arnold", "variables": 3, "smoothness": 2}),
        ("composed", {"graph": "convolutional", "variables": 7, "fan_in": 3, "draw": 4}),
    ],
)
def test_labels_agree_with_the_slow_solver_at_other_fields(name, arguments):
    task = make_task(name, arguments)
    for length in some_lengths(task):
        assert_solved(task, draw(task, length=length))


def test_draws_come_from_the_generator_alone(task):
    torch.manual_seed(0)
    first = draw(task, seed=1)
    torch.manual_seed(99)
    again, other = draw(task, seed=1), draw(task, seed=2)
    for part in ("inputs", "targets", "mask"):
        assert torch.equal(getattr(first, part), getattr(again, part))
    assert not torch.equal(first.inputs, other.inputs)


def test_drawing_leaves_the_global_state_alone(task):
    before = torch.random.get_rng_state()
    draw(task)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_members_and_calls_differ(task):
    generator = torch.Generator().manual_seed(3)
    length = None if task.spec.lengths is None else 12
    drawn, after = (task.sample(4, 16, length, generator) for _ in range(2))
    for one, two in pairwise([*drawn.inputs, *after.inputs]):
        assert not torch.equal(one, two)


def test_every_field_changes_the_data_or_the_spec(task):
    for entry in fields(task):
        tried = 0
        own = getattr(task, entry.name)
        others = [w for w in WORDS if w != own] if isinstance(own, str) else [own + step for step in (1, -1, 2, -2)]
        for other in others:
            try:
                changed = replace(task, **{entry.name: other})
            except BadInput:
                continue
            tried += 1
            same_spec = changed.spec == task.spec
            one, two = draw(changed), draw(task)
            same_data = torch.equal(one.targets, two.targets) and torch.equal(one.inputs, two.inputs)
            assert not (same_spec and same_data), entry.name
        assert tried, f"{entry.name} can be set"


@pytest.mark.parametrize("name", [*tasks, "majority of 4", "dyck of one type"])
def test_chance_is_the_score_of_the_best_constant_answer(name):
    """Over the training lengths, all equally likely; five standard errors of independent rows."""
    others = {"majority of 4": ("majority", {"bits": 4}), "dyck of one type": ("dyck", {"types": 1, "depth": 2})}
    task = make_task(*others.get(name, (name, {})))
    if task.spec.loss == "square":  # by definition: no constant explains any variance, if there is some
        assert task.spec.chance == 0
        assert float(draw(task, batch=500).targets.var()) > 0.01
        return
    generator = torch.Generator().manual_seed(4)
    lengths = [None] if task.spec.lengths is None else range(task.spec.lengths[0], task.spec.lengths[1] + 1)
    rows = 40_000 // len(lengths)
    answers = torch.arange(task.spec.outputs) if task.spec.loss == "cross-entropy" else torch.tensor([-1.0, 1.0])
    shares = torch.zeros(len(answers), dtype=torch.float64)
    for length in lengths:
        drawn = task.sample(1, rows, length, generator)
        right = drawn.targets[drawn.mask].unsqueeze(0) == answers.unsqueeze(1)
        shares += right.double().mean(dim=-1) / len(lengths)
    error = (task.spec.chance * (1 - task.spec.chance) / (rows * len(lengths))) ** 0.5
    assert abs(float(shares.max()) - task.spec.chance) < 5 * error
    torch.testing.assert_close(float(shares.sum()), 1.0)


def test_lengths_the_task_does_not_have_are_refused(task):
    limit = task.spec.limit
    wrong = [0, -3] if task.spec.lengths is not None else [0, 5]
    for length in wrong if limit is None else [*wrong, limit + 1]:
        with pytest.raises(BadInput, match=f"'{task.name}'.* {length}"):
            draw(task, length=length)
    if limit is not None:
        assert_solved(task, draw(task, batch=2, length=limit))


def test_without_a_length_the_longest_of_training_is_drawn(task):
    generator = torch.Generator().manual_seed(0)
    tokens = task.sample(1, 1, None, generator).inputs.shape
    longest = task.spec.lengths and task.spec.lengths[1]
    assert tokens == task.sample(1, 1, longest, generator).inputs.shape


def test_listing_names_every_field(task):
    (entry,) = [entry for entry in list_tasks() if entry["name"] == task.name]
    assert entry["arguments"] == {f.name: getattr(task, f.name) for f in fields(task)}
    assert entry["limit"] == task.spec.limit
    assert entry["score"] == task.spec.score


@pytest.mark.gpu
def test_draws_on_the_device_without_waiting_for_it(task):
    generator = torch.Generator("cuda").manual_seed(0)
    for length in some_lengths(task):
        task.sample(2, 16, length, generator)  # the first call of a kernel may wait while it is loaded
        torch.cuda.set_sync_debug_mode("error")
        try:
            drawn = task.sample(2, 16, length, generator)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert drawn.inputs.device.type == drawn.targets.device.type == drawn.mask.device.type == "cuda"
        assert_solved(task, drawn)
