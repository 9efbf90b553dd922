"""Conclusion 4.3 as a number: the least rank of the matricisation over all functions within ε bounds the ε-rank.

Under the maximum norm a function within ε has values within ε at every template, so the least rank of a matrix within
ε of M is a bound for every choice of templates. Under d₁ and d₂ the values at finitely many templates weigh nothing: a
function that is changed to 0 within δ of every pair of templates has rank 0 there and lies at a distance that falls
with δ, so the bound, read literally, is 0 for every ε > 0. What remains there is the average over drawn templates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import iv
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.instruments.rank.function_distance import least_rank
from theodolite.measurement import seed_of

_POLE = 1.5  # 1/(pole − a·b)
_FREQUENCY = 5.0


@dataclass(frozen=True)
class Expansion:
    """y on [−1, 1]², and sup |y − y_r| of a known sum y_r of r products, from its Chebyshev series in a."""

    name: str

    def values(self, a: Tensor, b: Tensor) -> Tensor:
        a = a[:, None]
        if self.name == "exponential":
            return torch.exp(a * b)
        if self.name == "pole":
            return 1 / (_POLE - a * b)
        return torch.cos(_FREQUENCY * (a - b))

    def error(self, r: int) -> float:
        """No function of separation rank r need be further away than this."""
        if r == 0:
            return {"exponential": math.e, "pole": 1 / (_POLE - 1), "wave": 1.0}[self.name]
        if self.name == "exponential":  # e^{ab} = I₀(b) + 2 Σ I_k(b) T_k(a)
            return float(2 * sum(iv(k, 1.0) for k in range(r, r + 40)))
        if self.name == "pole":
            t = 1 / _POLE
            root = math.sqrt(1 - t * t)
            ratio = (1 - root) / t
            return 2 * ratio**r / (1 - ratio) / root / _POLE
        return 1.0 if r < 2 else 0.0


EXPANSIONS = ("exponential", "pole", "wave")


def measure_template_bound(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: function, templates (how many), terms (the largest r), draws. One case per r and choice of templates."""
    if config["function"] not in EXPANSIONS:
        raise BadInput(f"no expansion is called '{config['function']}': use {', '.join(EXPANSIONS)}")
    expansion, count = Expansion(config["function"]), config["templates"]
    generator = torch.Generator().manual_seed(seed_of(["template-bound", seed]))
    nodes = torch.cos(math.pi * (torch.arange(count, dtype=torch.float64) + 0.5) / count)
    drawn = 2 * torch.rand(config["draws"], 2, count, generator=generator, dtype=torch.float64) - 1
    matrices = [("chebyshev", expansion.values(nodes, nodes))]
    matrices += [("drawn", expansion.values(a, b)) for a, b in drawn]
    cases = []
    for kind, matrix in matrices:
        for r in range(1, config["terms"] + 1):
            epsilon = expansion.error(r) + 1e-9  # rounding: an exact sum of r products is within this
            low, high = least_rank(matrix, epsilon, "sup")
            cases.append({"templates": kind, "terms": r, "epsilon": epsilon, "least_rank": [low, high]})
    holes = {str(radius): _hole(count**2, radius, expansion) for radius in (1e-2, 1e-4, 1e-6)}
    return {"cases": cases, "relative_d2_of_rank_0_at_the_templates": holes}


def _hole(pairs: int, radius: float, expansion: Expansion) -> float:
    """At most: the relative d₂ distance from y to y set to 0 within `radius` of each pair of templates. A pair's square
    has probability at most radius² under uniform inputs on [−1, 1]²."""
    middles = (torch.arange(400, dtype=torch.float64) + 0.5) / 200 - 1
    whole = expansion.values(middles, middles).square().mean().sqrt()
    return float(radius * math.sqrt(pairs) * expansion.error(0) / whole)
