"""How far a discovery is: one number that never falls, from its first word to its last."""

from __future__ import annotations

import numpy as np
import pytest

from theodolite import discover
from theodolite.structure.progress import part_of


def test_a_stage_tells_its_part_of_the_whole() -> None:
    told = []
    tell = part_of(lambda *said: told.append(said), 0.2, 0.6)
    assert tell is not None
    tell(1, 4, "fits")
    assert told == [(pytest.approx(0.3), 1.0, "fits")]
    assert part_of(None, 0.0, 1.0) is None


@pytest.mark.parametrize("effort", ["quick", "auto"])
def test_the_share_that_is_done_never_falls(effort: str) -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (120, 3))
    y = np.sin(2 * x[:, 0] * x[:, 1]) + x[:, 2]
    told: list[float] = []
    discover((x, y), effort=effort, progress=lambda done, total, label: told.append(done / total))
    assert told[0] == 0.0
    assert told == sorted(told)
    assert 0.5 < told[-1] <= 1.0
