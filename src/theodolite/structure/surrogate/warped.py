"""A scale on which a target is a sum of functions of a few variables each, where it is not one as it stands.

Of y = h(g(1, 2) + g(2, 3) + …) with h monotone, t = h⁻¹ shows the terms. t is looked for as in a warped Gaussian
process (Snelson, Rasmussen and Ghahramani 2003): t(y) is a process whose covariance is a sum of those of the terms or,
where these are not known, of all single variables, pairs and threes (Duvenaud, Nickisch and Rasmussen 2011). The
evidence is

    log p(y) = log N(t(y) | 0, K) + Σ log t'(y),

and t, an increasing cubic spline, and the sizes and lengths in K maximise it together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from torch import Tensor

from theodolite.structure.surrogate.gaussian_process import LEAST_NOISE, QUIET, RATE, RULE, evidence
from theodolite.training.loop import Best, train
from theodolite.training.optimiser import Rates
from theodolite.training.step import Weights

Array = NDArray[np.float64]
ROWS = 200  # that a scale is chosen by
ORDERS = 3  # variables that act together, at most, where terms are not known
KNOTS = (0.0, 0.03, 0.12, 0.3, 0.5, 0.7, 0.88, 0.97, 1.0)  # quantiles of the target
DEGREE = 3
STEPS, PLAIN = 100, 0.4  # and the part of them in which the scale is straight
LEAST_SLOPE = 1e-9
LENGTH, SIZE = 0.3, -0.5  # logarithms, to start from


@dataclass(frozen=True)
class Scale:
    """An increasing function of the target, constant beyond the targets that it was learnt from. `gain` is what it adds
    to the logarithm of the evidence."""

    knots: Array
    coefficients: Array
    gain: float

    def __call__(self, y: Array) -> Array:
        return BSpline(self.knots, self.coefficients, DEGREE)(np.clip(y, self.knots[0], self.knots[-1]))

    @property
    def pays(self) -> bool:
        """Half the logarithm of the number of rows for every coefficient (Schwarz 1978)."""
        return self.gain > 0.5 * (len(self.coefficients) - 1) * math.log(ROWS)


def additive_scale(x: Array, y: Array, generator: np.random.Generator) -> Scale | None:
    """The scale on which y is most evidently a sum of functions of up to three of the columns, of which there must be
    more; None where the evidence does not pay for one.

    Examples:
        >>> x = np.random.default_rng(0).uniform(-1, 1, (200, 3))
        >>> inner = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 1] * x[:, 2]) + x[:, 0] * x[:, 2]
        >>> t = additive_scale(x, np.exp(2 * inner), np.random.default_rng(0))
        >>> bool(np.corrcoef(t(np.exp(2 * inner)), inner)[0, 1] > 0.99)
        True
    """
    if x.shape[1] <= 2:
        return None
    (found,) = scales(x, y, [generator.permutation(len(y))[:ROWS]], None) or (None,)
    return found if found is not None and found.pays else None


def scales(
    x: Array, y: Array, rows: Sequence[NDArray[np.int64]], terms: Sequence[Sequence[int]] | None, *, steps: int = STEPS
) -> list[Scale] | None:
    """The scale that each choice of as many rows shows, for a sum of functions of these columns; None where the target
    has too few values for one."""
    cuts = np.unique(np.quantile(y, KNOTS))
    if len(cuts) < len(KNOTS):
        return None
    knots = np.concatenate([[cuts[0]] * DEGREE, cuts, [cuts[-1]] * DEGREE])
    spline = BSpline(knots, np.eye(len(knots) - DEGREE - 1), DEGREE)
    middles = np.array([knots[i + 1 : i + 1 + DEGREE].mean() for i in range(len(spline.c))])
    spread = x.std(0)
    inputs = (x - x.mean(0)) / np.where(spread > 0, spread, 1.0)
    of_rows = lambda part: torch.from_numpy(np.stack([part[own] for own in rows]))
    straight = torch.from_numpy(np.log(np.diff(middles) / y.std()))
    splines = (of_rows(spline(y)), of_rows(spline.derivative()(y)))
    task = _Evidence(of_rows(inputs), *splines, terms, straight)
    before = round(PLAIN * steps)
    plain = task.learn(task.first(), before)
    bent = task.learn({**plain.weights, "rises": task.straight.repeat(len(rows), 1)}, steps - before)
    coefficients = torch.nn.functional.pad(bent.weights["rises"].exp().cumsum(1), (1, 0)).numpy()
    return [Scale(knots, c, float(gain)) for c, gain in zip(coefficients, plain.score - bent.score, strict=True)]


class _Evidence:
    """Of targets that are given by the values and slopes of the splines at them, for every choice of rows (member)."""

    def __init__(
        self,
        inputs: Float[Tensor, "member row variable"],
        values: Float[Tensor, "member row spline"],
        slopes: Float[Tensor, "member row spline"],
        terms: Sequence[Sequence[int]] | None,
        straight: Float[Tensor, " rise"],
    ) -> None:
        columns, (one, other) = inputs.movedim(2, 0), _pairs(inputs.shape[1])
        self.rows = inputs.shape[1]
        self.squares = (columns[..., one] - columns[..., other]) ** 2  # (variable, member, pair of rows)
        self.values, self.slopes, self.terms, self.straight = values, slopes, terms, straight
        self.sizes = min(ORDERS, len(columns) - 1) if terms is None else len(terms)

    def first(self) -> Weights:
        """Logarithms of the lengths, of the sizes of every order or term, and of the noise."""
        first = [LENGTH] * len(self.squares) + [SIZE] * self.sizes + [QUIET]
        return {"setting": torch.tensor([first], dtype=torch.float64).repeat(len(self.values), 1)}

    def learn(self, start: Weights, steps: int) -> Best:
        """The greatest evidence that Adam finds; the scale is straight unless `rises` of its coefficients are given."""
        best = Best(start)

        def loss(weights: Mapping[str, Tensor], _: tuple[Tensor, ...]) -> Tensor:
            rises = weights.get("rises", self.straight[None])
            coefficients = torch.nn.functional.pad(rises.exp().cumsum(1), (1, 0))[..., None]
            said, slope = (self.values @ coefficients)[..., 0], (self.slopes @ coefficients)[..., 0]
            told = evidence(self._matrix(weights["setting"]), said - said.mean(1, keepdim=True))
            missing = -(told + slope.clamp(min=LEAST_SLOPE).log().sum(1))
            best.offer(dict(weights), missing.detach())
            return missing

        train(start, loss, steps=steps, rule=RULE, rates=Rates(RATE))
        return best

    def _matrix(self, setting: Tensor) -> Tensor:
        """Σ a² K + 1 + b² [x = x'], with K the product of the Gaussian covariances of a term's variables or, by order,
        the mean of such products over all sets of so many variables."""
        count = len(self.squares)
        shaped = setting.mT[..., None]  # (setting, member, 1)
        each = torch.exp(self.squares * (-0.5 * torch.exp(-2 * shaped[:count])))
        parts = _by_order(each, self.sizes) if self.terms is None else [_product(each, term) for term in self.terms]
        sizes, noise = torch.exp(2 * shaped[count:-1]), torch.exp(2 * shaped[-1]) + LEAST_NOISE
        beside = torch.ones_like(parts[0])
        for size, part in zip(sizes, parts, strict=True):
            beside = torch.addcmul(beside, size, part)
        diagonal = (1.0 + sizes.sum(0) + noise).expand(-1, self.rows)
        return _Symmetric.apply(diagonal, beside)  # pyright: ignore[reportReturnType]


class _Symmetric(torch.autograd.Function):
    """A matrix by its diagonal and what stands beside it, half of which the other half repeats."""

    @staticmethod
    def forward(_: Any, diagonal: Tensor, beside: Tensor) -> Tensor:
        count = diagonal.shape[-1]
        one, other = _pairs(count)
        matrix = beside.new_empty(len(beside), count, count)
        matrix[:, one, other] = beside
        matrix[:, other, one] = beside
        matrix.diagonal(dim1=1, dim2=2).copy_(diagonal)
        return matrix

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor]:
        del ctx  # nothing is needed of the way forward
        (slope,) = slopes
        one, other = _pairs(slope.shape[-1])
        return slope.diagonal(dim1=1, dim2=2), slope[:, one, other] + slope[:, other, one]


@lru_cache(maxsize=8)
def _pairs(count: int) -> tuple[Tensor, Tensor]:
    """The two members of every pair of so many things."""
    one, other = torch.triu_indices(count, count, 1)
    return one, other


def _by_order(each: Tensor, orders: int) -> list[Tensor]:
    """The elementary symmetric polynomials, over the number of their products."""
    sums = [each.new_ones(()), *[each.new_zeros(())] * orders]
    for one in each:
        sums = [sums[0], *(torch.addcmul(sums[order], one, sums[order - 1]) for order in range(1, orders + 1))]
    return [part / math.comb(len(each), order) for order, part in enumerate(sums)][1:]


def _product(each: Tensor, term: Sequence[int]) -> Tensor:
    found = each[term[0]]
    for place in term[1:]:
        found = found * each[place]
    return found
