"""Public models as facts: their configurations, the number of parameters as published, and where it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from theodolite.advice.reading import read_config
from theodolite.advice.shape import Modality, ModelShape

DATA = Path(__file__).with_name("models.json")
UNITS = {"": 1.0, "M": 1e6, "B": 1e9, "T": 1e12}

Counts = Literal["all", "without embeddings", "not compared"]


@dataclass(frozen=True)
class PublicModel:
    """A model somebody published.

    `published` is the number of parameters as printed ("124M"), `digits` how many of its digits mean something (zeros
    at the end of a whole number may be rounding). `counts` says which parameters that number counts, with the `reason`
    where it is not simply all of them; `tokens` is the length of the training, where it is known for sure.
    """

    name: str
    config: Mapping[str, Any]
    published: str
    digits: int
    source: str
    year: int
    modality: Modality
    counts: Counts = "all"
    reason: str = ""
    tokens: str | None = None

    @property
    def published_params(self) -> float:
        return _number(self.published)

    @property
    def shape(self) -> ModelShape:
        return read_config(self.config, self.name, build=False)

    @property
    def counted(self) -> int | None:
        """Our count of what the published number counts; None where the two are not comparable."""
        if self.counts == "not compared":
            return None
        shape = self.shape
        tables = sum(shape.parts[part] for part in ("embedding", "positions", "head"))
        return shape.params - (tables if self.counts == "without embeddings" else 0)


@cache
def models() -> tuple[PublicModel, ...]:
    """Every model of the catalogue, in the order of the file."""
    return tuple(
        PublicModel(digits=_digits(entry["published"]), **entry)
        for entry in json.loads(DATA.read_text(encoding="utf-8"))
    )


def _number(printed: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MBT]?)", printed)
    if found is None:
        raise ValueError(f"{printed!r} is not a number of parameters as printed")
    return float(found[1]) * UNITS[found[2]]


def _digits(printed: str) -> int:
    digits = printed.rstrip("".join(UNITS))
    whole = digits if "." in digits else digits.rstrip("0")
    return len(whole.replace(".", "").lstrip("0"))
