"""§3.1: the network of the k-tuples. Per image two blocks of 5×5 convolution with 16 channels and 2×2 max pooling,
layers of 50 and 100 and a score; then sigmoid, a layer of 100 and one output on the k scores.

Text and code of the paper differ, and this follows the code: no ReLU after a convolution, a deviation of 1/√28 for the
first convolution and of 1/√16 for the second.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.claims.expressivity.failures.images import SIZE
from theodolite.claims.expressivity.failures.layers import affine, apply, truncated_normal
from theodolite.training.step import Weights

CHANNELS, KERNEL = 16, 5


def trunk(members: int, generator: torch.Generator) -> Weights:
    """What reads one image, shared by all of a tuple."""
    device = generator.device
    shape = (members, CHANNELS, 1, KERNEL, KERNEL)
    return {
        "one.weight": truncated_normal(shape, SIZE, generator),
        "one.bias": torch.zeros(members, CHANNELS, device=device),
        "two.weight": truncated_normal((members, CHANNELS, CHANNELS, KERNEL, KERNEL), CHANNELS, generator),
        "two.bias": torch.zeros(members, CHANNELS, device=device),
        **affine("three", members, CHANNELS * (SIZE // 4) ** 2, 50, generator),
        **affine("four", members, 50, 100, generator),
        **affine("score", members, 100, 1, generator),
    }


def head(members: int, images: int, generator: torch.Generator) -> Weights:
    return affine("middle", members, images, 100, generator) | affine("whole", members, 100, 1, generator)


def features(weights: Mapping[str, Tensor], images: Tensor) -> Tensor:
    """(member, image, 28, 28) → (member, image, 100), what the score is a linear form of."""
    # A loop, because a grouped convolution is slower than its groups one after another.
    flat = []
    for member, own in enumerate(images[:, :, None]):
        for block in ("one", "two"):
            own = F.conv2d(
                own, weights[f"{block}.weight"][member], weights[f"{block}.bias"][member], padding=KERNEL // 2
            )
            own = F.max_pool2d(own, 2)
        flat.append(own.flatten(1))
    return apply(weights, "four", apply(weights, "three", torch.stack(flat)).relu()).relu()


def combined(weights: Mapping[str, Tensor], single: Tensor, images: int) -> Tensor:
    """(member, image, 1) scores of images → (member, tuple, 1) scores of tuples."""
    inputs = single.sigmoid().view(len(single), -1, images)
    return apply(weights, "whole", apply(weights, "middle", inputs).relu())
