"""Shapes for devices: every constraint holds by arithmetic of the test's own, and the counts are transformers'."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite import advise
from theodolite.advice.bottlenecks import Kind
from theodolite.advice.configs import read_config
from theodolite.advice.hardware import Hardware
from theodolite.advice.rules import RULES, broken_rules
from theodolite.errors import BadInput

from .shapes import GPT2, LLAMA3, T5_11B

QWEN3_MOE = {
    "model_type": "qwen3_moe",
    **{"num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4},
    **{"head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128},
    **{"num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960},
}
QWEN3 = {
    "model_type": "qwen3",
    **{"num_hidden_layers": 36, "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936, "tie_word_embeddings": True},
}
MIXTRAL = {
    "model_type": "mixtral",
    **{"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000},
}
FAMILIES = {"llama": LLAMA3, "qwen3": QWEN3, "moe": QWEN3_MOE, "mixtral": MIXTRAL, "gpt2": GPT2, "t5": T5_11B}


def held(config: dict[str, Any], tp: int, pp: int, unit: int) -> bool:
    """By the fields of the configuration alone."""
    sharded = ("intermediate_size", "moe_intermediate_size", "d_ff", "n_inner", "vocab_size")
    heads = config.get("num_attention_heads") or config.get("n_head") or config["num_heads"]
    width = config.get("hidden_size") or config.get("n_embd") or config["d_model"]
    depth = config.get("num_hidden_layers") or config.get("n_layer")
    depth = depth or config["num_layers"] + config["num_decoder_layers"]
    hidden = [config[name] for name in sharded if config.get(name)]
    if config["model_type"] == "gpt2" and not config.get("n_inner"):
        hidden.append(4 * width)
    return (
        heads % tp == 0
        and config.get("num_key_value_heads", heads) % tp == 0
        and depth % pp == 0
        and width % unit == 0
        and all(size % (tp * unit) == 0 for size in hidden)
    )


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(FAMILIES)),
    tp=st.sampled_from([1, 2, 3, 4, 5, 6, 8, 16, 32]),
    pp=st.integers(1, 16),
    unit=st.sampled_from([1, 8, 16, 32, 64, 96, 128, 256]),
    billions=st.sampled_from([None, 0.5, 1.3, 3, 7, 13, 30, 70]),
)
def test_every_constraint_holds_or_one_that_cannot_be_met_is_named(name, tp, pp, unit, billions):
    given_config = FAMILIES[name]
    budget = None if billions is None else billions * 1e9
    try:
        advice = advise(given_config, params=budget, tp=tp, pp=pp, multiple_of=unit)
    except BadInput as error:
        text = str(error)
        assert ("--tp" in text) or ("--pp" in text) or ("--multiple-of" in text)
        assert any(rule in text for rule in RULES)
        return
    assert advice.advised is not None
    shape = advice.advised.shape
    wanted = advice.budget
    for other in (advice.advised, *advice.alternatives):
        assert abs(other.shape.params / wanted - 1) <= 0.05
    if tp == pp == unit == 1:
        return  # nothing is asked
    assert held(dict(advice.config), tp, pp, unit)
    assert read_config(advice.config, "it").params == shape.params
    start = read_config(given_config, "it")
    kept = start.heads / start.key_value_heads == shape.heads / shape.key_value_heads
    assert kept or any("to a key-value head" in warning for warning in advice.warnings)
    assert shape.vocab == start.vocab or any("vocabulary is padded" in warning for warning in advice.warnings)
    assert start.vocab is not None
    assert shape.vocab is not None
    assert start.vocab <= shape.vocab < start.vocab + tp * unit
    assert shape.head_width == start.head_width or any("Heads are" in warning for warning in advice.warnings)


@pytest.mark.parametrize(("name", "budget"), [("llama", 13e9), ("moe", 60e9), ("qwen3", 8e9), ("gpt2", 1.3e9)])
def test_transformers_counts_the_advised_configuration_as_we_do(name, budget):
    transformers = pytest.importorskip("transformers")
    import torch

    advice = advise(FAMILIES[name], params=budget, tp=8, pp=4, multiple_of=128)
    assert advice.advised is not None
    fields = {key: value for key, value in advice.config.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(advice.config["model_type"], **fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == advice.advised.shape.params


def test_a_shape_that_meets_all_and_agrees_with_the_fit_stays():
    agreed = advise(params=1.3e9, vocab=24 * 43 * 50).config
    shape = read_config(agreed, "it")
    advice = advise(agreed, tp=shape.heads, pp=shape.depth)
    assert shape.vocab % shape.heads == 0
    assert advice.advised is not None
    assert advice.advised.shape == advice.given.shape  # type: ignore[union-attr]


def test_the_group_of_key_value_heads_that_has_to_change_is_said():
    advice = advise(LLAMA3, params=1e9, tp=8)
    assert advice.advised is not None
    shape = advice.advised.shape
    assert shape.heads // shape.key_value_heads != 4 or shape.head_width != 128
    assert any("--tp 8" in warning for warning in advice.warnings)


def test_every_bottleneck_is_a_rule():
    assert set(get_args(Kind)) <= set(RULES)


@pytest.mark.parametrize(
    ("change", "hardware", "rules"),
    [
        ({}, Hardware(), []),
        ({}, Hardware(8, 4, 128), ["vocab-multiple"]),
        ({}, Hardware(16, 3, 1), ["kv-heads-divide-tp", "depth-divides-pp"]),
        ({}, Hardware(1, 1, 3), ["width-multiple", "mlp-multiple"]),
        ({"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128}, Hardware(), ["attention-width"]),
        ({"vocab_size": 300}, Hardware(), ["vocabulary"]),
        ({"num_attention_heads": 512, "num_key_value_heads": 8}, Hardware(), ["too-many-heads"]),
    ],
)
def test_rules_are_broken_by_what_breaks_them_and_by_nothing_else(change, hardware, rules):
    config = {**LLAMA3, **change}
    assert [one.rule for one in broken_rules(config, read_config(config, "it"), hardware)] == rules


def test_experts_have_a_rule_of_their_own():
    found = broken_rules(QWEN3_MOE, read_config(QWEN3_MOE, "it"), Hardware(8, 1, 128))
    assert {"expert-multiple", "kv-heads-divide-tp"} <= {one.rule for one in found}
    assert "mlp-multiple" not in {one.rule for one in found}


def test_a_count_that_transformers_contradicts_is_found(monkeypatch):
    pytest.importorskip("transformers")
    from dataclasses import replace

    shape = read_config(GPT2, "it")
    wrong = replace(shape, parts={**shape.parts, "mlp": shape.parts["mlp"] + 1})
    assert [one.rule for one in broken_rules(GPT2, wrong, Hardware())] == ["count-mismatch"]
    assert [one.rule for one in broken_rules(GPT2, replace(shape, exact=False), Hardware())] == ["count-mismatch"]


@pytest.mark.parametrize(("family", "budget"), [("llama", 3e9), ("llama", 7e10), ("qwen3", 1.4e10), ("moe", 1e11)])
def test_public_families_are_advised_at_another_size(family, budget):
    advice = advise(params=budget, like=family)
    assert advice.advised is not None
    assert advice.advised.shape.params == pytest.approx(budget, rel=0.05)
    assert advice.config["architectures"][0].endswith("ForCausalLM")
    assert sum(warning.startswith("Like ") for warning in advice.warnings) == 1
    small = advise(params=budget, like=family, vocab=32000)
    assert small.advised is not None
    assert small.advised.shape.vocab == 32000


def test_the_language_part_of_a_larger_model_is_shaped_too():
    text = {"num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240, "vocab_size": 262208}
    text |= {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 24, "num_hidden_layers": 1}}
    advice = advise(config, tp=4, pp=2, multiple_of=64)
    made = advice.config["text_config"]
    assert held({**made, "model_type": "gemma3_text"}, 4, 2, 64)
    assert advice.config["vision_config"] == config["vision_config"]


def test_what_is_not_counted_by_hand_is_refused_with_its_constraint_too():
    config = {"model_type": "gopher", "num_hidden_layers": 12, "hidden_size": 1536, "num_attention_heads": 12}
    config |= {"vocab_size": 32000, "tie_word_embeddings": True}
    with pytest.raises(BadInput, match="heads-divide-tp"):
        advise(config, tp=4096)


def test_what_is_said_to_stay_stays_and_what_gives_way_is_said():
    """Eight heads of 128 to a key-value head make steps of 1024: none near 70B lies in the fit's interval."""
    advice = advise(params="70B", like="llama")
    assert advice.advised is not None
    assert advice.advised.shape.head_width == 64
    like, changed = (next(w for w in advice.warnings if w.startswith(start)) for start in ("Like", "Heads are"))
    assert "heads of" not in like
    assert "8 heads to a key-value head" in like
    assert changed.startswith("Heads are 64 wide and not 128")
    kept = advise(LLAMA3, params="13B")
    assert kept.advised is not None
    assert kept.advised.shape.head_width == 128
    assert any(w.startswith("Like the configuration: heads of 128, 4 heads to a key-value head") for w in kept.warnings)
    assert not any(w.startswith("Heads are") for w in kept.warnings)


def test_a_depth_in_the_interval_comes_before_the_last_percents_of_the_budget():
    """13B pays 54.8 layers of width 4096, the fit asks for 56 to 61, and 56 cost 2 % more."""
    advice = advise(params="13B", like="llama", tp=8)
    assert advice.advised is not None
    assert advice.recommendation is not None
    assert (advice.advised.shape.depth, advice.advised.shape.width) == (56, 4096)
    assert advice.recommendation.depth_low <= 56 <= advice.recommendation.depth_high
    assert abs(advice.advised.shape.params / 13e9 - 1) < 0.05
