"""Wider networks that say what narrower ones say: least squares goes on from a good minimum, with more to fit by.

The units of a narrow network keep their weights. New ones read with random weights and nobody listens to them yet, so
that nothing changes until least squares moves them; and what was found by rows of some folds alone stays so.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.training.stacked import Stacked


def grown(
    narrow: Stacked,
    members: Float[Tensor, "member parameter"],
    wide: Stacked,
    drawn: Float[Tensor, "member larger"],
) -> Float[Tensor, "member larger"]:
    """`wide` is the network of the same graph with more units in its hidden layers, and `drawn` random members of it.

    Examples:
        >>> from theodolite.graphs.families import binary_tree
        >>> from theodolite.nets.compositional_net import CompositionalNet
        >>> from theodolite.training.stacked import draw
        >>> narrow, members = draw(lambda: CompositionalNet(binary_tree(4), width=2), [0])
        >>> wide, more = draw(lambda: CompositionalNet(binary_tree(4), width=3), [1])
        >>> rows = torch.ones(1, 4)
        >>> bool(narrow.values(members, rows).allclose(wide.values(grown(narrow, members, wide, more), rows)))
        True
    """
    old, found = narrow.named(members), wide.named(drawn.clone())
    for name, part in found.items():
        kept = old[name]
        if part.shape == kept.shape:
            part.copy_(kept)
            continue
        if _listens(name):
            part[..., : kept.shape[-2], kept.shape[-1] :] = 0
        part[tuple(slice(0, size) for size in kept.shape)] = kept
    return torch.cat([part.flatten(1) for part in found.values()], dim=1)


def _listens(name: str) -> bool:
    """Whether a weight reads units of a hidden layer."""
    return name.endswith("combine") or (".weights." in name and not name.endswith(".weights.0"))
