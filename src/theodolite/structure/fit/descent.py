"""Adam for many members at once, in float32: from random weights to where least squares can take over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.structure.fit.stacked import Stacked

RATE = 0.03
BATCH = 256  # rows a step, the same for all members
DECAY = 1e-5  # of ‖θ‖², added to the mean square
JUDGED = 20  # steps from one look at the held-out rows to the next
FIRST, SECOND, SMALL = 0.9, 0.99, 1e-8  # of Adam: the memory of the mean and of the square, and what keeps it finite


def descend(
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
    kind = members.dtype
    rows, targets, weights = rows.float(), targets.float(), weights.float()
    state = members.float()
    mean, square = torch.zeros_like(state), torch.zeros_like(state)
    blind = (1 - weights).sum(1) == 0  # nothing held out: the last parameters are kept
    best, lowest = state, torch.full_like(state[:, 0], torch.inf)
    for step in range(1, steps + 1):
        x, y, w = rows, targets, weights
        if rows.shape[-2] > BATCH:
            drawn = torch.randint(rows.shape[-2], (BATCH,), generator=generator)
            x, y, w = rows[..., drawn, :], targets[..., drawn], weights[:, drawn]
        state = state.detach().requires_grad_()
        loss = (w * (net.outputs(state, x) - y) ** 2).mean(1).sum() + DECAY * (state**2).sum()
        (slope,) = torch.autograd.grad(loss, state)
        state = state.detach()
        mean.lerp_(slope, 1 - FIRST)
        square.lerp_(slope**2, 1 - SECOND)
        now = rate * min(1.0, step / 20) * 0.5 * (1 + math.cos(math.pi * step / (steps + 1)))
        bias = math.sqrt(1 - SECOND**step) / (1 - FIRST**step)
        state = state - now * bias * mean / (square.sqrt() + SMALL)
        if progress is not None:
            progress(step, steps)
        late = until is not None and time.monotonic() > until
        if late or step % JUDGED == 0 or step == steps:
            with torch.no_grad():
                score = ((1 - weights) * (net.outputs(state, rows) - targets) ** 2).sum(1)
            best = torch.where((blind | (score < lowest))[:, None], state, best)
            lowest = torch.minimum(score, lowest)
        if late:
            break
    return best.to(kind)
