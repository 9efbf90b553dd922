"""What `advise` says of trained depths is what was archived, and it is silent where nothing was trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from theodolite.advice.advice import advise
from theodolite.advice.trained import trained
from theodolite.cli.views.advise_theory import theory

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
STUDY, BESIDE = "scale-study-nvidia-h200-2026-11-18.json", "scale-beside-nvidia-h200-2026-11-20.json"


def said(**given: object) -> str:
    return dict(theory(advise(**given)))["Trained here"]


def archived() -> list[tuple[dict, dict]]:
    """Of bytes the study's sizes, of larger vocabularies what was trained beside it: what it is about, and a size."""
    study, beside = (json.loads((RESULTS / name).read_text("utf-8")) for name in (STUDY, BESIDE))
    found = [({"vocabulary": 256, **size["about"]}, size) for size in study["sizes"]]
    found += [(beside[name]["about"], beside[name]["sizes"][0]) for name in ("vocabulary-1024", "vocabulary-4096")]
    return sorted(found, key=lambda pair: (pair[1]["size"], pair[0]["vocabulary"]))


def test_the_shipped_figures_are_the_archived_ones():
    shipped = trained()
    for ours, (about, theirs) in zip(shipped.sizes, archived(), strict=True):
        losses = {point["depth"]: point["bits_per_byte"] for point in theirs["points"]}
        tokens = about.get("tokens") or about["tokens_per_parameter"] * theirs["size"]
        assert (ours.size, ours.vocab) == (theirs["size"], about["vocabulary"])
        assert ours.tokens == pytest.approx(tokens, abs=1)
        assert (ours.best, ours.interval, ours.flat) == (
            min(losses, key=losses.__getitem__),
            tuple(theirs["interval"]),
            tuple(depth for depth, loss in sorted(losses.items()) if loss <= 1.01 * min(losses.values())),
        )
        assert ours.deepest == max(losses)
        assert ours.deepest_worse == pytest.approx(losses[ours.deepest] / losses[ours.best] - 1, abs=5e-4)


@pytest.mark.parametrize(
    ("vocab", "layers"), [(65, "3 layers"), (256, "3 layers"), (700, "2 layers"), (1024, "2 layers"), (5000, "1 layer")]
)
def test_a_vocabulary_is_judged_by_networks_that_read_about_as_many_symbols(vocab, layers):
    shape = {"model_type": "gpt2", "n_layer": 3, "n_embd": 56, "n_head": 4, "n_positions": 128, "vocab_size": vocab}
    text = dict(theory(advise(shape)))["Trained here"]
    assert f"learnt best with {layers} " in text
    assert ("as bytes" in text) is (vocab <= 256)


def test_nothing_is_said_of_a_vocabulary_that_was_not_trained():
    for size in ("600k", "5M"):
        assert said(params=size, vocab=8192).endswith("nothing follows from them for this size and vocabulary.")
        assert not advise(params=size, vocab=8192).from_training


def test_a_size_that_was_trained_is_told_with_its_interval():
    text = said(params="150k", vocab=256)
    assert "decoders of 120k parameters" in text
    assert "3 layers (95%: 3 to 3; within 1% of that: 3, 4)" in text
    assert "24 layers 10% worse" in text
    assert "16M tokens each" in text


def test_the_advised_depth_is_the_trained_one_where_the_fit_was_never_made():
    small, large = advise(params="600k", vocab=256), advise(params="1.3B", vocab=50257)
    study = next(one for one in trained().sizes if one.size == 500_000)
    assert small.from_training
    assert small.recommendation is not None
    assert (small.recommendation.depth_low, small.recommendation.depth_high) == (min(study.flat), max(study.flat))
    assert small.judged.shape.depth in study.flat
    assert "our own trainings advise 3 to 8 layers" in small.headline
    assert "it would ask for 2 layers" in dict(theory(small))["Fit"]
    assert not small.warnings
    assert not large.from_training
    assert "the published fit advises" in large.headline


def test_a_shape_is_judged_by_the_trained_depths():
    flat = {"model_type": "gpt2", "n_layer": 1, "n_embd": 208, "n_head": 13, "vocab_size": 256, "n_positions": 128}
    found = advise(flat)
    assert found.regime is not None
    assert found.regime.against_fit == "shallower"
    assert "than our own trainings advise" in found.headline


@pytest.mark.parametrize("given", [{"params": 1.3e9, "vocab": 50257}, {"params": 3e7, "vocab": 256}])
def test_a_size_that_was_not_is_told_as_such(given):
    assert said(**given).endswith("nothing follows from them for this size and vocabulary.")


def test_images_get_no_word_of_text():
    found = advise(params=2e5, modality="image")
    assert trained().near(found.judged.shape) is None
    assert "Trained here" not in dict(theory(found))
    assert found.to_json()["trained"] is None
