"""Trained members put together: all that their summary says, exactly, and kept in a few hundred characters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from theodolite.lab.cell import Row
from theodolite.lab.sums import Spread, Sum

STATUSES = ("solved", "unsolved", "diverged")
_TOLD = ("score", "chance", "threshold", "parameters")  # by the first member for all of them
_PERHAPS = ("trained_lengths", "state_size")  # likewise, where it says so
_SPREADS = ("accuracy", "unseen", "converged")
_SUMS = ("mean_steps", "seconds")
LARGEST = 2**63  # a seed is below it


class NotAMember(ValueError):
    """A row that is not as `learn` writes one."""


@dataclass(frozen=True, slots=True)
class Member:
    """What a summary and a comparison need to know of one trained member."""

    seed: int
    lr: float
    weight_decay: float
    status: str
    accuracy: float | None
    unseen: float | None
    solved_at: float | None
    converged: float | None
    mean_steps: float | None
    seconds: float | None
    by_length: list[tuple[int, float]]
    told: dict[str, Any]
    device: str
    batching: str

    @classmethod
    def of(cls, row: Row) -> Member:
        config, result, facts = row.cell.config, row.result, row.facts
        try:
            if not described(config):
                raise NotAMember("a configuration of something else")
            seed, status = config["seed"], result["status"]
            if type(seed) is not int or not -LARGEST <= seed < LARGEST or status not in STATUSES:
                raise NotAMember(f"seed {seed!r} or status {status!r}")
            lr, decay = _number(config["lr"]), _number(config["weight_decay"])
            if lr is None or decay is None or not isinstance(result["score"], str):
                raise NotAMember("rates or the name of the score")
            return cls(
                seed,
                lr,
                decay,
                status,
                _number(result["accuracy"]),
                _number(result["unseen"]),
                _number(result["solved_at"]),
                _number(result.get("converged")),
                _number(result.get("mean_steps")),
                _number(facts.get("seconds")),
                [(_length(length), score) for length, v in result["by_length"] if (score := _number(v)) is not None],
                {name: result[name] for name in _TOLD} | {name: result.get(name) for name in _PERHAPS},
                str(facts.get("device") or ""),
                str(facts.get("batching") or ""),
            )
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise NotAMember(f"{type(error).__name__}: {error}") from error


@dataclass(slots=True)
class Tally:
    """Of members of one condition, at one pair of rates and with one status.

    `first` is the row of the first of them, `told` what that one says for all; `solved_at` counts members by the step
    at which they solved their task, and `devices` and `batchings` say in which row each was first seen.
    """

    first: int
    told: dict[str, Any]
    members: int = 0
    accuracy: Spread = field(default_factory=Spread)
    unseen: Spread = field(default_factory=Spread)
    converged: Spread = field(default_factory=Spread)
    mean_steps: Sum = field(default_factory=Sum)
    seconds: Sum = field(default_factory=Sum)
    lengths: dict[int, Sum] = field(default_factory=dict)
    solved_at: dict[float, int] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    batchings: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, member: Member) -> None:
        """The row of this number, which is behind all that were added before."""
        self.members += 1
        for name in (*_SPREADS, *_SUMS):
            value = getattr(member, name)
            if value is not None:
                getattr(self, name).add(value)
        for length, score in member.by_length:
            if length not in self.lengths:
                self.lengths[length] = Sum()
            self.lengths[length].add(score)
        if member.solved_at is not None:
            self.solved_at[member.solved_at] = self.solved_at.get(member.solved_at, 0) + 1
        self.devices.setdefault(member.device, number)
        self.batchings.setdefault(member.batching, number)

    def encoded(self) -> str:
        return json.dumps(
            [
                self.first,
                self.told,
                self.members,
                [getattr(self, name).to_json() for name in _SPREADS],
                [getattr(self, name).to_json() for name in _SUMS],
                [[length, *scores.to_json()] for length, scores in self.lengths.items()],
                list(self.solved_at.items()),
                self.devices,
                self.batchings,
            ],
            separators=(",", ":"),
            allow_nan=False,
        )

    @classmethod
    def decoded(cls, text: str) -> Tally:
        """ValueError for what is none."""
        try:
            first, told, members, spreads, sums, lengths, solved_at, devices, batchings = json.loads(text)
            accuracy, unseen, converged = (Spread.from_json(one) for one in spreads)
            mean_steps, seconds = (Sum.from_json(one) for one in sums)
            made = cls(
                _whole(first),
                {name: told[name] for name in (*_TOLD, *_PERHAPS)},
                _whole(members),
                accuracy,
                unseen,
                converged,
                mean_steps,
                seconds,
                {_length(length): Sum.from_json(scores) for length, *scores in lengths},
                {_step(step): _whole(count) for step, count in solved_at},
                {name: _whole(number) for name, number in devices.items()},
                {name: _whole(number) for name, number in batchings.items()},
            )
        except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError("not a tally") from error
        if not isinstance(made.told["score"], str) or not made.members:
            raise ValueError("not a tally")
        return made


Tallies = Mapping[tuple[float, float, str], Tally]  # by learning rate, weight decay and status


def tallied(rows: Iterable[Row]) -> dict[tuple[float, float, str], Tally]:
    """Members of one condition, by rates and status."""
    found: dict[tuple[float, float, str], Tally] = {}
    for number, row in enumerate(rows):
        member = Member.of(row)
        key = (member.lr, member.weight_decay, member.status)
        if key not in found:
            found[key] = Tally(number, member.told)
        found[key].add(number, member)
    return found


def described(config: Mapping[str, Any]) -> bool:
    """Whether it says of a training what every such configuration says."""
    sections = [config.get(name) for name in ("shape", "task_args", "optimiser", "schedule")]
    named = all(isinstance(config.get(name), str) for name in ("net", "task"))
    if not named or not all(isinstance(one, Mapping) for one in sections):
        return False
    return "name" in config["optimiser"] and {"steps", "batch"} <= set(config["schedule"])


def plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """What all members of a condition share, in the order it was written."""
    return {name: value for name, value in config.items() if name not in ("seed", "lr", "weight_decay")}


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise NotAMember(f"{value!r} is no number")
    return float(value)


def _step(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is no number of steps")
    return float(value)


def _length(value: Any) -> int:
    if type(value) is not int:
        raise NotAMember(f"{value!r} is no length")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
