"""Whether the steps of a run earn the time it takes to compile them: judged by how long they take, and undone where
compiled ones turn out no faster. The run itself is the trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from theodolite.errors import BadInput

Compiling = Literal["auto", "always", "never"]

_SECONDS = {"cuda": 20.0, "cpu": 40.0}  # what one program takes to compile, about
_KEPT = 2.0  # and to read from the disk
_SAVED = 0.5  # the share of the time left that compiled steps may save
_SETTLING = 2  # looks before a speed is believed: steps are captured or compiled until then


class Ahead(Protocol):
    """Other processes that compile while the group trains."""

    @property
    def processes(self) -> int: ...
    def begin(self) -> None: ...
    @property
    def finished(self) -> bool: ...
    def stop(self) -> None: ...


def check_compiling(way: str) -> Compiling:
    if way not in get_args(Compiling):
        raise BadInput(f"compile must be one of {', '.join(get_args(Compiling))}, not '{way}'")
    return way  # pyright: ignore[reportReturnType]


@dataclass
class Earning:
    """Told of the seconds a step took between two looks, says whether the next ones are to be compiled.

    `shapes` programs are needed, `kept` of them are on the disk (None: nobody looked), `processes` compile at once;
    `said` is what was decided, in words for the row.
    """

    way: Compiling
    device: str
    shapes: int
    kept: int | None = None
    processes: int = 1
    said: str | None = None
    _looks: int = field(default=0, init=False)
    _plain: float | None = field(default=None, init=False)

    def compiles(self, compiled: bool, step: int, seconds: float, left: int) -> bool:
        """After `step` steps that took `seconds` each lately, `compiled` or not, with `left` to go."""
        self._looks += 1
        if self.way != "auto" or not self.settled:
            return compiled
        if not compiled:
            if self._plain is not None:
                return False
            rounds = -(-self.missing // self.processes)
            needed = (self.shapes - self.missing) * _KEPT + rounds * _SECONDS[self.device]
            if _SAVED * left * seconds < needed:
                self.said = f"not compiled: {left * seconds:.0f} s of steps do not earn about {needed:.0f} s"
                return False
            self._plain, self._looks, self.said = seconds, 0, f"compiled from step {step} on"
            return True
        if self._plain is not None and seconds >= self._plain:
            self.said = f"not compiled after step {step}: no faster"
            return False
        return True

    @property
    def missing(self) -> int:
        """Programs that are not on the disk, as far as is known."""
        return self.shapes - (self.kept or 0)

    @property
    def settled(self) -> bool:
        """Whether the speed of the present way is known."""
        return self._looks >= _SETTLING

    def refused(self, reason: str) -> None:
        self._plain, self.said = 0.0, f"not compiled: {reason}"

    def begin_again(self) -> None:
        """With fewer members, for which nothing is compiled."""
        self._plain, self._looks, self.kept = None, 0, None
