"""What is said of training: learnt, carried to longer inputs or not, and never “cannot” for what was not learnt."""

from __future__ import annotations

from typing import Any

import pytest

from theodolite.lab.cell import Cell, Row
from theodolite.report.answer import tally
from theodolite.surveys.section import Setting, sections
from theodolite.tasks.contract import make_task

SECTION = sections["learnability"]


def rows(
    task: str,
    scores: list[float],
    unseen: list[float] | None = None,
    fields: dict[str, Any] | None = None,
    farthest: int = 25,
    net: str = "lstm",
) -> list[Row]:
    made = make_task(task, fields or {})
    trained = list(made.spec.lengths) if made.spec.lengths else None
    found = []
    for seed, score in enumerate(scores):
        config = {
            "net": net,
            "net_version": 1,
            "source": None,
            "shape": {},
            "task": task,
            "task_version": 1,
            "task_args": dict(vars(made)),
            "optimiser": {"name": "adamw"},
            "schedule": {"steps": 600, "batch": 32, "unseen": [farthest] if unseen else []},
            "lr": 5e-3,
            "weight_decay": 0.0,
            "seed": seed,
        }
        longer = unseen[seed] if unseen else None
        result = {
            "status": "solved" if score >= 0.99 else "unsolved",
            "score": "accuracy",
            "accuracy": score,
            "unseen": longer,
            "by_length": [] if longer is None else [[farthest, longer]],
            "trained_lengths": trained,
            "chance": 0.5,
            "threshold": 0.99,
            "steps": 600,
            "solved_at": 100,
            "curve": [],
            "parameters": 321,
        }
        found.append(Row(Cell("training", config), result, facts={"batching": "loop", "seconds": 1.0}))
    return found


def told(members: list[Row]) -> Any:
    summary = SECTION.summarise(members, Setting("quick"))
    return summary.answers[0], summary.tables[0].rows[0]


@pytest.mark.parametrize(
    ("scores", "unseen", "standing", "text"),
    [
        ([1.0, 1.0], [0.95, 0.85], "yes", "2/2 seeds, longer 0.90 (best 0.95)"),
        ([1.0, 1.0], [0.55, 0.53], "partly", "2/2 seeds, longer 0.54 (best 0.55)"),
        ([1.0, 0.7], [0.95, 0.5], "partly", "1/2 seeds, longer 0.72 (best 0.95)"),
        ([0.95, 0.95], [0.9, 0.9], "unlearnt", "0/2 in 600 steps, score 0.950 < 0.99"),
        ([0.5, 0.5], [0.5, 0.5], "unlearnt", "0/2 in 600 steps, score 0.500 < 0.99"),
    ],
)
def test_what_no_seed_learnt_is_told_by_its_number_and_never_by_no(scores, unseen, standing, text):
    answer, _ = told(rows("parity-check", scores, unseen))
    assert (answer.ability, answer.standing, answer.text) == ("length generalisation on parity", standing, text)


def test_abilities_are_named_in_the_words_of_the_field():
    for task, name in (
        ("recall", "recall capacity"),
        ("parity", "learnability of sparse parity"),
        ("boolean", "learnability of carry"),
        ("dyck", "length generalisation on Dyck brackets"),
    ):
        answer, _ = told(rows(task, [1.0, 1.0], [1.0, 1.0] if task in ("dyck", "recall") else None))
        assert answer.ability == name
        assert answer.explains


@pytest.mark.parametrize(
    ("fields", "farthest", "best", "mark"),
    [
        ({"symbols": 10}, 400, 0.5, True),  # as the paper: learnt, and lost beyond the lengths of training
        ({"symbols": 10}, 400, 0.99, False),
        ({"symbols": 2}, 400, 0.5, None),
        ({"symbols": 10}, 200, 0.5, None),
        ({"symbols": 10, "longest": 5}, 400, 0.99, None),
    ],
)
def test_another_papers_score_is_compared_only_like_with_like_and_never_counted_as_theory(fields, farthest, best, mark):
    answer, line = told(rows("copy", [1.0, 1.0], [best, 0.4], fields, farthest))
    assert line["agrees"] is mark
    assert (line["published"], line["setting"]) == (0.45, "10 symbols, 1–40 → 400")
    assert line["here"] == f"{fields['symbols']} symbols, 1–{fields.get('longest', 40)} → {farthest}"
    assert answer.published == "0.45 (Dehghani et al. 2019: 10 symbols, 1–40 → 400)"
    assert (answer.predicted, answer.agrees, tally([answer])) == ("", None, "")
