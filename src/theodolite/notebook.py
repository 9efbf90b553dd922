"""In a notebook a result shows what its command prints, with its pictures, and what takes long says how far it is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_DRAWN_BY = "theodolite.cli.notebook"  # knows every command's view; imported when something is shown


class Shown:
    """A result; which view it has follows from the name of its class."""

    def _repr_html_(self) -> str:
        return importlib.import_module(_DRAWN_BY).html(type(self).__name__, self)


class Entries(list[T]):
    """A list of results, which says `of` what they are; `about` is what more their view needs to know."""

    def __init__(self, of: str, entries: Iterable[T], about: str = "") -> None:
        super().__init__(entries)
        self.of, self.about = of, about

    def _repr_html_(self) -> str:
        return importlib.import_module(_DRAWN_BY).html(self.of, self)


def watching() -> Callable[[float, float, str], None] | None:
    """Of (done, total, label): one line of the notebook that is drawn anew; None where there is no notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal of IPython has none
        return None
    return importlib.import_module(_DRAWN_BY).Line(importlib.import_module("IPython.display"))
