"""Axes and labels of drawings: known places, and no label on another."""

import pytest

from theodolite.report.svg.drawing import Labels, LogAxis


def test_labels_never_cover_each_other_or_leave_the_frame():
    labels = Labels((0, 0, 200, 100))
    placed = [labels.place((20 + 3 * k, 50), f"label {k}") for k in range(30)]
    assert 3 < sum(map(bool, placed)) < 30
    boxes = labels.taken
    for i, a in enumerate(boxes):
        assert a[0] >= 0
        assert a[2] <= 200
        for b in boxes[:i]:
            assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])


def test_a_logarithmic_axis_has_equal_steps_for_equal_ratios():
    axis = LogAxis(1, 100, 0, 200)
    assert axis(10) == pytest.approx(100)
    assert axis(40) - axis(20) == pytest.approx(axis(4) - axis(2))
