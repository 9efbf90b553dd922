"""§3.1: how much signal the gradient of the k-tuple objective carries at the start of training.

Signal ‖E g‖² over noise E‖g − E g‖², where g is the gradient of one example's loss by the 100 weights of the score,
expectations over examples, for drawn weights. Decomposed, g is that of the first image's own loss. The paper puts the
squared norm of the *mean over N* examples for the signal. Its expectation is signal + noise/N, so that a ratio below
1/N cannot be seen; `unbiased` subtracts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.expressivity.failures.images import SIZE, draw_lines
from theodolite.claims.expressivity.failures.layers import apply
from theodolite.claims.expressivity.failures.tuple_net import combined, features, head, trunk
from theodolite.claims.tables.experiment import read, result
from theodolite.claims.tables.failures_published import SIGNAL
from theodolite.device import resolve_device
from theodolite.nets.contract import positive

PUBLISHED_EXAMPLES = 500_000


@dataclass(frozen=True)
class TupleSignal:
    """`examples` tuples for each of `seeds` drawn networks, for every length from 1 to `images`."""

    images: int = 4
    seeds: int = 5
    examples: int = PUBLISHED_EXAMPLES
    chunk: int = 1_000

    def __post_init__(self) -> None:
        positive(images=self.images, seeds=self.seeds, examples=self.examples, chunk=self.chunk)


def run(settings: TupleSignal, seed: int, device: str = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    members = settings.seeds
    shared = trunk(members, generator)
    quantities: dict[str, list[float]] = {}
    chunks = -(-settings.examples // settings.chunk)
    plain: dict[tuple[str, int], Tensor] = {}
    for k in range(1, settings.images + 1):
        weights = shared | head(members, k, generator)
        sums = {name: _Sums() for name in ("end to end", "decomposed")}
        for _ in range(chunks):
            images, labels = draw_lines(members * settings.chunk * k, generator)
            found = gradients(weights, images.view(members, -1, SIZE, SIZE), labels.view(members, settings.chunk, k))
            for name, gradient in found.items():
                sums[name].add(gradient)
        for name, gathered in sums.items():
            plain[name, k], unbiased = gathered.ratios()
            quantities[f"{name}, k = {k}"] = plain[name, k].tolist()
            quantities[f"{name}, k = {k}, unbiased"] = unbiased.tolist()
    if settings.images > 1:
        for name in ("end to end", "decomposed"):
            quantities[f"{name}, fall from k = 1 to 2"] = (plain[name, 1] / plain[name, 2]).tolist()
    examples = chunks * settings.chunk
    shorter = f"{examples:,} of {PUBLISHED_EXAMPLES:,} examples" if examples < PUBLISHED_EXAMPLES else None
    return result(SIGNAL, quantities, shorter, examples=examples, floor=1 / examples)


def gradients(weights: Mapping[str, Tensor], images: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """(member, tuple, 100): per example, by the score's weights. They enter through the scores alone, so
    g = Σ_i ∂loss/∂score_i · features_i."""
    members, count, k = labels.shape
    with torch.no_grad():
        inputs = features(weights, images)
        score = apply(weights, "score", inputs)
    score.requires_grad_()
    loss = (1 - labels.prod(-1, keepdim=True) * combined(weights, score, k)).relu()
    (slope,) = torch.autograd.grad(loss.sum(), score)
    by_image = inputs.view(members, count, k, -1)
    first = score.detach().view(members, count, k)[..., 0] * labels[..., 0]
    own = torch.where(first < 1, -labels[..., 0], 0.0)
    return {
        "end to end": (slope.view(members, count, k, 1) * by_image).sum(2),
        "decomposed": own[..., None] * by_image[:, :, 0],
    }


class _Sums:
    """Running sums of gradients and of their squared norms, in float64."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, gradient: Tensor) -> None:
        wide = gradient.double()
        self.count += gradient.shape[1]
        self.total = self.total.to(wide.device) + wide.sum(1)
        self.squares = self.squares.to(wide.device) + wide.square().sum((1, 2))

    def ratios(self) -> tuple[Tensor, Tensor]:
        """Signal over noise as published, and with the signal's bias removed; per member."""
        mean = (self.total / self.count).square().sum(1)
        noise = (self.squares / self.count - mean) * (self.count / (self.count - 1))
        return (mean / noise).cpu(), ((mean - noise / self.count) / noise).cpu()


def measure_failure_tuples_signal(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(TupleSignal, config), seed, device)
