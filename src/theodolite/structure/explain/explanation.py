"""All that is told of a discovery beside its graph and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.structure.explain.effects import Effect, effects
from theodolite.structure.explain.formulas import Formula, short_formula
from theodolite.structure.explain.importance import Importance, of_constituents, of_variables
from theodolite.structure.explain.stability import edge_stability
from theodolite.structure.progress import Progress

if TYPE_CHECKING:
    from theodolite.structure.result import Discovery

MOST_EFFECTS = 16


@dataclass(frozen=True)
class Explained:
    """An effect, what it is worth, and a formula of it where a short one fits."""

    effect: Effect
    importance: float
    formula: Formula | None

    def to_json(self) -> dict[str, Any]:
        written = None if self.formula is None else self.formula.to_json()
        return {**self.effect.to_json(), "importance": self.importance, "formula": written}


@dataclass(frozen=True)
class Explanation:
    """The effects that matter most first; importance of variables and constituents on test rows; of every edge the
    share of half-samples in which it was found again (empty where none were drawn)."""

    effects: tuple[Explained, ...]
    variables: tuple[Importance, ...]
    constituents: tuple[Importance, ...]
    stability: Mapping[tuple[str, str], float]
    resamples: int

    def to_json(self) -> dict[str, Any]:
        return {
            "effects": [one.to_json() for one in self.effects],
            "variables": [one.to_json() for one in self.variables],
            "constituents": [one.to_json() for one in self.constituents],
            "stability": [{"from": a, "to": b, "share": share} for (a, b), share in self.stability.items()],
            "half_samples": self.resamples,
        }


def explain(found: Discovery, *, resamples: int = 0, progress: Progress | None = None) -> Explanation:
    """Draws nothing: effects, importance, formulas, and stability over so many half-samples. Deterministic."""
    if found.model is None or found.rows is None:
        raise BadInput("there is nothing to explain without a network and its rows: fit one (--graph-only does not)")
    generator = np.random.default_rng(found.details.get("seed", 0))
    train, test = found.rows
    model = found.model
    variables = of_variables(model, test.x, test.y, generator)
    worth = {one.variables: one.value for one in variables}
    constituents = of_constituents(model, test.x, test.y, generator)
    worth |= {one.variables: one.value for one in constituents}
    shown = sorted(effects(model, train.x, generator), key=lambda one: -_worth(worth, one))[:MOST_EFFECTS]
    words = set() if found.coding is None else {one.name for one in found.coding.columns if one.kind == "category"}
    stability = {}
    if resamples and not found.abstained:
        stability = edge_stability(found.graph, train.x, train.y, generator, resamples, progress)
    return Explanation(
        tuple(Explained(one, _worth(worth, one), _formula(one, words)) for one in shown),
        tuple(variables),
        tuple(constituents),
        stability,
        resamples if stability else 0,
    )


def _worth(worth: Mapping[tuple[str, ...], float], effect: Effect) -> float:
    known = worth.get(effect.variables)
    return known if known is not None else max(worth[(name,)] for name in effect.variables)


def _formula(effect: Effect, words: set[str]) -> Formula | None:
    if words & set(effect.variables) or min(map(len, effect.values)) < 3:
        return None
    points = np.stack([part.ravel() for part in np.meshgrid(*effect.values, indexing="ij")], axis=1)
    return short_formula(effect.variables, points, effect.mean.ravel(), effect.doubt)
