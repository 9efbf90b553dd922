"""The examples in docstrings of the public names, and of what an extension uses, run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import theodolite

PLACES = {
    **{name: getattr(theodolite, name) for name in theodolite.__all__},  # pyright: ignore[reportAttributeAccessIssue]
    **{name: importlib.import_module(f"theodolite.{name}") for name in ("registry", "measures")},
}


@pytest.mark.parametrize("name", PLACES)
def test_examples_run(name: str) -> None:
    place = PLACES[name]
    module = place if inspect.ismodule(place) else importlib.import_module(place.__module__)
    for example in doctest.DocTestFinder().find(place, name, module):
        printed: list[str] = []
        doctest.DocTestRunner().run(example, out=printed.append)
        assert not printed, "".join(printed)
