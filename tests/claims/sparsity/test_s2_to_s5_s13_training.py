"""S2–S5 and S13 decide by their rules: made-up rows just inside, outside and across the margins."""

from __future__ import annotations

import math
from typing import Any

import pytest

import theodolite.claims.sparsity
import theodolite.claims.sparsity.s2_s3_s4_known_graph
import theodolite.claims.sparsity.s5_s13_masks
from theodolite.claims.contract import claims
from theodolite.lab.cell import Cell, Row
from theodolite.measures import measures

assert theodolite.claims.sparsity.s5_s13_masks
assert theodolite.claims.sparsity.s2_s3_s4_known_graph
assert theodolite.claims.sparsity
WOBBLE = (0.9, 1.0, 1.0, 1.1)


def rows_of(name: str, result: Any) -> list[Row]:
    return [Row(cell, result(cell)) for cell in claims[name].cells()]


def outcome(name: str, result: Any) -> str:
    return claims[name].decide(rows_of(name, result)).outcome


def around(value: float) -> list[float]:
    return [value * w for w in WOBBLE]


@pytest.mark.parametrize("name", ["S2", "S3", "S4", "S5", "S13"])
def test_every_cell_names_a_measure_and_no_two_are_alike(name):
    cells = claims[name].cells()
    assert len({repr(cell) for cell in cells}) == len(cells) > 1
    for cell in cells:
        assert measures[cell.measure]


# S2


def s2(wrong: float = 0.5, signs: float = 0.3) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        graph, square = cell.config["graph"], cell.config["loss"] == "square"
        true = 0.01 if square else 0.05
        rival = (wrong if graph == "wrong" else 0.3) if square else signs
        return {"test": around(true)[:: 1 if graph == "true" else -1] if graph == "true" else around(rival),
                "parameters": 469}  # fmt: skip

    return result


def test_s2_wants_half_the_error_of_every_rival_with_both_losses():
    assert outcome("S2", s2()) == "holds"
    assert outcome("S2", s2(wrong=0.012)) == "fails"
    assert outcome("S2", s2(signs=0.04)) == "fails"
    assert outcome("S2", s2(wrong=0.02)) == "undecided"


def test_s2_reads_the_wide_dense_net_apart_from_the_small_one():
    def result(cell: Cell) -> dict[str, Any]:
        wide = cell.config["width"] > 16
        return {**s2()(cell), **({"test": around(0.011), "parameters": 12189} if wide else {})}

    verdict = claims["S2"].decide(rows_of("S2", result))
    assert verdict.outcome == "fails"
    assert verdict.measured["parameters"]["dense of 26 times the size"] == 12189


# S3


def spread(value: float, width: float = 0.1) -> list[float]:
    """20 numbers around a value, by equal factors on both sides."""
    return [value * math.exp(width * (i - 9.5) / 9.5) for i in range(20)]


def s3(error: dict[Any, float], train: float = 0.002, width: float = 0.1) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        value = error.get((cell.config["graph"], cell.config["points"]), 0.01)
        own = spread(value, width)
        return {"test": own if cell.config["graph"] == 0 else own[::-1], "train": [train] * 20}

    return result


@pytest.mark.parametrize(
    ("error", "width", "verdict"),
    [
        ({}, 0.1, "holds"),
        ({(10, 1000): 0.019}, 0.01, "holds"),
        ({(10, 300): 0.03}, 0.1, "fails"),
        ({(10, 300): 0.021}, 0.5, "undecided"),
        # Against log 2 with 20 functions t = −2.25, p = 0.04: clear as the last of four, not as the third
        ({(10, 300): 0.0155}, 0.417, "holds"),
        ({(10, 300): 0.0155, (5, 300): 0.0155}, 0.417, "undecided"),
    ],
)
def test_s3_wants_every_supergraph_within_a_factor_of_two(error, width, verdict):
    assert outcome("S3", s3(error, width=width)) == verdict


def test_s3_compares_functions_with_zero_loss_alone():
    assert outcome("S3", s3({(10, 300): 0.03}, train=0.02)) == "undecided"

    def result(cell: Cell) -> dict[str, Any]:
        """Five functions are not learnt by one net of 300 points, and their ratios are large."""
        learnt = cell.config["graph"] != 5
        return {
            "test": [0.01] * 15 + [0.01 if learnt else 5.0] * 5,
            "train": [0.002] * 15 + [0.002 + 0.5 * (not learnt)] * 5,
        }

    verdict = claims["S3"].decide(rows_of("S3", result))
    assert verdict.outcome == "holds"
    assert verdict.measured["5 further edges, 300 points"]["functions"] == 15
    assert verdict.measured["2 further edges, 300 points"]["functions"] == 20


def test_s3_fails_by_a_comparison_that_counts_and_holds_by_all_alone():
    def result(cell: Cell, ratio: float = 1.0) -> dict[str, Any]:
        """With ten edges at 1000 points 14 functions attain zero loss."""
        few = cell.config["graph"] == 10 and cell.config["points"] == 1000
        test = 0.01 * (ratio if cell.config["graph"] == 5 else 1.0)
        return {"test": spread(test), "train": [0.002] * 14 + [0.5 if few else 0.002] * 6}

    assert outcome("S3", result) == "undecided"
    assert outcome("S3", lambda cell: result(cell, 3.0)) == "fails"


