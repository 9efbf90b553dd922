"""The published fit of vocabularies, against what its abstract says."""

from __future__ import annotations

import pytest

from theodolite.theory.vocabulary import FITTED_SIZES, fitted_vocabulary


def test_llama_2_70b_should_have_had_about_216k_symbols():
    """Abstract: "the optimal vocabulary size of Llama2-70B should have been at least 216K"; an extrapolation."""
    found = fitted_vocabulary(70 * 10**9, 8192)
    assert found.low <= 216_000 <= found.high
    assert found.extrapolated


def test_three_billion_parameters_get_about_43k():
    """Abstract: models of 3B parameters (2.87B without vocabulary, width 3200) improve from 32K to 43K."""
    found = fitted_vocabulary(FITTED_SIZES[1], 3200)
    assert found.high == pytest.approx(43_000, rel=0.05)
    assert found.low > 32_000
    assert not found.extrapolated


def test_the_vocabulary_grows_more_slowly_than_the_rest():
    one, ten = fitted_vocabulary(10**8, 768), fitted_vocabulary(10**9, 768)
    assert one.high < ten.low < 10 * one.low
