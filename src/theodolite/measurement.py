"""A measured value with how it was obtained and what could be wrong: the row every instrument returns."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from theodolite.errors import BadInput
from theodolite.notebook import Shown
from theodolite.version import __version__, commit, package_hash

SCHEMA = 2
_SINCE_2 = ("commit", "package")  # of the provenance: rows of schema 1 do not say which code made them


@dataclass(frozen=True)
class Provenance:
    """Where a row came from; it is never part of a key.

    `commit` is None where the package does not run from a checkout; `package` is a hash of its files, as they were.
    """

    version: str
    seed: int
    device: str
    date: str
    python: str
    torch: str
    commit: str | None = None
    package: str | None = None

    @classmethod
    def here(cls, seed: int, device: str) -> Provenance:
        import torch

        return cls(
            version=__version__,
            seed=seed,
            device=device,
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            python=platform.python_version(),
            torch=str(torch.__version__),
            commit=commit(),
            package=package_hash(),
        )


@dataclass(frozen=True)
class Measurement(Shown):
    """One measured quantity.

    `exact` is true only for a value with no sampling error and no rounding; otherwise `interval` holds the
    range the value is believed to lie in (None where no estimate of it exists, and `diagnostics` says why).
    """

    quantity: str
    value: float | int | None
    exact: bool
    method: str
    seconds: float
    provenance: Provenance
    interval: tuple[float, float] | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **finite(asdict(self))}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Measurement:
        schema = row.get("schema")
        if schema not in (1, SCHEMA):
            raise BadInput(f"a measurement of schema {schema!r} cannot be read: this version reads 1 to {SCHEMA}")
        names = {f.name for f in fields(cls)}
        given = set(row) - {"schema"}
        if given != names:
            raise BadInput(f"a measurement has the fields {sorted(names)}: these differ: {sorted(given ^ names)}")
        body = {name: row[name] for name in names}
        origin, parts = body["provenance"], {f.name for f in fields(Provenance)}
        parts -= set(_SINCE_2 if schema == 1 else ())
        if not isinstance(origin, Mapping) or set(origin) != parts:
            raise BadInput(f"a measurement's provenance has the fields {sorted(parts)}, not {origin!r}")
        body["provenance"] = Provenance(**origin)
        if body["interval"] is not None:
            body["interval"] = tuple(body["interval"])
        return cls(**body)


def canonical(config: Any) -> str:
    """The one text a configuration has: sorted keys, no spaces. Keys, seeds and hashes are made from it."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seed_of(config: Any) -> int:
    """The seed rule: the first 63 bits of SHA-256 over the canonical text of what is run."""
    return int.from_bytes(hashlib.sha256(canonical(config).encode()).digest()[:8], "big") >> 1


def finite(value: Any) -> Any:
    """JSON has no infinities: they become None, at any depth."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
