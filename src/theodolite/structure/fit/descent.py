"""Adam for many members at once, in float32: from random weights to where least squares can take over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.structure.fit.jacobian import values
from theodolite.training.loop import Best, train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.schedules import half_cosine
from theodolite.training.stacked import Stacked

RATE = 0.03
RULE = Rule(betas=(0.9, 0.99), clip=None)
WARM_UP = 20  # steps
BATCH = 256  # rows a step, the same for all members
DECAY = 1e-5  # of ‖θ‖², added to the mean square
JUDGED = 20  # steps from one look at the held-out rows to the next


def train_networks(
    net: Stacked,
    members: Float[Tensor, "member parameter"],
    rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    targets: Float[Tensor, " row"] | Float[Tensor, "member row"],
    weights: Float[Tensor, "member row"],
    generator: torch.Generator,
    *,
    steps: int = 300,
    rate: float = RATE,
    until: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Float[Tensor, "member parameter"]:
    """Minimises the mean of w r², plus a little ℓ₂; the rate warms up and decays as a cosine to 0. The parameters that
    come back are those, of every so many steps, that were best on the rows of weight 0. Rows and targets
    are common to the members, or each has its own."""
    count, all_rows = rows.shape[-2], (rows.float(), targets.float(), weights.float())
    start = {"parameters": members.float()}
    best, held = Best(start), 1 - all_rows[2]
    blind = held.sum(1) == 0  # nothing held out: the last parameters are kept

    def draw(batches: int) -> tuple[Tensor, ...]:
        return (torch.randint(count, (batches, BATCH), generator=generator),)

    def loss(own: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        x, y, w = all_rows
        if batch:
            x, y, w = x[..., batch[0], :], y[..., batch[0]], w[:, batch[0]]
        state = own["parameters"]
        return (w * (values(net, state, x) - y) ** 2).mean(1) + DECAY * (state**2).sum(1)

    def look(step: int, own: dict[str, Tensor]) -> bool:
        if progress is not None:
            progress(step, steps)
        late = until is not None and time.monotonic() > until
        if late or step % JUDGED == 0 or step == steps:
            x, y, _ = all_rows
            with torch.no_grad():
                score = (held * (values(net, own["parameters"], x) - y) ** 2).sum(1)
            best.offer(own, torch.where(blind, float(-step), score))
        return late

    train(
        start,
        loss,
        draw if count > BATCH else None,
        steps=steps,
        rule=RULE,
        rates=Rates(rate),
        schedule=lambda step: min(1.0, step / WARM_UP) * half_cosine(step / (steps + 1)),
        looks=range(1, steps + 1),
        look=look,
    )
    return best.weights["parameters"].to(members.dtype)
