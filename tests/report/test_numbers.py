import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.report.numbers import drawable, exact_value, format_value, json_value


@each(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (1234567, "1,234,567"),
        (-1234, "-1,234"),
        (123 * 10**38, "1.23e40"),
        (10**40, "1e40"),
        (10**40 + 1, "1.00e40"),
        (-(10**40), "-1e40"),
        (999_999_999_999, "1.00e12"),
        (0.0, "0"),
        (1.0, "1"),
        (0.99996, "1.000"),
        (0.5, "0.5"),
        (1 / 3, "0.3333"),
        (12.345, "12.35"),
        (999.96, "1,000"),
        (12345.6, "12,346"),
        (1234567.0, "1.23e6"),
        (1.2345e-7, "1.23e-7"),
        (1e-7, "1e-7"),
        (-0.25, "-0.25"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (math.nan, "nan"),
        ("rnn", "rnn"),
        ((0.5, 12000), "[0.5, 12,000]"),
        ({"depth": 4}, "depth 4"),
    ],
)
def test_a_value_is_written_for_a_reader(value: object, text: str) -> None:
    assert format_value(value) == text


def test_an_integer_too_long_for_str_is_still_written() -> None:
    assert format_value(10**5000) == "1e5000"


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_a_written_float_is_close_to_the_value_and_short(value: float) -> None:
    text = format_value(value)
    assert len(text) <= 10
    assert float(text.replace(",", "")) == pytest.approx(value, rel=6e-3, abs=1e-322)


@given(st.integers(min_value=-(10**60), max_value=10**60))
def test_a_written_integer_is_exact_below_a_milliard_and_close_above(value: int) -> None:
    text = format_value(value).replace(",", "")
    assert len(text.lstrip("-")) <= 9
    assert int(text) == value if abs(value) < 10**9 else float(text) == pytest.approx(value, rel=6e-3)


def test_a_seed_keeps_every_digit_on_the_page_and_in_the_data() -> None:
    seed = 2**63 - 1
    assert exact_value(seed) == str(seed)
    assert json_value({"seed": seed, "small": 3}) == {"seed": str(seed), "small": 3}


def test_data_is_json_a_browser_can_read() -> None:
    data = json_value({"a": math.nan, "b": math.inf, "c": [True, None, 0.5], "d": 10**5000})
    assert data["a"] is None
    assert data["b"] == "inf"
    assert data["c"] == [True, None, 0.5]
    assert len(data["d"]) == 5001
    json.dumps(data, allow_nan=False)


def test_what_has_no_place_on_an_axis_is_not_drawn() -> None:
    assert drawable(0, log=False) == 0
    assert drawable(0, log=True) is None
    assert drawable(-1.0, log=True) is None
    assert drawable(math.nan, log=False) is None
    assert drawable(10**400, log=True) is None
    assert drawable(10**40, log=True) == 1e40
