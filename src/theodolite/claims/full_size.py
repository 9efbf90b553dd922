"""A claim at the size of a published table, which takes a GPU: two stages, both fixed before the first begins.

Everything that is compared is trained for the same number of steps. What the first stage leaves undecided goes on once,
from where it ended, and after that nothing does. Each stage has half of the level, so that looking twice costs nothing,
and Holm's correction runs over all comparisons of a stage.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from theodolite.claims.tables.sides import LEVEL
from theodolite.lab.cell import Row

Place = TypeVar("Place", bound=Hashable)

STEPS = (5_000, 20_000)  # of training, at the end of each stage
MEMBERS = 30  # for every setting, ten seeds at three rates or thirty seeds at one

STAGES = (
    f"Two stages fixed beforehand, {STEPS[0]:,} steps for every network compared, then, once, {STEPS[1]:,} where that "
    f"leaves something undecided; each at a level of {100 * LEVEL:g} % over all its comparisons together (Holm)."
)


def stages(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each stage that was run."""
    found = [[row for row in rows if row.cell.config["schedule"]["steps"] == steps] for steps in STEPS]
    return [stage for stage in found if stage]


def decided(
    rows: Sequence[Row], of_stage: Callable[[Sequence[Row]], Mapping[Place, bool | None]]
) -> dict[Place, bool | None]:
    """By the first stage that decided it; None where neither did."""
    said: dict[Place, bool | None] = {}
    for stage in stages(rows):
        said |= {place: side for place, side in of_stage(stage).items() if said.get(place) is None}
    return said
