"""G15, G16, G20, P8, S8, S9 decide by what their rules say, on made-up members; exact parts are measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from theodolite.claims.check import locations
from theodolite.claims.contract import claims
from theodolite.claims.expressivity.g15_g16_g20_hierarchy import solved_length
from theodolite.claims.tables.chomsky_published import SCORES as CHOMSKY
from theodolite.claims.tables.universal_transformer_published import SCORES as UNIVERSAL
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING, condition
from theodolite.lab.work import paired
from theodolite.measures import measure
from theodolite.nets import nets

TRAINED = {"G15": 6, "G16": 4, "G20": 4, "P8": 24, "S8": 12, "S9": 4}  # seeds


def member(accuracy: float, unseen: float = 0.0, status: str = "unsolved", reach: int = 0) -> dict[str, Any]:
    by_length = [[n, 1.0 if n <= reach else 0.1] for n in range(1, 33)]
    return {"accuracy": accuracy, "unseen": unseen, "status": status, "by_length": by_length}


def around(mean: float, count: int, spread: float = 0.01) -> list[float]:
    """Numbers with this mean."""
    return [mean + spread * (i - (count - 1) / 2) for i in range(count)]


@cache
def cells(name: str) -> tuple[Cell, ...]:
    return tuple(claims[name].cells())


def rows(name: str, made: Callable[[Cell], Mapping[str, Any]]) -> list[Row]:
    return [Row(cell, made(cell)) for cell in cells(name)]


@pytest.mark.parametrize(("name", "seeds"), TRAINED.items())
def test_what_trains_is_as_many_cells_of_the_bench_as_the_rule_has_seeds(name, seeds):
    """Cells of `learn`: stored, batched and resumed one by one, and found by a worker that knows the claim's nets."""
    training = [cell for cell in cells(name) if cell.measure == TRAINING]
    assert claims[name].heavy
    counts = Counter(condition(cell.config) for cell in training)
    assert set(counts.values()) == {seeds}
    known = locations([claims[name]])
    for net in {cell.config["net"] for cell in training} - set(nets):
        first = next(cell for cell in training if cell.config["net"] == net)
        assert paired(first.config, known).shape == first.config["shape"]


def test_the_length_solved_ends_at_the_first_that_is_not():
    assert solved_length([[2, 1.0], [1, 0.95], [4, 0.5], [8, 1.0]]) == 2
    assert solved_length([[1, 0.5], [2, 1.0]]) == 0
    assert solved_length([[1, float("nan")]]) == solved_length([[1, None]]) == 0


# G15


def hierarchy(changed: Mapping[tuple[str, str], list[dict[str, Any]]] | None = None) -> list[Row]:
    """Every member does what was published, unless changed."""
    published = {(s.task, s.net): s.value for s in reversed(CHOMSKY)}

    def made(cell: Cell) -> dict[str, Any]:
        place = cell.config["task"], cell.config["net"]
        if changed and place in changed:
            return changed[place][cell.config["seed"]]
        return member(1.0, published.get(place, 0.5), "solved")

    return rows("G15", made)


def test_six_seeds_see_successes_again_and_are_too_few_for_failures():
    verdict = claims["G15"].decide(hierarchy())
    assert verdict.outcome == "undecided"
    assert len(verdict.predicted) == 15
    assert "0 failures seen again, 0 contradicted" in verdict.detail


def test_a_published_failure_that_is_beaten_fails_and_a_missed_success_decides_nothing():
    beaten = {("reverse", "lstm"): [member(1.0, 0.99, "solved")] * 6}
    assert claims["G15"].decide(hierarchy(beaten)).outcome == "fails"
    lucky = {("reverse", "lstm"): [member(1.0, 0.99, "solved")] + [member(1.0, 0.5, "solved")] * 5}
    assert claims["G15"].decide(hierarchy(lucky)).outcome == "undecided"
    missed = {("reverse", "stack-rnn"): [member(0.6, 0.5)] * 6}
    assert claims["G15"].decide(hierarchy(missed)).outcome == "undecided"


def test_nothing_learnt_is_undecided():
    nothing = {(c.config["task"], c.config["net"]): [member(0.5, 0.5)] * 6 for c in cells("G15")}
    assert claims["G15"].decide(hierarchy(nothing)).outcome == "undecided"


# G16


def universal(far: Callable[[str, str], float], near: float = 1.0) -> list[Row]:
    def made(cell: Cell) -> dict[str, Any]:
        scores = around(far(cell.config["task"], cell.config["net"]), TRAINED["G16"])
        return member(near, scores[cell.config["seed"]])

    return rows("G16", made)


def test_the_published_order_holds_its_reverse_fails_and_equality_is_undecided():
    published = {(s.task, s.net): s.value for s in UNIVERSAL if s.quantity == "symbols right"}
    order = claims["G16"].decide(universal(lambda task, net: published[task, net]))
    assert order.outcome == "holds"
    assert order.predicted["copy, less lstm"] == pytest.approx(0.46)
    assert claims["G16"].decide(universal(lambda task, net: 1 - published[task, net])).outcome == "fails"
    assert claims["G16"].decide(universal(lambda task, net: 0.5)).outcome == "undecided"


