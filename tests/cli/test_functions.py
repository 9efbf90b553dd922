"""Every command has a function of its name, which takes what the command takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

import theodolite

from ..docs.blocks import command_tree

# Rooms of the package have these names, so the functions of the commands have longer ones.
LONGER = {"nets": "list_nets", "tasks": "list_tasks", "claims list": "list_claims", "claims check": "check_claims"}

EVERYWHERE = {
    "help": "of the command line",
    "json": "prints: a function gives back",
    "plain": "prints: a function gives back",
    "verbose": "logs: a program configures logging itself",
    "log_file": "logs: a program configures logging itself",
    "markdown": "writes a file of what a function gives back",
    "task_arg": "is task_args, a mapping",
    "explain": "prints what nets.explain.explain gives back",
}
ELSEWHERE = {
    "advise": {
        "plot": "draws what comes back",
        **dict.fromkeys(("out", "export", "given"), "writes what comes back"),
        **dict.fromkeys(("check", "ignore"), "an exit code"),
    },
    "claims check": {"all_": "is ids=None", "strict": "an exit code", "archive": "writes what comes back"},
    "degree": {"out": "writes what comes back"},
    "discover": {
        "no_header": "header=False",
        "graph_only": "fit=False",
        "category": "is categories",
        "targets": "is target: one is explained at a time, a second is refused",
        "resamples": "of `explain`, which explains what comes back",
        "out": "saving.save writes what comes back",
    },
    "express": {"arg": "is **shape"},
    "fixed-points": {"arg": "is **arguments", "basin": "draws what `basin` gives back"},
    "learn": {
        "fail_fast": "max_failures=1",
        "plot": "draws what comes back",
        **dict.fromkeys(("arg", "depth", "width", "heads"), "is shape"),
    },
    "predict": {"no_header": "header=False", "out": "Predictions.to_csv"},
    "rank": dict.fromkeys(
        ("arg", "depth", "width", "heads", "tokens", "features", "attention_width", "embedding_rank", "degree"),
        "is **shape",
    ),
    "runs": {
        "members": "prints",
        "csv": "Runs.to_csv",
        "export": "Runs.export",
        "failures": "the function bench.runs.failures",
    },
    "scale": {"arg": "is shape", "lr": "is rates"},
    "signal": dict.fromkeys(("arg", "depth", "width", "heads"), "is **shape"),
    "survey": {"arg": "is args, a mapping", "tables": "prints"},
    "verify": {"paths": "is document, the content of one"},
}
WRITING = {"theodolite claims page": "writes a page of the docs and measures nothing"}
COMMANDS = sorted(set(command_tree()) - set(WRITING))


def function_of(command: str) -> Callable[..., Any]:
    name = command.removeprefix("theodolite ")
    return getattr(theodolite, LONGER.get(name, name.replace("-", "_")))


def taken(owner: Any, kinds: Any) -> set[str]:
    """Names of parameters, with those of the fields of groups."""
    names: set[str] = set()
    hints = get_type_hints(owner)
    for name in kinds:
        inner = [kind for kind in (hints[name], *get_args(hints[name])) if is_dataclass(kind)]
        names |= {name}.union(*(taken(kind, [f.name for f in fields(kind)]) for kind in inner))
    return names


@pytest.mark.parametrize("command", COMMANDS)
def test_a_function_takes_what_its_command_takes(command):
    function = function_of(command)
    parameters = inspect.signature(function).parameters
    known = taken(function, parameters)
    options = {parameter.name for parameter in command_tree()[command].params}
    if "threads" not in known:
        options -= {"threads"}  # of this process: torch.set_num_threads is the caller's
    excused = ELSEWHERE.get(command.removeprefix("theodolite "), {})
    assert options - known - set(EVERYWHERE) == set(excused), "excuses that are missing, or not needed"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_function_explains_its_parameters_and_shows_an_example(command):
    function = function_of(command)
    text = inspect.getdoc(function) or ""
    named = [name for name in inspect.signature(function).parameters if name not in ("progress", "cluster")]
    explained = re.findall(r"^    (\w+(?:, \w+)*):", text.partition("Parameters:")[2], re.MULTILINE)
    listed = {name for names in explained for name in names.split(", ")}
    assert [name for name in named if name not in listed and f"`{name}`" not in text] == []
    assert ">>> " in text
