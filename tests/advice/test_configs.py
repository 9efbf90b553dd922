"""Reading configurations: known counts, what is refused and how, unknown families, and writing another shape."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.advice.published import CHATGLM3, OWN_CODE
from tests.each import each
from theodolite.advice.building.library import hidden
from theodolite.advice.catalogue import models
from theodolite.advice.configs import load_config, read_config, reshape
from theodolite.advice.shape import OUTSIDE_BLOCKS
from theodolite.errors import BadInput

GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
BERT = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_key_value_heads": 8, "intermediate_size": 14336}
T5 = {"model_type": "t5", "num_layers": 6, "d_model": 512, "num_heads": 8, "d_kv": 64, "d_ff": 2048}
ALBERT = BERT | {"model_type": "albert", "embedding_size": 128, "intermediate_size": 3072}
VIT = BERT | {"model_type": "vit", "num_labels": 1000, "image_size": 224, "patch_size": 16}


@pytest.fixture(autouse=True)
def by_description() -> Iterator[None]:
    """What is built by transformers is in test_building.py."""
    with hidden():
        yield


@pytest.mark.parametrize(
    ("config", "params"),
    [
        (GPT2, 124_439_808),
        (BERT | {"architectures": ["BertModel"]}, 109_482_240),
        (LLAMA, 6_738_415_616),
        (MIXTRAL | {"model_type": "mistral"}, 7_241_732_096),
        (MIXTRAL, 46_702_792_704),
        (T5, 60_506_624),
        (ALBERT | {"architectures": ["AlbertModel"]}, 11_683_584),
        (VIT, 86_567_656),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_released_model_counts_what_its_weights_file_holds(config: dict[str, Any], params: int) -> None:
    assert read_config(config, "a model").params == params


def test_the_shape_says_what_the_configuration_says() -> None:
    shape = read_config(MIXTRAL, "Mixtral")
    assert (shape.depth, shape.width, shape.heads, shape.head_width) == (32, 4096, 32, 128)
    assert (shape.key_value_heads, shape.mlp_width, shape.gated, shape.tied) == (8, 14336, True, False)
    assert (shape.experts, shape.active_experts, shape.vocab, shape.exact) == (8, 2, 32000, True)
    assert shape.active == shape.params - 32 * 6 * 3 * 4096 * 14336
    assert shape.counted == "MixtralForCausalLM"
    assert any("MixtralForCausalLM" in note for note in shape.notes)


def test_an_encoder_decoder_counts_both_stacks_as_depth() -> None:
    shape = read_config(T5 | {"num_layers": 12, "num_decoder_layers": 4}, "a model")
    assert (shape.depth, shape.decoder_depth) == (16, 4)


def test_attention_wider_than_the_model_is_seen() -> None:
    shape = read_config(T5 | {"d_model": 1024, "num_heads": 128, "d_kv": 128}, "T5 11B")
    assert (shape.width, shape.attention_width) == (1024, 16384)


def test_shared_layers_are_counted_once_and_passed_twelve_times() -> None:
    shape = read_config(ALBERT, "ALBERT")
    assert (shape.depth, shape.distinct_layers, shape.embedding_rank) == (12, 1, 128)
    assert shape.params_in_blocks == read_config(ALBERT | {"num_hidden_layers": 24}, "a model").params_in_blocks


def test_bytes_are_told_by_the_tokenizer() -> None:
    assert read_config(T5 | {"tokenizer_class": "ByT5Tokenizer"}, "a model").modality == "bytes"
    assert read_config(T5, "a model").modality == "language"
    assert read_config(VIT, "a model").modality == "image"


def test_a_head_we_do_not_know_is_left_out_and_said() -> None:
    shape = read_config(BERT | {"architectures": ["BertForQuestionAnswering"]}, "a model")
    assert not shape.exact
    assert any("BertForQuestionAnswering" in note for note in shape.notes)
    assert shape.params == read_config(BERT | {"architectures": ["BertModel"]}, "a model").params


@pytest.mark.parametrize("config", [LLAMA, GPT2, VIT, LLAMA | {"num_key_value_heads": 8, "head_dim": 96}])
def test_a_family_under_another_name_is_counted_by_its_fields_and_marked_as_assumed(config: dict[str, Any]) -> None:
    known = read_config(config, "a model")
    unknown = read_config({**config, "model_type": "something-new", "tie_word_embeddings": known.tied}, "a model")
    assert unknown.params == known.params
    assert dict(unknown.parts) == dict(known.parts)
    assert not unknown.exact
    assert any("something-new" in note for note in unknown.notes)
    assert any("assumed" in note for note in unknown.notes)


def test_an_unknown_mixture_counts_its_experts() -> None:
    known = read_config(MIXTRAL, "a model")
    unknown = read_config({**MIXTRAL, "model_type": "new", "num_local_experts": 8, "num_experts_per_tok": 2}, "a model")
    assert (unknown.params, unknown.active) == (known.params, known.active)


def test_an_unknown_encoder_decoder_keeps_its_two_depths() -> None:
    bart = {
        "d_model": 768,
        "encoder_layers": 6,
        "decoder_layers": 4,
        "encoder_attention_heads": 12,
        "vocab_size": 50265,
    }
    bart |= {"model_type": "bart", "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "max_position_embeddings": 1024}
    bart |= {"model_type": "not-bart"}
    shape = read_config(bart, "BART")
    assert (shape.depth, shape.decoder_depth, shape.heads, shape.mlp_width) == (10, 4, 12, 3072)
    attention = 4 * (768 * 768 + 768)
    assert shape.parts["attention"] == (6 + 2 * 4) * attention
    assert shape.parts["norms"] == (2 * 6 + 3 * 4) * 2 * 768
    new = reshape(bart, depth=20, width=512, heads=8)
    assert (new["encoder_layers"], new["decoder_layers"], new["encoder_attention_heads"]) == (12, 8, 8)


def test_the_text_part_of_a_model_of_images_and_text_is_read() -> None:
    text = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "model_type": "gemma3_text"}
    outer = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}}
    shape = read_config(outer, "Gemma 3 4B")
    # The published configuration leaves out heads (8), key-value heads (4), head width (256) and vocabulary (262208).
    assert (shape.heads, shape.key_value_heads, shape.head_width, shape.vocab) == (8, 4, 256, 262208)
    assert shape.params == 3_880_099_328 + 64 * 2560  # the count with a vocabulary of 262144, from another library
    assert any("text_config" in note for note in shape.notes)
    new = reshape(outer, depth=40, width=2048, heads=8)
    assert new["vision_config"] == outer["vision_config"]
    assert new["text_config"]["num_hidden_layers"] == 40
    assert outer["text_config"] == text  # the given one is left alone


def test_the_text_part_of_clip_has_its_own_name_and_positions() -> None:
    """As openai/clip-vit-base-patch32 writes it; 63165952 are the parameters of its text model."""
    text = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8}
    for inner in (text | {"model_type": "clip_text_model", "max_position_embeddings": 77, "vocab_size": 49408}, text):
        shape = read_config({"model_type": "clip", "text_config": inner, "vision_config": {}}, "CLIP")
        assert (shape.family, shape.positions, shape.params) == ("clip_text_model", 77, 63_165_952)
        assert shape.name == "CLIP"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "rwkv7"}, "recurrent"),
        ({"model_type": "s4"}, "recurrent"),
        ({"d_model": 768, "n_layer": 24, "vocab_size": 50277, "ssm_cfg": {}}, "recurrent"),  # the first Mambas
        (LLAMA | {"model_type": "samba"}, "not a Transformer in all of its layers"),
        (LLAMA | {"model_type": "new", "layer_types": ["linear_attention", "full_attention"]}, "all of its layers"),
        ({"model_type": "vgg", "hidden_sizes": [64]}, "convolutional"),
    ],
)
def test_what_is_not_a_transformer_and_not_described_is_refused_as_that(config: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        read_config(config, "my config")
    assert "my config" in str(caught.value)
    assert "add these" not in str(caught.value)


@pytest.mark.parametrize("family", ["minimax_m2", "bitnet", "megatron-bert", "s4x"])
def test_a_transformer_with_a_similar_name_is_read(family: str) -> None:
    assert read_config(LLAMA | {"model_type": family}, "a model").depth == 32


def test_a_mixture_that_does_not_say_how_many_experts_a_token_takes_is_counted() -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "n_routed_experts": 8}
    shape = read_config({"model_type": "deepseek_v2", **sizes, "num_experts_per_tok": None}, "a model")
    assert shape.active == shape.params
    assert any("num_experts_per_tok" in note for note in shape.notes)


def test_a_model_that_sees_and_is_not_described_is_refused_by_its_other_part() -> None:
    with pytest.raises(BadInput, match=r"vision_config\.hidden_size"):
        read_config({**LLAMA, "model_type": "new", "vision_config": {"hidden_size": 64}}, "a model")


def test_a_text_part_without_sizes_has_those_of_its_type_or_is_named() -> None:
    shape = read_config({"model_type": "llava", "text_config": {"model_type": "llama"}}, "my config")
    assert (shape.depth, shape.width, shape.params) == (32, 4096, 6_738_415_616)
    assert any("hidden_size 4096" in note for note in shape.notes)
    with pytest.raises(BadInput, match="text_config of my config does not state"):
        read_config({"model_type": "llava", "text_config": {"model_type": "brand-new"}}, "my config")


@each(
    ("change", "names"),
    [
        ({"n_layer": None}, ["num_hidden_layers", "n_layer"]),
        ({"n_embd": None}, ["hidden_size", "n_embd", "d_model"]),
        ({"n_head": None}, ["num_attention_heads", "n_head"]),
        ({"n_layer": 0}, ["n_layer", "0"]),
        ({"n_layer": -3}, ["n_layer", "-3"]),
        ({"n_layer": 2.5}, ["n_layer", "2.5"]),
        ({"n_layer": True}, ["n_layer", "True"]),
        ({"n_layer": "12"}, ["n_layer", "'12'"]),
        ({"n_layer": [12]}, ["n_layer", "[12]"]),
        ({"n_layer": 10**7 + 1}, ["n_layer", "10000001"]),
        ({"n_embd": 12 * 10**12}, ["n_embd", "12000000000000"]),
        ({"n_embd": float("nan")}, ["n_embd", "nan"]),
        ({"n_head": 7}, ["7 heads", "768"]),
        ({"vocab_size": 0}, ["vocab_size", "0"]),
        ({"n_positions": -1}, ["n_positions", "-1"]),
        ({"tie_word_embeddings": "yes"}, ["tie_word_embeddings", "yes"]),
        ({"model_type": 7}, ["model_type", "7"]),
        ({"architectures": "GPT2Model"}, ["architectures", "GPT2Model"]),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(change: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_config(GPT2 | change, "my config")
    message = str(caught.value)
    assert "my config" in message
    assert all(name in message for name in names), message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"]),
        ({"model_type": "gpt2"}, ["n_layer", "n_embd", "n_head"]),
        ({"model_type": "brand-new", "hidden_size": 8}, ["num_hidden_layers", "num_attention_heads", "vocab_size"]),
        (LLAMA | {"num_key_value_heads": 5}, ["5 key-value heads", "32"]),
        (LLAMA | {"head_dim": 0}, ["head_dim", "0"]),
        (MIXTRAL | {"num_local_experts": 2, "num_experts_per_tok": 3}, ["3 of 2"]),
        (VIT | {"patch_size": 500}, ["patch_size", "500"]),
        (VIT | {"image_size": [224, "x"]}, ["image_size", "'x'"]),
        (T5 | {"architectures": ["T5ForTokenClassification"]}, ["T5ForTokenClassification"]),
        ({"text_config": [1]}, ["text_config"]),
        ({"model_type": "qwen3_moe", **{k: v for k, v in LLAMA.items() if k != "model_type"}, "mlp_only_layers": "x"},
         ["mlp_only_layers"]),
    ],
)  # fmt: skip
def test_a_family_refuses_what_it_cannot_build(config: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_config(config, "a model")
    assert all(name in str(caught.value) for name in names), str(caught.value)


def test_a_file_is_read_from_its_folder_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    assert load_config(tmp_path) == load_config(tmp_path / "config.json") == load_config(str(tmp_path)) == GPT2


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(GPT2).encode())
    assert load_config(tmp_path) == GPT2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[1, 2]", "array"),
        (b"null", "null"),
        (b'"gpt2"', "string"),
        (b"1" * 5000, "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b" " * (10 * 2**20 + 1), "larger than 10 MB"),
    ],
    ids=["cut", "empty", "encoding", "array", "null", "string", "long number", "deep", "large"],
)
def test_a_file_that_is_no_configuration_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=words) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_file_and_a_folder_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        load_config(tmp_path / "absent.json")
    with pytest.raises(BadInput, match=r"holds no config\.json"):
        load_config(tmp_path)


@each("model", models())
def test_reshaping_a_public_model_to_its_own_shape_changes_no_count(model: Any) -> None:
    shape = model.shape
    if shape.width % shape.heads and not shape.decoder_depth:
        with pytest.raises(BadInput, match="do not divide"):
            reshape(model.config, shape.depth, shape.width, shape.heads)
        return
    again = read_config(reshape(model.config, shape.depth, shape.width, shape.heads), model.name)
    assert dict(again.parts) == dict(shape.parts)
    assert again.active == shape.active


DEEPENED = [model for model in models() if model.shape.width % model.shape.heads == 0]
DEEPENED = [model for model in DEEPENED if model.shape.distinct_layers is None]


@each("model", DEEPENED)
def test_twice_the_depth_is_twice_the_blocks(model: Any) -> None:
    shape = model.shape
    deep = read_config(reshape(model.config, 2 * shape.depth, shape.width, shape.heads), model.name)
    assert deep.params_in_blocks == 2 * shape.params_in_blocks
    for part in OUTSIDE_BLOCKS:
        if part != "positions":
            assert deep.parts[part] == shape.parts[part]


def test_reshaping_keeps_ratios_and_what_is_stated() -> None:
    new = reshape(LLAMA | {"num_key_value_heads": 8, "max_window_layers": 16}, depth=48, width=3072, heads=24)
    assert (new["num_hidden_layers"], new["hidden_size"], new["num_attention_heads"]) == (48, 3072, 24)
    assert (new["num_key_value_heads"], new["intermediate_size"], new["max_window_layers"]) == (6, 8256, 24)
    assert new["vocab_size"] == 32000
    assert "head_dim" not in new
    assert reshape(LLAMA | {"head_dim": 96}, 4, 2048, 16)["head_dim"] == 96
    assert reshape(GPT2 | {"n_inner": None}, 4, 128, 2)["n_inner"] is None
    assert reshape(ALBERT, 4, 128, 2)["embedding_size"] == 128
    kinds = ["sliding_attention", "sliding_attention", "full_attention"]
    assert reshape(LLAMA | {"layer_types": kinds}, 5, 128, 2)["layer_types"] == [*kinds, *kinds[:2]]
    t5 = reshape(T5 | {"num_layers": 36, "num_decoder_layers": 12}, depth=24, width=512, heads=6)
    assert (t5["num_layers"], t5["num_decoder_layers"], t5["d_kv"], t5["num_heads"]) == (18, 6, 64, 6)


def test_key_value_heads_always_divide_the_heads() -> None:
    for heads in range(1, 33):
        new = reshape(LLAMA | {"num_key_value_heads": 8}, depth=2, width=8 * heads, heads=heads)
        assert heads % new["num_key_value_heads"] == 0


def test_fields_a_family_would_fill_with_fixed_numbers_are_written_out() -> None:
    bare = {"num_hidden_layers": 2, "hidden_size": 768, "num_attention_heads": 12}
    assert reshape({"model_type": "bert", **bare}, 2, 384, 6)["intermediate_size"] == 1536
    assert reshape({"model_type": "distilbert", **bare}, 2, 384, 6)["hidden_dim"] == 1536
    gemma = {"model_type": "gemma2", **bare, "num_attention_heads": 8, "intermediate_size": 64}
    assert reshape(gemma, 2, 384, 6)["num_key_value_heads"] == 3


def test_factors_of_rotary_positions_follow_the_head_width() -> None:
    scaling = {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [float(i) for i in range(48)]}
    phi = LLAMA | {"model_type": "phi3", "hidden_size": 3072, "rope_scaling": scaling}
    new = reshape(phi, depth=4, width=2048, heads=32)
    assert len(new["rope_scaling"]["short_factor"]) == len(new["rope_scaling"]["long_factor"]) == 32
    assert len(phi["rope_scaling"]["short_factor"]) == 48


@pytest.mark.parametrize("sizes", [(0, 64, 2), (2, -64, 2), (2, 64, 3), (2, 64, True), (2.5, 64, 2), (10**8, 64, 2)])
def test_a_shape_that_cannot_be_is_refused(sizes: tuple[Any, Any, Any]) -> None:
    with pytest.raises(BadInput):
        reshape(GPT2, *sizes)


def test_an_encoder_decoder_needs_two_layers() -> None:
    with pytest.raises(BadInput, match="at least 2"):
        reshape(T5, 1, 64, 4)


JUNK = (None, 0, -1, 1, 3, 2.5, 3.0, "x", "", [], [1], [[1]], {}, {"a": 1}, True, 10**12, float("nan"), float("inf"))


def test_a_configuration_with_any_field_spoilt_is_read_or_refused_but_never_breaks() -> None:
    draw = random.Random(0)
    extra = ["head_dim", "architectures", "text_config", "layer_types", "rope_scaling", "attention_types", "id2label"]
    extra += ["num_hidden_groups", "inner_group_num", "encoder_layers", "decoder_layers", "num_experts", "image_size"]
    read = refused = 0
    for _ in range(3000):
        config = dict(draw.choice(models()).config)
        for _ in range(draw.randint(1, 3)):
            config[draw.choice([*config, *extra])] = draw.choice(JUNK)
        try:
            shape = read_config(config, "a model")
            assert 0 < shape.active <= shape.params
            new = read_config(reshape(config, 4, 96, 6), "a model")
            assert (new.depth, new.width, new.heads) == (4, 96, 6)
            read += 1
        except BadInput:
            refused += 1
    assert min(read, refused) > 500


def test_reading_needs_no_heavy_library() -> None:
    code = (
        "import sys; import theodolite.advice.configs; from theodolite.advice.catalogue import models; "
        "[model.shape for model in models()]; "
        "print([name for name in ('torch', 'numpy', 'transformers', 'jaxtyping') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("name", "pair"), list(OWN_CODE.items()))
def test_models_with_code_of_their_own_have_the_parameters_of_their_weights(name, pair):
    config, params = pair
    shape = read_config(config, name)
    assert shape.exact
    assert shape.params == params


def test_the_first_chatglm_is_refused():
    with pytest.raises(BadInput, match="the first ChatGLM"):
        read_config(CHATGLM3 | {"inner_hidden_size": 16384, "position_encoding_2d": True}, "it")
