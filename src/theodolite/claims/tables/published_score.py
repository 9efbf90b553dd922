"""A score of a network on a task as a paper reports it, and how we came by the number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# Read in the paper's table and found again in a second source; read once; read in later papers that quote it.
Origin = Literal["checked", "unchecked", "second-hand"]


@dataclass(frozen=True)
class Score:
    """`value` is a share between 0 and 1. `called` is the network's name there, where it is a relative of ours."""

    task: str
    net: str
    quantity: str
    value: float
    origin: Origin
    source: str
    called: str | None = None


def find(scores: Iterable[Score], task: str, net: str, quantity: str) -> tuple[Score, ...]:
    """All that was published of a network on a task; several sources may report it."""
    return tuple(s for s in scores if (s.task, s.net, s.quantity) == (task, net, quantity))
