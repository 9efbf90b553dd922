"""Mixtures of experts: how many parameters there are, and how many of them one token uses."""

from __future__ import annotations

from theodolite.advice.causal import Style
from theodolite.advice.counting import Experts, Latent, linear, mlp
from theodolite.advice.fields import HEADS, WIDTH, Fields
from theodolite.errors import BadInput


def mixtral(fields: Fields) -> Style:
    width, hidden = fields.size(WIDTH), fields.size("intermediate_size", 14336)
    experts = _experts(
        fields,
        routed=fields.size(("num_local_experts", "num_experts"), 8),
        active=fields.size("num_experts_per_tok", 2),
        width=hidden,
    )
    return Style(
        "MixtralForCausalLM",
        vocab=32000,
        positions=4096 * 32,
        mlp_width=14336,
        key_value_heads=8,
        experts=experts,
        sparse_layers=fields.depth(),
        notes=(f"each of {experts.routed} experts is an MLP of width {hidden} in model width {width}",),
    )


def qwen2_moe(fields: Fields) -> Style:
    width = fields.size(WIDTH)
    shared = fields.size("shared_expert_intermediate_size", 5632)
    experts = _experts(
        fields,
        routed=fields.size("num_experts", 60),
        active=fields.size("num_experts_per_tok", 4),
        width=fields.size("moe_intermediate_size", 1408),
        always=mlp(width, shared, gated=True, bias=False) + width,
    )
    return Style(
        "Qwen2MoeForCausalLM",
        vocab=151936,
        positions=32768,
        mlp_width=5632,
        key_value_heads=16,
        input_bias=fields.flag("qkv_bias", True),
        experts=experts,
        sparse_layers=_sparse_layers(fields),
        notes=(f"every token also passes a shared expert of width {shared}",),
    )


def qwen3_moe(fields: Fields) -> Style:
    return Style(
        "Qwen3MoeForCausalLM",
        vocab=151936,
        positions=32768,
        mlp_width=6144,
        key_value_heads=4,
        head_norm=True,
        attention_bias=False,
        experts=_experts(
            fields,
            routed=fields.size(("num_experts", "num_local_experts"), 128),
            active=fields.size("num_experts_per_tok", 8),
            width=fields.size("moe_intermediate_size", 768),
        ),
        sparse_layers=_sparse_layers(fields),
    )


def deepseek_v2(fields: Fields) -> Style:
    return _deepseek(
        fields,
        Style("DeepseekV2ForCausalLM", vocab=102400, mlp_width=11008),
        routed=64,
        active=None,
        expert_width=1407,
        shared=2,
        dense=0,
        mlp_bias=fields.flag("mlp_bias", False),
    )


def deepseek_v3(fields: Fields) -> Style:
    return _deepseek(
        fields,
        Style("DeepseekV3ForCausalLM", vocab=129280, positions=4096, mlp_width=18432),
        routed=256,
        active=8,
        expert_width=2048,
        shared=1,
        dense=3,
        mlp_bias=False,
    )


def _deepseek(
    fields: Fields,
    style: Style,
    *,
    routed: int,
    active: int | None,
    expert_width: int,
    shared: int,
    dense: int,
    mlp_bias: bool,
) -> Style:
    """Latent attention, experts with shared ones, and the first layers dense; arguments are the family's defaults."""
    width, heads, depth = fields.size(WIDTH), fields.size(HEADS), fields.depth()
    bias = fields.flag("attention_bias", False)
    value = fields.size("v_head_dim", 128)
    plain, rotary = fields.size("qk_nope_head_dim", 128), fields.size("qk_rope_head_dim", 64)
    kv_rank = fields.size("kv_lora_rank", 512)
    query_rank = fields.nullable("q_lora_rank", 1536)
    queries = heads * (plain + rotary)
    if query_rank is None:
        query_params = linear(width, queries, bias=False)
    else:
        query_params = linear(width, query_rank, bias) + linear(query_rank, queries, bias=False)
    latent = Latent(
        params=query_params
        + linear(width, kv_rank + rotary, bias)
        + linear(kv_rank, heads * (plain + value), bias=False)
        + linear(heads * value, width, bias),
        norms=kv_rank + (query_rank or 0),
        cached=kv_rank + rotary,
        score_width=plain + rotary,
    )
    expert_width = fields.size("moe_intermediate_size", expert_width)
    shared_width = fields.size("n_shared_experts", shared) * expert_width
    routed = fields.size(("n_routed_experts", "num_experts", "num_local_experts"), routed)
    taken = fields.optional("num_experts_per_tok") or active
    experts = _experts(
        fields,
        routed=routed,
        active=taken or routed,
        width=expert_width,
        always=mlp(width, shared_width, gated=True, bias=mlp_bias),
    )
    first = min(depth, fields.count("first_k_dense_replace", dense))
    if fields.size("moe_layer_freq", 1) != 1:
        raise BadInput(f"{fields.name} sets moe_layer_freq to {fields.size('moe_layer_freq')}: only 1 can be counted")
    notes = [
        f"attention is latent: keys and values through rank {kv_rank}, and a head's values are {value} wide",
        f"every token also passes shared experts of width {shared_width}",
    ]
    if first:
        notes.append(f"the first {first} layers are dense")
    if taken is None:
        notes.append("num_experts_per_tok is not stated: all parameters count as used by a token")
    if fields.count("num_nextn_predict_layers", 0):
        notes.append("the layers that predict further tokens are not counted")
    return Style(
        style.counted,
        vocab=style.vocab,
        positions=style.positions,
        mlp_width=style.mlp_width,
        grouped=False,
        head_width=value,
        mlp_bias=mlp_bias,
        latent=latent,
        experts=experts,
        sparse_layers=depth - first,
        notes=tuple(notes),
    )


def _experts(fields: Fields, *, routed: int, active: int, width: int, always: int = 0) -> Experts:
    if active > routed:
        raise BadInput(
            f"{fields.name} sends a token to {active} of {routed} experts: it cannot take more than there are"
        )
    model = fields.size(WIDTH)
    return Experts(
        routed=routed,
        active=active,
        width=width,
        each=mlp(model, width, gated=True, bias=False),
        always=always,
        router=routed * model,
    )


def _sparse_layers(fields: Fields) -> int:
    """Every `decoder_sparse_step`-th layer, but for those listed as dense."""
    dense, step = set(fields.indices("mlp_only_layers")), fields.size("decoder_sparse_step", 1)
    return sum(1 for layer in range(fields.depth()) if layer not in dense and (layer + 1) % step == 0)
