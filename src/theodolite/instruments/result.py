"""What a separation-rank measurement returns, the same for all three modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from theodolite.measurement import Measurement, Provenance, finite


@dataclass(frozen=True)
class RankResult:
    """`rank` is the measured rank; what may be claimed of it is said by `exact`, `lower_bound` and `cap`."""

    net: str
    shape: Mapping[str, Any]
    partition: str
    mode: Literal["exact", "grid", "epsilon"]
    token: int
    entry: int
    rank: int
    exact: bool
    lower_bound: int
    cap: int | None
    saturated: bool
    failure_probability: float | None
    primes: tuple[int, ...]
    points: int
    ranks: tuple[int, ...]
    bounds: Mapping[str, Any]
    degree: int | None
    seconds: float
    evaluate_seconds: float
    eliminate_seconds: float
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)
    certificate: Mapping[str, Any] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Everything but the certificate, which is a document of its own."""
        row = finite(asdict(replace(self, certificate=None)))
        del row["certificate"]
        return row

    def to_measurement(self) -> Measurement:
        row = self.to_json()
        kept = ("net", "shape", "partition", "cap", "saturated", "primes", "points", "ranks", "bounds", "degree")
        return Measurement(
            quantity="separation rank",
            value=self.rank,
            exact=self.exact,
            method=f"{self.mode} mode",
            seconds=self.seconds,
            provenance=self.provenance,
            interval=None if self.exact else (self.lower_bound, self.cap if self.cap is not None else float("inf")),
            diagnostics={name: row[name] for name in kept},
        )
