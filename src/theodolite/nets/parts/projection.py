"""Linear maps into and out of a net, shared by all families."""

from __future__ import annotations

from torch import nn


def embedding(features: int, width: int, rank: int | None = None) -> nn.Module:
    """Features to width; through `rank` numbers where one is given (Eq. 7.9); nothing where there is nothing to do."""
    if rank is None:
        return nn.Identity() if features == width else nn.Linear(features, width, bias=False)
    last = nn.Linear(rank, width, bias=False)
    return last if features == rank else nn.Sequential(nn.Linear(features, rank, bias=False), last)


def readout(width: int, outputs: int | None) -> nn.Module:
    """Width to outputs, or the width itself when no number of outputs is asked for."""
    return nn.Identity() if outputs is None else nn.Linear(width, outputs, bias=False)
