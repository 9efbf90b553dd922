"""Surveys in tests train briefly: what is learnt is the bench's business, not theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from theodolite.surveys import learnability, matrix


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = replace(learnability._EFFORT["quick"], seeds=2, steps={"vector": 60, "sequence": 20})
    monkeypatch.setitem(learnability._EFFORT, "quick", brief)
    monkeypatch.setitem(matrix._EFFORT, "quick", replace(matrix._EFFORT["quick"], seeds=2, steps=20, draws=2))
