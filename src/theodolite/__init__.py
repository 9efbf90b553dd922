"""Theodolite surveys what a neural architecture can express, and what gradient descent can make it learn.

Every command has a function of its name. `survey` turns all instruments on networks. `express` says by explicit weights
what an architecture can compute, `signal` what the gradient says before training, `learn` what training finds, and
`runs` and `compare` read what it kept; `scale` trains equal sizes at many depths on a text, `new` writes a file to
begin with. `rank` measures how strongly a network ties two groups of inputs together, exactly where it is polynomial,
and `verify` checks a certificate of it; `degree` asks which degree a block should have, `fixed_points` what iterating a
map comes to. `advise` says which depth, width and heads fit a budget. `discover` finds which variables enter which
constituent function of data or a black box, and `predict` uses the network that it left; `CompositionalRegressor` and
`CompositionalClassifier` do both as scikit-learn estimators. `check_claims` puts the sources' theorems beside
measurements and `reproduce` published figures beside ours.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

# The one list of public names is `__init__.pyi`, which type checkers read. Each is imported on first use, so that the
# command line starts without torch.
_LIST = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
_PLACES = {
    given.asname or given.name: (node.module or "", given.name)
    for node in _LIST
    if isinstance(node, ast.ImportFrom)
    for given in node.names
}
_OLD_NAMES = {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in _LIST if isinstance(node, ast.Assign)}

__all__ = sorted(name for name in _PLACES if not name.startswith("_"))  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _PLACES and name not in _OLD_NAMES:
        raise AttributeError(f"module 'theodolite' has no attribute '{name}'")
    module, found = _PLACES[_OLD_NAMES.get(name, name)]
    return getattr(importlib.import_module(module), found)


def __dir__() -> list[str]:
    return sorted([*_PLACES, *_OLD_NAMES])
