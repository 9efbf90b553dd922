"""What nets from elsewhere need to be evaluated at many points: big heads, single precision, weights laid out anew."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from theodolite.instruments.rank.one_entry import cut_head
from theodolite.instruments.rank.pair_matrix import _pairs_at_once
from theodolite.instruments.rank.separation import separation_rank
from theodolite.partition import Partition

WORDS = 200


class Language(nn.Module):
    """A table of words, tied to the head, as most language models have."""

    def __init__(self, vocab: int, tokens: int = 4, scale: bool = False, normed: bool = False) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(vocab, 6), nn.Linear(6, vocab, bias=False)
        self.head.weight, self.scale, self.normed = self.table.weight, scale, normed

    def forward(self, ids):
        words = self.head(torch.tanh(self.table(ids).cumsum(1) * self.table(ids)))
        words = 3 * words if self.scale else words
        return words.log_softmax(-1) if self.normed else words


@pytest.mark.parametrize(("shape", "cut"), [({}, True), ({"scale": True}, True), ({"normed": True}, False)])
def test_a_head_is_cut_where_that_changes_nothing(shape, cut):
    net, ids = Language(WORDS, **shape).double(), torch.arange(12).view(3, 4)
    wanted = net(ids)[..., 7]
    assert cut_head(net, 7, ids) is cut
    assert torch.allclose(net(ids)[..., 0 if cut else 7], wanted)
    assert net.table.weight.shape == (WORDS, 6), "the table keeps all words"


def test_the_rank_is_that_of_the_whole_net(monkeypatch):
    found = separation_rank(Language, "epsilon", points=24, repeats=1, entry=5, vocab=WORDS, tokens=4)
    monkeypatch.setattr("theodolite.instruments.rank.scalar.cut_head", lambda *_: False)
    whole = separation_rank(Language, "epsilon", points=24, repeats=1, entry=5, vocab=WORDS, tokens=4)
    assert found.rank == whole.rank
    assert found.details["spectrum"] == pytest.approx(whole.details["spectrum"])


def test_weights_do_not_count_as_part_of_a_pair():
    """A million numbers that every batch shares leave as much room as none."""
    weights = torch.randn(1024, 1024, dtype=torch.float64)

    def evaluate(points):
        return points.sum((1, 2)) + (weights * 1.0).sum() + (weights + weights).mean()

    found = _pairs_at_once(evaluate, torch.zeros(2, 2, 3, dtype=torch.float64), Partition.parse("left-right", 4), 2400)
    assert found == 2400 // (4 * 3)


class Single(nn.Module):
    def __init__(self, features: int, tokens: int) -> None:
        super().__init__()
        self.weight = torch.randn(features, 5, generator=torch.Generator().manual_seed(0))

    def forward(self, x):
        return torch.tanh(x.cumsum(1) @ self.weight)


def test_a_net_made_for_single_precision_is_measured_in_it_and_says_so():
    found = separation_rank(Single, "epsilon", points=32, repeats=1, tokens=4, features=2)
    assert found.details["dtype"] == "float32"
    assert "does not run in float64" in found.details["precision"]
    asked = separation_rank(Single, "epsilon", points=32, repeats=1, tokens=4, features=2, dtype="float32")
    assert (found.rank, found.details["spectrum"]) == (asked.rank, asked.details["spectrum"])
