"""§3.2: which of k stocks pays for input x, learnt from the pay of a weighted choice or from the right answer.

Input one of d = 1,000 (one-hot), p = softmax(Wx + b) the weights of k stocks. A day z has ±1 for every stock and +1 for
the one that belongs to x. End to end −⟨p, z⟩ is minimised, decomposed −p_y for that stock y; the reported loss is
−⟨p, z⟩ on 500 fresh examples in both, −1 at best. The same gradient on average; the first is drowned in noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.expressivity.failures.layers import ADAM_WITH_LARGE_EPSILON, affine
from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result, shortened
from theodolite.device import resolve_device
from theodolite.nets.contract import positive
from theodolite.training.loop import train
from theodolite.training.optimiser import Rates
from theodolite.training.step import Weights

PUBLISHED_STEPS = 2_500


@dataclass(frozen=True)
class Stocks:
    stocks: int
    decompose: bool
    seeds: int = 5
    steps: int = PUBLISHED_STEPS
    inputs: int = 1_000
    batch: int = 100
    lr: float = 0.1
    test: int = 500

    def __post_init__(self) -> None:
        positive(stocks=self.stocks, seeds=self.seeds, steps=self.steps, inputs=self.inputs, batch=self.batch)

    @property
    def name(self) -> str:
        return f"k = {self.stocks}, " + ("decomposed" if self.decompose else "end to end")


def run(settings: Stocks, seed: int, device: str | torch.device = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    device, members, k = generator.device, settings.seeds, settings.stocks
    answers = torch.randint(0, k, (members, settings.inputs), generator=generator, device=device)
    weights = affine("stocks", members, settings.inputs, k, generator)
    member = torch.arange(members, device=device)[:, None]

    def chosen(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
        # The product with a one-hot input is a row of the matrix.
        row = weights["stocks.weight"].flatten(0, 1).index_select(0, (x + settings.inputs * member).flatten())
        return (row.view(*x.shape, k) + weights["stocks.bias"]).softmax(-1)

    def pay(p: Tensor, x: Tensor, z: Tensor) -> Tensor:
        y = answers[member, x][..., None]
        return (p * z.scatter(-1, y, 1.0)).sum(-1).mean(1)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        x, *z = batch
        p = chosen(weights, x)
        return -(pay(p, x, z[0]) if z else p.gather(-1, answers[member, x][..., None]).mean((1, 2)))

    def places(*shape: int) -> Tensor:
        return torch.randint(0, settings.inputs, (*shape,), generator=generator, device=device)

    def days(*shape: int) -> Tensor:
        return 2 * torch.randint(0, 2, (*shape, k), generator=generator, device=device, dtype=torch.int8).float() - 1

    def draw(count: int) -> tuple[Tensor, ...]:
        shape = (count, members, settings.batch)
        return (places(*shape),) if settings.decompose else (places(*shape), days(*shape))

    looks = sorted({n for n in (500, 1_000, 2_500) if n < settings.steps} | {settings.steps})
    quantities: dict[str, Tensor] = {}

    def look(step: int, weights: Weights) -> None:
        with torch.no_grad():
            x = places(members, settings.test)
            quantities[f"loss at {step:,}"] = -pay(chosen(weights, x), x, days(members, settings.test))

    rule, rates = ADAM_WITH_LARGE_EPSILON, Rates(settings.lr)
    train(weights, loss, draw, steps=settings.steps, rule=rule, rates=rates, looks=looks, look=look, block=2)
    return result(
        settings.name,
        {name: values.tolist() for name, values in quantities.items()},
        shortened(settings.steps, PUBLISHED_STEPS),
        iterations=settings.steps,
        looks=looks,
    )


def measure_failure_stocks(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(Stocks, config), seed, device)


experiments.add(
    "stocks",
    Experiment(
        "stocks",
        "Choosing one of k stocks",
        "§3.2",
        {
            "full": tuple(
                Part("failure-stocks", Stocks(k, decompose)) for k in (10, 1_000, 2_000) for decompose in (True, False)
            ),
            "quick": tuple(
                Part("failure-stocks", Stocks(k, decompose, seeds=1))
                for k in (10, 1_000)
                for decompose in (True, False)
            ),
        },
    ),
)
