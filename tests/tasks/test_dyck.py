"""Brackets: the law of the walk, its bounds, nesting, and labels that follow from the inputs."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
import torch

from theodolite.tasks.dyck import Dyck


def strings(task: Dyck, rows: int, length: int, seed: int = 0) -> list[list[int]]:
    return task.sample(2, rows // 2, length, torch.Generator().manual_seed(seed)).inputs.flatten(0, 1).tolist()


def probability(task: Dyck, string: tuple[int, ...]) -> float:
    """Of one string under the stated law, read off bracket by bracket; 0 where it is not nested."""
    stack: list[int] = []
    chance = 1.0
    for bracket in string:
        up = 1.0 if not stack else 0.0 if len(stack) == task.depth else 0.5
        if bracket < task.types:
            chance *= up / task.types
            stack.append(bracket)
        elif not stack or stack.pop() != bracket - task.types:
            return 0.0
        else:
            chance *= 1 - up
    return chance


@pytest.mark.parametrize("shape", [{"types": 1, "depth": 2}, {"types": 2, "depth": 1}, {"types": 2, "depth": 3}])
def test_strings_have_the_stated_probabilities(shape):
    """All strings of 6 brackets, by brute force over every sequence of ids."""
    task, length, rows = Dyck(**shape), 6, 20_000
    law = {s: p for s in product(range(2 * task.types), repeat=length) if (p := probability(task, s)) > 0}
    assert sum(law.values()) == pytest.approx(1)
    assert len(law) > 1
    seen = Counter(map(tuple, strings(task, rows, length)))
    assert set(seen) <= set(law), "nothing is drawn that cannot be"
    squares = sum((seen[s] - rows * p) ** 2 / (rows * p) for s, p in law.items())
    freedom = len(law) - 1
    assert squares < freedom + 5 * (2 * freedom) ** 0.5  # chi-squared: mean and five standard deviations


@pytest.mark.parametrize("depth", [1, 2, 4, 7])
def test_long_strings_reach_the_depth_and_never_pass_it(depth):
    task = Dyck(depth=depth)
    deepest = 0
    for string in strings(task, 40, 300):
        open_ = 0
        for bracket in string:
            open_ += 1 if bracket < task.types else -1
            assert 0 <= open_ <= depth
            deepest = max(deepest, open_)
    assert deepest == depth


def test_brackets_are_nested_at_lengths_beyond_small_counters():
    task = Dyck(types=3, depth=5)
    (string,) = strings(task, 2, 20_000)[:1]
    assert len(task.solve(string)) == 20_000  # the solver refuses strings that are not nested
    wrong = [*string]
    close = next(place for place, bracket in enumerate(string) if bracket >= task.types)
    wrong[close] = task.types + (wrong[close] - task.types + 1) % task.types
    with pytest.raises(ValueError, match="not nested"):
        task.solve(wrong)


def test_a_target_tells_the_only_bracket_that_may_close():
    """Appending the closing bracket of the target's type keeps a string nested, any other does not."""
    task = Dyck(types=3)
    drawn = task.sample(1, 30, 15, torch.Generator().manual_seed(5))
    closed = 0
    for string, targets in zip(drawn.inputs[0].tolist(), drawn.targets[0].tolist(), strict=True):
        for place, target in enumerate(targets):
            for kind in range(task.types):
                longer = [*string[: place + 1], task.types + kind]
                if kind == target:
                    task.solve(longer)
                    closed += 1
                else:
                    with pytest.raises(ValueError, match="not nested"):
                        task.solve(longer)
    assert closed > 100
