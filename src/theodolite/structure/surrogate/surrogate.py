"""An ensemble fitted to data as a source of gradients, with what it is worth on rows that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.structure.data.source import Array, Gradients
from theodolite.structure.surrogate.ensemble import train_ensemble
from theodolite.structure.surrogate.gaussian_process import fit_processes

MEMBERS = 5  # networks; of Gaussian processes twice as many, which cost little
FEW = 1000  # rows up to which Gaussian processes are fitted
LEAST_ROWS = 20
MOST_STEPS = 4000
PRIOR = 4  # degrees of freedom by which the spread at one point leans on the spread at all


@runtime_checkable
class Predictors(Protocol):
    """Functions of standardised rows that predict the standardised target."""

    @property
    def members(self) -> int: ...

    @property
    def chunk(self) -> int:
        """Rows to pass at once."""
        ...

    def everywhere(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row"]:
        """Every member's output at the same rows."""
        ...

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        """Every member's gradient there, in float64."""
        ...

    def only(self, chosen: Sequence[int]) -> Predictors: ...


@dataclass(frozen=True)
class SurrogateSource:
    """The mean of an ensemble's members as the function; each member has not seen the rows of its fold.

    `r2` is 1 − (mean square of what the members miss on the rows they have not seen) / (variance of the target), and
    `noise` the root of that mean square. `sound` are the members that the function and its gradients are the mean of:
    all, unless given.
    """

    variables: tuple[str, ...]
    rows: Array = field(repr=False)
    targets: Array = field(repr=False)
    folds: NDArray[np.int64] = field(repr=False)
    ensemble: Predictors = field(repr=False)
    centre: Array = field(repr=False)
    scale: Array = field(repr=False)
    middle: float
    unit: float
    r2: float = 0.0
    noise: float = 0.0
    sound: tuple[int, ...] | None = None

    def points(self, count: int, generator: np.random.Generator) -> Array:
        """Rows of the data, each once before any twice."""
        rounds = [generator.permutation(len(self.rows)) for _ in range(math.ceil(count / len(self.rows)))]
        return self.rows[np.concatenate(rounds)[:count]] if rounds else self.rows[:0]

    def values(self, points: Array) -> Array:
        said = self.members(points)
        return (said if self.sound is None else said[list(self.sound)]).mean(0)

    def members(self, points: Array) -> Array:
        """What each member says at the points: (member, point)."""
        with torch.no_grad():
            parts = [self.ensemble.everywhere(part) for part in self._standard(points).split(self.ensemble.chunk)]
        return self.middle + self.unit * torch.cat(parts, 1).double().numpy()

    def unseen(self, member: int, points: Array) -> Array:
        """What one member says: (point,). It has not seen the rows where `folds` equals its number."""
        one = self.ensemble.only([member])
        with torch.no_grad():
            parts = [one.everywhere(part)[0] for part in self._standard(points).split(one.chunk)]
        return self.middle + self.unit * torch.cat(parts).double().numpy()

    def held_out(self) -> Array:
        """What is said of every row by the member that has not seen it: (row,)."""
        found = np.empty(len(self.rows))
        for member in range(self.ensemble.members):
            mine = self.folds == member
            found[mine] = self.unseen(member, self.rows[mine])
        return found

    def member_gradients(self, points: Array) -> Array:
        """The gradient of each sound member: (member, point, variable)."""
        ensemble = self.ensemble if self.sound is None else self.ensemble.only(self.sound)
        parts = [ensemble.slopes(part) for part in self._standard(points).split(max(1, ensemble.chunk // 4))]
        return torch.cat(parts, 1).numpy() * (self.unit / self.scale)

    def gradients(self, points: Array) -> Gradients:
        """The mean over K members, and its error by the jackknife that leaves a group out: (K − 1)/√K times the spread
        s of the members, where s² at a point leans on the mean of s² over the points (few members tell it badly)."""
        slopes = self.member_gradients(points)
        count = len(slopes)
        spread = slopes.var(0, ddof=1)
        leaning = ((count - 1) * spread + PRIOR * spread.mean(0)) / (count - 1 + PRIOR)
        return Gradients(slopes.mean(0), np.sqrt(leaning) * (count - 1) / math.sqrt(count))

    def _standard(self, points: Array) -> torch.Tensor:
        return torch.from_numpy((points - self.centre) / self.scale)


def fit_surrogate(
    x: Array,
    y: Array,
    variables: Sequence[str],
    generator: np.random.Generator,
    *,
    members: int | None = None,
    width: int = 64,
    depth: int = 2,
    steps: int | None = None,
) -> SurrogateSource:
    """Fits as many `members` as folds of the rows (x: (row, variable), y: (row,)), each without one fold: Gaussian
    processes up to 1,000 rows, networks of `width` and `depth` above, trained for `steps` (40·√rows, at most 4,000).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    few = len(x) <= FEW
    members = members or (2 * MEMBERS if 8 * MEMBERS <= len(x) <= FEW else MEMBERS)
    _check(x, y, variables, members)
    seed = torch.Generator().manual_seed(int(generator.integers(2**62)))
    folds = generator.permutation(len(x)) % members
    centre, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    middle, unit = float(y.mean()), float(y.std())
    rows = torch.from_numpy((x - centre) / scale)
    targets, parts = torch.from_numpy((y - middle) / unit), torch.from_numpy(folds)
    if few:
        ensemble = fit_processes(rows, targets, parts, seed)
    else:
        steps = steps or min(MOST_STEPS, math.ceil(40 * math.sqrt(len(x))))
        ensemble = train_ensemble(rows.float(), targets.float(), parts, seed, width=width, depth=depth, steps=steps)
    given = SurrogateSource(tuple(variables), x, y, folds, ensemble, centre, scale, middle, unit)
    missed = float(np.mean((given.held_out() - y) ** 2))
    return replace(given, r2=1 - missed / unit**2, noise=math.sqrt(missed))


def _check(x: Array, y: Array, variables: Sequence[str], members: int) -> None:
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise BadInput(f"x has the shape {x.shape} and y {y.shape}: give (rows, variables) and (rows,)")
    if len(variables) != x.shape[1]:
        raise BadInput(f"{len(variables)} variables are named but x has {x.shape[1]} columns: name each once")
    if len(x) < LEAST_ROWS:
        raise BadInput(f"{len(x)} rows are too few for a surrogate: give at least {LEAST_ROWS}")
    if not 2 <= members <= len(x) // 4:
        raise BadInput(f"{members} members cannot share {len(x)} rows: use 2 to {len(x) // 4}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput("x and y must be finite: remove the rows with missing or infinite numbers")
    if not y.std() > 0:
        raise BadInput(f"y is constant ({y[0]:g}): there is nothing to find")
