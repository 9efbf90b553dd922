"""The optional library `transformers`: there or not, quiet, and never asked to fetch anything."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

_hidden: ContextVar[bool] = ContextVar("transformers is hidden", default=False)


def available() -> bool:
    """Whether models can be built here."""
    return not _hidden.get() and _installed()


@contextmanager
def hidden() -> Iterator[None]:
    """As if it were not installed: what the descriptions alone can tell."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


def transformers() -> Any:
    """The library; call `available` first."""
    with quiet():
        return importlib.import_module("transformers")


@contextmanager
def quiet() -> Iterator[None]:
    """No warning, no log line: what matters is said by the advice."""
    known, before = logging.getLogger("transformers"), os.environ.get("HF_HUB_OFFLINE")
    disabled = known.disabled
    level = logging.root.manager.disable
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        known.disabled = disabled
        logging.disable(level)
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


@cache
def _installed() -> bool:
    try:
        return importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):  # a module that was taken out of sys.modules by hand
        return False
