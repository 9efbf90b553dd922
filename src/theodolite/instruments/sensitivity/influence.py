"""Which tokens an output depends on at all, how that falls with distance, and how far apart attention's logits are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.instruments.random_nets import call, checked
from theodolite.nets.load import Blueprint
from theodolite.nets.transformer import TransformerBlock, attention, logits
from theodolite.statistics.laws import choose_law

_UNDERFLOW = 1e-250  # a derivative that fades to this before it is 0 has no end, only too few digits


def reach(plan: Blueprint, module: nn.Module, x: Tensor, circular: bool = False) -> int | None:
    """Distance from the last token to the furthest one whose derivative is not exactly 0, around the end if circular.

    None for an output without tokens.
    """
    x = x.clone().requires_grad_()
    output = checked(plan, x, call(plan, module, x))
    if output.dim() != 3:
        return None
    weights = torch.linspace(1, 2, output.shape[2], dtype=output.dtype, device=output.device)
    if not output.requires_grad:
        return 0
    try:
        (slopes,) = torch.autograd.grad((output[:, -1] * weights).sum(), x, allow_unused=True)
    except RuntimeError as error:
        raise BadInput(f"'{plan.name}' has no derivative by its input: {error}") from error
    if slopes is None:
        return 0
    felt = (slopes != 0).any(dim=2).any(dim=0)
    distance = torch.arange(x.shape[1] - 1, -1, -1, device=x.device)
    if circular:
        distance = torch.minimum(distance, x.shape[1] - distance)
    if not bool(felt.any()):
        return 0
    furthest = int(distance[felt].max())
    at_the_end = slopes.abs().amax(dim=2).amax(dim=0)[distance == furthest].max()
    return furthest if float(at_the_end) > _UNDERFLOW else int(distance.max())


def logit_range(plan: Blueprint, module: nn.Module, x: Tensor) -> float | None:
    """The largest difference between two logits of one query, over all softmax blocks; None where there are none."""
    ranges: list[float] = []

    def look(block: nn.Module, args: tuple[Any, ...]) -> None:
        assert isinstance(block, TransformerBlock)
        x, hidden, turns = (*args, None, None)[:3]
        query, key, _ = block.split(block.before_attention(x), turns)
        scores = logits(query, key)
        seen = scores if hidden is None else scores + hidden
        highest, lowest = seen.amax(dim=-1), torch.where(seen.isinf(), torch.inf, seen).amin(dim=-1)
        ranges.append(float((highest - lowest).max()))

    blocks = [m for m in module.modules() if isinstance(m, TransformerBlock) and m.mix is attention]
    handles = [block.register_forward_pre_hook(look) for block in blocks]
    try:
        with torch.no_grad():
            call(plan, module, x)
    finally:
        for handle in handles:
            handle.remove()
    return max(ranges, default=None)


def profile_distances(length: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … up to the first token."""
    ladder = sorted({round(2 ** (k / 2)) for k in range(2 * length.bit_length() + 1)})
    return [distance for distance in ladder if distance < length]


def decay(distances: Sequence[int], changes: np.ndarray, floor: float) -> dict[str, Any]:
    """Flat, a power of the distance or exponential in it, or neither: changes are of (draw, distance)."""
    middle = np.median(changes, axis=0)
    kept = middle > floor
    x = np.array(distances, dtype=float)[kept]
    return law_of(x, np.maximum(changes[:, kept], floor))


def law_of(x: np.ndarray, changes: np.ndarray) -> dict[str, Any]:
    """The law of the change at x, its geometric mean over draws, chosen on points held out, as plain values."""
    logs = np.log(changes)
    noise = float(np.sqrt((logs.var(axis=0, ddof=1) / len(logs)).mean())) if len(logs) > 1 and logs.size else 0.0
    law = choose_law(x, logs.mean(axis=0), noise)
    found = {"shape": law.shape, "exponent": law.exponent, "half_life": law.half_life, "held_out_errors": law.errors}
    return {name: value for name, value in found.items() if value is not None or name == "shape"}
