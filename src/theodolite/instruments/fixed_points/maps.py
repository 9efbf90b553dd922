"""Maps of which it is known what iterating them does, by name: to try the instrument on, and to test it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.registry import unknown

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class NamedMap:
    """`size` is the one it has, None for any; `arguments` are its own with their values when they are not given."""

    make: Callable[..., Map]
    summary: str
    size: int | None
    within: tuple[float, float]
    arguments: Mapping[str, float]


def named_map(name: str, size: int | None = None, **arguments: Any) -> tuple[Map, int, tuple[float, float]]:
    """The map, the numbers in its z and the cube its starts are drawn from."""
    if name not in MAPS:
        raise BadInput(unknown("map", name, list(MAPS)))
    entry = MAPS[name]
    foreign = [key for key in arguments if key not in entry.arguments]
    if foreign:
        raise BadInput(f"for the map '{name}': {unknown('argument', foreign[0], list(entry.arguments))}")
    for key, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(f"{key} of the map '{name}' is a number, not {value!r}")
    if entry.size is not None and size not in (None, entry.size):
        raise BadInput(f"the map '{name}' has z of size {entry.size}, not {size}: leave the size out")
    chosen = entry.size or size or 64
    given = {**entry.arguments, **arguments}
    return (entry.make(**given) if entry.size else entry.make(chosen, **given)), chosen, entry.within


def _logistic(r: float) -> Map:
    return lambda z: r * z * (1 - z)


def _tent(slope: float) -> Map:
    return lambda z: 1 - slope * z.abs()


def _henon(a: float, b: float) -> Map:
    return lambda z: torch.stack((1 - a * z[..., 0] ** 2 + z[..., 1], b * z[..., 0]), dim=-1)


def _rotation(angle: float) -> Map:
    cos, sin = math.cos(angle), math.sin(angle)
    return lambda z: torch.stack((cos * z[..., 0] - sin * z[..., 1], sin * z[..., 0] + cos * z[..., 1]), dim=-1)


def _newton() -> Map:
    """Newton's method for z³ = 1."""

    def step(z: Tensor) -> Tensor:
        c = torch.view_as_complex(z.contiguous())
        return torch.view_as_real(c - (c**3 - 1) / (3 * c**2))

    return step


def _linear(_size: int, factor: float) -> Map:
    return lambda z: factor * z


def _tanh(size: int, gain: float, draw: float) -> Map:
    """tanh(W z) with independent weights of deviation gain/√size: chaotic for large nets with a gain above 1."""
    generator = torch.Generator().manual_seed(seed_of(["tanh map", size, int(draw)]))
    weight = torch.randn(size, size, generator=generator, dtype=torch.float64) * gain / math.sqrt(size)
    return lambda z: torch.tanh(z @ weight.to(z.device).T)


MAPS = {
    "logistic": NamedMap(_logistic, "r·z·(1 − z)", 1, (0.0, 1.0), {"r": 4.0}),
    "tent": NamedMap(_tent, "1 − slope·|z|", 1, (-0.9, 0.9), {"slope": 1.9}),
    "henon": NamedMap(_henon, "(1 − a·u² + v, b·u)", 2, (-0.1, 0.1), {"a": 1.4, "b": 0.3}),
    "rotation": NamedMap(_rotation, "a turn of the plane by an angle", 2, (-1.0, 1.0), {"angle": 1.0}),
    "newton": NamedMap(_newton, "Newton's method for z³ = 1", 2, (-2.0, 2.0), {}),
    "linear": NamedMap(_linear, "factor·z", None, (-1.0, 1.0), {"factor": 2.0}),
    "tanh": NamedMap(
        _tanh, "tanh(W z), W drawn with deviation gain/√size", None, (-1.0, 1.0), {"gain": 2.0, "draw": 0.0}
    ),
}
