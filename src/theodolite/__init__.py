"""Theodolite surveys what a neural architecture can express, and what gradient descent can make it learn.

`separation_rank` measures how strongly a network ties two groups of inputs together, exactly where it is polynomial;
`verify` checks a certificate of such a rank; `learn` trains networks on tasks, many at once, `runs` reads what was
kept and `compare` sets it side by side; `run_survey` turns all instruments on networks; `advise_shape` says which
depth, width and heads fit a budget; `check_claims` puts the sources' theorems beside measurements; `list_nets` and
`list_tasks` show what is registered.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from theodolite.errors import TheodoliteError
from theodolite.partition import Partition
from theodolite.version import __version__ as __version__

if TYPE_CHECKING:
    from theodolite.advise.advice import advise_shape
    from theodolite.claims.contract import check_claims
    from theodolite.instruments.certificate import verify
    from theodolite.instruments.separation import separation_rank
    from theodolite.lab.compare import compare
    from theodolite.lab.learn import learn
    from theodolite.lab.runs import runs
    from theodolite.nets.contract import list_nets
    from theodolite.survey.run import run_survey
    from theodolite.tasks.contract import list_tasks

__all__ = [
    "Partition",
    "TheodoliteError",
    "advise_shape",
    "check_claims",
    "compare",
    "learn",
    "list_nets",
    "list_tasks",
    "run_survey",
    "runs",
    "separation_rank",
    "verify",
]

# Loaded on first use, so that the command line starts without torch.
_HOMES = {
    "advise_shape": "theodolite.advise.advice",
    "check_claims": "theodolite.claims",
    "compare": "theodolite.lab.compare",
    "learn": "theodolite.lab.learn",
    "list_nets": "theodolite.nets",
    "list_tasks": "theodolite.tasks",
    "run_survey": "theodolite.survey.run",
    "runs": "theodolite.lab.runs",
    "separation_rank": "theodolite.instruments.separation",
    "verify": "theodolite.instruments.certificate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'theodolite' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
