"""Functions drawn at random, settings and all: what the degree source calls random complex functions.

The kind is drawn evenly from four, and so is every setting within what the table says, roughness on a logarithmic
scale. Nothing is chosen for its rank.

    field    a Gaussian process of smoothness ½, 3/2, 5/2 or ∞, length scale 0.005 to 0.3; 1 or 2 variables a side
    fourier  512 waves of normal frequencies (a Gaussian process with the Gaussian kernel), the same scales; 1, 2 or 4
    tanh     a network of 1 to 8 hidden layers of 64, gain 1 to 10; 1, 2 or 4
    relu     the same with ReLU, gain √2
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from theodolite.claims.degree.random_functions import families, nonlinear_share, turns
from theodolite.instruments.rank.epsilon import first_within, spectrum_of
from theodolite.measurement import seed_of

KINDS = ("field", "fourier", "tanh", "relu")
_SCALES, _GAINS, _LAYERS = (0.005, 0.3), (1.0, 10.0), 8
_SMOOTHNESS = (0.5, 1.5, 2.5, math.inf)


def settings(generator: torch.Generator) -> dict[str, Any]:
    """Kind, family, variables a side and options of one function."""
    kind = _one(KINDS, generator)
    variables = _one((1, 2) if kind == "field" else (1, 2, 4), generator)
    if kind in ("field", "fourier"):
        smoothness = {"smoothness": _one(_SMOOTHNESS, generator)} if kind == "field" else {}
        return {"kind": kind, "family": kind, "variables": variables,
                "options": {"scale": _between(*_SCALES, generator), **smoothness}}  # fmt: skip
    gain = _between(*_GAINS, generator) if kind == "tanh" else math.sqrt(2)
    depth = _one(tuple(range(1, _LAYERS + 1)), generator)
    return {"kind": kind, "family": "mlp", "variables": variables,
            "options": {"activation": kind, "gain": gain, "depth": depth}}  # fmt: skip


def measure_drawn_function_ranks(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: stream (a name that all draws follow from), first, count, points, epsilons.

    For each function its settings, how nonlinear it is, and for every ε the rank in the sample (biased low) and held
    out (null if not reached).
    """
    points = config["points"]
    found = []
    for number in range(config["first"], config["first"] + config["count"]):
        generator = torch.Generator().manual_seed(seed_of(["drawn-function", config["stream"], number]))
        drawn = settings(generator)
        function = families[drawn["family"]](generator, variables=drawn["variables"], **drawn["options"])
        shape = (points + points // 2, drawn["variables"])
        a, b = (torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(2))
        spectrum = spectrum_of(function.matrix(a, b), points, 1e-14 * points)
        options = {name: str(value) if value == math.inf else value for name, value in drawn["options"].items()}
        found.append({
            **drawn, "options": options,
            "nonlinear_share": nonlinear_share(function, generator), "turns": turns(function, generator),
            "ranks": [[first_within(spectrum.in_sample, e), first_within(spectrum.held_out, e)]
                      for e in config["epsilons"]],
        })  # fmt: skip
    return {"functions": found}


def _one(choices: tuple[Any, ...], generator: torch.Generator) -> Any:
    return choices[int(torch.randint(len(choices), (), generator=generator))]


def _between(low: float, high: float, generator: torch.Generator) -> float:
    return low * (high / low) ** float(torch.rand((), generator=generator, dtype=torch.float64))
