"""Instruments along training, against what training on a known task must do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.along_training import along_training
from theodolite.surveys.run import survey


def test_a_product_of_two_bits_is_learnt_as_such():
    found = along_training("mlp", "parity", {"bits": 4, "relevant": 2}, steps=400, looks=2, width=16, points=12)
    first, last = found.looks
    assert (first.step, last.step) == (0, 400)
    assert last.score == 1 > first.score
    assert (first.felt, first.used) == (None, None)


def test_a_recurrence_that_learns_parity_comes_to_feel_far_symbols():
    """Every symbol changes the answer, however far back: what fades before training must not fade after it."""
    found = along_training("lstm", "parity-check", {"longest": 3}, steps=250, looks=2, width=12, points=16)
    first, last = found.looks
    assert last.score > 0.9 > first.score
    assert last.felt[1] > 100 * first.felt[1]
    assert last.used is not None
    assert 0 < last.used <= 24, "hidden states and cells together"
    assert first.felt[0] > first.felt[1] > 0
    assert [look.step for look in found.looks] == [0, 250]


class Words(nn.Module):
    """Reads ids and counts ones: what its embedding looks up is all of its past, in one number."""

    def __init__(self, vocab: int, outputs: int) -> None:
        super().__init__()
        self.table, self.read = nn.Embedding(vocab, 1), nn.Linear(1, outputs)

    def forward(self, ids):
        return self.read(torch.tanh(self.table(ids).cumsum(1)))


def test_a_net_of_ids_uses_the_one_number_it_carries():
    found = along_training(Words, "parity-check", {"longest": 3}, steps=2, looks=2, points=16)
    assert [look.used for look in found.looks] == [1, 1]
    assert all(look.rank <= 7 for look in found.looks)


def test_what_cannot_be_trained_is_said():
    with pytest.raises(BadInput, match="at least 2"):
        along_training("lstm", "parity-check", looks=1)
    with pytest.raises(NotApplicable, match="reads a vector"):
        along_training("mlp", "parity-check")


def test_the_survey_shows_before_beside_after(monkeypatch):
    from theodolite.surveys import trained

    monkeypatch.setitem(trained._EFFORT, "quick", trained._Effort(4, 2, 12))
    found = survey("rnn", params=300, only=["trained"])
    (section,) = found.sections
    (table,) = section.summary.tables
    assert [row["step"] for row in table.rows] == [0, 4]
    assert "ε-rank before and after 4 steps" in section.summary.headline
