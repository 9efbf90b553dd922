"""Images of one line each, drawn on the device: 28×28 pixels, 0 and 1, not anti-aliased.

A line has a centre uniform over the image, an angle θ uniform in [0, π) and a length uniform in [5, 23]; the pixels
under the points centre ± l·(cos θ, sin θ), l = 0, 1, … below half the length, are set, and what lies outside is cut
off. The label is + for θ < π/2: rows and columns of the line grow together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SIZE = 28
SHORTEST, LONGEST = 5.0, SIZE - 5.0
_REACH = int(LONGEST // 2)


def draw_lines(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images (count, 28, 28) and labels (count,) of +1 and −1."""
    device = generator.device
    uniform = torch.rand(4, count, generator=generator, device=device)
    angle = math.pi * uniform[0]
    half = ((SHORTEST + (LONGEST - SHORTEST) * uniform[1]) / 2).floor()
    centre = SIZE * uniform[2:].T
    return paint(centre, angle, half), 1 - 2 * (angle >= math.pi / 2).float()


def paint(centre: Tensor, angle: Tensor, half: Tensor) -> Tensor:
    """Images of the lines; `half` points to each side of the centre, which is one of them."""
    count = len(angle)
    along = torch.arange(1 - _REACH, _REACH, device=angle.device)
    direction = torch.stack([angle.cos(), angle.sin()], dim=1)
    place = (centre[:, None, :] + along[None, :, None] * direction[:, None, :]).to(torch.int64)
    inside = ((place >= 0) & (place < SIZE)).all(-1) & (along.abs() < half[:, None])
    index = torch.where(inside, place[..., 0] * SIZE + place[..., 1], SIZE * SIZE)
    canvas = torch.zeros(count, SIZE * SIZE + 1, device=angle.device)
    return canvas.scatter_(1, index, 1.0)[:, :-1].reshape(count, SIZE, SIZE)
