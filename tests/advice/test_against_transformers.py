"""Our counts against `transformers` itself, which builds each model on the meta device: equal to the last parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.advice.published import OWN_CODE
from tests.each import each
from theodolite.advice.catalogue import models
from theodolite.advice.configs import load_config, read_config, reshape
from theodolite.advice.cost import cost
from theodolite.advice.families import FAMILIES

transformers = pytest.importorskip("transformers")

# Small and odd: no size is a power of two of another, so that a swapped pair of them shows.
PLAIN = {
    "num_hidden_layers": 3,
    "hidden_size": 60,
    "num_attention_heads": 6,
    "intermediate_size": 92,
    "vocab_size": 101,
}
GROUPED = PLAIN | {"num_key_value_heads": 2, "pad_token_id": 0}
T5 = {"num_layers": 2, "d_model": 36, "num_heads": 5, "d_kv": 8, "d_ff": 52, "vocab_size": 101}
GPT2 = {"n_layer": 3, "n_embd": 60, "n_head": 6, "vocab_size": 101, "n_positions": 37}
IMAGE = {"num_hidden_layers": 2, "hidden_size": 36, "num_attention_heads": 3, "intermediate_size": 44, "patch_size": 7}
IMAGE = IMAGE | {"image_size": 28, "id2label": {str(label): str(label) for label in range(10)}}
LATENT = PLAIN | {"kv_lora_rank": 14, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 8}
LATENT = LATENT | {"moe_intermediate_size": 22, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2}
LATENT = LATENT | {"num_key_value_heads": 6, "n_group": 2, "topk_group": 1}
SPARSE = GROUPED | {"moe_intermediate_size": 22, "num_experts": 5, "num_experts_per_tok": 2}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("gpt2", GPT2),
    ("gpt2", GPT2 | {"n_inner": 77, "tie_word_embeddings": False}),
    ("gpt2", GPT2 | {"architectures": ["GPT2Model"]}),
    ("gpt_neo", {"num_layers": 3, "hidden_size": 60, "num_heads": 6, "attention_types": [[["global"], 3]]}),
    (
        "gpt_neo",
        {"num_layers": 2, "hidden_size": 60, "num_heads": 6, "attention_types": [[["global", "local"], 1]]}
        | {"intermediate_size": 77, "max_position_embeddings": 33, "vocab_size": 101},
    ),
    ("gpt_neox", PLAIN),
    ("gpt_neox", PLAIN | {"attention_bias": False, "tie_word_embeddings": True}),
    ("gptj", GPT2 | {"rotary_dim": 4}),
    ("gptj", GPT2 | {"rotary_dim": 4, "n_inner": 77, "tie_word_embeddings": True}),
    ("opt", PLAIN | {"ffn_dim": 77}),
    ("opt", PLAIN | {"ffn_dim": 77, "word_embed_proj_dim": 24, "enable_bias": False}),
    ("opt", PLAIN | {"ffn_dim": 77, "do_layer_norm_before": False}),
    ("bloom", {"n_layer": 3, "hidden_size": 60, "n_head": 6, "vocab_size": 101}),
    ("bloom", {"n_layer": 3, "n_embed": 60, "num_attention_heads": 6, "vocab_size": 101}),  # as published
    ("falcon", PLAIN),
    ("falcon", PLAIN | {"num_kv_heads": 2, "new_decoder_architecture": True, "bias": True}),
    ("falcon", PLAIN | {"multi_query": False, "parallel_attn": False, "alibi": True}),
    ("falcon", PLAIN | {"num_kv_heads": 6, "ffn_hidden_size": 88}),
    ("clip_text_model", PLAIN | {"max_position_embeddings": 17}),
    ("clip_text_model", PLAIN | {"tie_word_embeddings": False}),
    ("llama", GROUPED),
    ("llama", PLAIN | {"head_dim": 14, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("llama", PLAIN | {"num_key_value_heads": None, "architectures": ["LlamaModel"]}),
    ("mistral", GROUPED),
    ("mistral", GROUPED | {"head_dim": 14, "tie_word_embeddings": True}),
    ("mixtral", GROUPED | {"num_local_experts": 5, "num_experts_per_tok": 3}),
    ("qwen2", GROUPED),
    ("qwen2", GROUPED | {"tie_word_embeddings": True}),
    ("qwen3", GROUPED),
    ("qwen3", GROUPED | {"head_dim": 14, "attention_bias": True, "tie_word_embeddings": True}),
    ("qwen2_moe", SPARSE | {"shared_expert_intermediate_size": 34}),
    ("qwen2_moe", SPARSE | {"shared_expert_intermediate_size": 34, "decoder_sparse_step": 2, "qkv_bias": False}),
    ("qwen3_moe", SPARSE | {"head_dim": 14}),
    ("qwen3_moe", SPARSE | {"mlp_only_layers": [1], "tie_word_embeddings": True, "attention_bias": True}),
    ("gemma", GROUPED | {"head_dim": 14}),
    ("gemma", GROUPED | {"tie_word_embeddings": False, "attention_bias": True}),
    ("gemma2", GROUPED | {"head_dim": 14}),
    ("gemma3_text", GROUPED | {"head_dim": 14}),
    ("gemma3_text", {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 92, "vocab_size": 101}),
    ("phi", GROUPED),
    ("phi", PLAIN | {"qk_layernorm": True}),
    ("phi3", GROUPED),
    ("phi3", GROUPED | {"tie_word_embeddings": True}),
    ("phi3", GROUPED | {"rope_scaling": {"type": "longrope", "short_factor": [1.0] * 5, "long_factor": [2.0] * 5}}),
    ("deepseek_v2", LATENT | {"q_lora_rank": None, "first_k_dense_replace": 1}),
    ("deepseek_v2", LATENT | {"q_lora_rank": 18, "attention_bias": True, "tie_word_embeddings": True}),
    ("deepseek_v3", LATENT | {"q_lora_rank": 18, "first_k_dense_replace": 2}),
    ("t5", T5),
    ("t5", T5 | {"num_decoder_layers": 3, "feed_forward_proj": "gated-gelu"}),
    ("t5", T5 | {"num_decoder_layers": 1, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ("t5", T5 | {"architectures": ["T5EncoderModel"]}),
    ("t5", T5 | {"architectures": ["T5Model"], "relative_attention_num_buckets": 20}),
    ("mt5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ("mt5", T5 | {"tie_word_embeddings": True}),
    ("umt5", T5 | {"num_decoder_layers": 3}),
    ("bert", PLAIN),
    ("electra", PLAIN | {"tie_word_embeddings": False}),
    ("albert", PLAIN | {"num_hidden_groups": 3}),
    ("distilbert", PLAIN | {"tie_word_embeddings": False, "hidden_dim": 84}),
    ("falcon", PLAIN | {"tie_word_embeddings": False}),
    ("gpt2", PLAIN | {"num_key_value_heads": 2, "head_dim": 7}),
    ("bert", PLAIN | {"architectures": ["BertModel"], "type_vocab_size": 5}),
    ("bert", PLAIN | {"architectures": ["BertForPreTraining"], "max_position_embeddings": 33}),
    ("roberta", PLAIN | {"type_vocab_size": 1}),
    ("roberta", PLAIN | {"architectures": ["RobertaModel"]}),
    ("xlm-roberta", PLAIN),
    ("distilbert", {"n_layers": 3, "dim": 60, "n_heads": 6, "hidden_dim": 92, "vocab_size": 101}),
    ("distilbert", {"n_layers": 3, "dim": 60, "n_heads": 6, "hidden_dim": 92, "architectures": ["DistilBertModel"]}),
    ("electra", PLAIN | {"embedding_size": 22}),
    ("electra", PLAIN | {"embedding_size": 60, "architectures": ["ElectraForPreTraining"]}),
    ("electra", PLAIN | {"architectures": ["ElectraModel"]}),
    ("albert", PLAIN | {"embedding_size": 22}),
    ("albert", PLAIN | {"embedding_size": 60, "architectures": ["AlbertModel"], "num_hidden_groups": 2}),
    ("albert", PLAIN | {"embedding_size": 22, "architectures": ["AlbertForPreTraining"], "inner_group_num": 2}),
    ("vit", IMAGE),
    ("vit", IMAGE | {"architectures": ["ViTModel"], "qkv_bias": False, "num_channels": 1}),
    ("deit", IMAGE),
    ("deit", IMAGE | {"architectures": ["DeiTForImageClassificationWithTeacher"]}),
]
if int(transformers.__version__.split(".")[0]) >= 5:  # before, an untied output map shared the head's bias
    CASES += [(family, PLAIN | {"tie_word_embeddings": False}) for family in ("bert", "roberta", "albert")]
REAL = [
    "GPT-2 XL",
    "GPT-J 6B",
    "Pythia 1B",
    "OPT 350M",
    "BLOOM 560M",
    "Falcon 40B",
    "Llama 3.2 1B",
    "Mixtral 8x7B",
    "Qwen2.5 0.5B",
    "Qwen3 30B-A3B",
    "Qwen1.5 MoE A2.7B",
    "Gemma 2 9B",
    "Gemma 3 1B",
    "Phi-2",
    "Phi-3 medium",
    "T5 11B",
    "mT5 small",
    "ByT5 small",
    "BERT large",
    "RoBERTa large",
    "ALBERT xxlarge",
    "ELECTRA small",
    "ViT-H/14",
    "DeiT-S",
    "DeepSeek-V2-Lite",
]


def built(config: dict[str, Any], folder: Path) -> tuple[int, bool]:
    """The parameters transformers counts for a configuration read from disk, and whether it ties the embeddings."""
    (folder / "config.json").write_text(json.dumps(config))
    read = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = getattr(transformers, read_config(config, "a model").counted)(read)
    return sum(parameter.numel() for parameter in model.parameters()), bool(getattr(read, "tie_word_embeddings", False))


def agrees(config: dict[str, Any], folder: Path) -> None:
    shape = read_config(config, "a model")
    theirs, tied = built(config, folder)
    if shape.family in ("t5", "mt5", "umt5") and tied and not shape.tied:
        theirs += shape.parts["head"]  # transformers 5 ties these whatever the configuration says
    assert shape.exact
    assert shape.params == theirs


@each(("family", "fields"), CASES)
def test_a_small_odd_model_counts_as_transformers_counts_it(
    family: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    agrees({"model_type": family, **fields}, tmp_path)


@each(("family", "fields"), CASES)
def test_a_reshaped_configuration_loads_and_counts_the_same(
    family: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    config = {"model_type": family, **fields}
    new = reshape(config, depth=6, width=96, heads=8)
    shape = read_config(new, "a model")
    assert (shape.depth, shape.width, shape.heads) == (6, 96, 8)
    agrees(new, tmp_path)


@each("name", REAL)
def test_a_public_model_counts_as_transformers_counts_it(name: str, tmp_path: Path) -> None:
    (model,) = [model for model in models() if model.name == name]
    agrees(dict(model.config), tmp_path)


def test_the_text_part_of_gemma_3_counts_as_transformers_counts_it(tmp_path: Path) -> None:
    text = {"num_hidden_layers": 7, "hidden_size": 64, "intermediate_size": 92, "vocab_size": 101}
    outer = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 24, "num_hidden_layers": 1}}
    for config in (outer, reshape(outer, depth=13, width=96, heads=4)):
        (tmp_path / "config.json").write_text(json.dumps(config))
        read = transformers.AutoConfig.from_pretrained(tmp_path)
        with torch.device("meta"):
            model = transformers.Gemma3ForCausalLM(read.text_config)
        assert read_config(config, "a model").params == sum(parameter.numel() for parameter in model.parameters())


def test_every_family_is_compared() -> None:
    own_code = {config["model_type"] for config, _ in OWN_CODE.values()}  # compared with their published weights
    assert {family for family, _ in CASES} | own_code == set(FAMILIES)


def test_the_parts_of_a_model_are_what_their_names_say(tmp_path: Path) -> None:
    """Each tensor of three families, sorted by its name in transformers, adds up to the part of that name."""
    places = {
        "embedding": ("embed_tokens", "wte", "shared"),
        "positions": ("wpe", "relative_attention_bias"),
        "head": ("lm_head",),
        "attention": ("q_proj", "k_proj", "v_proj", "o_proj", "attn.c_", "Attention."),
        "router": ("mlp.gate.",),
        "mlp": ("mlp.", "DenseReluDense"),
        "norms": ("layers.", "h.0", "h.1", "h.2", "block."),  # what is left inside a block
        "other": ("",),
    }
    for config in (
        {"model_type": "gpt2", **GPT2},
        {"model_type": "qwen3_moe", **SPARSE, "head_dim": 14},
        {"model_type": "t5", **T5},
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        shape = read_config(load_config(tmp_path), "a model")
        with torch.device("meta"):
            model = getattr(transformers, shape.counted)(transformers.AutoConfig.from_pretrained(tmp_path))
        found = dict.fromkeys(shape.parts, 0)
        for name, parameter in model.named_parameters():
            relative = "relative_attention_bias" in name
            part = next(
                part
                for part, words in places.items()
                if any(word in name for word in words) and (part == "positions" or not relative)
            )
            found[part] += parameter.numel()
        assert found == dict(shape.parts)


def test_the_active_parameters_are_those_of_a_model_with_only_the_experts_a_token_takes(tmp_path: Path) -> None:
    for family, fields, name in (
        ("mixtral", GROUPED | {"num_local_experts": 5, "num_experts_per_tok": 2}, "num_local_experts"),
        ("qwen2_moe", SPARSE | {"shared_expert_intermediate_size": 34}, "num_experts"),
        ("deepseek_v3", LATENT | {"q_lora_rank": 18, "first_k_dense_replace": 2}, "n_routed_experts"),
    ):
        config = {"model_type": family, **fields}
        shape = read_config(config, "a model")
        small, _ = built(config | {name: shape.active_experts}, tmp_path)
        routers = shape.parts["router"]
        assert shape.active == small - routers * shape.active_experts // shape.experts + routers
        assert shape.active < shape.params


@pytest.mark.parametrize(("encoder", "decoder"), [(2, 2), (3, 1)])
def test_an_encoder_decoder_costs_what_torch_counts_in_transformers(encoder: int, decoder: int) -> None:
    """As many tokens on both sides; the counter sees matrices only, no norms."""
    tokens = 11
    sizes = T5 | {"num_layers": encoder, "num_decoder_layers": decoder}
    read_by_them = transformers.T5Config(**sizes, attn_implementation="eager")  # fused kernels are not counted
    model = transformers.T5ForConditionalGeneration(read_by_them).eval()
    ids = torch.zeros(1, tokens, dtype=torch.long)
    found = cost(read_config({"model_type": "t5", **sizes}, "a model"), tokens)
    crossed = 2 * decoder * T5["d_model"] * T5["num_heads"] * T5["d_kv"]  # keys and values of cross-attention
    with FlopCounterMode(display=False) as both:
        model(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits.sum().backward()
    with torch.no_grad(), FlopCounterMode(display=False) as forward:
        model(input_ids=ids, decoder_input_ids=ids, use_cache=False)
    with torch.no_grad(), FlopCounterMode(display=False) as encoding:
        model.encoder(input_ids=ids)
    read = encoding.get_total_flops() // tokens + 2 * crossed
    written = forward.get_total_flops() // tokens - read
    norms = (3 * decoder + 1) * T5["d_model"]
    assert found.inference_flops == written + 2 * norms
    norms += (2 * encoder + 1) * T5["d_model"]
    assert found.training_flops is not None
    assert 2 * found.training_flops == 3 * (read + written + 2 * norms)
    assert both.get_total_flops() == 3 * forward.get_total_flops()
    assert found.sequential_depth == decoder
