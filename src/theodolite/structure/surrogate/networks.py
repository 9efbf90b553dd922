"""A fitted network as the next surrogate: of its members, one a fold, each has rows that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from theodolite.structure.data.source import Array
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.fit.jacobian import values
from theodolite.structure.surrogate.ensemble import slopes_of
from theodolite.structure.surrogate.surrogate import SurrogateSource
from theodolite.training.stacked import Stacked

CHUNK = 1 << 13
SOUND = 4.0  # times the best member's error that a member's own may be, for its gradients to count
LEAST = 0.1  # of the target nearest to zero: what a logarithm is taken of at least


@dataclass(frozen=True)
class Networks:
    """Networks of one graph, each a vector of its parameters."""

    net: Stacked
    weights: Float[Tensor, "member parameter"]

    @property
    def members(self) -> int:
        return len(self.weights)

    @property
    def chunk(self) -> int:
        return CHUNK

    def everywhere(
        self, rows: Float[Tensor, "row variable"] | Float[Tensor, "member row variable"]
    ) -> Float[Tensor, "member row"]:
        return values(self.net, self.weights, rows.to(self.weights.dtype))

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        return slopes_of(self.everywhere, self.members, rows)

    def only(self, chosen: Sequence[int]) -> Networks:
        return Networks(self.net, self.weights[list(chosen)])


@dataclass(frozen=True)
class Logarithms:
    """log |middle + unit · f| of the members f of another ensemble, for a target of one sign."""

    inner: Networks
    middle: float
    unit: float
    least: float

    @property
    def members(self) -> int:
        return self.inner.members

    @property
    def chunk(self) -> int:
        return self.inner.chunk

    def everywhere(
        self, rows: Float[Tensor, "row variable"] | Float[Tensor, "member row variable"]
    ) -> Float[Tensor, "member row"]:
        return self._log(self.inner.everywhere(rows))

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        return slopes_of(self.everywhere, self.members, rows)

    def only(self, chosen: Sequence[int]) -> Logarithms:
        return replace(self, inner=self.inner.only(chosen))

    def _log(self, said: Tensor) -> Tensor:
        return (math.copysign(1.0, self.middle) * (self.middle + self.unit * said)).clamp(min=self.least).log()


def network_source(fitted: Fitted, x: Array, y: Array) -> SurrogateSource:
    """A network fitted to the rows `x` and targets `y`, as a surrogate of the function behind them. Members that were
    caught in a poor minimum, by the error on the rows they have not seen, keep these rows but lend no gradients."""
    net = Stacked(fitted.module)
    ensemble = Networks(net, torch.from_numpy(fitted.members))
    shape = (fitted.centre, fitted.scale, fitted.offset, fitted.spread)
    source = SurrogateSource(fitted.graph.variables, x, y, np.zeros(len(x), dtype=np.int64), ensemble, *shape)
    assert fitted.held_out is not None
    # the member that has not seen a row is the one that said what was held out
    folds = np.abs(source.members(x) - fitted.held_out).argmin(0)
    missed = (fitted.held_out - y) ** 2
    errors = np.array([missed[folds == member].mean() for member in range(ensemble.members)])
    sound = np.flatnonzero(errors <= SOUND * errors.min())
    if len(sound) < 2:
        sound = np.sort(np.argsort(errors, kind="stable")[:2])
    noise = math.sqrt(missed.mean())
    return replace(source, folds=folds, sound=tuple(sound.tolist()), r2=1 - noise**2 / float(y.var()), noise=noise)


def logarithm(source: SurrogateSource) -> SurrogateSource:
    """The logarithm of the size of a network's target, which has one sign, from the same network."""
    assert isinstance(source.ensemble, Networks)
    sizes = np.abs(source.targets)
    least = LEAST * float(sizes.min())
    ensemble = Logarithms(source.ensemble, source.middle, source.unit, least)
    found = replace(source, ensemble=ensemble, targets=np.log(sizes), middle=0.0, unit=1.0)
    missed = float(np.mean((found.held_out() - found.targets) ** 2))
    return replace(found, r2=1 - missed / float(found.targets.var()), noise=math.sqrt(missed))


def better_folds(first: Fitted, second: Fitted, y: Array, fold: NDArray[np.int64]) -> Fitted:
    """Of two fits of one graph on the same folds, the better network of every fold; of different shapes, the better
    fit. As with restarts, what chooses are the rows that neither network has seen."""
    assert first.held_out is not None
    assert second.held_out is not None
    if first.shape[1:] != second.shape[1:]:
        return min(first, second, key=lambda fitted: fitted.validation_error)
    folds = range(len(first.members))
    missed = ((first.held_out - y) ** 2, (second.held_out - y) ** 2)
    errors = np.array([[losses[fold == k].mean() for k in folds] for losses in missed])
    chosen = errors.argmin(0)
    held_out = np.where(chosen[fold] == 0, first.held_out, second.held_out)
    shares = np.maximum(errors.min(0) / first.spread**2, 1e-150) ** -2.0
    return replace(
        first,
        members=np.where(chosen[:, None] == 0, first.members, second.members),
        shares=shares / shares.sum(),
        validation_error=float(np.mean((held_out - y) ** 2) / first.spread**2),
        held_out=held_out,
    )
