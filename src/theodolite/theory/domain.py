"""The one check every formula makes of its arguments."""

from __future__ import annotations

from theodolite.errors import OutsideDomain


def whole(name: str, value: int, least: int = 1) -> int:
    """`value` if it is an integer of at least `least`, else the sentence that says what to pass."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OutsideDomain(f"{name} = {value!r} is outside the domain: pass an integer of at least {least}")
    return value
