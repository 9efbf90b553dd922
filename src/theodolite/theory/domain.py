"""The one check every formula makes of its arguments, and how a number of parameters is written."""

from __future__ import annotations

import re

from theodolite.errors import BadInput, OutsideDomain

_SUFFIXES = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "g": 1_000_000_000, "t": 10**12}


def whole(name: str, value: int, least: int = 1) -> int:
    """`value` if it is an integer of at least `least`, else the sentence that says what to pass."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OutsideDomain(f"{name} = {value!r} is outside the domain: pass an integer of at least {least}")
    return value


def parse_budget(text: str) -> int:
    """`64k`, `1.5M`, `7B`, `1T`, `1.3e9`, `64000` or `7,000,000,000` parameters."""
    plain = text.strip().lower()
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:_\d{3})+", plain):
        plain = plain.replace(",", "").replace("_", "")
    found = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([kmbgt]?)", plain)
    count = float(found[1]) * _SUFFIXES[found[2]] if found else 0.0
    if count < 1 or round(count) != round(count, 6):
        raise BadInput(f"'{text}' is not a number of parameters: write 64k, 1.5M, 7B or 64000")
    return round(count)
