"""What is said of files, in words about the file."""

from __future__ import annotations

import json

import pytest

from theodolite.files import json_fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "it is nested too deep"),
        ('{"a": ' + "9" * 5_000 + "}", "it has a number of thousands of digits"),
        ("[1,", "Expecting value"),
    ],
    ids=["deep", "long", "cut"],
)
def test_why_a_text_is_no_json_is_said_without_pythons_words(text, words):
    with pytest.raises((ValueError, RecursionError)) as told:
        json.loads(text)
    assert json_fault(told.value).startswith(words)
    assert "sys." not in json_fault(told.value)
