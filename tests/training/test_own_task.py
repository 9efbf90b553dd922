"""A task of a user's file: trained on as a built-in one is, or refused in a sentence."""

from __future__ import annotations

import pytest
import torch

from theodolite.bench.learn import learn
from theodolite.errors import BadInput
from theodolite.training.own_task import task_of

SOURCE = '''
import torch
from theodolite.tasks import Batch, TaskSpec
from shift import SHIFT


class Shifted:
    """Every symbol, a few further on in the alphabet."""

    symbols: int = 4

    @property
    def spec(self):
        return {"vocab": self.symbols, "outputs": self.symbols, "lengths": (1, 5), "chance": 1 / self.symbols}

    def sample(self, members, batch, length, generator):
        x = torch.randint(self.symbols, (members, batch, length or 5), generator=generator, device=generator.device)
        return x, (x + SHIFT) % self.symbols


class Sign:
    """The sign of the first of three numbers."""

    @property
    def spec(self):
        return TaskSpec("vector", 3, 1, None, None, loss="hinge", chance=0.5, solved=0.99)

    def sample(self, members, batch, length, generator):
        x = torch.randn(members, batch, 3, generator=generator, device=generator.device)
        y = torch.where(x[..., :1] > 0, 1.0, -1.0)
        return Batch(x, y, torch.ones_like(y, dtype=torch.bool))


class Sums:
    """The sum so far of two numbers a token."""

    width = 2

    @property
    def spec(self):
        return {"features": 2, "outputs": 1, "lengths": (2, 5), "loss": "square", "chance": 0.0}

    def sample(self, members, batch, length, generator):
        shape = (members, batch, length or 5, self.width)
        x = torch.randn(shape, generator=generator, device=generator.device)
        return x, x.sum(-1).cumsum(-1) / 3


class Wide(Sums):
    width = 3


def broken(**changed):
    class Broken(Shifted):
        @property
        def spec(self):
            return {k: v for k, v in {**Shifted.spec.fget(self), **changed.get("spec", {})}.items() if v != "none"}

        def sample(self, members, batch, length, generator):
            return changed.get("sample", lambda x, y: (x, y))(*Shifted.sample(self, members, batch, length, generator))

    return Broken


NoChance = broken(spec={"chance": "none"})
Certain = broken(spec={"chance": 7})
Misjudged = broken(spec={"chance": 0.9})
Backwards = broken(spec={"lengths": (5, 1)})
Outside = broken(spec={"outputs": 3})
Strange = broken(spec={"vocab": 3})
Ragged = broken(sample=lambda x, y: ([[[1, 2], [1]]], y))
Short = broken(sample=lambda x, y: (x, y[..., :1]))
Flat = broken(sample=lambda x, y: (x[0], y))
Silent = broken(sample=lambda x, y: (x, y, torch.zeros_like(y)))
One = broken(sample=lambda x, y: x)
Raises = broken(sample=lambda x, y: 1 / 0)


class Nothing:
    spec = None


number = 3
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "shift.py").write_text("SHIFT = 1\n")
    (tmp_path / "theirs.py").write_text(SOURCE)
    return tmp_path / "theirs.py"


def test_it_is_made_with_its_fields_and_named_by_its_file(file):
    found = task_of(f"{file}:Shifted", {"symbols": 3})
    batch = found.task.sample(2, 4, 5, torch.Generator().manual_seed(0))
    assert batch.targets.eq((batch.inputs + 1) % 3).all()
    assert (found.task.name, found.task.summary) == (
        "theirs.py:Shifted",
        "Every symbol, a few further on in the alphabet.",
    )
    assert found.task.spec.chance == pytest.approx(1 / 3)
    with pytest.raises(BadInput, match=r"for the task 'theirs.py:Shifted': no field is called 'symbol'"):
        task_of(f"{file}:Shifted", {"symbol": 3})
    with pytest.raises(BadInput, match="is a whole number such as 4"):
        task_of(f"{file}:Shifted", {"symbols": 2.5})


def test_it_is_learnt_and_kept_under_its_own_code(file, tmp_path):
    asked = {
        "net": "rnn",
        "seeds": 2,
        "steps": 3,
        "shape": {"width": 4},
        "unseen": "none",
        "chunk": 1,
        "out": tmp_path / "runs",
    }
    first = learn(task=f"{file}:Shifted", **asked)
    assert not first.failures
    assert len(first.rows) == 2
    assert learn(task=f"{file}:Shifted", **asked).reused == 2
    (file.parent / "shift.py").write_text("SHIFT = 2\n")
    assert learn(task=f"{file}:Shifted", **asked).reused == 0, "what it imports belongs to a task"
    found = learn("rnn", f"{file}:Sums", seeds=1, steps=60, lr=1e-2, chunk=1, shape={"width": 8}, unseen="8")
    assert [length for length, _ in found.rows[0]["by_length"]] == [2, 3, 4, 5, 8]
    assert found.rows[0]["accuracy"] > 0.3, "the mean alone explains nothing"
    assert learn("mlp", f"{file}:Sign", seeds=1, steps=3, chunk=1, shape={"width": 4}).rows[0]["steps"] == 3


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NoChance", "has no chance level: state the best constant answer's score"),
        ("Certain", "states the chance level 7: state a share, 0 to 1"),
        ("Misjudged", r"states the chance level 0.9, and the best constant answer gets 0.\d+ of its batches right"),
        ("Backwards", r"has the lengths \(5, 1\): state \(shortest, longest\)"),
        ("Outside", "drew a target 3 at length 5, outside its range of 0 to 2|drew a target 3 at length 1"),
        ("Strange", "drew an input 3 at length .*, outside its range of 0 to 2"),
        ("Ragged", "or rows of two lengths: draw one length a batch"),
        ("Short", r"drew targets of shape \(2, 16, 1\) at length 5, and \(2, 16, 5\) is needed"),
        ("Flat", r"drew inputs of shape \(16, .\) at length .*, and \(2, 16, tokens or features\) is needed"),
        ("Wide", r"drew inputs of shape \(2, 16, ., 3\) at length .*, and \(2, 16, tokens, 2\) is needed"),
        ("Silent", "asks for nothing .*: its mask is false everywhere"),
        ("One", "drew a Tensor: return inputs, targets"),
        ("Raises", "cannot be drawn at length .*: ZeroDivisionError"),
        ("Nothing", "has no 'sample': see 'theodolite new task'"),
        ("number", "is a int: name a class"),
    ],
)
def test_tasks_that_break_the_contract_are_told_how(file, name, words):
    with pytest.raises(BadInput, match=words) as told:
        task_of(f"{file}:{name}", {})
    assert "\n" not in str(told.value)
