"""A net of blocks of given degrees as the degree paper's claims measure it: its exact rank beside its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.nets.load import load
from theodolite.nets.size import count_parameters
from theodolite.theory.cap import homogeneous_cap

SOURCE = "Attention is Optimal Building Block (Navon 2021), "
CONNECTED = "polynomial-mlp"
ATTENTION = "degree-attention"


@dataclass(frozen=True)
class Case:
    """A net of blocks of these degrees. One draw proves a rank that reaches its cap; two are needed below it."""

    family: str
    net: str
    shape: Mapping[str, Any]
    degrees: tuple[int, ...]
    matrices: str = "d"
    draws: int = 1
    points: int = 1_900

    @property
    def full_shape(self) -> dict[str, Any]:
        return {**self.shape, "degrees": list(self.degrees), "matrices": self.matrices}

    @property
    def cell(self) -> Cell:
        options = {"partition": "left-right", "max_points": self.points, "repeats": self.draws}
        return Cell("separation-rank", {"net": self.net, "shape": self.full_shape, **options})

    def found(self, row: Row) -> dict[str, Any]:
        """What was measured; `exact` is false where the rank is a lower bound only."""
        subject = load(self.net, **self.full_shape)
        side = subject.sites * subject.features // 2
        return {
            "degrees": list(self.degrees),
            "matrices": self.matrices,
            "parameters": count_parameters(subject.module),
            "total degree": row["degree"],
            "rank": row["rank"],
            "exact": row["exact"],
            "cap": row["cap"],
            "any polynomial of this degree": homogeneous_cap(row["degree"], side, side),
        }


def text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
