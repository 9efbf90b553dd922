"""What the advice says: the figures of the issue, the bounds, the warnings, and what it refuses."""

from __future__ import annotations

import json
import math

import pytest

from tests.each import each
from theodolite.advice.advice import advise
from theodolite.advice.configs import read_config
from theodolite.advice.result import short
from theodolite.errors import BadInput
from theodolite.theory.attention import attention_bounds
from theodolite.theory.attention_growth import growth_lower_bound_log3, refuted_depth
from theodolite.theory.cap import attention_cap_log3

from .published import KIMI_K2
from .shapes import ALBERT, GPT2, GPT3, LLAMA3, VIT_H


def test_the_document_has_the_promised_fields():
    found = json.loads(json.dumps(advise(GPT2).to_json(), allow_nan=False))
    promised = {"params", "params_by_part", "depth", "width", "regime", "recommended", "extrapolated", "bottlenecks"}
    assert promised | {"alternatives"} <= set(found)
    assert {"depth", "width", "heads", "depth_low", "depth_high"} <= set(found["recommended"])
    assert found["params"] == 124_439_808 == sum(found["params_by_part"].values())
    assert (found["depth"], found["width"]) == (12, 768)
    assert found["regime"]["dense_parameters"] == 12 * 12 * 768**2
    assert found["regime"]["params_without_embeddings"] == 85_054_464


def test_bottlenecks_are_listed_with_kind_share_and_reason():
    (one,) = advise(ALBERT).to_json()["bottlenecks"]
    assert set(one) == {"kind", "beyond_cap_share", "redundant_share", "why"}  # the old name stays for one release
    assert one["redundant_share"] == one["beyond_cap_share"]


def test_gpt2_is_shallower_and_gpt3_deeper_than_the_fit():
    assert advise(GPT2).regime.against_fit == "shallower"
    assert advise(GPT3).regime.against_fit == "deeper"
    assert advise(GPT3).recommendation.extrapolated
    assert not advise(GPT2).recommendation.extrapolated
    assert advise(GPT2).headline.startswith("12 layers of width 768: no reason to change. They are shallower")


def test_regimes_follow_three_to_the_depth():
    tiny = {**GPT2, "n_embd": 96, "n_head": 4}
    for depth, theorem in ((4, "7.1"), (5, "7.2")):  # 3^4 < 96 < 3^5
        assert advise({**tiny, "n_layer": depth}).regime.theorem.startswith(theorem)
    exact = advise({**tiny, "n_embd": 81, "n_head": 3, "n_layer": 4})
    assert exact.regime.theorem.startswith("neither")
    assert exact.given is not None
    assert exact.given.lower_log3 is None


def test_bounds_are_the_theorems_and_the_cap():
    advice = advise(GPT2)
    for rated in (advice.given, advice.advised, *advice.alternatives):
        shape = rated.shape
        bounds = attention_bounds(shape.depth, shape.width, shape.heads)
        assert (rated.lower_log3, rated.published_upper_log3) == (bounds.lower_log3, bounds.upper_log3)
        assert rated.cap_log3 == attention_cap_log3(shape.depth, shape.width)
        assert rated.lower_log3 is not None
        assert rated.cap_log3 is not None
        assert rated.lower_log3 < rated.cap_log3
        grown = growth_lower_bound_log3(shape.depth, min(shape.width, 512))  # GPT-2 reads 1024 tokens
        assert rated.growth_log3 is not None
        assert grown <= rated.growth_log3
        assert rated.growth_log3 < rated.cap_log3


def test_an_upper_bound_is_given_only_where_it_is_not_refuted():
    """GPT-2's 12 layers are the first depth of docs/paper.md at its width, for one head. Its 12 heads of width 64 need
    14. GPT-3 is far beyond, with its 2,048
    tokens too."""
    layers = {depth: {**GPT2, "n_layer": depth} for depth in (12, 13, 14)}
    found = {depth: advise(config).to_json()["given"]["bounds"] for depth, config in layers.items()}
    assert refuted_depth(768) == 12
    assert refuted_depth(768, heads=12, head_width=64) == 14
    assert [found[depth]["upper_refuted"] for depth in (12, 13, 14)] == [False, False, True]
    shallow, deep = found[12], advise(GPT3).to_json()["given"]["bounds"]
    assert shallow["growth_log3"] > shallow["published_upper_log3"]
    assert not shallow["upper_refuted"]
    assert shallow["upper_log3"] == shallow["published_upper_log3"]
    assert deep["upper_refuted"]
    assert deep["upper_log3"] is None
    assert deep["published_upper_log3"] < deep["growth_log3"] < deep["cap_log3"]


def test_shared_and_latent_keys_count_as_no_more_heads_than_are_proven():
    """Eight keys for Llama's 32 queries are eight heads; of latent attention the proofs do not speak."""
    keys = LLAMA3["num_key_value_heads"]
    first = refuted_depth(LLAMA3["hidden_size"], heads=keys, head_width=128)
    assert keys == 8
    assert first is not None
    for depth in (first - 1, first):
        bounds = advise({**LLAMA3, "num_hidden_layers": depth}).to_json()["given"]["bounds"]
        assert bounds["upper_refuted"] == (depth == first)
    latent = advise(KIMI_K2).to_json()["given"]["bounds"]
    assert latent["growth_log3"] > latent["published_upper_log3"] == latent["upper_log3"]
    assert not latent["upper_refuted"]


