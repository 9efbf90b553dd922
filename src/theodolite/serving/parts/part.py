"""A part of the page: what can be set, and what answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.serving.requests import Control
from theodolite.serving.shown import Shown


@dataclass(frozen=True)
class Part:
    """`answers` by name, "" for the first; each takes those of the controls that its signature names, so that what
    does not depend on a control is not computed again when that moves. `command` does the same in a terminal.
    `changes`: what is below the folder enters, so that nothing is remembered."""

    id: str
    title: str
    about: str
    controls: Sequence[Control]
    answers: Mapping[str, Callable[..., Shown]]
    command: str
    changes: bool = False

    def asked(self, answer: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values[name] for name in inspect.signature(self.answers[answer]).parameters}
