"""What a reproduced experiment is: settings in several presets, and results in one form whatever was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from theodolite.errors import BadInput
from theodolite.registry import Registry, unknown

Preset = Literal["quick", "full"]
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Part:
    """One thing to run: a registered measure and its settings, a frozen dataclass with `seeds` members."""

    measure: str
    settings: Any


@dataclass(frozen=True)
class Experiment:
    """`section` of the paper; `presets` give the parts at the paper's size and at that of one core and two minutes."""

    name: str
    title: str
    section: str
    presets: Mapping[str, Sequence[Part]]


_HOMES = ("parity", "tuples", "stocks", "curves", "activations", "remedies")
experiments: Registry[Experiment] = Registry(
    "experiment", homes=[f"theodolite.claims.expressivity.failures.{home}" for home in _HOMES]
)


def read(kind: type[Settings], config: Mapping[str, Any]) -> Settings:
    """Settings from plain JSON, strictly: an unknown field is refused by name.

    `draw` is no setting: cells that differ in it alone are the same experiment with other random numbers.
    """
    config = {name: value for name, value in config.items() if name != "draw"}
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType] — a dataclass
    for name in config:
        if name not in known:
            raise BadInput(unknown("setting", name, known))
    return kind(**config)


def result(
    setting: str,
    quantities: Mapping[str, Sequence[float | int | None]],
    shorter: str | None = None,
    **details: Any,
) -> dict[str, Any]:
    """The row of a part: per quantity one value for every seed, None where it was never reached.

    `setting` is the name the published figure is looked up by; `shorter` says in what the run falls short of the
    paper's.
    """
    return {
        "setting": setting,
        "quantities": {name: list(values) for name, values in quantities.items()},
        "shorter": shorter,
        "details": details,
    }


def shortened(steps: int, published: int) -> str | None:
    return f"{steps:,} of {published:,} iterations" if steps < published else None
