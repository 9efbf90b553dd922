"""Counts of models that transformers builds: published ones, state spaces, what is said and what is refused."""

from __future__ import annotations

import contextlib
import sys

import pytest

from tests.each import each
from theodolite.advice.advice import advise
from theodolite.advice.building import build as building
from theodolite.advice.building.library import hidden
from theodolite.advice.configs import read_config
from theodolite.advice.cost import cost
from theodolite.advice.promise import check_promise
from theodolite.errors import BadInput

from .published import DBRX, GEMMA3_4B, KIMI_K2, PUBLISHED, STARCODER

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

MAMBA = {"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280, "state_size": 16}
JAMBA = {"model_type": "jamba", "hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4, "vocab_size": 100}
JAMBA |= {"num_key_value_heads": 2, "intermediate_size": 96, "num_experts": 4}
STATE_SPACES = [
    MAMBA,
    {"model_type": "mamba2", "hidden_size": 64, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 32},
    {"model_type": "rwkv", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100},
    {"model_type": "recurrent_gemma", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4},
    JAMBA,
]


@each(("name", "pair"), list(PUBLISHED.items()))
def test_a_published_model_has_its_published_parameters(name, pair):
    config, params = pair
    shape = read_config(config, name)
    assert shape.exact
    assert shape.params == pytest.approx(params, rel=0.001)
    with hidden(), contextlib.suppress(BadInput):  # silent is allowed, wrong is not
        alone = read_config(config, name)
        assert alone.params == shape.params or not alone.exact


@each("config", STATE_SPACES)
def test_a_state_space_is_counted_and_theory_is_silent(config):
    read = transformers.CONFIG_MAPPING[config["model_type"]](**{k: v for k, v in config.items() if k != "model_type"})
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(read)
    advice = advise(config)
    found = advice.to_json()
    assert found["params"] == sum(parameter.numel() for parameter in model.parameters())
    assert found["params_exact"] is True
    assert found["recommended"] is found["regime"] is None
    assert "say nothing" in advice.headline
    assert advice.judged.cost.inference_flops is None
    assert advice.judged.cost.weight_bytes == 2 * found["params"]
    with pytest.raises(BadInput, match="no advised configuration"):
        check_promise(advice)


def test_a_window_bounds_the_cache_and_the_arithmetic():
    """Gemma 3 4B at 131072 tokens: 5 of 34 layers keep all of them, 29 the last 1024; 4 heads of 256, two of each."""
    found = cost(read_config(GEMMA3_4B, "Gemma"), 131072)
    numbers = 2 * 4 * 256 * 2
    assert found.context_cache_bytes == numbers * (5 * 131072 + 29 * 1024)
    assert found.context_cache_bytes / 2**30 == pytest.approx(2.6, rel=0.01)
    near, far = (cost(read_config(GEMMA3_4B, "Gemma"), context) for context in (1024, 2048))
    assert (far.inference_flops or 0) - (near.inference_flops or 0) == 4 * 8 * 256 * 5 * 1024


def test_latent_attention_keeps_narrow_vectors_and_multiplies_wide_heads():
    """Kimi K2: 61 layers keep 512 + 64 numbers; a head's keys are 192 wide and its values 128."""
    shape = read_config(KIMI_K2, "Kimi")
    assert cost(shape, 1).cache_bytes == 61 * (512 + 64) * 2
    one, two = (cost(shape, context).inference_flops or 0 for context in (1, 2))
    assert two - one == 61 * 2 * 64 * (192 + 128)
    assert shape.active == pytest.approx(32.6e9, rel=0.02)  # as published, without the output map


def test_one_head_of_keys_serves_all_and_a_token_takes_four_experts():
    assert cost(read_config(STARCODER, "StarCoder"), 1).cache_bytes == 2 * 40 * 128 * 2
    assert read_config(DBRX, "DBRX").active == pytest.approx(36e9, rel=0.02)


@each(
    ("stated", "bits"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
        ({"quant_method": "awq", "w_bit": 4}, 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}}, 4),
        ({"quant_method": "brand-new"}, 16),
    ],
)
def test_quantised_weights_take_less_memory(stated, bits):
    llama = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    llama |= {"intermediate_size": 96, "vocab_size": 100}
    shape = read_config({**llama, "quantization_config": stated}, "a model")
    small = shape.parts["attention"] + shape.parts["mlp"]
    assert cost(shape, 1).weight_bytes == -(-small * bits // 8) + 2 * (shape.params - small)


@each("name", ["DBRX", "StarCoder", "Llama 4 Scout"])
def test_what_is_written_is_built_and_runs(name):
    advice = advise(PUBLISHED[name][0])
    check_promise(advice)
    written = dict(advice.config)
    assert read_config(written, name).params == advice.advised.shape.params


def test_what_does_not_run_is_not_written(monkeypatch):
    advice = advise(STARCODER)
    broken = {**advice.config, "n_head": 7}
    object.__setattr__(advice, "config", broken)
    with pytest.raises(BadInput, match="is not written") as caught:
        check_promise(advice)
    assert "\n" not in str(caught.value)


def test_a_configuration_of_a_million_layers_is_refused_in_time(monkeypatch):
    monkeypatch.setattr(building, "MODULES", 2000)
    with pytest.raises(BadInput, match="too many"):
        read_config({**STARCODER, "n_layer": 10**5}, "my config")


def test_building_says_nothing(capsys, recwarn):
    read_config({**DBRX, "some_field": 3}, "DBRX")
    said = capsys.readouterr()
    assert said.out == said.err == ""
    assert not [one for one in recwarn if "theodolite" in str(one.filename)]


def test_a_foreign_model_type_falls_back_on_its_architecture():
    shape = read_config(KIMI_K2, "Kimi")
    assert (shape.exact, shape.family) == (True, "deepseek_v3")
    assert any("architectures" in note for note in shape.notes)


def test_without_the_library_it_is_described_or_refused_by_the_fields(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with hidden(), pytest.raises(BadInput, match="moe_num_experts"):
        read_config({**DBRX, "model_type": "dbrx-of-mine", "architectures": ["MyModel"]}, "my config")
