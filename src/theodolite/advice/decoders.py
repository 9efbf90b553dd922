"""What each family of decoder-only language models sets differently."""

from __future__ import annotations

from theodolite.advice.causal import Style
from theodolite.advice.fields import HEADS, Fields
from theodolite.errors import BadInput


def gpt2(fields: Fields) -> Style:
    if fields.flag("add_cross_attention", False):
        raise BadInput(f"{fields.name} sets add_cross_attention: a GPT-2 with cross-attention is not counted")
    return Style(
        "GPT2LMHeadModel",
        vocab=50257,
        tied=True,
        positions=1024,
        gated=False,
        mlp_fields=("n_inner",),
        grouped=False,
        norm_bias=True,
        input_bias=True,
        output_bias=True,
        mlp_bias=True,
        position_table=0,
    )


def gpt_neo(fields: Fields) -> Style:
    return Style(
        "GPTNeoForCausalLM",
        vocab=50257,
        tied=True,
        gated=False,
        grouped=False,
        norm_bias=True,
        output_bias=True,
        mlp_bias=True,
        position_table=0,
    )


def gpt_neox(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", True)
    return Style(
        "GPTNeoXForCausalLM",
        vocab=50432,
        mlp_width=24576,
        gated=False,
        grouped=False,
        norm_bias=True,
        input_bias=bias,
        output_bias=bias,
        mlp_bias=True,
    )


def gptj(fields: Fields) -> Style:
    return Style(
        "GPTJForCausalLM",
        vocab=50400,
        gated=False,
        mlp_fields=("n_inner",),
        grouped=False,
        norm_bias=True,
        norms=1,
        mlp_bias=True,
        head_bias=True,
    )


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
        gated=False,
        mlp_fields=("ffn_dim",),
        grouped=False,
        norm_bias=True,
        input_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        position_table=2,  # OPT's positions start at 2
        final_norm=before and not fields.flag("_remove_final_layer_norm", False),
        embedding_rank=fields.optional("word_embed_proj_dim"),
    )


def bloom(fields: Fields) -> Style:
    return Style(
        "BloomForCausalLM",
        vocab=250880,
        tied=True,
        gated=False,
        mlp_fields=(),
        grouped=False,
        norm_bias=True,
        input_bias=True,
        output_bias=True,
        mlp_bias=True,
        embedding_norm=True,
    )


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
        gated=False,
        mlp_fields=("ffn_hidden_size",),
        norm_bias=True,
        norms=norms,
        input_bias=bias,
        output_bias=bias,
        mlp_bias=bias,
        grouped=False,
        key_value_heads=kv,
    )


def llama(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", False)
    return Style(
        "LlamaForCausalLM",
        vocab=32000,
        mlp_width=11008,
        input_bias=bias,
        output_bias=bias,
        mlp_bias=fields.flag("mlp_bias", False),
    )


def mistral(fields: Fields) -> Style:
    return Style("MistralForCausalLM", vocab=32000, positions=4096 * 32, mlp_width=14336, key_value_heads=8)


def qwen2(fields: Fields) -> Style:
    return Style(
        "Qwen2ForCausalLM", vocab=151936, positions=32768, mlp_width=22016, key_value_heads=32, input_bias=True
    )


def qwen3(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", False)
    return Style(
        "Qwen3ForCausalLM",
        vocab=151936,
        positions=32768,
        mlp_width=22016,
        key_value_heads=32,
        head_width=128,
        head_norm=True,
        input_bias=bias,
        output_bias=bias,
    )


def gemma(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", False)
    return Style(
        "GemmaForCausalLM",
        vocab=256000,
        tied=True,
        positions=8192,
        mlp_width=24576,
        key_value_heads=16,
        head_width=256,
        input_bias=bias,
        output_bias=bias,
    )


def gemma2(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", False)
    return Style(
        "Gemma2ForCausalLM",
        vocab=256000,
        tied=True,
        positions=8192,
        mlp_width=9216,
        key_value_heads=4,
        head_width=256,
        norms=4,
        input_bias=bias,
        output_bias=bias,
    )


def gemma3(fields: Fields) -> Style:
    bias = fields.flag("attention_bias", False)
    return Style(
        "Gemma3ForCausalLM",
        vocab=262208,
        tied=True,
        positions=131072,
        mlp_width=9216,
        heads=8,  # published configurations leave these out
        key_value_heads=4,
        head_width=256,
        norms=4,
        head_norm=True,
        input_bias=bias,
        output_bias=bias,
    )


def phi(fields: Fields) -> Style:
    return Style(
        "PhiForCausalLM",
        vocab=51200,
        mlp_width=8192,
        gated=False,
        norm_bias=True,
        norms=1,
        head_norm=fields.flag("qk_layernorm", False),
        input_bias=True,
        output_bias=True,
        mlp_bias=True,
        head_bias=True,
    )


def phi3(fields: Fields) -> Style:
    return Style("Phi3ForCausalLM", vocab=32064, positions=4096, mlp_width=8192)


def clip_text(fields: Fields) -> Style:
    """CLIP's text encoder reads from left to right too; it ends in its features, not in a map to the vocabulary."""
    return Style(
        "CLIPTextModel",
        vocab=49408,
        tied=True,
        positions=77,
        mlp_width=2048,
        gated=False,
        norm_bias=True,
        input_bias=True,
        output_bias=True,
        mlp_bias=True,
        position_table=0,
    )