def test_at_equal_size_shape_cancels_to_leading_order():
    """From 56 to 448 layers at 12·L·d² = const: L·d(d+1)/2 stays, and the cap comes ever nearer to it."""
    shares = []
    for depth, width in ((56, 3584), (224, 1792), (896, 896)):
        leading = depth * width * (width + 1) / 2
        assert leading == pytest.approx(12 * depth * width**2 / 24, rel=2e-3)
        shares.append(attention_cap_log3(depth, width) / leading)
    assert shares == sorted(shares)
    assert shares[-1] > 0.98


def test_inputs_of_low_rank_lower_the_cap_and_void_the_lower_bound():
    full, low = advise(GPT2), advise(GPT2, embedding_rank=64)
    assert low.given is not None
    assert full.given is not None
    assert low.given.lower_log3 is None
    assert low.given.cap_log3 == attention_cap_log3(12, 64)
    assert full.given.cap_log3 == attention_cap_log3(12, 768)


def test_images_get_a_deeper_shape_and_a_warning():
    language, image = advise(VIT_H, modality="language"), advise(VIT_H)
    old, new = language.recommendation, image.recommendation
    ratio = (new.fitted_depth / new.fitted_width) / (old.fitted_depth / old.fitted_width)
    assert ratio == pytest.approx(10, rel=0.1)  # the tables make it not exactly ten
    assert image.recommendation.extrapolated
    assert any("rough" in warning for warning in image.warnings)


def test_bytes_show_their_vocabulary_as_the_bottleneck():
    advice = advise(params="300M", modality="bytes")
    assert [one.kind for one in advice.bottlenecks] == ["vocabulary"]
    assert advice.advised.shape.vocab == 256


@pytest.mark.parametrize("text", ["1.3e9", "1.3B", 1.3e9, 1_300_000_000])
def test_a_budget_is_met_embeddings_included(text):
    advice = advise(params=text, vocab=50257)
    assert advice.given is None
    assert advice.budget == 1_300_000_000
    assert advice.advised.shape.params == pytest.approx(1.3e9, rel=0.01)
    assert read_config(advice.config, "written").params == advice.advised.shape.params


@pytest.mark.parametrize(("params", "vocab"), [(10**4, 16), (64_000, 64), (10**6, 256), (10**12, 50257), (10**15, 9)])
def test_every_size_of_budget_gets_a_shape(params, vocab):
    advice = advise(params=params, vocab=vocab)
    assert advice.advised.shape.params == pytest.approx(params, rel=0.15)


def test_a_factored_embedding_is_counted():
    advice = advise(params="300M", vocab=50257, embedding_rank=128)
    width = advice.advised.shape.width
    assert advice.advised.shape.parts["embedding"] == 50257 * 128 + 2 * 128 * width
    assert [one.kind for one in advice.bottlenecks] == ["embedding-rank"]


def test_context_sets_where_attention_is_costed():
    short_, long = advise(LLAMA3, context=10), advise(LLAMA3, context=20)
    gained = (long.judged.cost.inference_flops or 0) - (short_.judged.cost.inference_flops or 0)
    assert gained == 4 * 32 * 4096 * 10


@each(
    ("arguments", "sentence"),
    [
        ({}, "or both"),
        ({"config": GPT2, "params": 1e9, "like": "llama"}, "--like"),
        ({"config": {"model_type": "mamba", "hidden_size": 768}, "params": 1e9}, "another size"),
        ({"params": 1e9}, "--vocab"),
        ({"config": GPT2, "vocab": 5}, "--vocab"),
        ({"params": -5, "vocab": 9}, "absurd"),
        ({"params": "-5", "vocab": 9}, "negative"),
        ({"params": 9999, "vocab": 9}, "absurd"),
        ({"params": 1.1e15, "vocab": 9}, "absurd"),
        ({"params": math.nan, "vocab": 9}, "absurd"),
        ({"params": True, "vocab": 9}, "absurd"),
        ({"params": "many", "vocab": 9}, "not a number of parameters"),
        ({"params": 1e9, "vocab": 0}, "vocabulary"),
        ({"params": 1e9, "vocab": 9, "modality": "smell"}, "language, image, bytes"),
        ({"config": GPT2, "embedding_rank": 0}, "embedding rank"),
        ({"config": GPT2, "context": -1}, "context"),
        ({"config": {**GPT2, "n_head": 7}}, "divide"),
        ({"config": {"model_type": "gpt2", "n_head": 7}}, "does not state"),
        ({"config": "/no/such/config.json"}, "no file"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        advise(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("count", "text"),
    [(1e15, "1000T"), (175e9, "175B"), (124_439_808, "124M"), (999_999, "1M"), (64_000, "64k"), (7, "7")],
)
def test_counts_as_people_say_them(count, text):
    assert short(count) == text


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"params": "20M", "vocab": 1000}, "GPT2LMHeadModel"),
        ({"params": "20M", "vocab": 1000, "embedding_rank": 32}, "OPTForCausalLM"),
        ({"params": "20M", "modality": "image"}, "ViTForImageClassification"),
        ({"config": LLAMA3}, "LlamaForCausalLM"),
    ],
)
def test_transformers_builds_the_advised_config_with_as_many_parameters(tmp_path, arguments, kind):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    advice = advise(**arguments)
    (tmp_path / "config.json").write_text(json.dumps(advice.config), encoding="utf-8")
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        model = getattr(transformers, kind)(config)
    counted = sum(parameter.numel() for parameter in {id(p): p for p in model.parameters()}.values())
    assert counted == advice.advised.shape.params
