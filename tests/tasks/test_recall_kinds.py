"""Noisy and fuzzy recall, selective copying and compression: each reduces to a plainer task, and draws are uniform."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.compression import Compression
from theodolite.tasks.fuzzy_recall import FuzzyRecall
from theodolite.tasks.noisy_recall import NoisyRecall
from theodolite.tasks.recall import Recall
from theodolite.tasks.selective_copy import SelectiveCopy


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows_of(part: torch.Tensor) -> list[list[int]]:
    return part.flatten(0, 1).tolist()


def unlikely(seen: Counter, outcomes: int, total: int) -> bool:
    """Whether a uniform law is refused: χ² five standard deviations above its mean."""
    expected = total / outcomes
    missing = (outcomes - len(seen)) * expected
    squares = sum((count - expected) ** 2 / expected for count in seen.values()) + missing
    return squares > outcomes - 1 + 5 * (2 * (outcomes - 1)) ** 0.5


@pytest.mark.parametrize("noise", [1, 3])
def test_noisy_recall_without_its_noise_is_recall(noise):
    task, plain, length = NoisyRecall(noise=noise, kinds=5), Recall(), 9
    drawn, wanted = (t.sample(2, 20, length, seeded(0)) for t in (task, plain))
    assert drawn.inputs.shape[-1] == length * (3 + noise)
    for row, clean in zip(rows_of(drawn.inputs), rows_of(wanted.inputs), strict=True):
        kept = [token for token in row if token < 128]
        pairs, wanted_pairs = (
            list(zip(tokens[0 : 2 * length : 2], tokens[1 : 2 * length : 2], strict=True)) for tokens in (kept, clean)
        )
        assert sorted(pairs) == sorted(wanted_pairs)
        assert kept[2 * length :] == clean[2 * length :]
        assert plain.solve(kept) == plain.solve(clean)
        assert {token for token in row if token >= 128} <= set(range(128, 133))
    assert torch.equal(drawn.targets[..., -length:], wanted.targets[..., -length:])


def test_noise_never_parts_a_pair_and_every_placing_is_equally_likely():
    task, length, rows = NoisyRecall(keys=3, values=2, noise=1, kinds=1, longest=2), 2, 6000
    drawn = task.sample(1, rows, length, seeded(1))
    seen: Counter[tuple[int, ...]] = Counter()
    for row in rows_of(drawn.inputs[..., : 4 * length - 2]):
        pairs = tuple(place for place, token in enumerate(row) if token < 3)
        assert all(3 <= row[place + 1] < 5 for place in pairs)
        assert sum(token == 5 for token in row) == length
        seen[pairs] += 1
    assert len(seen) == len(list(combinations(range(4), 2)))
    assert not unlikely(seen, 6, rows)


def test_fuzzy_recall_of_single_tokens_is_recall():
    task, plain, length = FuzzyRecall(keys=64, values=64, key_tokens=1, value_tokens=1), Recall(), 7
    drawn, wanted = (t.sample(2, 20, length, seeded(2)) for t in (task, plain))
    assert torch.equal(drawn.inputs[..., : 2 * length], wanted.inputs[..., : 2 * length])
    assert torch.equal(drawn.inputs[..., 2 * length :: 2], wanted.inputs[..., 2 * length :])
    assert torch.equal(drawn.inputs[..., 2 * length + 1 :: 2], torch.full_like(wanted.inputs[..., :length], 128))
    assert torch.equal(drawn.targets[drawn.mask], wanted.targets[wanted.mask])


def test_fuzzy_keys_share_tokens_but_differ_and_each_is_asked_once():
    task, length = FuzzyRecall(keys=3, values=4, key_tokens=3, value_tokens=2, longest=27), 27
    drawn = task.sample(1, 10, length, seeded(3))
    for row, mask in zip(rows_of(drawn.inputs), rows_of(drawn.mask), strict=True):
        blocks = [tuple(row[start : start + 5]) for start in range(0, len(row), 5)]
        keys, asked = ([block[:3] for block in part] for part in (blocks[:length], blocks[length:]))
        assert len(set(keys)) == length == 3**3
        assert sorted(asked) == sorted(keys)
        assert all(3 <= token < 7 for block in blocks[:length] for token in block[3:])
        assert all(block[3:] == (7, 7) for block in blocks[length:])
        assert mask == [False] * 5 * length + [False, False, False, True, True] * length


def test_all_values_of_several_tokens_are_equally_likely():
    drawn = FuzzyRecall(values=3).sample(1, 2000, 4, seeded(4))
    seen = Counter(map(tuple, drawn.targets[drawn.mask].view(-1, 2).tolist()))
    assert not unlikely(seen, 9, 8000)


def test_selective_copy_without_its_blanks_is_copy():
    task, plain, length = SelectiveCopy(symbols=5, blanks=4), make_task("copy", {"symbols": 5}), 11
    drawn = task.sample(2, 20, length, seeded(5))
    assert drawn.inputs.shape[-1] == length * 6
    for row, targets in zip(rows_of(drawn.inputs), rows_of(drawn.targets), strict=True):
        dense = [token for token in row if token != 6]
        assert len(dense) == 2 * length
        assert list(plain.solve(dense))[length:] == targets[-length:] == dense[:length]


def test_every_placing_of_the_blanks_is_equally_likely():
    drawn = SelectiveCopy(symbols=2, blanks=2).sample(1, 6000, 2, seeded(6))
    seen = Counter(tuple(row) for row in (drawn.inputs[0, :, :6] == 3).tolist())
    assert not unlikely(seen, 15, 6000)


def test_the_answers_of_compression_in_order_are_the_string():
    task, length = Compression(symbols=4), 13
    drawn = task.sample(2, 20, length, seeded(7))
    for row, targets in zip(rows_of(drawn.inputs), rows_of(drawn.targets), strict=True):
        told = dict(zip(row[length:], targets[length:], strict=True))
        assert [told[4 + place] for place in range(length)] == row[:length]


@each(
    ("name", "arguments", "fault"),
    [
        ("noisy-recall", {"noise": 0}, "noise=0"),
        ("noisy-recall", {"kinds": 0}, "kinds=0"),
        ("noisy-recall", {"longest": 65}, "longest=65"),
        ("noisy-recall", {"values": 1}, "values=1"),
        ("fuzzy-recall", {"key_tokens": 0}, "key_tokens=0"),
        ("fuzzy-recall", {"key_tokens": 5}, "key_tokens=5"),
        ("fuzzy-recall", {"value_tokens": 30}, "value_tokens=30"),
        ("fuzzy-recall", {"longest": 65}, "which has 64"),
        ("selective-copy", {"symbols": 1}, "symbols=1"),
        ("selective-copy", {"blanks": 0}, "blanks=0"),
        ("compression", {"positions": 31}, "positions=31"),
        ("compression", {"symbols": 1}, "symbols=1"),
    ],
)
def test_fields_that_make_no_task_are_refused(name, arguments, fault):
    with pytest.raises(BadInput, match=fault) as refused:
        make_task(name, arguments)
    assert f"'{name}'" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fuzzy-recall", {"keys": 8, "key_tokens": 4, "longest": 3}),
        ("fuzzy-recall", {"keys": 1, "longest": 1}),
        ("fuzzy-recall", {"values": 4, "value_tokens": 31, "longest": 3}),
        ("noisy-recall", {"keys": 5, "values": 2, "noise": 7, "kinds": 1, "longest": 5}),
        ("selective-copy", {"symbols": 2, "blanks": 30}),
        ("compression", {"symbols": 2, "positions": 500, "longest": 500}),
    ],
)
def test_labels_agree_with_the_slow_solver_at_the_edges(name, arguments):
    task = make_task(name, arguments)
    assert task.spec.lengths is not None
    drawn = task.sample(2, 10, task.spec.lengths[1], seeded(8))
    for row, targets, mask in zip(rows_of(drawn.inputs), rows_of(drawn.targets), rows_of(drawn.mask), strict=True):
        solved = list(task.solve(row))
        assert [y for y, scored in zip(solved, mask, strict=True) if scored] == [
            y for y, scored in zip(targets, mask, strict=True) if scored
        ]
    assert bool(drawn.mask.any())