def test_falling_behind_is_no_contradiction_where_short_training_misses_a_published_success():
    behind = {"copy": 0.2, "reverse": 0.2}
    own = "universal-transformer"
    found = claims["G16"].decide(universal(lambda task, net: behind.get(task, 0.5) if net == own else 0.5))
    assert found.outcome == "undecided"
    assert "4 behind after too short a training" in found.detail
    slower = claims["G16"].decide(universal(lambda task, net: 0.92 if net == own else 0.99))
    assert slower.outcome == "fails"


def test_what_no_net_learnt_says_nothing():
    assert claims["G16"].decide(universal(lambda task, net: 1.0 * (net == "lstm"), near=0.5)).outcome == "undecided"


# G20


def word_problem(by_depth: Mapping[int, int], stepping: int, errors: int = 0) -> list[Row]:
    def made(cell: Cell) -> dict[str, Any]:
        if cell.measure == "word-problem-witness":
            return {"expressible": errors == 0, "units": 121, "verified_on": 128, "errors": errors}
        depth = cell.config["shape"].get("depth")
        reach = by_depth[depth] if cell.config["net"] == "transformer" else stepping
        return member(1.0, reach=reach)

    return rows("G20", made)


def test_growth_with_depth_under_growing_steps_holds():
    assert claims["G20"].decide(word_problem({1: 2, 2: 4, 4: 8}, 32)).outcome == "holds"


def test_a_wrong_witness_fails_and_a_transformer_that_solves_the_longest_leaves_it_undecided():
    assert claims["G20"].decide(word_problem({1: 2, 2: 4, 4: 32}, 32)).outcome == "undecided"
    assert claims["G20"].decide(word_problem({1: 2, 2: 4, 4: 8}, 32, errors=1)).outcome == "fails"


@pytest.mark.parametrize(("by_depth", "stepping"), [({1: 4, 2: 4, 4: 4}, 32), ({1: 2, 2: 4, 4: 8}, 8)])
def test_no_growth_or_no_lead_is_undecided(by_depth, stepping):
    assert claims["G20"].decide(word_problem(by_depth, stepping)).outcome == "undecided"


def test_an_rnn_multiplies_a_thousand_elements_of_a5():
    config = {"net": "rnn", "group": "A5", "length": 1000, "samples": 32}
    row = measure("word-problem-witness", config, 0, "cpu")
    assert row["expressible"] is True
    assert row["errors"] == 0
    assert row["verified_on"] == 8
    assert row["units"] == row["predicted"]["units"] == 2 * 60 + 1


# P8 and S8


def ablation(costs: Mapping[str, float], whole: float = 0.97) -> list[Row]:
    def made(cell: Cell) -> dict[str, Any]:
        cost = costs.get(cell.config["task"], 0.0) if cell.config["shape"]["without"] == "both" else 0.0
        return member(around(whole - cost, TRAINED["P8"], 0.005)[cell.config["seed"] - 100])

    return rows("P8", made)


def test_a_small_cost_holds_and_a_large_one_is_left_to_the_full_size():
    assert claims["P8"].decide(ablation({})).outcome == "holds"
    large = claims["P8"].decide(ablation({"recall": 0.3}))
    assert large.outcome == "undecided"
    assert "large so far on 1 of 5 tasks, 0 not learnt by the whole. Short training" in large.detail
    assert claims["P8"].decide(ablation({"recall": 0.3}, whole=0.6)).outcome == "undecided"
    assert claims["P8"].decide(ablation({"recall": 0.05, "copy": 0.05, "dyck": 0.05})).outcome == "undecided"


def blocks(differences: Mapping[str, float], spread: float = 0.005) -> list[Row]:
    def made(cell: Cell) -> dict[str, Any]:
        worse = differences.get(cell.config["task"], 0.0) if cell.config["shape"]["block"] == "parallel" else 0.0
        return member(around(0.9 - worse, TRAINED["S8"], spread)[cell.config["seed"]])

    return rows("S8", made)


def test_blocks_are_alike_apart_or_undecided():
    assert claims["S8"].decide(blocks({})).outcome == "holds"
    assert claims["S8"].decide(blocks({"copy": -0.2})).outcome == "fails"
    assert claims["S8"].decide(blocks({"copy": 0.05})).outcome == "undecided"
    assert claims["S8"].decide(blocks({}, spread=0.1)).outcome == "undecided"


# S9


def memory(off: float = 0.0, grown: float = 1.0, wide: bool = False) -> list[Row]:
    def made(cell: Cell) -> dict[str, Any]:
        if cell.measure == TRAINING:
            return member(0.5)
        capacity = {"softmax": 2.0 ** cell.config["width"], "linear": grown * cell.config["width"] ** 2.0}
        found = capacity.get(cell.config["kind"], 100.0)
        return {
            "recall": [0.99 - off],
            "predicted": [0.99],
            "capacity": found,
            "interval": None if wide else [0.9 * found, 1.1 * found],
            "predicted_capacity": found,
        }

    return rows("S9", made)


def test_recall_as_predicted_holds_off_it_fails_and_without_a_capacity_it_is_undecided():
    assert claims["S9"].decide(memory()).outcome == "holds"
    assert claims["S9"].decide(memory(off=0.06)).outcome == "fails"
    assert claims["S9"].decide(memory(wide=True)).outcome == "undecided"


def test_a_capacity_of_softmax_that_grows_like_that_of_linear_attention_fails():
    flat = [
        Row(r.cell, {**r.result, "capacity": 50.0}) if r.cell.config.get("kind") == "softmax" else r for r in memory()
    ]
    assert claims["S9"].decide(flat).outcome == "fails"
