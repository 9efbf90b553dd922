"""The section of three boards, on made-up rows and in a small plan."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import pytest

from theodolite.lab.cell import Cell, Row
from theodolite.surveys.candidate import candidate
from theodolite.surveys.matrix import _EFFORT, _tasks
from theodolite.surveys.section import Setting, sections

SECTION = sections["matrix"]
SETTING = Setting("quick")


def trained(net: str, label: str, solved: int, seeds: int = 3) -> list[Row]:
    task = _tasks(8)[label]
    config = {
        "net": net,
        "net_version": 1,
        "source": None,
        "shape": {},
        "task": task.name,
        "task_version": 1,
        "task_args": dict(vars(task)),
        "optimiser": {"name": "adamw"},
        "schedule": {"steps": 300, "batch": 32, "unseen": []},
        "lr": 1e-3,
        "weight_decay": 0.0,
    }
    rows = []
    for seed in range(seeds):
        good = seed < solved
        result: dict[str, Any] = {
            "status": "solved" if good else "unsolved",
            "score": "accuracy",
            "accuracy": 1.0 if good else 0.5,
            "unseen": None,
            "by_length": [],
            "trained_lengths": None,
            "chance": 0.5,
            "threshold": 0.99,
            "steps": 300,
            "solved_at": 100 if good else None,
            "curve": [],
            "parameters": 321,
        }
        rows.append(Row(Cell("training", {**config, "seed": seed}), result, facts={"batching": "loop", "seconds": 1.0}))
    return rows


def about(net: str, label: str) -> dict[str, Any]:
    task = _tasks(8)[label]
    return {"net": net, "task": task.name, "task_args": dict(vars(task))}


def expressed(net: str, label: str, expressible: bool | None) -> Row:
    told = {"parameters": 1234, "verified_on": 256, "exhaustive": True, "witness": "thresholds", "reason": "a proof"}
    return Row(Cell("express", about(net, label)), {"expressible": expressible, **told})


def signalled(net: str, label: str, share: float) -> Row:
    found = {"share": share, "interval": [share / 2, share * 2], "baseline": 2.0**-8, "exact": True, "inputs": 256}
    return Row(Cell("target-signal", about(net, label)), found)


def rows() -> list[Row]:
    return [
        *trained("mlp", "parity of 8", 0),
        *trained("mlp", "majority", 3),
        *trained("rnn", "majority", 2),
        expressed("mlp", "majority", True),
        expressed("mlp", "parity of 8", True),
        expressed("rnn", "majority", None),
        signalled("mlp", "majority", 0.25),
        signalled("mlp", "parity of 8", 1e-9),
    ]


def test_a_square_says_what_is_known_and_nothing_more():
    (chart,) = SECTION.summarise(rows(), SETTING).charts
    assert list(chart.rows) == ["majority", "parity of 8"]  # in the order of the tasks
    assert list(chart.columns) == ["mlp", "rnn"]
    expressible, signal, learnt = (
        [[(s.share, s.text) for s in row] for row in board.squares] for board in chart.boards
    )
    assert expressible == [[(1.0, "1.2k"), (None, "?")], [(1.0, "1.2k"), (None, "–")]]
    assert [row[0][1] for row in signal] == [".25", "<1e-6"]
    assert signal[0][0][0] > 0.8
    assert signal[1][0][0] == 0
    assert learnt == [[(1.0, "3/3"), (2 / 3, "2/3")], [(0.0, "0/3"), (None, "–")]]


def test_a_card_counts_what_is_expressed_and_not_learnt():
    found = {answer.net: answer for answer in SECTION.summarise(rows(), SETTING).answers}
    assert found["mlp"].standing == "partly"
    assert found["mlp"].text == "1/2 in 300 steps, not parity of 8"


def test_of_a_net_without_witnesses_only_success_settles_the_question():
    lost = SECTION.summarise([*trained("mine", "majority", 3), *trained("mine", "parity of 8", 1)], SETTING).answers[0]
    assert (lost.standing, lost.text) == (
        "unknown",
        "1/2 in 300 steps, not parity of 8; no explicit weights known",
    )
    assert SECTION.summarise(trained("mine", "majority", 3), SETTING).answers[0].standing == "yes"


def test_what_is_not_learnt_in_these_steps_is_not_said_to_be_beyond_a_net():
    unlearnt = [*trained("mlp", "parity of 8", 0), expressed("mlp", "parity of 8", True)]
    (answer,) = SECTION.summarise(unlearnt, SETTING).answers
    assert answer.standing == "unlearnt"


def test_a_proof_of_the_contrary_is_shown_as_no():
    changed = [expressed("mlp", "majority", False), signalled("mlp", "majority", 0.1)]
    (chart,) = SECTION.summarise(changed, SETTING).charts
    assert (chart.boards[0].squares[0][0].share, chart.boards[0].squares[0][0].text) == (0.0, "no")


@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
def test_every_preset_names_tasks_there_are(preset):
    effort = _EFFORT[preset]
    assert set(effort.tasks) <= set(_tasks(effort.bits))
    assert preset == "quick" or len(effort.tasks) >= 8


@pytest.mark.parametrize("net", ["mlp", "lstm"])
def test_a_net_is_planned_in_all_three_respects(net):
    cells = SECTION.plan(candidate(net), "quick")
    tasks = len(_EFFORT["quick"].tasks)
    counts = {measure: sum(cell.measure == measure for cell in cells) for measure in ("express", "target-signal")}
    assert counts == {"express": tasks, "target-signal": tasks}
    assert sum(cell.measure == "training" for cell in cells) == tasks * _EFFORT["quick"].seeds
