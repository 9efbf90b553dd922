"""Degrees trained at equal budget: how rates are chosen, what members share, what is refused."""

from __future__ import annotations

import math
import statistics

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.instruments.degree.descent import Descent, Reached
from theodolite.instruments.degree.trained import (
    Problem,
    Seeds,
    _median_interval,
    prepare,
    summary,
    train_degrees,
)
from theodolite.tasks.contract import make_task

CPU = torch.device("cpu")
EASY = {"kind": "network", "rank": 4, "degree": 2, "variables": 4}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return train_degrees(
        [2, 3], 6, 6, "prescribed-rank", EASY, seeds=3, steps=40, rates=[0.0003, 0.001], tuning=1, batch=32
    )


def test_every_degree_has_a_row_of_equal_parameters_that_beats_the_constant_answer(rows: list[dict]) -> None:
    assert [row["degree"] for row in rows] == ["2", "3"]
    assert [row["depth"] for row in rows] == [3, 2]
    assert len({row["parameters"] for row in rows}) == 1
    for row in rows:
        assert row["budget"] == 6
        assert len(row["errors"]) == row["seeds"] == 3
        assert row["diverged"] == 0
        assert row["error"] == statistics.median(row["errors"])
        assert row["mean_log_error"] == pytest.approx(statistics.fmean(map(math.log, row["errors"])))
        assert row["log_interval"][0] < row["mean_log_error"] < row["log_interval"][1]


def test_the_grid_is_extended_past_a_best_rate_at_its_edge(rows: list[dict]) -> None:
    """0.001 is far too slow for 40 steps: both extensions go up, three-fold each, and are better."""
    for row in rows:
        assert list(row["tuning"]) == ["0.0003", "0.001", "0.003", "0.009"]
        assert row["rate"] == 0.009
        assert row["at_edge"]
        losses = list(row["tuning"].values())
        assert losses == sorted(losses, reverse=True)


def test_the_same_call_gives_the_same_errors_and_another_seed_others() -> None:
    again = {"seeds": 2, "steps": 8, "rates": [0.01], "tuning": 1, "batch": 8}
    first, second = (train_degrees([2], 6, 6, "prescribed-rank", EASY, seed=s, **again)[0] for s in (0, 0))
    other = train_degrees([2], 6, 6, "prescribed-rank", EASY, seed=1, **again)[0]
    assert first["errors"] == second["errors"]
    assert not set(first["errors"]) & set(other["errors"])


def test_seeds_have_functions_of_their_own_unless_the_draw_is_given_and_tuning_sees_other_ones() -> None:
    descent, seeds = Descent(2, 8), Seeds(3, 2)
    own = prepare([Problem("prescribed-rank", EASY)], seeds, descent, 0, CPU)
    fixed = prepare([Problem("prescribed-rank", {**EASY, "draw": 3})], seeds, descent, 0, CPU)
    task = make_task("prescribed-rank", {**EASY, "draw": 3})
    for prepared, alike in ((fixed, 5), (own, 0)):
        near = 0
        for part in (prepared.tuning, prepared.final):
            inputs, targets = part.train
            for source in range(part.sources):
                # Inputs uniform in [−1, 1] were divided by their deviation, which is nearly 1/√3.
                answers = [task.solve([v / math.sqrt(3) for v in row.tolist()])[0] for row in inputs[source]]
                near += torch.allclose(torch.tensor(answers), targets[source, :, 0], atol=0.2)
        assert near == alike


def test_real_sets_are_trained_on_by_name() -> None:
    row = train_degrees([3], 3, 8, "digits", seeds=2, steps=40, rates=[0.03], tuning=1, batch=64)[0]
    assert row["error"] < 0.6
    assert row["task"] == "digits"
    assert all(error * 359 == pytest.approx(round(error * 359), abs=1e-3) for error in row["errors"])


def test_progress_adds_up_to_the_whole() -> None:
    told: list[tuple[str, float]] = []
    options = {"seeds": 2, "steps": 4, "rates": [0.01], "tuning": 1, "batch": 8}
    watch = lambda what, share: told.append((what, share))
    train_degrees([2, "e"], 6, 4, "prescribed-rank", EASY, progress=watch, **options)
    assert {what for what, _ in told} == {"degree 2", "degree e"}
    assert sum(share for _, share in told) == pytest.approx(1.0)


def test_an_error_of_zero_has_a_logarithm_and_divergence_is_counted() -> None:
    found = summary([Reached(0.1, 0.1, 0.0, False), Reached(1.0, 1.0, 0.5, True)], least=0.01)
    assert found["mean_log_error"] == pytest.approx((math.log(0.01) + math.log(0.5)) / 2)
    assert found["diverged"] == 0.5
    assert found["errors"] == [0.0, 0.5]


def test_the_interval_of_the_median_covers_it_with_95_per_cent() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(2000, 16, generator=generator).tolist()
    held = sum(low <= 0.5 <= high for low, high in map(_median_interval, draws))
    assert 0.95 <= held / 2000 <= 0.995
    assert _median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "parity-check"}, "no regression on vectors"),
        ({"task": "digits", "task_args": {"draw": 1}}, "has no fields to set"),
        ({"task": "prescribed-rnk"}, "did you mean 'prescribed-rank'"),
        ({"rates": [0.0]}, "learning rates must be positive"),
        ({"rates": []}, "at least one"),
        ({"seeds": 1}, "final seeds must be"),
        ({"steps": 0}, "steps must be"),
    ],
)
def test_what_cannot_be_trained_is_refused(change: dict, message: str) -> None:
    options = {"task": "prescribed-rank", "task_args": None, "seeds": 2, "steps": 2, "rates": [0.1], "batch": 4}
    with pytest.raises(BadInput, match=message):
        train_degrees([2], 4, 4, **{**options, **change})
