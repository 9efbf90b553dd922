"""§2: one hidden layer of 10·d ReLU units learns a parity of d bits by SGD on fresh batches, or does not.

x = + − − + −   (d = 5, first 3 matter)
y = +           (their product)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.expressivity.failures.layers import affine, apply, correct, hinge
from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result, shortened
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.nets.contract import positive
from theodolite.training.loop import train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.step import Weights

PUBLISHED_STEPS = 50_000


@dataclass(frozen=True)
class Parity:
    """`size`: how many of the bits matter; None draws it from Bin(d, ½) for every seed, as the paper does.

    Accuracy is looked at every `look_every` steps, and after the last, on `test` fresh examples, as in the paper's
    code, and at the end on `final` of them.
    """

    bits: int
    size: int | None = None
    seeds: int = 5
    steps: int = PUBLISHED_STEPS
    width_per_bit: int = 10
    lr: float = 0.01
    batch: int = 128
    look_every: int = 100
    test: int = 500
    final: int = 20_000

    def __post_init__(self) -> None:
        positive(bits=self.bits, seeds=self.seeds, steps=self.steps, batch=self.batch, look_every=self.look_every)
        positive(test=self.test, final=self.final, width_per_bit=self.width_per_bit)
        if self.size is not None and not 0 <= self.size <= self.bits:
            raise BadInput(f"size = {self.size} of {self.bits} bits cannot matter: give 0 to {self.bits}, or leave out")

    @property
    def name(self) -> str:
        return f"d = {self.bits}, " + ("prefix of random size" if self.size is None else f"k = {self.size}")


def run(settings: Parity, seed: int, device: str = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    members, bits = settings.seeds, settings.bits
    if settings.size is None:
        coins = torch.rand(members, bits, generator=generator, device=generator.device) < 0.5
        sizes = coins.sum(1)
    else:
        sizes = torch.full((members,), settings.size, device=generator.device)
    relevant = torch.arange(bits, device=generator.device) < sizes[:, None]
    weights = network(members, bits, settings.width_per_bit * bits, generator)

    def draw(count: int, batch: int = settings.batch) -> tuple[Tensor, Tensor]:
        shape = (count, members, batch, bits)
        x = torch.randint(0, 2, shape, generator=generator, device=generator.device, dtype=torch.int8)
        flips = (x * relevant[:, None, :]).sum(-1, keepdim=True, dtype=torch.int32)
        return 1 - 2 * x.float(), 1 - 2 * (flips % 2).float()

    looks = [*range(settings.look_every, settings.steps, settings.look_every), settings.steps]
    seen: list[Tensor] = []

    def look(_: int, weights: Weights) -> None:
        with torch.no_grad():
            x, y = draw(1, settings.test)
            seen.append(correct(scores(weights, x[0]), y[0]))

    weights = train(
        weights,
        lambda w, batch: hinge(scores(w, batch[0]), batch[1]),
        draw,
        steps=settings.steps,
        rule=Rule("sgd", momentum=0.0, clip=None),
        rates=Rates(settings.lr),
        looks=looks,
        look=look,
    )
    with torch.no_grad():
        parts = zip(*draw(10, -(-settings.final // 10)), strict=True)
        final = torch.stack([correct(scores(weights, x), y) for x, y in parts]).mean(0)
    accuracy = torch.stack(seen).cpu()
    return result(
        settings.name,
        {
            "iterations to 95 %": _first(accuracy, 0.95, looks),
            "iterations to 100 %": _first(accuracy, 1.0, looks),
            "mean accuracy": accuracy.mean(0).tolist(),
            "final accuracy": final.tolist(),
        },
        shortened(settings.steps, PUBLISHED_STEPS),
        sizes=sizes.tolist(),
        iterations=settings.steps,
        batch=settings.batch,
        curve=accuracy.mean(1)[:: max(1, len(looks) // 50)].tolist(),
    )


def network(members: int, inputs: int, width: int, generator: torch.Generator) -> Weights:
    return affine("hidden", members, inputs, width, generator) | affine("score", members, width, 1, generator)


def scores(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    return apply(weights, "score", apply(weights, "hidden", x).relu())


def _first(accuracy: Tensor, bar: float, looks: list[int]) -> list[int | None]:
    """The first look at which each member reached the bar."""
    reached = accuracy >= bar
    return [looks[int(c.int().argmax())] if bool(c.any()) else None for c in reached.unbind(1)]


def measure_failure_parity(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(Parity, config), seed, device)


_SIZES = {5: (None, 2, 3), 10: (None, 4, 5), 30: (None, 14, 15)}
_QUICK_STEPS = {5: 5_000, 10: 25_000, 30: 5_000}

experiments.add(
    "parity",
    Experiment(
        "parity",
        "Parity by one hidden layer",
        "§2",
        {
            "full": tuple(
                Part("failure-parity", Parity(bits, size, seeds=10)) for bits, sizes in _SIZES.items() for size in sizes
            ),
            "quick": tuple(
                Part("failure-parity", Parity(bits, size, seeds=5 if bits < 30 else 3, steps=_QUICK_STEPS[bits]))
                for bits, sizes in _SIZES.items()
                for size in sizes
            ),
        },
    ),
)