def test_s3_averages_the_draws_of_edges_within_a_function():
    def result(cell: Cell) -> dict[str, Any]:
        own = cell.config["graph"] == 10 and cell.config["points"] == 300
        factor = {3: 8.0, 4: 0.5}[cell.config["draw"]] if own else 1.0
        return {"test": [0.01 * factor] * 20, "train": [0.0] * 20}

    found = claims["S3"].decide(rows_of("S3", result)).measured["10 further edges, 300 points"]
    assert found["ratio"][0] == pytest.approx(2.0)


# S4


def s4(**changes: Any) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        penalty = cell.config["penalty"]
        row = {
            "test": spread(0.02),
            "train": [0.005] * 20,
            "zero": [0.2] * 20 if penalty == "l1" else [0.0] * 20,
            "negligible": spread(0.2) if penalty == "l1" else [0.02] * 20,
        }
        return {**row, **changes.get(penalty, {})}

    return result


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"l1": {"test": spread(0.08)}}, "fails"),
        ({"l2": {"test": spread(0.05)}}, "undecided"),
        ({"l1": {"negligible": spread(0.01)}}, "fails"),
        ({"l1": {"negligible": [0.01, 0.03] * 10}}, "undecided"),
        ({"l2": {"train": [0.02] * 6 + [0.001] * 14}}, "undecided"),
        ({"l2": {"train": [0.02] * 5 + [0.001] * 15, "test": [9.0] * 5 + spread(0.02)[:15]}}, "holds"),
    ],
)
def test_s4_wants_good_errors_from_both_penalties_and_more_negligible_weights_from_l1(changes, verdict):
    assert outcome("S4", s4(**changes)) == verdict


# S5


def ratios(value: float) -> list[dict[str, float]]:
    return [{"ratio": value + d} for d in (-0.02, 0.0, 0.0, 0.02)]


def s5(
    sparse: float = 1.5,
    plain: float = 1.0,
    random: float | None = 1.0,
    fed: float = 1.0,
    thinned: tuple[float, float] = (1.2, 2.0),
    accuracy: float = 0.9,
    learnt: int = 14,
) -> Any:
    """`thinned`: of ℓ₂ and of the others. The first `learnt` functions of a family have the accuracy."""
    noise = [0.02 * (-1) ** i for i in range(16)]

    def located(value: float | None, other: float = 1.0) -> dict[str, Any]:
        own = [None if value is None else value + d for d in noise]
        return {"density": [0.1] * 16, "original": own, "fed": [other - d for d in noise]}

    def result(cell: Cell) -> dict[str, Any]:
        if cell.measure == "embedded-convolution":
            return {kind: [0.9] * 4 for kind in ("convolution", "embedded", "scratch", "weight outside the windows")}
        tests = {"train": [0.9] * 16, "test": [accuracy] * learnt + [0.6] * (16 - learnt)}
        l2 = {**tests, "trained": located(plain), "thinned": located(thinned[0])}
        own = {**tests, "trained": located(sparse, fed), "thinned": located(thinned[1])}
        taught = {**tests, "trained": located(random)}
        true = {"l2": l2, "l1": own, "beta-lasso": own, "imp": own}
        return {"labels": {"true": true, "random": {"beta-lasso": taught, "imp": taught}}}

    return result


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"sparse": 1.0}, "undecided"),
        ({"sparse": 0.9}, "fails"),
        ({"plain": 1.2}, "holds"),
        ({"plain": 1.3}, "fails"),
        ({"thinned": (1.5, 2.0)}, "undecided"),
        ({"thinned": (1.6, 2.0)}, "fails"),
        ({"random": 1.5}, "undecided"),
        ({"random": 1.6}, "fails"),
        ({"random": None}, "holds"),
        ({"fed": 1.6}, "fails"),
        ({"accuracy": 0.69}, "undecided"),
        ({"learnt": 12}, "holds"),
        ({"learnt": 11}, "undecided"),
        ({"learnt": 11, "sparse": 0.9}, "undecided"),
    ],
)
def test_s5_wants_local_masks_from_sparse_methods_only_and_controls_without(changes, verdict):
    assert outcome("S5", s5(**changes)) == verdict


# S13


def s13(at_eight: list[float], densities: tuple[float, ...] = (1.0, 0.3, 0.08, 0.02)) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        if cell.measure == "tree-pruning":
            errors = (0.05, 0.04, 0.054, 0.2)
            return {
                "rounds": [
                    {"density": d, "test": [e] * 4, "purity": ratios(1.2)}
                    for d, e in zip(densities, errors, strict=True)
                ]
            }
        tests = ([0.97] * 4, [0.97] * 4, at_eight, [0.8] * 4)
        return {"rounds": [{"density": d, "train": t, "test": t} for d, t in zip(densities, tests, strict=True)]}

    return result


def test_s13_wants_a_point_at_most_lost_at_a_tenth_of_the_weights():
    verdict = claims["S13"].decide(rows_of("S13", s13([0.967, 0.966, 0.967, 0.966])))
    assert verdict.outcome == "holds"
    assert verdict.measured["least density within 1 point"]["digits, test"] == 0.08
    assert verdict.measured["tree, least density within 1.1 times"] == 0.08
    assert outcome("S13", s13([0.90, 0.91, 0.90, 0.91])) == "fails"
    assert outcome("S13", s13([0.95, 0.97, 0.95, 0.97])) == "undecided"
