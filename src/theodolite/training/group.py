"""What a group of members is asked to do, and what it tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from theodolite.errors import BadInput
from theodolite.training.optimiser import Rates


@dataclass(frozen=True)
class MemberSpec:
    """What one member has of its own."""

    key: str
    seed: int
    rates: Rates


@dataclass(frozen=True)
class Schedule:
    """What all members of a group share: fresh data in every step, a look every `every` steps.

    `rows` are drawn per length in the last evaluation, four times as many over all lengths of training as in a look.
    `unseen` lengths are only ever evaluated. `to_the_end`: solved members train on. A schedule that `grows` can be made
    longer: its draws do not depend on `steps`, and where it ends is kept for a longer one to go on from.
    """

    steps: int
    batch: int = 64
    every: int = 100
    rows: int = 32
    unseen: tuple[int, ...] = ()
    to_the_end: bool = False
    grows: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "every", "rows"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.steps < 0:
            raise BadInput(f"the number of steps must be 0 or more, not {self.steps}")
        if self.grows and not (self.to_the_end and self.steps % self.every == 0):
            raise BadInput(
                f"a training that may grow goes to the end and ends with a look: {self.steps} steps are no multiple of "
                f"{self.every}"
                if self.to_the_end
                else "a training that may grow goes to the end: set to_the_end"
            )

    def to_json(self) -> dict[str, Any]:
        """As stores have it in the configuration of a cell: what cannot grow is not named so."""
        row = {**asdict(self), "unseen": list(self.unseen)}
        return row if self.grows else {k: v for k, v in row.items() if k != "grows"}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Schedule:
        return cls(**{**row, "unseen": tuple(row["unseen"])})


@dataclass(frozen=True)
class Finished:
    """A member that is done. `result` is plain JSON and depends on the configuration, device and grouping alone."""

    key: str
    result: dict[str, Any]
    seconds: float
    batching: str
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Look:
    """One member at one evaluation."""

    key: str
    step: int
    loss: float | None
    score: float
