"""What a request may ask for: each parameter with its limits, read from text or refused in a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.errors import BadInput, UnknownName
from theodolite.registry import unknown

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?")


@dataclass(frozen=True)
class Whole:
    name: str
    label: str
    default: int
    low: int
    high: int
    kind = "range"
    logarithmic = False
    step = 1

    @property
    def ends(self) -> tuple[int, int, int]:
        """Of the slider: low, high and where it stands at first."""
        return self.low, self.high, self.default

    @property
    def shown(self) -> str:
        return str(self.default)

    def read(self, text: str) -> int:
        if not _WHOLE.fullmatch(text) or not self.low <= int(text) <= self.high:
            raise BadInput(
                f"{self.label} '{text[:40]}' is not possible here: give a whole number from {self.low} to {self.high}"
            )
        return int(text)


@dataclass(frozen=True)
class Number:
    """`logarithmic`: its slider moves by factors."""

    name: str
    label: str
    default: float
    low: float
    high: float
    logarithmic: bool = False
    kind = "range"

    @property
    def ends(self) -> tuple[float, float, float]:
        """Of the slider: low, high and where it stands at first."""
        values = (self.low, self.high, self.default)
        return tuple(map(math.log10, values)) if self.logarithmic else values  # pyright: ignore[reportReturnType]

    @property
    def shown(self) -> str:
        return f"{self.default:g}".replace("e+0", "e").replace("e+", "e")

    @property
    def step(self) -> float:
        low, high, _ = self.ends
        return 10.0 ** round(math.log10((high - low) / 1000))

    def read(self, text: str) -> float:
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not self.low <= value <= self.high:
            raise BadInput(
                f"{self.label} '{text[:40]}' is not possible here: give a number from {self.low:g} to {self.high:g}"
            )
        return value


@dataclass(frozen=True)
class Choice:
    name: str
    label: str
    options: Sequence[str]
    kind = "choice"

    @property
    def default(self) -> str:
        return self.options[0]

    def read(self, text: str) -> str:
        if text not in self.options:
            raise UnknownName(unknown(self.label, text[:80], self.options))
        return text


@dataclass(frozen=True)
class Words:
    """`hidden`: the page fills it in."""

    name: str
    label: str
    default: str = ""
    longest: int = 200
    hidden: bool = False
    kind = "words"

    def read(self, text: str) -> str:
        if len(text) > self.longest or not text.isprintable():
            raise BadInput(f"{self.label} '{text[:40]}…' cannot be read: give at most {self.longest} letters")
        return text


Control = Whole | Number | Choice | Words


def read(controls: Iterable[Control], given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A value for every control: the one given, or its default. What no control has is refused."""
    known = {control.name: control for control in controls}
    texts: dict[str, str] = {}
    for name, text in given:
        if name not in known:
            raise UnknownName(unknown("parameter", name[:80], list(known)))
        if name in texts:
            raise BadInput(f"the parameter '{name}' is given twice: give it once")
        texts[name] = text
    return {name: control.read(texts[name]) if name in texts else control.default for name, control in known.items()}


def some(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given: nothing for an empty text."""
    return {name: value for name, value in values.items() if value != ""}
