"""Published scores, and when a measured one contradicts them."""

from __future__ import annotations

import pytest

from theodolite.nets import nets
from theodolite.tasks import tasks
from theodolite.theory.learnability import _ROWS, Published, agreement, published


def test_every_row_is_about_a_net_and_a_task_there_are():
    assert len({(row.task, row.net) for row in _ROWS}) == len(_ROWS)
    for row in _ROWS:
        assert row.net in nets
        assert row.task in tasks
        assert 0 <= row.score <= 1


def test_parity_depends_on_the_number_of_bits():
    assert [published("parity", "mlp", bits) is not None for bits in (5, 10, 11, 30, None)] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert published("parity", "mlp", 10).solved
    assert not published("parity", "mlp", 30).solved
    assert published("parity", "transformer", 10) is None
    assert published("sawtooth", "mlp") is None


@pytest.mark.parametrize(
    ("score", "best", "learnt", "expected"),
    [
        (1.0, 0.95, True, True),
        (1.0, 0.5, True, None),  # our training is shorter: nothing follows
        (1.0, 0.5, False, None),
        (0.52, 0.6, True, True),  # learnt, and lost beyond the lengths of training
        (0.52, 0.6, False, None),  # not learnt at all
        (0.52, 0.99, True, False),  # a paper's failure is refuted by one success
    ],
)
def test_only_what_shows_something_is_marked(score, best, learnt, expected):
    assert agreement(Published("t", "n", score, "s", "x"), best, learnt) is expected
