"""The catalogue: its counts against the published ones, and the facts in order."""

from __future__ import annotations

import pytest

from tests.each import each
from theodolite.advice.catalogue import PublicModel, models

THREE_DIGITS = [model for model in models() if model.digits >= 3 and model.counts != "not compared"]
ROUNDED = [model for model in models() if model.digits < 3 and model.counts != "not compared"]


def off(model: PublicModel) -> float:
    assert model.counted is not None
    return abs(model.counted / model.published_params - 1)


@each("model", THREE_DIGITS)
def test_a_count_published_to_three_digits_is_reproduced_within_one_percent(model: PublicModel) -> None:
    assert off(model) < 0.01


@each("model", ROUNDED)
def test_a_rounded_count_is_near(model: PublicModel) -> None:
    assert off(model) < (0.04 if model.digits == 2 else 0.15)


def test_counts_published_in_full_are_reproduced_to_the_last_parameter() -> None:
    """Of GPT-J alone the printed number is not the sum over its released tensors."""
    full = [model for model in THREE_DIGITS if model.published.isdigit() and model.name != "GPT-J 6B"]
    assert len(full) >= 19
    assert [model.name for model in full if model.counted != int(model.published)] == []


def test_the_reasons_for_not_comparing_are_true() -> None:
    by_name = {model.name: model for model in models()}
    for name in ("Gopher 117M", "Gopher 417M", "Gopher 280B", "Chinchilla"):
        shape = by_name[name].shape
        square = shape.depth * shape.width * shape.attention_width  # Transformer-XL's map of relative positions
        assert shape.params + square == pytest.approx(by_name[name].published_params, rel=0.01)
    large = by_name["T5 large"].shape
    assert large.params == pytest.approx(738e6, rel=0.001)
    assert large.params + large.parts["embedding"] == pytest.approx(770e6, rel=0.001)
    assert by_name["OPT 350M"].shape.params == pytest.approx(331e6, rel=0.002)
    assert by_name["ALBERT xxlarge"].shape.params == pytest.approx(223e6, rel=0.002)
    assert by_name["Phi-1.5"].shape.params == pytest.approx(1.42e9, rel=0.002)
    assert by_name["GPT-3 XL"].shape.attention_width == 3072 > by_name["GPT-3 XL"].shape.width


def test_the_catalogue_is_large_and_wide() -> None:
    assert len(models()) >= 45
    assert len(THREE_DIGITS) >= 45
    assert {model.modality for model in models()} == {"language", "image", "bytes"}
    assert len({model.name for model in models()}) == len(models())


@each("model", models())
def test_an_entry_is_complete_and_reads(model: PublicModel) -> None:
    shape = model.shape
    assert shape.name == model.name
    assert shape.modality == model.modality
    assert 2018 <= model.year <= 2026
    assert len(model.source) > 10
    assert bool(model.reason) == (model.counts != "all")  # whoever is not compared simply says why
    assert model.published_params > 1e6
    assert model.tokens is None or model.tokens[-1] in "BT"


@pytest.mark.parametrize(
    ("printed", "digits"),
    [("GPT-2 small", 3), ("GPT-3 Medium", 2), ("GPT-3 13B", 3), ("Qwen2.5 0.5B", 2), ("PaLM 540B", 5), ("OPT 30B", 1)],
)
def test_digits_that_may_be_rounding_are_not_counted(printed: str, digits: int) -> None:
    (model,) = [model for model in models() if model.name == printed]
    assert model.digits == digits


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("Mixtral 8x7B", 12.9e9),
        ("Mixtral 8x22B", 39e9),
        ("Qwen1.5 MoE A2.7B", 2.7e9),
        ("Qwen3 235B-A22B", 22e9),
        ("DeepSeek-V2", 21e9),
        ("DeepSeek-V3", 37e9),
    ],
)
def test_active_parameters_are_those_published(name: str, active: float) -> None:
    (model,) = [model for model in models() if model.name == name]
    assert model.shape.active == pytest.approx(active, rel=0.02)
