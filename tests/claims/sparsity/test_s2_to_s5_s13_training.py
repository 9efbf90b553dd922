"""S2–S5 and S13 decide by their rules: made-up rows just inside, outside and across the margins."""

from __future__ import annotations

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
    assert len({repr(cell) for cell in cells}) == len(cells) > 2
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


def s3(error: dict[Any, float]) -> Any:
    return lambda cell: {"test": around(error.get(cell.config["graph"], 0.01))}


def test_s3_wants_every_supergraph_within_a_factor_of_two():
    assert outcome("S3", s3({"dense": 0.3})) == "holds"
    assert outcome("S3", s3({8: 0.05})) == "fails"

    def spread(cell: Cell) -> dict[str, Any]:
        return {"test": [0.01, 0.01, 0.01, 0.08] if cell.config["graph"] == 10 else [0.01] * 4}

    verdict = claims["S3"].decide(rows_of("S3", spread))
    assert verdict.outcome == "undecided"
    assert verdict.measured["harmless up to"] == {300: 8, 1000: 8}


def test_s3_counts_no_edges_as_harmless_beyond_the_first_that_harm():
    verdict = claims["S3"].decide(rows_of("S3", s3({4: 0.05})))
    assert verdict.measured["harmless up to"] == {300: 2, 1000: 2}


# S4


def s4(**changes: Any) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        graph, penalty = cell.config["graph"], cell.config["penalty"]
        row = {
            "test": around(0.02 if graph == "true" else 0.4),
            "train": around(0.005),
            "zero": around(0.2) if penalty == "l1" else [0.0] * 4,
            "negligible": [0.4] * 4,
        }
        return {**row, **changes.get(f"{graph}_{penalty}", {})}

    return result


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"true_l1": {"test": around(0.08)}}, "fails"),
        ({"true_l1": {"zero": around(0.03)}}, "fails"),
        ({"true_l1": {"zero": around(0.05)}}, "undecided"),
        ({"dense_l2": {"test": around(0.03)}}, "fails"),
        ({"true_l2": {"zero": [0.01] * 4}}, "fails"),
        ({"true_l1": {"test": [0.005, 0.02, 0.02, 0.08]}}, "undecided"),
        ({"true_l2": {"train": around(0.1)}}, "undecided"),
    ],
)
def test_s4_wants_equal_errors_far_below_dense_and_zeros_from_l1_alone(changes, verdict):
    assert outcome("S4", s4(**changes)) == verdict


# S5


def ratios(value: float) -> list[dict[str, float]]:
    return [{"ratio": value + d} for d in (-0.02, 0.0, 0.0, 0.02)]


def s5(sparse: float = 1.5, plain: float = 1.0, random: float = 1.0, fed: float = 1.0) -> Any:
    def result(cell: Cell) -> dict[str, Any]:
        if cell.measure == "embedded-convolution":
            return {kind: [0.9] * 4 for kind in ("convolution", "embedded", "scratch", "weight outside the windows")}
        value = random if cell.config["random"] else sparse
        accuracy = {"train": [0.9] * 4, "test": [0.9] * 4}
        method = {
            "accuracy": accuracy,
            "density": [0.1] * 4,
            "original": ratios(value),
            "fed": ratios(fed),
            "l2": {"original": ratios(plain), "fed": ratios(1.0)},
        }
        return {"methods": {"l2": {"accuracy": accuracy}, **dict.fromkeys(("l1", "beta-lasso", "imp"), method)}}

    return result


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "holds"),
        ({"sparse": 1.0}, "fails"),
        ({"plain": 1.3}, "fails"),
        ({"random": 1.3}, "undecided"),
        ({"fed": 1.3}, "undecided"),
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
