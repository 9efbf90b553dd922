"""P2: the pairing and the rule, on made-up outcomes."""

# pyright: reportReturnType=false

from __future__ import annotations

import math

import numpy as np
import pytest

from theodolite.claims.contract import claims
from theodolite.claims.degree.p2_trained import HIGH, LOW, RIVALS, Standing, ruling, standing
from theodolite.instruments.degree.product_shapes import shape_of
from theodolite.partition import Partition
from theodolite.statistics.paired import ErrorRatio
from theodolite.tasks.prescribed_rank import PrescribedRank
from theodolite.tasks.shared.rank_functions import SumOfProducts, sampled_ranks, truncated_rank


def _standings(two: list[int], four: list[int], edgeless: str = "") -> dict[tuple[str, str], Standing]:
    ratio = ErrorRatio(1.0, (1.0, 1.0), 1.0)
    return {
        (str(n), rival): Standing(ratio, sign, rival == edgeless and sign >= 0)
        for rival, column in (("2", two), ("4", four))
        for n, sign in enumerate(column)
    }


@pytest.mark.parametrize(
    ("two", "four", "expected"),
    [
        ([-1, -1, -1, 0, 0], [-1, -1, -1, 0, -1], "holds"),
        ([-1, -1, -1, 0, 1], [-1, -1, -1, 0, 0], "undecided"),  # better on most, worse on one
        ([-1, -1, -1, 0, 0], [0, 0, -1, -1, -1], "undecided"),  # both at once on one family only
        ([0, 0, 0, 0, 0], [-1, -1, -1, -1, -1], "undecided"),
        ([1, 1, 1, 0, 0], [-1, -1, -1, -1, -1], "fails"),
        ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1], "fails"),
        ([1, 1, 0, 0, 0], [0, 1, 1, 0, 0], "undecided"),  # no one rival on most
    ],
)
def test_the_rule_decides_as_it_says(two: list[int], four: list[int], expected: str) -> None:
    assert ruling(_standings(two, four)) == expected


@pytest.mark.parametrize(
    ("two", "expected"),
    [
        ([0, 0, 0, 0, 0], "fails"),
        ([-1, -1, -1, 0, 0], "holds"),
        ([-1, -1, 0, 0, 0], "fails"),
        ([1, 0, 0, 0, 0], "fails"),
    ],
)
def test_it_fails_where_there_is_no_edge_on_most_families(two: list[int], expected: str) -> None:
    assert ruling(_standings(two, [-1] * 5, edgeless="2")) == expected


def test_a_lower_error_of_degree_3_counts_as_better_and_noise_as_neither() -> None:
    random = np.random.default_rng(2)
    rows = []
    for args in HIGH.values():
        base = random.normal(-1, 0.3, 16)
        for degree, shift in (("2", 0.2), ("3", 0.0), ("4", 0.0)):
            logs = base + shift + random.normal(0, 0.02, 16)
            rows.append({"task_args": args, "degree": degree, "log_errors": logs.tolist()})
    found = standing(rows, HIGH)
    assert all(found[family, "2"].sign == -1 for family in HIGH)
    assert all(found[family, "4"].sign == 0 for family in HIGH)
    assert all(found[family, "2"].ratio.value == pytest.approx(math.exp(-0.2), rel=0.02) for family in HIGH)
    assert not any(found[family, "2"].edgeless for family in HIGH)


def test_no_edge_is_told_apart_from_not_knowing() -> None:
    random = np.random.default_rng(3)
    for spread, told in ((0.002, True), (0.5, False)):
        rows = [
            {"task_args": args, "degree": degree, "log_errors": random.normal(-1, spread, 64).tolist()}
            for args in HIGH.values()
            for degree in ("2", "3", "4")
        ]
        assert all(one.edgeless is told and one.sign == 0 for one in standing(rows, HIGH).values())


def test_the_families_have_the_ranks_and_the_nets_the_parameters_that_the_rule_names() -> None:
    ranks = {name: _epsilon_rank(args) for name, args in (HIGH | LOW).items()}
    assert all(ranks[name] >= 5 for name in HIGH)
    assert all(ranks[name] == 1 for name in LOW)
    counts = {shape_of(int(degree), 12, 16, 8, 1).parameters for degree in ("3", *RIVALS)}
    (count,) = counts
    assert f"{count:,} parameters" in claims["P2"].rule
    (cell,) = claims["P2"].cells()
    assert f"{cell.config['seeds']} functions of each" in claims["P2"].rule
    assert f"{cell.config['steps']:,} steps" in claims["P2"].rule
    assert claims["P2"].heavy


def _epsilon_rank(args: dict) -> int:
    """From the closed form where there is one."""
    task = PrescribedRank(**args)
    if isinstance(task.function, SumOfProducts):
        return truncated_rank(task.function.spectrum(), 0.3)
    split = Partition.left_right(task.variables)
    return sampled_ranks(task.function, split, (0.3,), task.inputs, 64, 1, 0)[0].rank
