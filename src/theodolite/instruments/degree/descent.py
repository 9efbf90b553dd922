"""Many members of one net trained side by side, each with its own data, first weights and learning rate.

All weights of a member stand in one row of a matrix, so that a step of Adam is a dozen kernels whatever the depth; on
CUDA the whole step, its batch included, is one captured graph.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from theodolite.errors import BadInput
from theodolite.nets.load import seeded

logger = logging.getLogger(__name__)

_BETAS, _EPSILON, _CLIP = (0.9, 0.99), 1e-8, 1.0
_WARM_UP = 0.05  # of the steps, the rate rising linearly; then half a cosine down to 0
_DIVERGED = 2.0  # times the loss of the best constant answer
_WARM_STEPS = 3  # before a CUDA graph is captured


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


def descend(
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
    program = _Program(build, members, examples, descent, device, seed)
    best = torch.full((len(members),), math.inf, device=device)
    kept = program.flat.detach().clone()
    last = best
    done = 0
    for look in range(1, descent.looks + 1):
        target = descent.steps * look // descent.looks
        program.run(target - done)
        if progress is not None:
            progress((target - done) / descent.steps)
        done = target
        last, _ = program.evaluate(program.flat, examples.validation)
        better = last < best  # never true of what is no number
        best = torch.where(better, last, best)
        kept = torch.where(better[:, None], program.flat.detach(), kept)
    if keep is not None:
        keep(program.named(kept))
    loss, error = program.evaluate(kept, examples.test)
    useless = ~(best < examples.constant)
    bounded = lambda values, most: torch.where(
        useless | ~values.isfinite(), torch.full_like(values, most), values
    ).clamp(max=most)
    columns = (
        bounded(best, examples.constant),
        bounded(loss, examples.constant),
        bounded(error, examples.constant_error),
        ~(last <= _DIVERGED * examples.constant),
    )
    return [Reached(v, l, e, bool(d)) for v, l, e, d in zip(*(c.tolist() for c in columns), strict=True)]


class _Program:
    """The stacked members and their step."""

    def __init__(
        self,
        build: Callable[[], nn.Module],
        members: Sequence[Member],
        examples: Examples,
        descent: Descent,
        device: torch.device,
        seed: int,
    ) -> None:
        self.examples, self.descent, self.device = examples, descent, device
        self.sources = torch.tensor([m.source for m in members], device=device)
        self.module, self.flat = _stacked(build, members, device)
        self.shapes = {name: p.shape for name, p in self.module.named_parameters()}
        self.moments = [torch.zeros_like(self.flat) for _ in range(2)]
        self.rates = torch.tensor([[m.rate] for m in members], device=device)
        self.table = _scales(descent.steps).to(device)
        self.order = self._order(seed)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self.taken = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.refused = False

    def _order(self, seed: int) -> Tensor:
        """The rows of every step: (step, source or 1, batch)."""
        rows, (steps, batch) = self.examples.train[0].shape[1], (self.descent.steps, self.descent.batch)
        if self.examples.fresh:
            if steps * batch > rows:
                raise BadInput(
                    f"{steps} steps of {batch} fresh rows need {steps * batch} of them and there are {rows}: draw more"
                )
            return torch.arange(steps * batch, device=self.device).view(steps, 1, batch)
        generator = torch.Generator(self.device).manual_seed(seed)
        shape = (steps, self.examples.sources, min(batch, rows))
        return torch.randint(rows, shape, generator=generator, device=self.device)

    def outputs(self, flat: Tensor, inputs: Tensor) -> Tensor:
        return vmap(lambda weights, x: functional_call(self.module, self.named(weights), (x,)))(flat, inputs)

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters in a row of weights, or in many."""
        parts = flat.split([shape.numel() for shape in self.shapes.values()], dim=-1)
        return {name: part.unflatten(-1, shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def step(self) -> None:
        rows = self.order.index_select(0, self.place).squeeze(0)
        rows = rows.expand(len(self.sources), -1) if len(rows) == 1 else rows[self.sources]
        inputs, targets = (part[self.sources[:, None], rows] for part in self.examples.train)
        leaf = self.flat.detach().requires_grad_()
        losses = _losses(self.examples.loss, self.outputs(leaf, inputs), targets)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        self._adam(gradient)

    def _adam(self, gradient: Tensor) -> None:
        """As `torch.optim.Adam`, with a rate for every member; a gradient longer than the bound is shortened to it."""
        gradient = gradient * (_CLIP / (gradient.norm(dim=1, keepdim=True) + 1e-6)).clamp(max=1.0)
        first, second = self.moments
        first.lerp_(gradient, 1 - _BETAS[0])
        second.lerp_(gradient.square(), 1 - _BETAS[1])
        scale, root = self.table.index_select(0, self.place).squeeze(0).unbind()
        self.flat.sub_(self.rates * scale * first / (second.sqrt() * root + _EPSILON))
        self.place.add_(1)

    def run(self, steps: int) -> None:
        """Captured from the fourth step on, where the device can."""
        for _ in range(steps):
            if self.device.type != "cuda" or self.refused:
                self.step()
            elif self.taken < _WARM_STEPS:
                self._warm()
            else:
                self._replay()
            self.taken += 1

    def _warm(self) -> None:
        stream = _side_stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            self.step()
        torch.cuda.current_stream(self.device).wait_stream(stream)

    def _replay(self) -> None:
        if self.graph is None:
            torch.cuda.synchronize(self.device)
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph):
                    self.step()
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                logger.warning("this net's step cannot be captured as a CUDA graph (%s): going on without", error)
                self.refused = True
                self.step()
                return
            self.graph = graph
        self.graph.replay()

    def evaluate(self, flat: Tensor, examples: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Loss and error of every member on all rows of its source."""
        inputs, targets = (part[self.sources] for part in examples)
        with torch.no_grad():
            outputs = self.outputs(flat.detach(), inputs)
            losses = _losses(self.examples.loss, outputs, targets)
            if self.examples.loss == "square":
                spread = targets.var(dim=1, correction=0).mean(dim=1)
                return losses / spread, losses / spread
            wrong = (outputs.argmax(dim=-1) != targets).float().mean(dim=1)
        return losses, wrong


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all programs: cuBLAS keeps tens of megabytes for each stream it has ever run on."""
    return torch.cuda.Stream(device)


def _losses(kind: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean loss of every member."""
    if kind == "square":
        return (outputs - targets).square().flatten(1).mean(dim=1)
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none").view(len(outputs), -1).mean(1)


def _stacked(
    build: Callable[[], nn.Module], members: Sequence[Member], device: torch.device
) -> tuple[nn.Module, Tensor]:
    """The module, and every member's first weights as a row; members of one seed start alike."""
    drawn: dict[int, Tensor] = {}
    module: nn.Module | None = None
    for seed in dict.fromkeys(m.seed for m in members):
        with seeded(seed):
            module = build()
        drawn[seed] = torch.cat([p.detach().flatten() for p in module.parameters()])
    assert module is not None
    return module.to(device), torch.stack([drawn[m.seed] for m in members]).to(device)


def _scales(steps: int) -> Tensor:
    """Of every step: the rate's schedule over the first moment's bias, and one over the root of the second's bias."""
    rise = max(1, round(_WARM_UP * steps))
    rows = []
    for step in range(1, steps + 1):
        fall = 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))
        schedule = step / rise if step <= rise else max(fall, 0.0)
        rows.append((schedule / (1 - _BETAS[0] ** step), 1 / math.sqrt(1 - _BETAS[1] ** step)))
    return torch.tensor(rows)
