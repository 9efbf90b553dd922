"""Theodolite surveys what a neural architecture can express, and what gradient descent can make it learn.

`express` says by explicit weights what an architecture can compute, `signal` what the gradient says before training,
`learn` what training finds; `separation_rank` measures how strongly a network ties two groups of inputs together,
exactly where it is polynomial, and `verify` checks a certificate of it; `run_survey` turns all instruments on networks;
`advise_shape` says which depth, width and heads fit a budget; `discover` finds which variables enter which constituent
function of data or a black box, and `CompositionalRegressor` is the network of that graph as a scikit-learn estimator;
`check_claims` puts the sources' theorems beside measurements and `reproduce` published figures beside ours.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from theodolite.errors import TheodoliteError
from theodolite.version import __version__ as __version__

if TYPE_CHECKING:
    from theodolite.advice.advice import advise_shape
    from theodolite.bench.learn import learn
    from theodolite.claims.check import check_claims
    from theodolite.claims.reproduce import reproduce
    from theodolite.instruments.gradient.signal import signal
    from theodolite.instruments.rank.certificate import verify
    from theodolite.instruments.rank.separation import separation_rank
    from theodolite.structure.discover import discover
    from theodolite.structure.regressor import CompositionalRegressor
    from theodolite.surveys.run import run_survey
    from theodolite.witness.express import express

__all__ = [
    "CompositionalRegressor",
    "TheodoliteError",
    "advise_shape",
    "check_claims",
    "discover",
    "express",
    "learn",
    "reproduce",
    "run_survey",
    "separation_rank",
    "signal",
    "verify",
]

# Loaded on first use, so that the command line starts without torch.
_HOMES = {
    "advise_shape": "theodolite.advice.advice",
    "check_claims": "theodolite.claims.check",
    "CompositionalRegressor": "theodolite.structure.regressor",
    "discover": "theodolite.structure.discover",
    "express": "theodolite.witness.express",
    "learn": "theodolite.bench.learn",
    "reproduce": "theodolite.claims.reproduce",
    "run_survey": "theodolite.surveys.run",
    "separation_rank": "theodolite.instruments.rank.separation",
    "signal": "theodolite.instruments.gradient.signal",
    "verify": "theodolite.instruments.rank.certificate",
    # Shown in their own modules, and found here too by those who import them so.
    "Partition": "theodolite.partition",
    "compare": "theodolite.bench.compare",
    "degree": "theodolite.instruments.degree.which_degree",
    "list_nets": "theodolite.nets",
    "list_tasks": "theodolite.tasks",
    "runs": "theodolite.bench.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'theodolite' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
