"""The examples in this folder's docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from theodolite.advice import budget

MODULES = [one.name for one in pkgutil.iter_modules(budget.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    done = doctest.testmod(importlib.import_module(f"theodolite.advice.budget.{name}"))
    assert done.failed == 0
