"""How a value is written for a reader, and how it is kept for a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

DASH = "–"
_LARGEST_SPELT = 10**9  # integers below are written out, above as 1.23e40
_LARGEST_SAFE = 2**53  # JavaScript rounds integers beyond


def format_value(value: Any) -> str:
    """The text of one value: `12,345`, `0.3333`, `1.23e40`, `yes`, and a dash for None.

    Trailing zeros mean that digits were rounded away: 1.0 is written `1` and 0.99996 is written `1.000`.
    """
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return _integer(int(value))
    if isinstance(value, Real):
        return _real(float(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    return str(value)


def counted(count: int, noun: str) -> str:
    """`1 run`, `1,200 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def exact_value(value: Any) -> str:
    """The text of one value with nothing rounded away, for seeds and versions."""
    if value is None or isinstance(value, bool):
        return format_value(value)
    if isinstance(value, Integral):
        return str(Decimal(int(value)))  # str(int) refuses more than 4,300 digits
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {exact_value(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(exact_value(item) for item in value)
    return str(value)


def json_value(value: Any) -> Any:
    """`value` as JSON that JavaScript reads without loss: integers beyond 2^53 and infinities become text, NaN null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) <= _LARGEST_SAFE else str(Decimal(int(value)))
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return None
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [json_value(item) for item in value]
    return str(value)


def drawable(value: Any, *, log: bool) -> float | int | None:
    """A coordinate a plot can show, or None where it has no place on the axis."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number) or (log and number <= 0):
        return None
    return int(value) if isinstance(value, Integral) and abs(int(value)) <= _LARGEST_SAFE else number


def _integer(value: int) -> str:
    if abs(value) < _LARGEST_SPELT:
        return f"{value:,}"
    return _scientific(Decimal(value))


def _real(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    size = abs(float(f"{value:.3e}"))
    if 1e3 <= size < 1e6:
        return f"{value:,.0f}"
    if 1e-3 <= size < 1e3:
        digits = f"{value:#.4g}".rstrip(".")
        short = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return short if float(short) == value else digits
    return _scientific(value)


def _scientific(value: float | Decimal) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    short = mantissa.rstrip("0").rstrip(".")
    if type(value)(f"{short}e{exponent}") == value:
        mantissa = short
    return f"{mantissa}e{int(exponent)}"
