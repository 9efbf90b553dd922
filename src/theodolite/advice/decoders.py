"""What each family of decoder-only language models sets differently."""

from __future__ import annotations

from typing import Any

from theodolite.advice.causal import Style
from theodolite.advice.fields import HEADS, Fields
from theodolite.errors import BadInput


def _biased(bias: bool) -> dict[str, Any]:
    return {"input_bias": bias, "output_bias": bias, "mlp_bias": bias}


_BIASED = _biased(True)
# As GPT-2 has it: an MLP without a gate, norms with biases, and no say in how heads share keys.
_PLAIN: dict[str, Any] = {"gated": False, "grouped": False, "norm_bias": True}
_QWEN: dict[str, Any] = {"vocab": 151936, "positions": 32768, "mlp_width": 22016, "key_value_heads": 32}
_GEMMA: dict[str, Any] = {"tied": True, "head_width": 256, "attention_bias": False}


def gpt2(fields: Fields) -> Style:
    if fields.flag("add_cross_attention", False):
        raise BadInput(f"{fields.name} sets add_cross_attention: a GPT-2 with cross-attention is not counted")
    return Style(
        "GPT2LMHeadModel",
        vocab=50257,
        tied=True,
        positions=1024,
        mlp_fields=("n_inner",),
        position_table=0,
        **_PLAIN,
        **_BIASED,
    )


GPT_NEO = Style(
    "GPTNeoForCausalLM", vocab=50257, tied=True, output_bias=True, mlp_bias=True, position_table=0, **_PLAIN
)
GPT_NEOX = Style("GPTNeoXForCausalLM", vocab=50432, mlp_width=24576, attention_bias=True, mlp_bias=True, **_PLAIN)
GPTJ = Style("GPTJForCausalLM", vocab=50400, mlp_fields=("n_inner",), norms=1, mlp_bias=True, head_bias=True, **_PLAIN)


def opt(fields: Fields) -> Style:
    bias = fields.flag("enable_bias", True)
    if not fields.flag("layer_norm_elementwise_affine", True):
        raise BadInput(f"{fields.name} sets layer_norm_elementwise_affine to false: such an OPT is not counted")
    before = fields.flag("do_layer_norm_before", True)
    return Style(
        "OPTForCausalLM",
        vocab=50272,
        tied=True,
        mlp_width=3072,
        mlp_fields=("ffn_dim",),
        **_PLAIN,
        **_biased(bias),
        position_table=2,  # OPT's positions start at 2
        final_norm=before and not fields.flag("_remove_final_layer_norm", False),
        embedding_rank=fields.optional("word_embed_proj_dim"),
    )


BLOOM = Style("BloomForCausalLM", vocab=250880, tied=True, mlp_fields=(), embedding_norm=True, **_PLAIN, **_BIASED)


def falcon(fields: Fields) -> Style:
    bias = fields.flag("bias", False)
    new = fields.flag("new_decoder_architecture", False)
    heads = fields.size(HEADS)
    if new:
        kv = fields.key_value_heads(heads)
    else:
        kv = 1 if fields.flag("multi_query", True) else heads
    parallel = fields.flag("parallel_attn", True)
    norms = 2 if not parallel or fields.count("num_ln_in_parallel_attn", 2 if new else 1) == 2 else 1
    return Style(
        "FalconForCausalLM",
        vocab=65024,
        tied=True,
        mlp_fields=("ffn_hidden_size",),
        norms=norms,
        key_value_heads=kv,
        **_PLAIN,
        **_biased(bias),
    )


def llama(fields: Fields) -> Style:
    mlp_bias = fields.flag("mlp_bias", False)
    return Style("LlamaForCausalLM", vocab=32000, mlp_width=11008, attention_bias=False, mlp_bias=mlp_bias)


MISTRAL = Style("MistralForCausalLM", vocab=32000, positions=4096 * 32, mlp_width=14336, key_value_heads=8)
QWEN2 = Style("Qwen2ForCausalLM", input_bias=True, **_QWEN)
QWEN3 = Style("Qwen3ForCausalLM", head_width=128, head_norm=True, attention_bias=False, **_QWEN)
GEMMA = Style("GemmaForCausalLM", vocab=256000, positions=8192, mlp_width=24576, key_value_heads=16, **_GEMMA)
GEMMA2 = Style("Gemma2ForCausalLM", vocab=256000, positions=8192, mlp_width=9216, key_value_heads=4, norms=4, **_GEMMA)
GEMMA3 = Style(
    "Gemma3ForCausalLM",
    vocab=262208,
    positions=131072,
    mlp_width=9216,
    heads=8,  # published configurations leave these out
    key_value_heads=4,
    norms=4,
    head_norm=True,
    **_GEMMA,
)
PHI3 = Style("Phi3ForCausalLM", vocab=32064, positions=4096, mlp_width=8192)


def phi(fields: Fields) -> Style:
    return Style(
        "PhiForCausalLM",
        vocab=51200,
        mlp_width=8192,
        gated=False,
        norm_bias=True,
        norms=1,
        head_norm=fields.flag("qk_layernorm", False),
        head_bias=True,
        **_BIASED,
    )


# CLIP's text encoder reads from left to right too; it ends in its features, not in a map to the vocabulary.
CLIP_TEXT = Style(
    "CLIPTextModel",
    vocab=49408,
    tied=True,
    positions=77,
    mlp_width=2048,
    gated=False,
    norm_bias=True,
    position_table=0,
    **_BIASED,
)


def qwen(fields: Fields) -> Style:
    """The first Qwen, whose code is published beside its weights: half of `intermediate_size` is gated by the other."""
    bias = not fields.flag("no_bias", True)
    return Style(
        "QWenLMHeadModel",
        vocab=151936,
        positions=32768,
        mlp_fields=(),
        mlp_width=fields.size("intermediate_size", 22016) // 2,
        head_width=fields.optional("kv_channels"),
        grouped=False,
        input_bias=True,
        output_bias=bias,
        mlp_bias=bias,
    )


def chatglm(fields: Fields) -> Style:
    """ChatGLM 2 and 3 and GLM-4, whose code is published beside their weights; `ChatGLMModel` has the output layer."""
    if fields.has("inner_hidden_size", "position_encoding_2d"):
        raise BadInput(f"{fields.name} is the first ChatGLM, whose blocks are other ones: it is not counted")
    bias, heads = fields.flag("add_bias_linear", False), fields.size(HEADS)
    groups = fields.size("multi_query_group_num", 1) if fields.flag("multi_query_attention", False) else heads
    return Style(
        "ChatGLMModel",
        vocab=65024,
        mlp_width=13696,
        mlp_fields=("ffn_hidden_size",),
        head_width=fields.size("kv_channels", 128),
        key_value_heads=groups,
        grouped=False,
        norm_bias=not fields.flag("rmsnorm", True),
        input_bias=bias or fields.flag("add_qkv_bias", False),
        output_bias=bias,
        mlp_bias=bias,
        final_norm=fields.flag("post_layer_norm", True),
    )
