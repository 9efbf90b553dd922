"""What a witness is: a network with explicit weights that computes a task, or a checked proof that none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from theodolite.tasks.contract import Task


@dataclass(frozen=True)
class Witness:
    """`module` reads what the task gives and answers as the task asks: a vector task (batch, features) to (batch,
    outputs); a sequence task one-hot tokens (batch, token, vocab) to (batch, token, outputs).

    `units` counts the nodes that apply a nonlinearity, `depth` the layers of them on the longest way from an input to
    the output (tokens are not layers: a recurrence is as deep as its stack). `predicted` holds the counts of a formula
    under the same names (`parameters`, `units`, `depth`), `at_most` the bounds that a theorem gives for them.
    """

    name: str
    module: nn.Module
    source: str
    units: int
    depth: int
    shape: Mapping[str, Any] = field(default_factory=dict)  # arguments of the registered net it is an instance of
    predicted: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Impossible:
    """No network of this architecture computes the task; `reason` is the proof in a sentence, `checked` what was
    computed to check it, as plain JSON."""

    name: str
    reason: str
    source: str
    checked: Mapping[str, Any]


# A task and the shape the user asked for (empty: any) to a witness, a proof of the contrary, or None where the
# construction does not cover them.
Construction = Callable[[Task, Mapping[str, Any]], Witness | Impossible | None]

_constructions: dict[str, list[Construction]] = {}


def constructs(net: str) -> Callable[[Construction], Construction]:
    """Decorator: a construction for an architecture, a registered net or one that only witnesses have, such as
    `threshold`. Those of one architecture are tried in the order of registration: the most economical first."""

    def add(construction: Construction) -> Construction:
        _constructions.setdefault(net, []).append(construction)
        return construction

    return add


def constructions(net: str) -> list[Construction]:
    return list(_constructions.get(net, ()))


def architectures() -> list[str]:
    """Every architecture that some construction is about."""
    return sorted(_constructions)
