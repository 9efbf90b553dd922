"""Recall: distinct keys, every key asked once, and uniform random orders behind both."""

from __future__ import annotations

from collections import Counter
from itertools import permutations as orders

import pytest
import torch

from theodolite.tasks.recall import Recall
from theodolite.tasks.shared.permutation import permutations


def test_keys_differ_and_every_one_is_asked_once():
    task, length = Recall(keys=20, values=9, longest=20), 20
    drawn = task.sample(2, 50, length, torch.Generator().manual_seed(0))
    in_order = 0
    for row, mask in zip(drawn.inputs.flatten(0, 1).tolist(), drawn.mask.flatten(0, 1).tolist(), strict=True):
        keys, values, asked = row[0 : 2 * length : 2], row[1 : 2 * length : 2], row[2 * length :]
        assert len(set(keys)) == length
        assert set(keys) <= set(range(task.keys))
        assert set(values) <= set(range(task.keys, task.keys + task.values))
        assert sorted(asked) == sorted(keys)
        assert mask == [False] * (2 * length) + [True] * length
        in_order += asked == keys
    assert in_order == 0  # one chance in 20! for each row


def test_answers_follow_the_pairs_and_not_their_places():
    """The same pairs in another order, asked the same, have the same answers."""
    task, length = Recall(), 8
    drawn = task.sample(1, 1, length, torch.Generator().manual_seed(1))
    row = drawn.inputs[0, 0].tolist()
    pairs = [row[place : place + 2] for place in range(0, 2 * length, 2)]
    moved = [token for pair in reversed(pairs) for token in pair] + row[2 * length :]
    assert moved != row
    assert task.solve(moved) == task.solve(row) == drawn.targets[0, 0].tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 65])
def test_a_row_holds_every_number_once(count):
    drawn = permutations((3, 4), count, torch.Generator().manual_seed(2))
    assert drawn.shape == (3, 4, count)
    assert all(sorted(row) == list(range(count)) for row in drawn.flatten(0, 1).tolist())


def test_every_order_is_equally_likely():
    rows = 24_000
    seen = Counter(map(tuple, permutations((rows,), 4, torch.Generator().manual_seed(3)).tolist()))
    expected = rows / 24
    squares = sum((seen[order] - expected) ** 2 / expected for order in orders(range(4)))
    assert squares < 23 + 5 * (2 * 23) ** 0.5


def test_the_first_of_an_order_is_a_uniform_choice():
    rows, count = 30_000, 6
    seen = Counter(permutations((rows,), count, torch.Generator().manual_seed(4))[:, 0].tolist())
    assert sum((seen[n] - rows / count) ** 2 / (rows / count) for n in range(count)) < 5 + 5 * 10**0.5
