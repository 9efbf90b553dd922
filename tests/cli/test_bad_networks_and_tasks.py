"""Networks, tasks and data of a user that cannot be used: one sentence each, exit code 2, nothing made."""

from __future__ import annotations

import pytest

from theodolite.bench.learn import explained, learn
from theodolite.cli.views.length_curves import length_curves
from theodolite.errors import BadInput

NETS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, vocab_size, num_classes, width=4):
        super().__init__()
        self.table, self.out = nn.Embedding(vocab_size, width), nn.Linear(width, num_classes)

    def forward(self, x):
        return self.out(self.table(x).cumsum(dim=1))


class Seven(Net):
    def __init__(self, vocab_size, num_classes):
        super().__init__(vocab_size, 7)


class Writes(Net):
    def forward(self, x):
        with torch.no_grad():
            self.out.weight.mul_(0.9)
        return super().forward(x)


class Kernel(Net):
    def forward(self, x):
        return super().forward(x.cuda())


class Package(Net):
    def forward(self, x):
        import no_such_kernels

        return super().forward(x)


class Needs(Net):
    def __init__(self, vocab_size, num_classes, lattice):
        super().__init__(vocab_size, num_classes)


class NoModule:
    def __init__(self, vocab_size):
        pass


class Task:
    lengths = (1, 3)

    @property
    def spec(self):
        return {"vocab": 3, "outputs": 2, "lengths": (1, 3)}

    def sample(self, members, batch, length, generator):
        x = torch.randint(3, (members, batch, length or 3), generator=generator)
        return x, x % 2


class Wide(Task):
    @property
    def spec(self):
        return {**Task.spec.fget(self), "chance": 0.5}

    def sample(self, members, batch, length, generator):
        x, y = super().sample(members, batch, length, generator)
        return x, y + 1


class Ragged(Wide):
    def sample(self, members, batch, length, generator):
        return [[[1, 2], [1]]], [[[0, 1], [0]]]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "raises.py").write_text("raise RuntimeError('on import\\nand on')")
    rows = "".join(f'{{"inputs": "{n:04b}", "targets": {n % 2}}}\n' for n in range(16))
    (tmp_path / "rows.jsonl").write_text(
        rows + '{"inputs": "01201", "targets": 1}\n{"inputs": "01101", "targets": 1}\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--net raises.py:Net --task parity-check", "'raises.py' could not be imported: RuntimeError: on import"),
        ("--net nets.py:NoModule --task parity-check", "built a NoModule instead of an nn.Module: return a module"),
        ("--net nets.py:Seven --task parity-check", "returned the shape (3, 2, 7) on 'parity-check'"),
        ("--net nets.py:Writes --task parity-check", "changes its weight 'out.weight' in forward"),
        (
            "--net nets.py:Kernel --task parity-check",
            "a net is tried on the CPU first, so give it a way without the kernel",
        ),
        (
            "--net nets.py:Package --task parity-check",
            "No module named 'no_such_kernels': install 'no_such_kernels', or leave out what needs it",
        ),
        ("--net nets.py:Needs --task parity-check", "needs 'lattice' to be built: give --arg lattice=VALUE"),
        ("--net hf:nowhere --task parity-check", "there is no configuration"),
        ("--net nets.py:Net --task parity-check --weights nowhere.pt", "there is no checkpoint 'nowhere.pt'"),
        ("--net nets.py:Net --task nets.py:Task", "has no chance level: state the best constant answer's score"),
        ("--net nets.py:Net --task nets.py:Wide", "drew a target 2 at length"),
        ("--net nets.py:Net --task nets.py:Ragged", "rows of two lengths: draw one length a batch"),
        ("--net nets.py:Net --data rows.jsonl --task-arg longest=4", "has the symbol '2' that no row in training has"),
        ("--net nets.py:Net", "no task is named: give --task, or a file of your own rows with --data"),
    ],
)
def test_each_is_said_in_one_sentence(theodolite, here, words, sentence):
    found = theodolite("learn", *words.split(), "--seeds", 1, "--steps", 1, "--out", "made")
    assert found.code == 2
    assert sentence in found.err
    assert len(found.err.strip().splitlines()) == 1, found.err
    assert not (here / "made").exists()


def test_a_figure_of_scores_over_lengths(theodolite, here):
    asked = {"task_args": {"longest": 3}, "seeds": 2, "steps": 1, "chunk": 1}
    drawn = length_curves(learn("nets.py:Net", "parity-check", unseen="5", **asked).rows)
    assert drawn.startswith("<svg")
    assert "parity-check" in drawn
    assert "/2" in drawn
    with pytest.raises(BadInput, match="no scores over lengths to draw"):
        length_curves(learn("mlp", "majority", seeds=1, steps=1, chunk=1).rows)
    assert explained("nets.py:Net", "parity-check") == [
        "nets.py:Net(vocab_size=3, num_classes=2) reads ids of 3 symbols"
    ]
    words = ("--net", "nets.py:Net", "--task", "parity-check", "--plot", "nowhere/curves.svg")
    found = theodolite("learn", *words, "--out", "made")
    assert (found.code, (here / "made").exists()) == (2, False)
