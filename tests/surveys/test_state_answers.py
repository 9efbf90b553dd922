"""What a survey says of a measured state: a bound is never told the wrong way round."""

from __future__ import annotations

from typing import Any

import pytest

from theodolite.instruments.state_size import state_size
from theodolite.lab.cell import Cell, Row
from theodolite.surveys.cost import _answer, _lines


def row(value: int | None, **told: Any) -> Row:
    return Row(Cell("cost", {"net": "some-net"}), {"state_size": {"value": value, "diagnostics": told}})


@pytest.mark.parametrize(
    ("value", "told", "standing", "text", "cell"),
    [
        (40, {"resolved": True, "at_least": 40, "at_most": 40}, "yes", "40 numbers", "40"),
        (480, {"resolved": False, "at_least": 64, "at_most": 480}, "yes", "at most 480 numbers", "≤ 480"),
        (
            163,
            {"resolved": False, "at_least": 163, "at_most": None},
            "unknown",
            "at least 163 numbers, not resolved",
            "≥ 163",
        ),
        (
            None,
            {"resolved": False, "at_least": 152, "at_most": None, "growth_per_token": None, "reason": "too slow"},
            "unknown",
            "too slow",
            "≥ 152",
        ),
        (None, {"resolved": True, "at_least": 224, "growth_per_token": 7.0}, "no", "7 numbers a token", "7 a token"),
        (None, {"reason": "the net reads ids"}, "unknown", "reads ids", None),
    ],
)
def test_a_bound_is_told_as_what_it_is(value, told, standing, text, cell):
    answer = _answer(row(value, **told))
    assert answer.standing == standing
    assert text in answer.text
    assert [line["value"] for line in _lines(row(value, **told))] == [cell]


def test_a_stack_without_end_is_not_said_to_run_in_constant_memory():
    found = state_size("stack-rnn", width=8, cell=2, seconds=60).to_json()
    answer = _answer(row(found["value"], **found["diagnostics"]))
    assert answer.standing == "unknown"
    assert "at least" in answer.text
    assert "at most" not in answer.text
