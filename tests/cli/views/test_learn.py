"""What a net carries, as one line under its results tells it."""

from __future__ import annotations

import pytest

from theodolite.cli.views.learn import _state


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, ""),
        (32, "state 32"),
        ({"size": 32, "growth_per_token": 0.0}, "state 32"),
        ({"size": 40, "at_least": 40, "at_most": 40, "growth_per_token": 0.0}, "state 40"),
        ({"size": 34, "at_least": 34, "at_most": None, "growth_per_token": 0.0}, "state ≥ 34"),
        ({"size": 480, "at_least": 64, "at_most": 480, "growth_per_token": 0.0}, "state ≤ 480"),
        ({"size": None, "at_least": 224, "at_most": None, "growth_per_token": 7.0}, "state grows by 7 a token"),
        ({"size": None, "at_least": 152, "at_most": None, "growth_per_token": None}, "state ≥ 152"),
        ({"size": None, "reason": "too slow to probe"}, ""),
    ],
)
def test_a_state_that_is_not_resolved_is_told_as_a_bound(size, text):
    assert _state(size) == text
