"""What a published table is: its experiments, the cells that measure them again, and results from the rows of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.claims.tables.experiment import Preset
from theodolite.lab.campaign import Outcome
from theodolite.lab.cell import Cell
from theodolite.registry import Registry

Result = dict[str, Any]  # plain JSON; every result has `experiment`, `shorter` and `error`


@dataclass(frozen=True)
class Request:
    """What of a table is asked for. `nets` is None for all of them; `seeds`, `steps` and `precision` are None for the
    preset's."""

    preset: Preset
    experiments: tuple[str, ...]
    nets: tuple[str, ...] | None = None
    seeds: int | None = None
    seed: int = 0
    steps: int | None = None
    precision: str | None = None


@dataclass(frozen=True)
class Plan:
    """`settings` say how groups of cells are run, `weigh` what share of the progress a cell is (its steps, if None)."""

    cells: tuple[Cell, ...]
    results: Callable[[Outcome], list[Result]]
    locations: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    weigh: Callable[[Cell], float] | None = None


@dataclass(frozen=True)
class PublishedTable:
    """`nets` is empty where experiments are not a matter of which net; `statements`: what the results say of the
    paper's sentences, as plain JSON. `quick`: the experiments that the quick preset runs unless others are named."""

    title: str
    source: str
    experiments: Callable[[], Sequence[str]]
    plan: Callable[[Request], Plan]
    nets: tuple[str, ...] = ()
    statements: Callable[[Sequence[Mapping[str, Any]]], list[dict[str, str]]] = lambda results: []
    quick: tuple[str, ...] | None = None


_HOMES = ("chomsky", "failures", "recall", "universal_transformer")
tables: Registry[PublishedTable] = Registry("table", homes=[f"theodolite.claims.tables.{home}" for home in _HOMES])
