"""The collector of garbage rests while modules are loaded, and is as it was afterwards."""

from __future__ import annotations

import gc

import pytest

from theodolite.loading import loading


def test_nothing_is_collected_meanwhile() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_collects_again_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_rests_is_left_so() -> None:
    gc.disable()
    try:
        with loading():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
