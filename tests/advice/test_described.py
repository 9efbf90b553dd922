"""Descriptions found by experiment, against what transformers builds of configurations nobody tried before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from theodolite.advice.building.build import CannotBuild, build
from theodolite.advice.building.library import hidden, quiet
from theodolite.advice.building.read import counted_parameters
from theodolite.advice.configs import read_config
from theodolite.advice.described.formulas import evaluate, evaluate_rule
from theodolite.advice.described.table import described_types, description
from theodolite.errors import BadInput

transformers = pytest.importorskip("transformers")

SIZES = ("hidden_size", "d_model", "n_embd", "intermediate_size", "d_ff", "vocab_size", "num_hidden_layers", "n_layer")
FEW = ("llama", "gpt_bigcode", "bart", "mamba", "gemma2", "modernbert", "whisper", "vit", "opt", "olmoe", "granitemoe")


def changed(family: str, draw: random.Random) -> dict[str, Any]:
    """The default with some sizes doubled or halved, and perhaps tied the other way."""
    with quiet():
        config = transformers.CONFIG_MAPPING[family]().to_dict()
    old = config.get("num_hidden_layers")
    for name in SIZES:
        if type(config.get(name)) is int and draw.random() < 0.5:
            config[name] = draw.choice((config[name] // 2, 2 * config[name], 3 * config[name])) or 1
    for name in [name for name, value in config.items() if isinstance(value, list) and len(value) == old]:
        del config[name]
    if draw.random() < 0.3 and type(config.get("tie_word_embeddings")) is bool:
        config["tie_word_embeddings"] = not config["tie_word_embeddings"]
    return config


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FEW)
def test_a_described_count_is_that_of_the_built_model(family: str, seed: int) -> None:
    draw = random.Random(f"{family} {seed}")
    for _ in range(20):
        config = changed(family, draw)
        try:
            built = counted_parameters(build(config, "it"))
            break
        except CannotBuild:
            continue
    else:
        pytest.skip("no such change can be built")
    with hidden():
        try:
            shape = read_config(config, "it")
        except BadInput:
            return  # silent is allowed, wrong is not
    assert shape.params == built or not shape.exact


def test_the_table_is_large_and_each_entry_says_what_it_counts() -> None:
    assert len(described_types()) > 400
    for family in described_types():
        known = description(family)
        assert known is not None
        assert known.terms
        assert not known.fixed & set(known.harmless)


def test_a_field_that_is_not_understood_makes_it_about() -> None:
    stablelm = {"model_type": "stablelm", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    with hidden():
        known = read_config(stablelm, "it")
        unknown = read_config({**stablelm, "brand_new": 3}, "it")
        off = read_config({**stablelm, "brand_new": False}, "it")
    assert known.exact
    assert off.exact
    assert not unknown.exact
    assert any("brand_new" in note for note in unknown.notes)


def test_formulas() -> None:
    fields = {"a": 3, "b": 10, "image": 224, "patch": 16}
    assert evaluate("2*a*b + 1/2*b + 7", fields) == 72
    assert evaluate("1*@head:b/a + 1*@grid:image/patch + 1*@over:b/a", fields) == 3 + 196 + 7
    assert [evaluate_rule(rule, fields) for rule in ("a", "4*a", "b/a", "b/16", "c")] == [3, 12, 3, 1, None]
