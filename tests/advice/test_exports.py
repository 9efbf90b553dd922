"""Files for trainers: read back, they have the parameters that transformers counts; what they cannot say is refused."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.each import each
from theodolite.advice.catalogue import models
from theodolite.advice.configs import read_config
from theodolite.advice.exports.blueprint import Blueprint
from theodolite.advice.exports.export import FORMATS, export
from theodolite.advice.exports.flat_yaml import read_yaml, write_yaml
from theodolite.advice.exports.read_config import FAMILIES
from theodolite.advice.exports.torchtitan import _llama3_mlp
from theodolite.advice.hardware import Hardware
from theodolite.errors import BadInput

from .shapes import GPT2, LLAMA3
from .test_against_transformers import CASES, built

ONE = Hardware()
# Families that each format can say, in one configuration at least.
EXPRESSED = {
    "megatron": set(FAMILIES) - {"gpt_neox", "phi"},
    "torchtitan": {"llama", "mistral", "qwen3", "phi3", "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"},
    "nanotron": {"llama", "mistral", "phi3"},
    "litgpt": {"llama", "mistral", "qwen2", "qwen3", "phi3", "mixtral", "qwen3_moe", "gpt_neox", "phi"},
}


@each(("family", "fields"), CASES)
def test_every_model_is_exported_with_its_parameters_or_refused_in_a_sentence(
    family: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    config = {"model_type": family, **fields}
    shape = read_config(config, "a model")
    for name, form in FORMATS.items():
        try:
            made = export(config, shape, name, ONE)
        except BadInput:
            continue
        back = form.read(made.text).shape("it")
        theirs, _ = built(config, tmp_path)
        assert back.params == theirs
        sizes = ("depth", "width", "heads", "key_value_heads", "head_width", "vocab", "experts", "active", "tied")
        assert [getattr(back, size) for size in sizes] == [getattr(shape, size) for size in sizes]


def test_which_families_each_format_expresses() -> None:
    found: dict[str, set[str]] = {name: set() for name in FORMATS}
    configs = [{"model_type": family, **fields} for family, fields in CASES] + [dict(one.config) for one in models()]
    for config in configs:
        for name in FORMATS:
            try:
                export(config, read_config(config, "a model"), name, ONE)
            except BadInput:
                continue
            found[name].add(config["model_type"])
    assert found == EXPRESSED


@pytest.mark.parametrize("name", ["nanotron", "litgpt"])
def test_yaml_is_what_a_reader_of_yaml_reads(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    text = export(LLAMA3, read_config(LLAMA3, "it"), name, Hardware(8, 4)).text
    assert yaml.safe_load(text) == read_yaml(text)
    odd = {"a": 1e-5, "b": 1e6, "c": {"d": None, "e": {"f": True, "g": "x"}}, "h": -3, "i": 0.25}
    assert yaml.safe_load(write_yaml(odd)) == odd == read_yaml(write_yaml(odd))


def test_litgpts_file_has_fields_of_its_configuration_only() -> None:
    known = {"name", "block_size", "n_layer", "n_embd", "vocab_size", "padded_vocab_size", "norm_class_name"}
    known |= {"norm_eps"}
    known |= {"norm_qk", "parallel_residual", "shared_attention_norm", "n_head", "head_size", "n_query_groups", "bias"}
    known |= {"attn_bias", "rope_base", "rotary_percentage", "mlp_class_name", "intermediate_size", "lm_head_bias"}
    assert set(read_yaml(export(LLAMA3, read_config(LLAMA3, "it"), "litgpt", ONE).text)) == known


def test_torchtitans_file_is_python_and_names_its_classes() -> None:
    text = export(LLAMA3, read_config(LLAMA3, "it"), "torchtitan", ONE).text
    imported = [one.names[0].name for one in ast.parse(text).body if isinstance(one, ast.ImportFrom)]
    assert imported == ["TransformerModelArgs"]


def test_the_mlp_that_torchtitans_llama_derives_is_that_of_the_published_sizes() -> None:
    """Its own flavours: width, multiple, ratio, and the MLP that Meta published."""
    flavours = ((4096, 1024, 1.3, 14336), (8192, 4096, 1.3, 28672), (16384, 4096, 1.2, 53248))
    for width, multiple, ratio, published in flavours:
        assert _llama3_mlp(width, multiple, ratio) == published


@pytest.mark.parametrize("mlp", [1, 8, 333, 4096, 10240, 10752, 11008, 14336, 28672])
@pytest.mark.parametrize("width", [64, 768, 3072, 4096, 4224])
def test_any_mlp_can_be_said_to_torchtitans_llama(width: int, mlp: int) -> None:
    made = Blueprint(4, width, width // 64, width // 64, 64, mlp, 1000, 2048, tied=False)
    form = FORMATS["torchtitan"]
    assert form.read(form.write(made, ONE)).mlp_width == mlp


def test_megatron_pads_the_vocabulary_as_its_reader_does() -> None:
    text = export(GPT2, read_config(GPT2, "it"), "megatron", ONE).text
    assert "--make-vocab-size-divisible-by 1\n" in text
    padded = text.replace("    --make-vocab-size-divisible-by 1\n", "")
    assert FORMATS["megatron"].read(padded).vocab == 50304  # its default is 128, as GPT-2 is trained there
    with pytest.raises(BadInput, match="pads the vocabulary"):
        export(GPT2, read_config(GPT2, "it"), "megatron", Hardware(tp=2))


def test_what_a_file_leaves_out_is_said_in_it() -> None:
    config = {**LLAMA3, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "sliding_window": 4096}
    made = export(config, replace(read_config(LLAMA3, "it"), name="it"), "megatron", ONE)
    assert made.left_out == ("the scaling of rotary positions", "the window of 4096 tokens")
    assert made.text.count("# not carried over:") == 2


@pytest.mark.parametrize(
    ("config", "name", "sentence"),
    [
        ({"model_type": "bloom", "n_layer": 3, "hidden_size": 60, "n_head": 6, "vocab_size": 101}, "litgpt", "ALiBi"),
        ({"model_type": "t5", "num_layers": 2, "d_model": 32, "num_heads": 4, "d_kv": 8}, "megatron", "encoder"),
        ({**LLAMA3, "tie_word_embeddings": True}, "litgpt", "share"),
        ({**LLAMA3, "hidden_act": "relu"}, "megatron", "relu"),
        ({**LLAMA3, "architectures": ["LlamaModel"]}, "megatron", "output layer"),
    ],
)
def test_what_cannot_be_said_is_refused_in_a_sentence(config: dict[str, Any], name: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        export(config, read_config(config, "it"), name, ONE)
