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
    for name, top, bottom in re.findall(r"^([a-z-]+) {2,}(\S.*)\n {19,}(\S.*)$", PAGE, re.MULTILINE):
        inputs = re.split(r" {3,}", top)[0].split()
        drawn[name] = (inputs, bottom.split())
    assert set(drawn) == set(tasks)
    signs = {"+": 1.0, "−": -1.0}
    readings = {
        "copy": ({"symbols": 3}, "abc#", "abc"),
        "reverse": ({"symbols": 3}, "abc#", "abc"),
        "duplicate": ({}, "ab#", "ab"),
        "missing-duplicate": ({}, "ab?_#", "ab"),
        "odds-first": ({}, "ab#", "ab"),
        "bucket-sort": ({"symbols": 3}, "abc#", "abc"),
        "binary-addition": ({}, "01+#", "01$"),
        "binary-multiplication": ({}, "01×#", "01$"),
        "square-root": ({}, "01#", "01"),
        "decimal-addition": ({}, "0123456789+#", "0123456789"),
        "parity-check": ({}, "01#", "01"),
        "even-pairs": ({}, "ab#", "01"),
        "cycle-navigation": ({}, "<.>#", "01234"),
        "modular-arithmetic": ({}, "01234+−×#", "01234"),
        "stack-manipulation": ({}, {"a": 0, "b": 1, "pop": 2, "+a": 3, "#": 5}, "ab$"),
        "bracket-arithmetic": ({}, "01234+−×()#", "01234"),
        "solve-equation": ({}, "01234+−×()x=#", "01234"),
        "anbn": ({}, "ab#", "012"),
        "anbncn": ({}, "abc#", "0123"),
        "dyck": ({}, "([)]", "012"),
        "unbounded-dyck": ({}, "([)]", "012"),
        "recall": ({"keys": 3, "values": 3, "longest": 3}, "abc012", "012"),
        "noisy-recall": ({"keys": 3, "values": 3, "kinds": 2, "longest": 3}, "abc012~^", "012"),
        "fuzzy-recall": ({"keys": 2, "values": 3, "longest": 4}, "ab012#", "012"),
        "selective-copy": ({"symbols": 3, "blanks": 2}, "abc#_", "abc"),
        "compression": ({"symbols": 3, "positions": 3, "longest": 3}, "abc012", "abc"),
        "word-problem": ({"group": "S3"}, "012345", "012345"),
        "random-language": ({"states": 3}, "ab#", "01"),
        "parity": ({"bits": 6, "relevant": 3}, signs, signs),
        "majority": ({"bits": 5}, signs, signs),
        "boolean": ({"function": "equality", "bits": 4}, signs, signs),
        "random-circuit": ({"bits": 3, "gates": 2, "draw": 3}, signs, signs),
        "linear-periodic": ({"dimensions": 4}, None, None),
        "sawtooth": ({"folds": 2}, None, None),
        "composed": ({"variables": 4}, None, None),
        "prescribed-rank": ({"variables": 4, "rank": 2}, None, None),
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
