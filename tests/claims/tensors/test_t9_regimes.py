"""The rule of T9 on losses that are made up: it tells both regimes and a line from their absence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from theodolite.claims.contract import claims
from theodolite.claims.judge import judge
from theodolite.claims.tensors.t9_regimes import SIZES
from theodolite.lab.cell import Cell, Row


def study(best_depth, noise=0.002, bend=0.04, halfway=None):
    """Losses of a parabola in ln depth about the best depth of every size; about another one halfway, if given."""
    generator = np.random.default_rng(0)
    rows = []
    for size in SIZES:
        points = []
        for depth in size.depths:
            width = round(math.sqrt(size.parameters / (12 * depth)))
            mean = 2 + bend * math.log(depth / best_depth(size.parameters)) ** 2
            seeds = (mean + noise * generator.standard_normal(4)).tolist()
            before = 2.5 + bend * math.log(depth / (halfway or best_depth)(size.parameters)) ** 2
            curve = [[100, before], [200, sum(seeds) / 4]]
            points.append({"depth": depth, "width": width, "seeds": seeds, "curve": curve})
        rows.append(Row(Cell("depth-against-width", {}), {"size": size.parameters, "points": points}, None, {}))
    return rows


@pytest.mark.parametrize(
    ("best_depth", "expected"),
    [
        (lambda size: 2 * (size / 30_000) ** 0.35, "holds"),
        (lambda size: 6 * (size / 30_000) ** -0.2, "fails"),  # larger networks are best at less depth
        (lambda size: 1, "fails"),  # one regime alone
        (lambda size: 1000, "fails"),
    ],
)
def test_the_rule_follows_the_valleys(best_depth, expected):
    assert claims["T9"].at("full").decide(study(best_depth)).outcome == expected


def test_noise_decides_nothing():
    assert claims["T9"].at("full").decide(study(lambda size: 3, noise=0.5)).outcome == "undecided"


def test_an_order_that_still_moves_decides_nothing():
    grows = lambda size: 2 * (size / 30_000) ** 0.35
    verdict = claims["T9"].at("full").decide(study(grows, halfway=lambda size: grows(size) / 4))
    assert verdict.outcome == "undecided"
    assert verdict.measured["not settled"]


def test_every_shape_is_as_wide_as_the_rule_says():
    assert all(math.sqrt(size.parameters / (12 * depth)) >= 16 for size in SIZES for depth in size.depths)


def test_a_verdict_names_the_device_that_trained_and_not_the_one_that_read():
    rows = [replace(row, result={**row.result, "devices": ["NVIDIA H200"]}) for row in study(lambda size: 3)]
    rows = [replace(row, facts={"device": "cpu"}) for row in rows]
    assert judge(claims["T9"], rows, further=[])["devices"] == ["NVIDIA H200"]
