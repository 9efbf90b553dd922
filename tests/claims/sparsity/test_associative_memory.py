"""The memory of one attention head against loops, simulation and geometry in two and three dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from theodolite.claims.sparsity.associative_memory import crossing, head, recalled
from theodolite.errors import BadInput
from theodolite.measures import measure
from theodolite.theory.associative_memory import (
    growth_rate,
    likeness_tail,
    linear_capacity,
    linear_recall,
    sharp_capacity,
    sharp_recall,
)

CONFIG = {"kind": "softmax", "width": 20, "likeness": 0.7, "pairs": [4, 64, 512], "questions": 200, "draws": 6}


@pytest.mark.parametrize("likeness", [0.1, 0.5, 0.9])
def test_the_tail_is_an_arc_in_the_plane_and_a_cap_in_space(likeness):
    assert likeness_tail(2, likeness) == pytest.approx(math.acos(likeness) / math.pi)
    assert likeness_tail(3, likeness) == pytest.approx((1 - likeness) / 2)


def test_capacities_are_where_recall_is_what_was_asked_and_the_sharp_one_grows_exponentially():
    assert sharp_recall(sharp_capacity(24, 0.6, 0.9), 24, 0.6) == pytest.approx(0.9)
    assert linear_recall(linear_capacity(64, 0.6, 0.9), 64, 0.6) == pytest.approx(0.9, abs=1e-3)
    slope = math.log(sharp_capacity(401, 0.6) / sharp_capacity(400, 0.6))
    assert slope == pytest.approx(growth_rate(0.6), rel=0.01)
    power = math.log(linear_capacity(512, 0.6) / linear_capacity(256, 0.6)) / math.log(2)
    assert 1.7 < power < 2.3


def test_linear_recall_is_that_of_a_plain_simulation():
    """Pairs, question and answer written out in numpy, one at a time."""
    random, width, pairs, right = np.random.default_rng(0), 48, 60, 0
    for _ in range(400):
        keys, values = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in random.normal(size=(2, pairs, width)))
        noise = random.normal(size=width)
        noise -= (noise @ keys[0]) * keys[0]
        question = 0.7 * keys[0] + math.sqrt(1 - 0.49) * noise / np.linalg.norm(noise)
        answer = sum((question @ k) * v for k, v in zip(keys, values, strict=True))
        right += int(np.argmax(values @ answer)) == 0
    assert 0.3 < linear_recall(pairs, width, 0.7) < 0.95  # so that the comparison says something
    assert right / 400 == pytest.approx(linear_recall(pairs, width, 0.7), abs=0.08)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_the_head_is_the_sum_over_pairs_that_it_stands_for(kind):
    generator = torch.Generator().manual_seed(1)
    keys, values, questions = (torch.randn(5, 6, generator=generator, dtype=torch.float32) for _ in range(3))
    found = head(questions, torch.cat((keys, values), dim=-1), kind, beta=2.5)
    for question, answer in zip(questions, found, strict=True):
        weights = [float(question @ key) for key in keys]
        if kind == "softmax":
            powers = [math.exp(2.5 * w) for w in weights]
            weights = [p / sum(powers) for p in powers]
        wanted = sum(w * v for w, v in zip(weights, values, strict=True))
        assert torch.allclose(answer, torch.as_tensor(wanted), atol=1e-4)


@pytest.mark.parametrize("kind", ["softmax", "sparsemax"])
def test_a_sharp_head_answers_with_the_value_of_the_nearest_key(kind):
    generator = torch.Generator().manual_seed(2)
    keys, values, questions = (torch.randn(30, 8, generator=generator) for _ in range(3))
    found = head(questions, torch.cat((keys, values), dim=-1), kind, beta=1e4)
    assert torch.allclose(found, values[(questions @ keys.T).argmax(dim=-1)], atol=1e-3)


@pytest.mark.parametrize("kind", ["softmax", "sparsemax", "linear"])
def test_measured_recall_is_the_predicted_one(kind):
    pairs, width = ([8, 60, 120], 64) if kind == "linear" else ([10, 200, 800], 20)
    row = measure("associative-memory", {**CONFIG, "kind": kind, "width": width, "pairs": pairs}, 3, "cpu")
    assert row["predicted"][-1] < 0.9  # so that there is something to be wrong about
    assert row["recall"] == pytest.approx(row["predicted"], abs=0.05)
    assert row["capacity"] is not None
    assert row["interval"][0] <= row["capacity"] <= row["interval"][1]


def test_the_same_seed_gives_the_same_row_and_another_one_another():
    assert measure("associative-memory", CONFIG, 1, "cpu") == measure("associative-memory", CONFIG, 1, "cpu")
    assert (
        measure("associative-memory", CONFIG, 1, "cpu")["recall"]
        != measure("associative-memory", CONFIG, 2, "cpu")["recall"]
    )


def test_a_question_that_is_nearly_the_key_is_always_answered_by_softmax():
    generator = torch.Generator().manual_seed(0)
    assert recalled("softmax", 16, 0.999, [100, 1000], 100, 200.0, generator) == [100, 100]


def test_the_crossing_is_interpolated_over_log_pairs_after_making_recall_fall():
    assert crossing([10, 1000], [1.0, 0.98], 0.99) == pytest.approx(100)
    assert crossing([1, 10, 100], [1.0, 0.9, 1.0], 0.99) is not None
    assert crossing([10, 100], [1.0, 0.995], 0.99) is None
    assert crossing([10, 100], [0.9, 0.8], 0.99) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"kind": "hard"}, "softmax"), ({"pairs": [4, 2]}, "ascending"), ({"likeness": 1.5}, "cosine")],
)
def test_a_memory_that_cannot_be_is_refused(changes, words):
    with pytest.raises(BadInput, match=words):
        measure("associative-memory", {**CONFIG, **changes}, 0, "cpu")
