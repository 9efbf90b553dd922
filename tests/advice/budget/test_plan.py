"""A run planned: from `advise`, in words and as a document."""

from __future__ import annotations

import json

import pytest

from tests.advice.shapes import GPT2, LLAMA3, T5_11B, VIT_H, dense
from theodolite import advise
from theodolite.advice.budget.frontier import frontier
from theodolite.advice.budget.resources import Resources
from theodolite.advice.budget.scaling_laws import BESIROGLU
from theodolite.errors import BadInput


def test_a_frontier_is_flat_about_its_best_size_and_ends_in_the_small_model_that_costs_less():
    plan = advise(LLAMA3, resources=Resources(tokens="15T", gpu="h100", gpus=512, sequence=8192)).plan
    points = {point.label: point for point in plan.frontier.points}
    assert list(points) == ["this model", "over-trained", "1/2", "1/√2", "1", "√2", "2"]  # by size
    assert points["1"].above_best == 0
    assert all(points[label].above_best < 0.01 for label in ("1/2", "1/√2", "√2", "2"))
    assert points["this model"].above_best > 0.02
    assert points["this model"].tokens == pytest.approx(15e12)
    for point in points.values():  # one budget
        assert point.days == pytest.approx(plan.spending.days)
        assert point.loss == BESIROGLU.loss(point.params, point.tokens)
        assert point.tokens < plan.spending.flops / (6 * 0.8 * point.params)
    assert [one.source for one in plan.frontier.optima] == ["Besiroglu et al. 2024", "Hoffmann et al. 2022"]


def test_without_a_size_the_budget_chooses_it():
    advice = advise(vocab=50257, resources=Resources(flops="1e22"))
    assert advice.budget == round(BESIROGLU.best_size(1e22))
    assert advice.plan.spending.flops == pytest.approx(1e22)
    assert advice.plan.spending.times_chinchilla == pytest.approx(1, rel=0.1)
    assert [point.label for point in advice.plan.frontier.points if "this" in point.label] == ["1, this"]
    tokens = advise(vocab=50257, resources=Resources(tokens="184B"))
    assert tokens.budget == pytest.approx(advice.budget, rel=0.01)
    with pytest.raises(BadInput, match="give a configuration, or a budget"):
        advise(vocab=50257, resources=Resources(gpu="h100"))


def test_nothing_is_planned_where_nothing_was_said():
    assert advise(GPT2).plan is None
    assert advise(GPT2, resources=Resources()).plan is None
    assert advise(GPT2).to_json()["plan"] is None


def test_what_does_not_fit_is_said_with_what_would():
    told = advise(LLAMA3, resources=Resources(gpu="h100")).plan
    assert told.fits is False
    assert told.verdict.startswith("Training does not fit on h100 (80 GB): ")
    assert "divide them with --zero 3 and more --gpus" in told.verdict
    many = advise(LLAMA3, resources=Resources(gpu="h100", gpus=64)).plan
    assert "With --zero 1 it takes" in many.verdict
    fits = advise(LLAMA3, resources=Resources(gpu="h100", gpus=64, zero=1)).plan
    assert fits.fits is True
    assert fits.verdict == f"Training takes {fits.training.total / 1e9:.1f} GB and fits on h100 (80 GB)."
    assert advise(GPT2, resources=Resources(batch=4)).plan.fits is None
    hopeless = advise(LLAMA3 | {"num_hidden_layers": 3000}, resources=Resources(gpu="l4", gpus=2, zero=3)).plan
    assert "take more --gpus or a smaller model" in hopeless.verdict


def test_the_document_is_plain_json():
    found = advise(GPT2, resources=Resources(gpu_hours="1k", gpu="a100", batch=8)).to_json()["plan"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["budget"]["gpu_hours"] == pytest.approx(1000)
    assert found["budget"]["chinchilla_tokens"] == 20 * 124439808
    memory = found["training_memory"]
    parts = ("weights", "gradients", "optimiser", "activations", "working", "gathered")
    assert memory["total"] == pytest.approx(sum(memory[part] for part in parts))
    assert memory["checked"] is True
    assert found["inference_memory"]["contexts"][0]["context"] == 1024


def test_notes_say_what_is_not_known():
    image = advise(VIT_H, resources=Resources(tokens="1B")).plan
    assert image.frontier is None
    assert any("of words of language" in note for note in image.notes)
    longer = advise(GPT2, resources=Resources(sequence=4096)).plan
    assert any("longer than the 1024" in note for note in longer.notes)
    phi = {"model_type": "phi", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
    phi |= {"intermediate_size": 1024, "vocab_size": 1000, "max_position_embeddings": 512}
    told = advise(phi, resources=Resources(batch=1)).plan
    assert any("was not compared with torch" in note for note in told.notes)


def test_sizes_that_the_family_refuses_are_left_out():
    def shape_at(params):
        if params > 10**9:
            raise BadInput("too large")
        return dense()

    labels = [point.label for point in frontier(1e20, 1024, shape_at).points]
    assert set(labels) == {"over-trained", "1/2", "1/√2", "1"}


def test_where_a_part_is_not_known_it_is_not_said_to_fit():
    mamba = {"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280, "state_size": 16}
    told = advise(mamba, resources=Resources(gpu="h100", tokens="1B")).plan
    assert told.fits is None
    assert "activations, which come on top, are not known" in told.verdict
    assert told.frontier is None
    huge = advise(mamba | {"hidden_size": 20480}, resources=Resources(gpu="l4")).plan
    assert huge.fits is False  # its parameters alone do not


def test_both_stacks_count_in_tokens_per_parameter():
    plan = advise(T5_11B, resources=Resources(tokens="1T")).plan
    assert plan.spending.params == 11_307_321_344
    assert any("of one stack" in note for note in plan.notes)


def test_the_fits_choose_no_size_for_images():
    with pytest.raises(BadInput, match="are of language, not of image: add --params"):
        advise(modality="image", resources=Resources(flops="1e22"))


def test_without_a_number_of_gpus_there_are_as_many_as_one_copy_takes():
    alone, shared = (advise(LLAMA3, tp=tp, resources=Resources(tokens="1T", gpu="h100")).plan for tp in (1, 8))
    assert alone is not None
    assert shared is not None
    assert shared.setting.gpus == 8
    assert shared.spending.days == pytest.approx(alone.spending.days / 8)
    assert shared.spending.gpu_hours == pytest.approx(alone.spending.gpu_hours)
