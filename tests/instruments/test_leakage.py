"""What leaks and what does not, of nets of which it is known."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from theodolite.bench.leaks import answers_are_later
from theodolite.bench.learn import learn
from theodolite.instruments.leakage import leakage
from theodolite.surveys.run import survey
from theodolite.tasks.contract import make_task

from .foreign_nets import S4D, Attention, Mamba


class Read(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.cell, self.read = nn.GRU(features, 6, batch_first=True), nn.Linear(6, outputs)

    def forward(self, x):
        return self.read(self.cell(x)[0])


class Kept(Read):
    """Goes on from the state of the call before, as a stateful recurrence does."""

    state: torch.Tensor | None = None

    def forward(self, x):
        state = self.state if self.state is not None and self.state.shape[1] == len(x) else None
        hidden, state = self.cell(x, state)
        self.state = state.detach()
        return self.read(hidden)


class Batched(Read):
    """Batch norm; with `kept` it has statistics of its own in evaluation."""

    def __init__(self, features: int, outputs: int, kept: bool = True) -> None:
        super().__init__(features, outputs)
        self.norm = nn.BatchNorm1d(features, track_running_stats=kept)

    def forward(self, x):
        return super().forward(self.norm(x.flatten(0, 1)).view_as(x))


class Dropping(Read):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), training=self.training)


class Rolls(Read):
    def forward(self, x):
        return super().forward(x) + random.random()


class Writes(Read):
    def forward(self, x):
        with torch.no_grad():
            self.read.weight.mul_(0.9)
        return super().forward(x)


class BothWays(Read):
    def forward(self, x):
        return super().forward(x) + super().forward(x.flip(1)).flip(1)


SIZES = {"tokens": 8, "features": 4, "outputs": 2}


@pytest.mark.parametrize("net", [Read, Dropping, S4D, Attention, Mamba])
def test_a_causal_net_of_its_own_input_leaks_nothing(net):
    """Dropout is no leak, nor is the rounding of a Fourier transform."""
    found = leakage(net, **SIZES)
    assert found.value == 0
    assert found.diagnostics["causal"] is True
    assert found.diagnostics["ahead"] == 0


@pytest.mark.parametrize(
    ("net", "options", "says"),
    [
        (Kept, {}, ["an earlier call"]),
        (Batched, {"kept": False}, ["other rows"]),
        (Rolls, {}, ["no seed of torch sets"]),
        (Writes, {}, ["an earlier call", "changes its own weights (read.weight)"]),
    ],
)
def test_what_leaks_is_said(net, options, says):
    found = leakage(net, **SIZES, **options)
    assert found.value == len(says)
    assert all(part in told for part, told in zip(says, found.diagnostics["says"], strict=True))


def test_batch_statistics_in_training_are_a_note():
    found = leakage(Batched, **SIZES)
    assert found.value == 0
    assert found.diagnostics["evaluation"]["rows"] == 0 < found.diagnostics["training"]["rows"]
    assert "batch norm" in found.diagnostics["notes"][0]


@pytest.mark.parametrize(
    ("shape", "ahead"), [({"kernel": 3}, 1), ({"kernel": 5}, 2), ({"kernel": 5, "causal": True}, 0)]
)
def test_how_far_a_convolution_looks_ahead(shape, ahead):
    found = leakage("convolution", depth=1, **{"causal": False, **shape})
    assert (found.diagnostics["ahead"], found.diagnostics["causal"]) == (ahead, ahead == 0)
    assert leakage(BothWays, **SIZES).diagnostics["ahead"] == 7
    assert leakage("mlp").diagnostics["causal"] is None


def test_ids_leak_as_vectors_do():
    class Words(nn.Module):
        def __init__(self, vocab: int, outputs: int) -> None:
            super().__init__()
            self.table, self.inner = nn.Embedding(vocab, 4), BothWays(4, outputs)

        def forward(self, ids):
            return self.inner(self.table(ids))

    assert leakage(Words, vocab=3, tokens=6).diagnostics["causal"] is False


def test_learning_warns_of_a_kept_state_and_of_answers_that_are_seen():
    settings = {"steps": 2, "seeds": 1, "rows": 2, "unseen": "none", "task_args": {"longest": 3}}
    (warning,) = learn(Kept, "parity-check", **settings).warnings
    assert "keeps a state" in warning
    assert not learn(Read, "parity-check", **settings).warnings
    assert not answers_are_later(make_task("parity-check", {}))
    text = make_task("text", {})
    assert answers_are_later(text)


def test_the_survey_asks_first():
    found = survey(Kept, alone=True, only=["leakage"])
    alone, before = found.answers
    assert (alone.standing, before.standing) == ("no", "yes")
    assert "keeps a state" in alone.text
    assert "keeps a state" in found.sections[0].summary.headline
