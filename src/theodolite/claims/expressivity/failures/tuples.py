"""§3.1: the product of the labels of k images, learnt end to end or with the labels of the images as well.

Images are drawn fresh, where the paper draws 500,000 tuples once and reads them eight times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.expressivity.failures.images import SIZE, draw_lines
from theodolite.claims.expressivity.failures.layers import ADAM_WITH_LARGE_EPSILON, apply, correct, hinge
from theodolite.claims.expressivity.failures.tuple_net import combined, features, head, trunk
from theodolite.claims.expressivity.failures.tuple_signal import TupleSignal
from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result, shortened
from theodolite.device import resolve_device
from theodolite.nets.contract import positive
from theodolite.training.loop import train
from theodolite.training.optimiser import Rates
from theodolite.training.step import Weights

PUBLISHED_STEPS = {True: 2_500, False: 20_000}
PUBLISHED_BATCH = 200


@dataclass(frozen=True)
class Tuples:
    """`decompose`: the labels of the single images are learnt, too, their hinge loss added."""

    images: int
    decompose: bool
    seeds: int = 3
    steps: int = 20_000
    batch: int = PUBLISHED_BATCH
    lr: float = 1e-3
    test: int = 2_000

    def __post_init__(self) -> None:
        positive(images=self.images, seeds=self.seeds, steps=self.steps, batch=self.batch, test=self.test)

    @property
    def name(self) -> str:
        return f"k = {self.images}, " + ("decomposed" if self.decompose else "end to end")


def run(settings: Tuples, seed: int, device: str = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    members, k = settings.seeds, settings.images
    weights = trunk(members, generator) | head(members, k, generator)

    def draw(count: int, batch: int = settings.batch) -> tuple[Tensor, Tensor]:
        images, labels = draw_lines(count * members * batch * k, generator)
        return images.view(count, members, batch * k, SIZE, SIZE), labels.view(count, members, batch, k)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        images, labels = batch
        single = apply(weights, "score", features(weights, images))
        total = hinge(combined(weights, single, k), labels.prod(-1, keepdim=True))
        return total + hinge(single, labels.flatten(1)[..., None]) if settings.decompose else total

    looks = sorted({n for n in (500, 2_500, 5_000, 10_000, 20_000) if n < settings.steps} | {settings.steps})
    seen: list[tuple[Tensor, Tensor]] = []

    def look(_: int, weights: Weights) -> None:
        seen.append(_accuracy(weights, settings, draw))

    rule, rates = ADAM_WITH_LARGE_EPSILON, Rates(settings.lr)
    train(weights, loss, draw, steps=settings.steps, rule=rule, rates=rates, looks=looks, look=look, block=10)
    whole, single = (torch.stack(part).tolist() for part in zip(*seen, strict=True))
    missing = [shortened(settings.steps, PUBLISHED_STEPS[settings.decompose])]
    if settings.batch < PUBLISHED_BATCH:
        missing.append(f"batch {settings.batch} of {PUBLISHED_BATCH}")
    return result(
        settings.name,
        {"accuracy": whole[-1], "accuracy per image": single[-1]},
        "; ".join(filter(None, missing)) or None,
        looks=looks,
        accuracy=whole,
        iterations=settings.steps,
        labels_per_tuple=1 + k * settings.decompose,
    )


def _accuracy(weights: Weights, settings: Tuples, draw: Any) -> tuple[Tensor, Tensor]:
    """On fresh tuples: of the product, and of the single scores' signs."""
    whole, single = [], []
    with torch.no_grad():
        for _ in range(-(-settings.test // settings.batch)):
            images, labels = draw(1)
            score = apply(weights, "score", features(weights, images[0]))
            whole.append(correct(combined(weights, score, settings.images), labels[0].prod(-1, keepdim=True)))
            single.append(correct(score, labels[0].flatten(1)[..., None]))
    return torch.stack(whole).mean(0), torch.stack(single).mean(0)


def measure_failure_tuples(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(Tuples, config), seed, device)


_QUICK = {True: 400, False: 800}

experiments.add(
    "tuples",
    Experiment(
        "tuples",
        "Tuples of k images",
        "§3.1",
        {
            "full": (
                Part("failure-tuples-signal", TupleSignal(chunk=5_000)),
                *(
                    Part("failure-tuples", Tuples(k, decompose, steps=PUBLISHED_STEPS[decompose]))
                    for k in (1, 2, 3, 4)
                    for decompose in (True, False)
                ),
            ),
            "quick": (
                Part("failure-tuples-signal", TupleSignal(2, seeds=2, examples=10_000)),
                *(
                    Part("failure-tuples", Tuples(k, decompose, seeds=1, steps=_QUICK[decompose], batch=50))
                    for k in (1, 3)
                    for decompose in (True, False)
                ),
            ),
        },
    ),
)
