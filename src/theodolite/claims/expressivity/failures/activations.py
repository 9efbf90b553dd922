"""§5: learning y = u(⟨w, x⟩ + b), u a flight of steps whose gradient is zero almost everywhere, in four variants.

    approximation  the linear unit under steps with slopes between them (a sigmoid in the last tenth of a step)
    end to end     three hidden layers of 100 ReLU units, squared error, the form of u unknown
    multi-class    two hidden layers of 100 ReLU units, a class for each step
    forward only   the linear unit; u forwards, the identity backwards (a perceptron's update)

Inputs x ~ N(0, I)/100 in 100 dimensions, w, b ~ N(0, 1). The steps follow the paper's code: 52 of them, b − 100 to
b + 95 by 5, and finer ones near b; nearly all of the inputs meet the six finest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.claims.expressivity.failures.layers import ADAM_WITH_LARGE_EPSILON, affine, apply
from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result, shortened
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.nets.contract import positive
from theodolite.training.loop import train
from theodolite.training.optimiser import Rates
from theodolite.training.step import Weights

Variant = Literal["approximation", "end to end", "multi-class", "forward only"]
PUBLISHED_STEPS = {"approximation": 10_000, "end to end": 10_000, "multi-class": 10_000, "forward only": 5_000}
STEPS = tuple(
    sorted({*range(-100, 100, 5)} | {-5, -4, -3, -2, -1, -0.2, 0, 0.1, 0.15, 0.175, 1, 2, 3, 4, 5})
)  # relative to b
NEAR = 0.005  # of the range of the labels
_STEEPNESS, _LAST = 5.0, 10.0  # the sigmoid's factor, and which part of a step it takes
_LAYERS = {
    "approximation": (1,),
    "end to end": (100, 100, 100, 1),
    "multi-class": (100, 100, 100),
    "forward only": (1,),
}


@dataclass(frozen=True)
class Activations:
    """Measured on `test` fresh examples; `steps` and `lr` are the variant's own unless given. Every seed draws a target
    and its examples, which `starts` networks learn, all from the same ones."""

    variant: Variant
    seeds: int = 5
    starts: int = 1
    steps: int | None = None
    inputs: int = 100
    batch: int = 256
    lr: float | None = None
    test: int = 2_560

    def __post_init__(self) -> None:
        if self.variant not in get_args(Variant):
            raise BadInput(f"there is no variant '{self.variant}' here: use {', '.join(get_args(Variant))}")
        positive(seeds=self.seeds, starts=self.starts, inputs=self.inputs, batch=self.batch, test=self.test)
        if self.steps is not None:
            positive(steps=self.steps)

    @property
    def name(self) -> str:
        return self.variant


def run(settings: Activations, seed: int, device: str | torch.device = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    device, targets, inputs = generator.device, settings.seeds, settings.inputs
    variant, members = settings.variant, settings.seeds * settings.starts
    normal = torch.randn(targets, inputs + 1, 1, generator=generator, device=device)
    direction, offset = normal[:, :inputs], normal[:, inputs:]
    steps_of_targets = offset[:, 0] + torch.tensor(STEPS, device=device)
    flight = _started(steps_of_targets, settings.starts)
    weights: Weights = {}
    for number, size in enumerate(_LAYERS[variant]):
        weights |= affine(str(number), members, inputs if number == 0 else 100, size, generator)

    def draw(count: int, batch: int = settings.batch) -> tuple[Tensor, Tensor]:
        x = torch.randn(count, targets, batch, inputs, generator=generator, device=device) / inputs
        reached = (x @ direction + offset)[..., 0]
        return x, torch.searchsorted(steps_of_targets.expand(count, -1, -1).contiguous(), reached, right=True) - 1

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        x, place = batch[0], _started(batch[1], settings.starts)
        output = _network(weights, x, variant)
        if variant == "multi-class":
            return F.cross_entropy(output.mT, place, reduction="none").mean(1)
        return (_activated(output, flight, variant)[..., 0] - flight.gather(1, place)).square().mean(1)

    steps = settings.steps or PUBLISHED_STEPS[variant]
    weights = train(
        weights,
        loss,
        draw,
        steps=steps,
        rule=ADAM_WITH_LARGE_EPSILON,
        rates=Rates(settings.lr or (0.01 if variant == "approximation" else 0.001)),
    )
    with torch.no_grad():
        x, place = (part[0] for part in draw(1, settings.test))
        place = _started(place, settings.starts)
        label = flight.gather(1, place)
        output = _network(weights, x, variant)
        if variant == "multi-class":
            found = flight.gather(1, output[..., : flight.shape[1]].argmax(-1))
        else:
            found = _activated(output, flight, variant)[..., 0]
        span = label.amax(1, keepdim=True) - label.amin(1, keepdim=True)
        error = (found - label).abs() / span
    return result(
        settings.name,
        {"share near": (error <= NEAR).float().mean(1).tolist(), "mean error": error.mean(1).tolist()},
        shortened(steps, PUBLISHED_STEPS[variant]),
        iterations=steps,
        range_of_labels=span[:, 0].tolist(),
        offsets=offset.flatten().tolist(),
    )


def _started(of_targets: Tensor, starts: int) -> Tensor:
    """(target, …) → (member, …): the members of a target stand together."""
    return of_targets if starts == 1 else of_targets.repeat_interleave(starts, 0)


def _network(weights: Mapping[str, Tensor], x: Tensor, variant: str) -> Tensor:
    """x is (target, example, input): the members of a target read the same examples."""
    last = len(_LAYERS[variant]) - 1
    first, bias = weights["0.weight"], weights["0.bias"]
    targets, (members, inputs, size) = len(x), first.shape
    together = first.view(targets, -1, inputs, size).transpose(1, 2).reshape(targets, inputs, -1)
    x = (x @ together).view(targets, x.shape[1], -1, size).transpose(1, 2).reshape(members, -1, size) + bias
    for number in range(1, last + 1):
        x = apply(weights, str(number), x.relu())
    return x


def _activated(p: Tensor, flight: Tensor, variant: str) -> Tensor:
    """(member, example, 1) → the same, through the activation that the variant trains with."""
    if variant == "end to end":
        return p
    if variant == "forward only":
        return p + (floor(p[..., 0], flight)[..., None] - p).detach()
    return sloped(p, flight)


def floor(p: Tensor, flight: Tensor) -> Tensor:
    """The highest step at or below p; the lowest where p lies below all."""
    place = torch.searchsorted(flight, p.contiguous(), right=True) - 1
    return flight.gather(1, place.clamp(min=0))


def sloped(p: Tensor, flight: Tensor) -> Tensor:
    """Steps joined by sigmoids over the last tenth of each. Only those of p's own step and of the one below count: the
    others are 0 or 1 to within 4e-6."""
    place = (torch.searchsorted(flight, p[..., 0].contiguous(), right=True) - 1).clamp(0, flight.shape[1] - 2)
    total = 0.0
    for back in (0, 1):
        below = (place - back).clamp(min=0)
        low, height = flight.gather(1, below), (flight.gather(1, below + 1) - flight.gather(1, below))
        rise = torch.sigmoid(_STEEPNESS * _LAST * (p[..., 0] - low - height * (1 - 1 / (2 * _LAST))) / height)
        total = low + rise * height if back == 0 else total - torch.where(place > 0, (1 - rise) * height, 0.0)
    return total[..., None]  # pyright: ignore[reportIndexIssue]


def measure_failure_activations(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(Activations, config), seed, device)


experiments.add(
    "activations",
    Experiment(
        "activations",
        "Flat activations",
        "§5",
        {
            "full": tuple(Part("failure-activations", Activations(v, seeds=10)) for v in get_args(Variant)),
            "quick": tuple(
                Part("failure-activations", Activations(v, seeds=3, steps=steps))
                for v, steps in zip(get_args(Variant), (10_000, 5_000, 5_000, 5_000), strict=True)
            ),
        },
    ),
)
