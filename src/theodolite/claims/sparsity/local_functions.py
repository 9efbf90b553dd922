"""Drawn local functions: a window slides over a row or a grid, and what it says is added up.

    y(x) = Σ_p g(w · x[p + window]),   label: is y above its median?

Window, stride, kernel w and g are drawn. g is even or a product, so that no part of y is linear: inputs that act alone
would hide the windows. Inputs are normal numbers: independent in a `row`, so that the label alone says what is near; on
a `grid` those of neighbours are alike, as pixels are, with a correlation of 0.6 to the power of their distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from theodolite.claims.sparsity.locality import distances
from theodolite.errors import BadInput

_SHAPES = {"row": (16,), "grid": (5, 5)}
_WINDOWS = {"row": ((2,), (3,), (4,)), "grid": ((1, 2), (2, 1), (2, 2), (1, 3), (3, 1))}
_EVEN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "square": np.square,
    "absolute value": np.abs,
    "bump": lambda u: np.exp(-np.square(u)),
    "wave": lambda u: np.cos(2 * u),
}
_PRODUCT = "product"  # of neighbours, for windows of two inputs
_CORRELATION = {"row": 0.0, "grid": 0.6}
_TESTED = 1000  # examples for the choice of a strength, and as many for the test


@dataclass(frozen=True)
class LocalFunction:
    """`windows` are the inputs that the window reads, place by place."""

    shape: tuple[int, ...]
    windows: Int[np.ndarray, "place input"]
    kernel: Float[np.ndarray, " input"]
    nonlinearity: str

    def __call__(self, x: Float[np.ndarray, "example input"]) -> Float[np.ndarray, " example"]:
        seen = x[:, self.windows]
        said = seen.prod(-1) if self.nonlinearity == _PRODUCT else _EVEN[self.nonlinearity](seen @ self.kernel)
        return said.sum(-1)


def draw_local_function(family: str, generator: np.random.Generator) -> LocalFunction:
    """Of the family `row` (16 inputs) or `grid` (5×5)."""
    if family not in _SHAPES:
        raise BadInput(f"there are no local functions on a '{family}': use {' or '.join(_SHAPES)}")
    shape = _SHAPES[family]
    window = _WINDOWS[family][generator.integers(len(_WINDOWS[family]))]
    stride = int(generator.integers(1, 3))
    size = math.prod(window)
    corners = np.stack(
        np.meshgrid(*(np.arange(0, n - w + 1, stride) for n, w in zip(shape, window, strict=True)), indexing="ij"), -1
    ).reshape(-1, 1, len(shape))
    within = np.stack(np.meshgrid(*(np.arange(w) for w in window), indexing="ij"), -1).reshape(1, -1, len(shape))
    places = np.arange(math.prod(shape)).reshape(shape)
    windows = places[tuple(np.moveaxis(corners + within, -1, 0))]
    # Every input of the window counts: magnitudes between 1/2 and 1, of drawn signs, then of length 1.
    kernel = generator.uniform(0.5, 1.0, size) * generator.choice([-1.0, 1.0], size)
    kinds = [*_EVEN, _PRODUCT] if size == 2 else list(_EVEN)
    return LocalFunction(shape, windows, kernel / np.linalg.norm(kernel), kinds[generator.integers(len(kinds))])


@dataclass(frozen=True)
class Drawn:
    """Examples of every member's own function, to train on, to choose by and to test with. Inputs are fed in an order
    of the member's own: `order[m, i]` is the place in the function's geometry of the input that stands at i."""

    functions: list[LocalFunction]
    train: tuple[Float[Tensor, "member example input"], Int[Tensor, "member example"]]
    validation: tuple[Float[Tensor, "member chosen input"], Int[Tensor, "member chosen"]]
    test: tuple[Float[Tensor, "member tested input"], Int[Tensor, "member tested"]]
    random: Int[Tensor, "member example"]  # labels of other examples to train on
    order: Int[np.ndarray, "member input"]

    @property
    def inputs(self) -> int:
        return self.order.shape[1]


def draw_inputs(family: str, count: int, generator: np.random.Generator) -> Float[np.ndarray, "example input"]:
    far = distances(_SHAPES[family])
    root = np.linalg.cholesky(_CORRELATION[family] ** far)  # 0⁰ = 1: independent
    return generator.standard_normal((count, len(far))) @ root.T


def draw_examples(family: str, targets: int, members: int, examples: int, device: torch.device) -> Drawn:
    """Functions and examples from the number `targets` alone: rivals learn the same functions from the same points."""
    if members < 1 or examples < 1:
        raise BadInput(f"at least one member and one example are needed, not {members} and {examples}")
    functions, orders, xs, ys, mixed = [], [], [], [], []
    for member in range(members):
        generator = np.random.default_rng([targets, member])
        functions.append(draw_local_function(family, generator))
        x = draw_inputs(family, examples + 2 * _TESTED, generator)
        y = functions[-1](x)
        labels = (y > np.median(y)).astype(np.int64)
        orders.append(generator.permutation(x.shape[1]))
        xs.append(x[:, orders[-1]].astype(np.float32))
        ys.append(labels)
        mixed.append(generator.permutation(labels[:examples]))
    sizes = [examples, _TESTED, _TESTED]
    x, y = (torch.as_tensor(np.stack(all_), device=device).split(sizes, 1) for all_ in (xs, ys))
    train, validation, test = zip(x, y, strict=True)
    return Drawn(functions, train, validation, test, torch.as_tensor(np.stack(mixed), device=device), np.stack(orders))
