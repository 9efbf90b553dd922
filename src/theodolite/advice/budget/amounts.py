"""Amounts as people write them: 2T tokens, 1e24 FLOPs, 100k GPU-hours."""

from __future__ import annotations

import math
import re

from theodolite.errors import BadInput

_LETTERS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12, "p": 1e15}
_LARGEST = 1e40


def amount(option: str, value: float | str, example: str) -> float:
    """A positive number.

    Parameters:
        option: where it came from, for the sentence that says what was wrong
        value: a number, or its text with one of the letters k, M, B, T, P behind it
        example: what to write instead

    Examples:
        >>> amount("--tokens", "1.5T", "2T"), amount("--flops", "1e24", "1e24"), amount("--gpu-hours", 2_500, "100k")
        (1500000000000.0, 1e+24, 2500.0)
    """
    found = _read(value) if isinstance(value, str) else float(value)
    if not 0 < found <= _LARGEST:  # also what is not a number
        raise BadInput(f"{option} '{value}' is not a positive amount: write for example {option} {example}")
    return found


def _read(text: str) -> float:
    plain = text.strip().lower().replace(",", "").replace("_", "")
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:e[+-]?\d{1,2})?)([kmbgtp]?)", plain)
    return float(found[1]) * _LETTERS[found[2]] if found else math.nan
