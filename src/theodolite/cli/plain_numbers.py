"""Numbers on the command line are plain: digits of ASCII, finite, and of a size that the machine counts with.

Python reads full-width digits, NaN, infinity and integers of any length as numbers. No option means one of them, so
every command refuses them here, before it begins.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from theodolite.errors import BadInput

_KINDS = ("int", "float")
_LONGEST = 400  # letters; the largest float64 has 309 digits before its point
_LARGEST = 2**53  # beyond, not every number is one of float64


def plain(command: Any) -> Any:
    """The command of the option parser, and those below it, with numbers that are plain."""
    for parameter in command.params:
        if str(parameter.type.name).startswith(_KINDS):
            parameter.type = _strict(parameter.type)
    for below in getattr(command, "commands", {}).values():
        plain(below)
    return command


def _strict(kind: Any) -> Any:
    strict = copy.copy(kind)

    def convert(value: Any, parameter: Any, context: Any) -> Any:
        name = "a number" if parameter is None else (parameter.opts or [parameter.name])[0]
        if isinstance(value, str) and not value.isascii():
            raise BadInput(f"{name} '{value}' is not written in the digits 0 to 9: write it so")
        if isinstance(value, str) and len(value) > _LONGEST:
            raise BadInput(f"{name} '{value[:20]}…' has {len(value):,} digits: give a shorter number")
        found = kind.convert(value, parameter, context)
        if isinstance(found, float) and not math.isfinite(found):
            raise BadInput(f"{name} cannot be {value}: give a finite number")
        if isinstance(found, int) and abs(found) > _LARGEST:
            raise BadInput(f"{name} cannot be as large as {found:.0e}: give a smaller number")
        return found

    strict.convert = convert
    return strict
