"""The loss over two directions of weight space: where the gradient leads anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from theodolite.device import resolve_device
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.gradient.signal import Net, builder
from theodolite.measurement import SCHEMA, finite
from theodolite.nets.contract import positive
from theodolite.tasks.contract import Task, make_task
from theodolite.theory.gradient import cosine_loss, cosine_loss_gradient

FLAT = 0.01  # a gradient below this share of the largest one on the grid counts as none


@dataclass(frozen=True)
class Landscape:
    """`loss[i][j]` at (xs[i], ys[j]), and the norm of the gradient there; `flat` is the share of the grid where that is
    below 1 % of its largest value, `minima` are the local ones of the grid, lowest first."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    loss: tuple[tuple[float, ...], ...]
    slope: tuple[tuple[float, ...], ...]
    flat: float
    minima: tuple[tuple[float, float, float], ...]
    exact: bool

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "landscape", **finite(asdict(self))}


def cosine_landscape(target: tuple[float, float] = (2.0, 2.0), reach: float = 6.0, points: int = 121) -> Landscape:
    """F(w) = E[(cos⟨w, x⟩ − cos⟨v, x⟩)²] for w ∈ [−reach, reach]², v the target, x ~ N(0, I₂): in closed form."""
    positive(points=points)
    if not reach > 0:
        raise BadInput(f"a reach of {reach} spans no square: use one above 0")
    axis = np.linspace(-reach, reach, points)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    v = np.asarray(target, dtype=float)
    return _landscape(axis, axis, cosine_loss(w, v), np.linalg.norm(cosine_loss_gradient(w, v), axis=-1), exact=True)


def landscape(
    net: Net,
    task: str | Task,
    task_args: Mapping[str, Any] | None = None,
    *,
    reach: float = 1.0,
    points: int = 25,
    samples: int = 1024,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> Landscape:
    """The loss of a net on a task over its weights plus two random directions, each as long as the weights are.

    `reach` is how far, in lengths of the weights. The slope is that of the slice, in units of the weights.
    """
    positive(points=points, samples=samples)
    target = make_task(task, task_args or {}) if isinstance(task, str) else task
    if target.spec.kind != "vector":
        raise NotApplicable(f"the task '{target.name}' gives tokens: a landscape is drawn for tasks on vectors")
    device = resolve_device(device)
    _, build = builder(net, target, shape)
    module = build(seed).to(device)
    generator = torch.Generator(device=device).manual_seed(seed)
    batch = target.sample(1, samples, None, generator)
    start = {key: p.detach() for key, p in module.named_parameters() if p.requires_grad}
    one, two = (_direction(start, generator) for _ in range(2))
    length = float(sum(p.square().sum() for p in start.values())) ** 0.5
    axis = np.linspace(-reach, reach, points)
    losses, slopes = np.empty((points, points)), np.empty((points, points))
    for i, a in enumerate(axis):
        for j, b in enumerate(axis):
            place = torch.tensor([float(a), float(b)], requires_grad=True, device=device)
            moved = {key: p + length * (place[0] * one[key] + place[1] * two[key]) for key, p in start.items()}
            value = _loss(module, moved, batch.inputs[0], batch.targets[0], target.spec.loss)
            (gradient,) = torch.autograd.grad(value, place)
            losses[i, j], slopes[i, j] = float(value.detach()), float(gradient.norm()) / length
    return _landscape(axis, axis, losses, slopes, exact=False)


def _direction(start: Mapping[str, torch.Tensor], generator: torch.Generator) -> dict[str, torch.Tensor]:
    drawn = {key: torch.randn(p.shape, generator=generator, device=p.device) for key, p in start.items()}
    size = float(sum(p.square().sum() for p in drawn.values())) ** 0.5
    return {key: p / size for key, p in drawn.items()}


def _loss(module: nn.Module, weights: Any, inputs: torch.Tensor, targets: torch.Tensor, loss: str) -> torch.Tensor:
    outputs = functional_call(module, weights, (inputs,))
    if loss == "square":
        return (outputs - targets).square().mean() / 2
    return torch.relu(1 - outputs * targets).mean()


def _landscape(xs: np.ndarray, ys: np.ndarray, loss: np.ndarray, slope: np.ndarray, exact: bool) -> Landscape:
    inner = loss[1:-1, 1:-1]
    shifted = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    rows, columns = loss.shape
    lowest = np.ones_like(inner, dtype=bool)
    for i, j in shifted:
        lowest &= inner < loss[1 + i : rows - 1 + i, 1 + j : columns - 1 + j]
    found = [(float(xs[i + 1]), float(ys[j + 1]), float(inner[i, j])) for i, j in np.argwhere(lowest)]
    return Landscape(
        xs=tuple(map(float, xs)),
        ys=tuple(map(float, ys)),
        loss=tuple(tuple(map(float, row)) for row in loss),
        slope=tuple(tuple(map(float, row)) for row in slope),
        flat=float((slope < FLAT * slope.max()).mean()) if slope.max() > 0 else 1.0,
        minima=tuple(sorted(found, key=lambda place: place[2])),
        exact=exact,
    )


def measure_cosine_landscape(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: target, reach, points."""
    found = cosine_landscape(tuple(config["target"]), config["reach"], config["points"])
    return {"flat": found.flat, "minima": [list(place) for place in found.minima]}
