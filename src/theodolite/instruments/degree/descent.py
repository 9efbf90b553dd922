"""Many members of one net trained side by side, each with its own data, first weights and learning rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.training.loop import Best, in_turn, train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.schedules import rise_then_cosine
from theodolite.training.stacked import draw
from theodolite.training.step import Weights

_RULE = Rule(betas=(0.9, 0.99), clip=1.0)
_WARM_UP = 0.05  # of the steps, the rate rising linearly; then half a cosine down to 0
_DIVERGED = 2.0  # times the loss of the best constant answer


@dataclass(frozen=True)
class Examples:
    """What members learn from: inputs (source, row, feature); targets (source, row, output), or class ids of (source,
    row) for cross-entropy. Rows of `fresh` examples are seen once each, in order; those of a finite set are drawn.

    `constant` is the loss of the best constant answer and `constant_error` its error, the same for all sources.
    """

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    loss: Literal["square", "cross-entropy"]
    outputs: int
    fresh: bool
    constant: float
    constant_error: float

    @property
    def features(self) -> int:
        return self.train[0].shape[-1]

    @property
    def sources(self) -> int:
        return len(self.train[0])

    @staticmethod
    def join(several: Sequence[Examples]) -> Examples:
        """The sources of several, one after another; those of fewer features get columns of zeros."""
        first = several[0]
        for other in several[1:]:
            for name in ("loss", "outputs", "fresh", "constant", "constant_error"):
                if getattr(other, name) != getattr(first, name):
                    raise BadInput(
                        f"problems with {name} {getattr(first, name)} and {getattr(other, name)} cannot be trained "
                        "side by side: give those of one shape"
                    )
        if len(several) == 1:
            return first
        most = max(e.features for e in several)
        parts = {}
        for name in ("train", "validation", "test"):
            inputs = [F.pad(getattr(e, name)[0], (0, most - e.features)) for e in several]
            parts[name] = torch.cat(inputs), torch.cat([getattr(e, name)[1] for e in several])
        rest = {f.name: getattr(first, f.name) for f in fields(first) if f.name not in parts}
        return Examples(**parts, **rest)


@dataclass(frozen=True)
class Member:
    """`source` is where its examples stand, `seed` draws its first weights."""

    source: int
    seed: int
    rate: float


@dataclass(frozen=True)
class Descent:
    """`looks` times over the training the validation loss is taken, and the best weights by it are the result."""

    steps: int
    batch: int = 128
    looks: int = 10

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "looks"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise BadInput(f"{name} must be a whole number of at least 1, not {value!r}")


@dataclass(frozen=True)
class Reached:
    """Of one member: the loss on validation examples and the error on test examples of its best weights, neither above
    the constant answer's; the error is the share of the variance left, or the share of wrong classes. `diverged`: at
    the end of training its validation loss was no number or more than twice the constant answer's."""

    validation: float
    loss: float
    error: float
    diverged: bool


def train_members(
    build: Callable[[], nn.Module],
    members: Sequence[Member],
    examples: Examples,
    descent: Descent,
    device: torch.device,
    seed: int,
    progress: Callable[[float], None] | None = None,
    keep: Callable[[dict[str, Tensor]], None] | None = None,
) -> list[Reached]:
    """Train them all; `seed` draws the batches of a finite set, `progress` is told shares of the whole, `keep` is given
    the best weights by name, members first."""
    net, first = draw(build, [m.seed for m in members], device)
    sources = torch.tensor([m.source for m in members], device=device)
    order = _order(examples, descent, device, seed)
    weights = {"parameters": first}
    best, last = Best(weights), torch.empty(0)
    looks = [descent.steps * look // descent.looks for look in range(1, descent.looks + 1)]
    done = 0

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        rows = batch[0].expand(len(sources), -1) if len(batch[0]) == 1 else batch[0][sources]
        inputs, targets = (part[sources[:, None], rows] for part in examples.train)
        return _losses(examples.loss, net.outputs(weights["parameters"], inputs), targets)

    def evaluate(weights: Weights, part: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Loss and error of every member on all rows of its source."""
        inputs, targets = (tensor[sources] for tensor in part)
        with torch.no_grad():
            return _judged(examples.loss, net.outputs(weights["parameters"], inputs), targets)

    def look(step: int, weights: Weights) -> None:
        nonlocal done, last
        if progress is not None:
            progress((step - done) / descent.steps)
        done = step
        last, _ = evaluate(weights, examples.validation)
        best.offer(weights, last)

    train(
        weights,
        loss,
        in_turn(order),
        steps=descent.steps,
        rule=_RULE,
        rates=[Rates(m.rate) for m in members],
        schedule=rise_then_cosine(descent.steps, max(1, round(_WARM_UP * descent.steps))),
        looks=looks,
        look=look,
    )
    if keep is not None:
        keep(net.named(best.weights["parameters"]))
    loss_left, error = evaluate(best.weights, examples.test)
    useless = ~(best.score < examples.constant)
    bounded = lambda values, most: torch.where(
        useless | ~values.isfinite(), torch.full_like(values, most), values
    ).clamp(max=most)
    columns = (
        bounded(best.score, examples.constant),
        bounded(loss_left, examples.constant),
        bounded(error, examples.constant_error),
        ~(last <= _DIVERGED * examples.constant),
    )
    return [Reached(v, l, e, bool(d)) for v, l, e, d in zip(*(c.tolist() for c in columns), strict=True)]


def _order(examples: Examples, descent: Descent, device: torch.device, seed: int) -> Tensor:
    """The rows of every step: (step, source or 1, batch)."""
    rows, (steps, batch) = examples.train[0].shape[1], (descent.steps, descent.batch)
    if examples.fresh:
        if steps * batch > rows:
            raise BadInput(
                f"{steps} steps of {batch} fresh rows need {steps * batch} of them and there are {rows}: draw more"
            )
        return torch.arange(steps * batch, device=device).view(steps, 1, batch)
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randint(rows, (steps, examples.sources, min(batch, rows)), generator=generator, device=device)


def _judged(kind: str, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The loss and the error of every member: the share of the variance left is both, or the share of wrong classes."""
    losses = _losses(kind, outputs, targets)
    if kind == "square":
        left = losses / targets.var(dim=1, correction=0).mean(dim=1)
        return left, left
    return losses, (outputs.argmax(dim=-1) != targets).float().mean(dim=1)


def _losses(kind: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean loss of every member."""
    if kind == "square":
        return (outputs - targets).square().flatten(1).mean(dim=1)
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").view(len(outputs), -1).mean(1)
