"""Claims at full size: two stages decide by what their rules say, on made-up members."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from theodolite.claims.check import check_claims
from theodolite.claims.contract import claims, ordered
from theodolite.claims.degree import p8_at_full_size as ablation
from theodolite.claims.degree.ablated import KINDS
from theodolite.claims.expressivity import g15_g16_at_full_size as hierarchy
from theodolite.claims.full_size import LEVEL, MEMBERS, STEPS, stages
from theodolite.claims.rule import Rule, Verdict
from theodolite.claims.sparsity import s8_at_full_size as blocks
from theodolite.claims.tables.chomsky_published import SCORES, SOURCE
from theodolite.claims.tables.sides import Tally, sides
from theodolite.claims.tables.universal_transformer_published import SCORES as UNIVERSAL
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.statistics.intervals import chance_of_no_lead, difference_interval

FULL = ("P8", "G15", "G16", "S8")
PUBLISHED = {(s.task, s.net): s.value for s in SCORES if s.source == SOURCE}
ORDER = {(s.task, s.net): s.value for s in UNIVERSAL if s.quantity == "symbols right"}


def made(steps: int, config: Mapping[str, Any], results: list[dict[str, Any]]) -> list[Row]:
    return [
        Row(Cell(TRAINING, {**config, "seed": seed, "schedule": {"steps": steps}}), result)
        for seed, result in enumerate(results)
    ]


def member(accuracy: float, unseen: float = 0.0, solved: bool = True, rising: float = 0.0) -> dict[str, Any]:
    curve = [[250 * (i + 1), 0.1, accuracy - rising * (9 - i)] for i in range(10)]
    status, step = ("solved", 750) if solved else ("unsolved", None)
    return {"accuracy": accuracy, "unseen": unseen, "status": status, "solved_at": step, "curve": curve}


def around(mean: float, count: int = MEMBERS, spread: float = 0.002) -> list[float]:
    return [mean + spread * (i - (count - 1) / 2) for i in range(count)]


def test_a_lead_has_the_p_value_that_its_interval_inverts():
    first, second = around(0.8, 7, 0.03), around(0.7, 9, 0.05)
    for margin in (-0.1, 0.0, 0.05, 0.12):
        p = chance_of_no_lead(first, second, margin)
        ends = difference_interval(first, second, abs(1 - 2 * p))
        assert ends[0 if p < 0.5 else 1] == pytest.approx(margin, abs=1e-9)
    assert [chance_of_no_lead([1.0, 1.0], [0.9, 0.9], margin) for margin in (0.0, 0.2)] == [0.0, 1.0]


def test_a_side_is_seen_again_or_contradicted_by_exact_tests_over_all_entries():
    many = {f"other {i}": Tally(False, 0, 0, 30) for i in range(19)}

    def of(published: bool = False, reached: int = 0, learnt: int = 0) -> bool | None:
        return sides({**many, "this": Tally(published, reached, learnt, 30)}, 30, LEVEL)["this"]

    assert of(published=True, reached=1) is True
    assert of(published=True, learnt=30) is None, "a success that is missed decides nothing"
    least = next(m for m in itertools.count() if 0.5**m <= LEVEL / 40)
    assert (of(learnt=least), of(learnt=least - 1)) == (True, None)
    assert of(learnt=30, reached=1) is None
    p = [stats.hypergeom(60, k, 30).sf(k - 1) for k in range(31)]  # all k that reach it are ours, none the paper's
    fewest = next(k for k in range(1, 31) if p[k] <= LEVEL / 40)
    assert (of(learnt=30, reached=fewest), of(learnt=30, reached=fewest - 1)) == (False, None)


def figures(far: Callable[[str, str], dict[str, Any]], steps: int = STEPS[0], tasks=None) -> list[Row]:
    return [
        row
        for task, net in PUBLISHED
        if tasks is None or task in tasks
        for row in made(steps, {"task": task, "net": net}, [far(task, net)] * MEMBERS)
    ]


def as_published(task: str, net: str) -> dict[str, Any]:
    return member(1.0, PUBLISHED[task, net])


def test_the_hierarchy_holds_as_published_and_fails_where_a_failure_is_beaten():
    found = hierarchy.decide_hierarchy(figures(as_published))
    assert found.outcome == "holds"
    assert f"{len(PUBLISHED)} were decided" in found.detail
    beaten = lambda task, net: member(1.0, 0.99) if (task, net) == ("reverse", "lstm") else as_published(task, net)
    assert hierarchy.decide_hierarchy(figures(beaten)).outcome == "fails"
    unlearnt = hierarchy.decide_hierarchy(figures(lambda task, net: member(0.5, 0.5, solved=False)))
    assert unlearnt.outcome == "undecided"


def test_tasks_that_a_stage_leaves_undecided_go_on_with_all_their_networks(monkeypatch):
    asked = []
    monkeypatch.setattr(
        hierarchy, "_cells", lambda table, nets, tasks, steps: asked.append((table, nets, tasks, steps))
    )
    short = lambda task, net: member(0.6, 0.5, solved=False) if task == "reverse" else as_published(task, net)
    first = figures(short)
    hierarchy.further_hierarchy(first)
    assert asked == [("chomsky", hierarchy.hierarchy.NETS, ["reverse"], STEPS[1])]
    second = figures(as_published, STEPS[1], ["reverse"])
    assert len(stages([*first, *second])) == 2
    found = hierarchy.decide_hierarchy([*first, *second])
    assert f"{len(PUBLISHED)} were decided" in found.detail


def test_a_failure_that_a_second_stage_cannot_undo_asks_for_none():
    beaten = lambda task, net: member(1.0, 0.99) if (task, net) == ("reverse", "lstm") else as_published(task, net)
    short = lambda task, net: member(0.6, 0.5, solved=False) if task == "duplicate" else beaten(task, net)
    first = figures(short)
    assert hierarchy.further_hierarchy(first), "duplicate is undecided"
    assert not hierarchy.HIERARCHY.second_stage(first)
    again = figures(as_published, STEPS[1], ["duplicate", "reverse"])
    assert hierarchy.decide_hierarchy([*first, *again]).outcome == "fails", "whatever the second finds"
    assert replace(hierarchy.HIERARCHY, failure_stands=False).second_stage(first)


def thinking(far: Callable[[str, str], float], near: float = 1.0, steps: int = STEPS[0]) -> list[Row]:
    return [
        row
        for task, net in ORDER
        for row in made(steps, {"task": task, "net": net}, [member(near, v) for v in around(far(task, net), 10)])
    ]


def test_the_order_of_thinkers_holds_fails_or_stays_open():
    decide = hierarchy.decide_thinking
    assert decide(thinking(lambda task, net: ORDER[task, net])).outcome == "holds"
    assert decide(thinking(lambda task, net: 1 - ORDER[task, net])).outcome == "fails", "addition is behind"
    assert decide(thinking(lambda task, net: 0.5)).outcome == "undecided"
    assert decide(thinking(lambda task, net: ORDER[task, net], near=0.5)).outcome == "undecided"
    behind = lambda task, net: 0.4 if net == "universal-transformer" and task == "copy" else 0.5
    assert decide(thinking(behind)).outcome == "undecided", "a published success that is missed contradicts nothing"


def serial_and_parallel(worse: Mapping[str, float], steps: int = STEPS[0], spread: float = 0.002) -> list[Row]:
    return [
        row
        for task in blocks._COMPARED.tasks
        for block, lost in (("serial", 0.0), ("parallel", worse.get(task, 0.0)))
        for row in made(
            steps, {"task": task, "shape": {"block": block}}, [member(v) for v in around(0.9 - lost, spread=spread)]
        )
    ]


def test_blocks_are_alike_apart_or_go_on():
    assert blocks.decide(serial_and_parallel({})).outcome == "holds"
    assert blocks.decide(serial_and_parallel({"copy": 0.2})).outcome == "fails"
    assert blocks.decide(serial_and_parallel({"copy": -0.2})).outcome == "fails"
    first = serial_and_parallel({"recall": 0.05})
    assert blocks.decide(first).outcome == "undecided"
    further = blocks.further(first)
    assert {cell.config["task"] for cell in further} == {"recall"}
    assert len(further) == 2 * MEMBERS
    later = [row for row in serial_and_parallel({}, STEPS[1]) if row.cell.config["task"] == "recall"]
    assert blocks.decide([*first, *later]).outcome == "holds"


def taken_out(costs: Mapping[str, float], whole: float = 0.97, rising: float = 0.0, steps: int = STEPS[0]) -> list[Row]:
    def result(task: str, without: str, value: float) -> dict[str, Any]:
        lost = costs.get(task, 0.0) if without == "both" else 0.0
        return member(value - lost, rising=rising if lost else 0.0)

    return [
        row
        for task in ablation._COMPARED.tasks
        for without in KINDS
        for row in made(
            steps, {"task": task, "shape": {"without": without}}, [result(task, without, v) for v in around(whole)]
        )
    ]


def test_a_large_cost_counts_once_the_network_has_stopped_rising():
    assert ablation.decide(taken_out({})).outcome == "holds"
    assert ablation.decide(taken_out({"recall": 0.3})).outcome == "fails"
    first = taken_out({"recall": 0.3}, rising=0.02)
    assert ablation.costs(first)["recall"] is None
    assert {cell.config["task"] for cell in ablation.further(first)} == {"recall"}
    assert ablation.decide(taken_out({"recall": 0.3}, whole=0.8)).outcome == "undecided", "not learnt by the whole"
    assert ablation.decide(first).measured["over steps"]["recall"]["both"][-1] == pytest.approx((2500, 0.67))


@pytest.mark.parametrize("name", ["P8", "S8"])
def test_seeds_are_new_steps_are_equal_and_all_may_grow(name):
    cells = claims[name].full.cells()
    used = {cell.config["seed"] for cell in claims[name].cells()}
    assert {cell.config["schedule"]["steps"] for cell in cells} == {STEPS[0]}
    assert all(cell.config["schedule"]["grows"] for cell in cells)
    assert not used & {cell.config["seed"] for cell in cells}
    assert len({cell.config["seed"] for cell in cells}) == MEMBERS


def test_a_claim_of_one_size_says_so():
    with pytest.raises(BadInput, match=r"T8 has one size only.*T9, P8, G15, G16, S8"):
        check_claims(["T8"], preset="full")
    with pytest.raises(BadInput, match="preset 'huge' is unknown"):
        check_claims(["T8"], preset="huge")  # pyright: ignore[reportArgumentType]
    assert tuple(claim.id for claim in ordered() if claim.full is not None) == ("T9", *FULL)


def test_the_second_stage_is_asked_for_after_the_first_and_both_are_decided_on(monkeypatch):
    quick = claims["T8"]
    first, second = list(quick.cells())[:1], list(quick.cells())[1:3]
    seen: list[list[Cell]] = []

    def further(rows: Sequence[Row]) -> list[Cell]:
        seen.append([row.cell for row in rows])
        return second

    def decide(rows: Sequence[Row]) -> Verdict:
        seen.append([row.cell for row in rows])
        return Verdict("holds", 1, 1, "both stages")

    full = Rule("a rule", lambda: first, decide, further=further)
    monkeypatch.setitem(claims._items, "T8", replace(quick, full=full))
    (told,) = check_claims(["T8"], preset="full")
    assert seen == [first, [*first, *second]]
    assert (told["verdict"], told["rule"], told["cells"]) == ("holds", "a rule", 3)
