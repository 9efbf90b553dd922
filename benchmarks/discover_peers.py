"""Pykan on the same targets (Liu et al. 2024): its tree of a function, and its network of data."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.graph import free_name

POINTS = 200
EMPTY = "__stands_in__"
STEPS = 100  # pykan's own default


def has_pykan() -> bool:
    return importlib.util.find_spec("kan") is not None


def pykan_tree(
    function: Callable[[Any], Any], variables: Sequence[str], threshold: float, seed: int = 0
) -> CompositionalGraph:
    """The groups that `kan.hypothesis.get_molecule` joins, level by level, as a graph; `threshold` is its `sym_th`."""
    _without_drawings()
    from kan.hypothesis import get_molecule

    generator = np.random.default_rng(seed)
    x = torch.from_numpy(generator.uniform(-1.0, 1.0, (POINTS, len(variables))))
    levels = get_molecule(lambda points: function(points)[:, None], x, sym_th=threshold, verbose=False)
    groups = {frozenset(str(variables[i]) for i in group) for level in levels for group in level if len(group) > 1}
    return laminar(variables, groups | {frozenset(variables)})


def laminar(variables: Sequence[str], groups: set[frozenset[str]]) -> CompositionalGraph:
    """Groups of which any two are nested or apart, as a tree of general nodes."""
    nodes: dict[frozenset[str], Node] = {}
    for group in sorted(groups, key=lambda group: (len(group), sorted(group))):
        inside = [other for other in nodes if other < group]
        inputs = [other for other in inside if not any(other < between for between in inside)]
        held = frozenset().union(*inputs)
        names = [*(nodes[other].name for other in inputs), *sorted(group - held)]
        nodes[group] = Node(free_name(f"h{len(nodes) + 1}", variables), tuple(names))
    return CompositionalGraph(tuple(variables), tuple(nodes.values()))


def pykan_fit(x: np.ndarray, y: np.ndarray, points: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """Predictions at the points of a [n, 5, 1] network on a grid of 5 and then of 10, with LBFGS and pykan's defaults,
    and its number of parameters. Inputs are brought to [−1, 1] and the target to variance 1."""
    _without_drawings()
    from kan import KAN

    low, high = x.min(0), x.max(0)
    middle, spread = y.mean(), y.std()

    def scaled(rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(2 * (rows - low) / (high - low) - 1).float()

    train = scaled(x), torch.from_numpy((y - middle) / spread).float()[:, None]
    data = {"train_input": train[0], "train_label": train[1], "test_input": train[0], "test_label": train[1]}
    noise = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(noise), contextlib.redirect_stdout(noise):
        model = KAN(width=[x.shape[1], 5, 1], grid=5, k=3, seed=seed, auto_save=False, ckpt_path=folder)
        model.fit(data, opt="LBFGS", steps=STEPS)
        model = model.refine(10)
        model.auto_save = False  # refining forgets it
        model.fit(data, opt="LBFGS", steps=STEPS)
        with torch.no_grad():
            found = model(scaled(points))[:, 0].double().numpy()
    return middle + spread * found, sum(p.numel() for p in model.parameters() if p.requires_grad)


def _without_drawings() -> None:
    """Pykan imports these for drawings, tables and saving, none of which is asked here: where one is missing an empty
    module will do."""
    for name in ("matplotlib", "matplotlib.pyplot", "pandas", "yaml"):
        package, _, inner = name.partition(".")
        if name in sys.modules or (not inner and importlib.util.find_spec(name) is not None):
            continue
        if inner and not getattr(sys.modules.get(package), EMPTY, False):
            continue
        sys.modules[name] = module = types.ModuleType(name)
        setattr(module, EMPTY, True)
        if inner:
            setattr(sys.modules[package], inner, module)
