"""The script of the descriptions finds the entries of the table again, and leaves out what miscounts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.advise_descriptions.__main__ import merged, packed
from benchmarks.advise_descriptions.answer import answer
from benchmarks.advise_descriptions.built_type import nest
from benchmarks.advise_descriptions.trial import fault

from theodolite.advice.building.library import hidden
from theodolite.advice.configs import read_config
from theodolite.advice.described.flat import flatten
from theodolite.advice.described.table import DATA

transformers = pytest.importorskip("transformers")
MADE_WITH = "5.22"  # another library has other types and other defaults


def table() -> dict[str, Any]:
    return json.loads(gzip.decompress(DATA.read_bytes()))


def check(family: str) -> None:
    if not transformers.__version__.startswith(MADE_WITH):
        pytest.skip(f"the table was made with transformers {MADE_WITH}")
    entry, why = answer(family)
    assert entry == table()[family], why


def test_an_entry_is_found_again() -> None:
    check("openai-gpt")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt_oss", "stablelm", "rembert", "kosmos_2_5_vision_model", "llama4_text", "aria"])
def test_entries_are_found_again(family: str) -> None:
    check(family)


def test_a_description_that_miscounts_is_left_out() -> None:
    entry = table()["openai-gpt"]
    assert fault("openai-gpt", entry) is None
    terms = [[part, of_experts, when, f"{formula} + 1"] for part, of_experts, when, formula in entry["terms"]]
    assert "it miscounts its default" in str(fault("openai-gpt", {**entry, "terms": terms}))


def test_answers_are_put_together_and_packed_alike(tmp_path: Path) -> None:
    entry = table()["openai-gpt"]
    for name, document in {"a": {"description": entry, "why": ""}, "b": {"description": None, "why": "no"}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    described, left_out = merged(tmp_path, ["a", "b"])
    assert described == {"a": entry}
    assert left_out == {"b": "no"}
    assert packed(table()) == DATA.read_bytes()


def test_a_nested_configuration_is_flattened_and_nested_again() -> None:
    config = {"a": 1, "inner": {"sizes": [1, 2], "deep": {"b": None}}, "names": ["x"]}
    assert nest(flatten(config)) == config


@pytest.mark.parametrize(
    ("family", "config"), [("eurobert", {}), ("aria", {"text_config": {"model_type": "aria_text"}})]
)
def test_key_value_heads_that_are_not_stated_follow_the_heads(family: str, config: dict[str, Any]) -> None:
    sizes = {"num_attention_heads": 24, "hidden_size": 1536}
    made = {"model_type": family, **(config or sizes)}
    if config:
        made["text_config"] = {**config["text_config"], **sizes}
    with hidden():
        shape = read_config(made, "it")
    assert not shape.exact or shape.params == read_config(made, "it").params
