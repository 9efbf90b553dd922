"""The page on tasks says what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

from theodolite.tasks import list_tasks, make_task, tasks

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_table_holds_every_task_with_its_fields_score_and_chance():
    rows = re.findall(r"^\| `([a-z-]+)` \| .+ \| (`.+?`) \| ([a-z ]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    shown = {name: (fields, score, chance) for name, fields, score, chance in rows}
    assert shown == {
        t["name"]: (
            ", ".join(f"`{name}={value}`" for name, value in t["arguments"].items()),
            t["score"],
            f"{t['chance']:.3g}",
        )
        for t in list_tasks()
    }


def test_the_drawn_examples_are_right():
    drawn = {}
    for name, top, bottom in re.findall(r"^([a-z-]+) {2,}(\S.*)\n {19}(\S.*)$", PAGE, re.MULTILINE):
        inputs = re.split(r" {3,}", top)[0].split()
        drawn[name] = (inputs, bottom.split())
    assert set(drawn) == set(tasks)
    signs = {"+": 1.0, "−": -1.0}
    readings = {
        "copy": ({"symbols": 3}, "abc#", "abc"),
        "reverse": ({"symbols": 3}, "abc#", "abc"),
        "parity-check": ({}, "01#", "01"),
        "dyck": ({}, "([)]", "012"),
        "recall": ({"keys": 3, "values": 3, "longest": 3}, "abc012", "012"),
        "parity": ({"bits": 6, "relevant": 3}, signs, signs),
        "majority": ({"bits": 5}, signs, signs),
        "boolean": ({"function": "equality", "bits": 4}, signs, signs),
        "linear-periodic": ({"dimensions": 4}, None, None),
        "sawtooth": ({"folds": 2}, None, None),
    }
    for name, (inputs, targets) in drawn.items():
        fields, ids, answers = readings[name]
        solved = make_task(name, fields).solve([_read(token, ids) for token in inputs])
        if len(targets) == len(inputs):
            solved = [y for y, target in zip(solved, targets, strict=True) if target != "·"]
        wanted = [_read(target, answers) for target in targets if target != "·"]
        assert [round(float(y), 2) for y in solved] == wanted, name


def _read(token: str, ids: str | dict[str, float] | None) -> float:
    if ids is None:
        return float(token.replace("−", "-"))
    return ids[token] if isinstance(ids, dict) else ids.index(token)
