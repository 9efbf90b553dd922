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
    ("score", "best", "longer", "expected"),
    [
        (1.0, 0.95, False, True),
        (1.0, 0.5, False, None),  # our training is shorter: nothing follows
        (1.0, 0.5, True, False),
        (0.52, 0.6, False, True),
        (0.52, 0.99, False, False),  # a paper's failure is refuted by one success
    ],
)
def test_only_what_could_not_be_otherwise_is_marked(score, best, longer, expected):
    assert agreement(Published("t", "n", score, "s", "x"), best, longer) is expected
