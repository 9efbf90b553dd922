"""Effects as drawings: where cells, words and dots stand."""

from __future__ import annotations

import re

from theodolite.report.svg.effect import map_svg

BOXES = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="color')
DOTS = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)"')


def test_categories_of_a_map_stand_at_equal_distances_under_their_words_with_their_rows():
    """Numbers behind categories lie anywhere: 0, 0.1 and 5."""
    numbers, mean = [0.0, 0.1, 5.0], [[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]]
    rows = [[0.0, 2.5]] * 5 + [[0.1, 2.5]] * 5 + [[5.0, 2.5]] * 5 + [[7.7, 2.5]]
    drawn = map_svg(("kind", "age"), (numbers, [2.0, 3.0]), mean, rows, (["elm", "ash", "oak & co"], None))
    lefts = sorted({float(x) for x, *_ in BOXES.findall(drawn)})
    assert len(lefts) == 3
    assert abs((lefts[1] - lefts[0]) - (lefts[2] - lefts[1])) < 0.2
    assert all(f">{word}</text>" in drawn for word in ("elm", "ash", "oak &amp; co"))
    places = [float(x) for x, _ in DOTS.findall(drawn)]
    assert len(places) == 15, "a category that is not shown has no dots"
    width = lefts[1] - lefts[0]
    for number, left in enumerate(lefts):
        own = places[5 * number : 5 * number + 5]
        assert len(set(own)) == 5
        assert all(left < x < left + width for x in own)


def test_numbers_of_a_map_stand_at_their_values():
    drawn = map_svg(("a", "b"), ([0.0, 1.0, 5.0], [2.0, 3.0]), [[1.0, 1.0]] * 3, [[1.0, 2.5]])
    lefts = sorted({float(x) for x, *_ in BOXES.findall(drawn)})
    assert lefts[2] - lefts[1] > 2 * (lefts[1] - lefts[0])
    assert ">5</text>" in drawn
