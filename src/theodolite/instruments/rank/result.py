"""What a separation-rank measurement returns, the same for all three modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from theodolite.errors import BadInput
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.measurement import Measurement, Provenance, finite
from theodolite.nets.contract import Predictable, Prediction
from theodolite.notebook import Shown
from theodolite.partition import Partition


def described(function: ScalarFunction, partition: Partition) -> dict[str, Any]:
    """The fields that say what was measured."""
    subject = function.subject
    return {
        "net": subject.name,
        "shape": dict(subject.shape),
        "partition": str(partition),
        "token": function.token,
        "entry": function.entry,
        "source": subject.source,
    }


def predicted_fields(prediction: Prediction | None, rank: int, registered: bool) -> dict[str, Any]:
    """The fields that put theory beside a rank found over GF(p). A cap that a user's net declares proves nothing."""
    if prediction is None:
        none = {"lower": None, "upper": None, "reason": "theory has no formula for this net"}
        return {"cap": None, "saturated": False, "bounds": none}
    bounds = {"lower": prediction.lower, "upper": prediction.upper, "reason": prediction.reason}
    if prediction.cap is not None and rank > prediction.cap:
        if registered:
            raise AssertionError(f"rank {rank} above the cap {prediction.cap}: the cap's proof does not cover this net")
        raise BadInput(f"the net declares a cap of {prediction.cap} and has rank {rank}: correct its 'predict'")
    if not registered:
        reason = f"{prediction.reason}; a cap of {prediction.cap} is declared by the net itself, not proven here"
        return {"cap": None, "saturated": False, "bounds": {**bounds, "reason": reason} if prediction.cap else bounds}
    return {"cap": prediction.cap, "saturated": rank == prediction.cap, "bounds": bounds}


def predict(function: ScalarFunction, partition: Partition) -> Prediction | None:
    """What theory says of the net, where it says anything; of a user's net: what the user says."""
    module = function.subject.module
    return module.predict(partition, function.token) if isinstance(module, Predictable) else None


@dataclass(frozen=True)
class RankResult(Shown):
    """`rank` is the measured rank; what may be claimed of it is said by `exact`, `lower_bound` and `cap`."""

    net: str
    shape: Mapping[str, Any]
    partition: str
    mode: Literal["exact", "grid", "epsilon"]
    token: int
    entry: int
    rank: int
    exact: bool
    source: str | None  # SHA-256 of the user's file
    lower_bound: int | None  # None where nothing is proven, as in epsilon mode
    cap: int | None
    saturated: bool
    failure_probability: float | None
    covers: tuple[str, ...]  # what it counts: points, weights, primes
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

    def _interval(self) -> tuple[float, float] | None:
        if self.exact:
            return None
        if self.mode == "epsilon":
            low, high = self.details["interval"]
            return low, float("inf") if high is None else high
        return self.lower_bound or 0, float("inf") if self.cap is None else self.cap

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
            interval=self._interval(),
            diagnostics={name: row[name] for name in kept},
        )
