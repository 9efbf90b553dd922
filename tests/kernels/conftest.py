"""Tests of kernels run where kernels may stand in for torch's operations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from theodolite.kernels.launch import fusing


@pytest.fixture(autouse=True)
def _fused() -> Iterator[None]:
    with fusing():
        yield
