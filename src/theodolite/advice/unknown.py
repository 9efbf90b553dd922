"""A model of a family nobody described here: its sizes by their common field names, the rest assumed and said."""

from __future__ import annotations

from dataclasses import replace

from theodolite.advice.causal import Style, count_causal
from theodolite.advice.counting import Experts, keys_and_values, mlp
from theodolite.advice.fields import HEADS, MLP_WIDTH, POSITIONS, VOCAB, WIDTH, Fields
from theodolite.advice.images import count_image_model
from theodolite.advice.shape import ModelShape

ROTARY = ("rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "rotary_pct", "partial_rotary_factor", "alibi")
GATES = ("silu", "swish", "swiglu", "geglu", "gated")
ACTIVATION = ("hidden_act", "hidden_activation", "activation_function", "feed_forward_proj", "activation")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def read_unknown(fields: Fields, family: str) -> ModelShape:
    first = f"the family '{family}' is not described here: sizes were read by their common names"
    if not fields.has(*VOCAB) and fields.has("image_size", "patch_size"):
        shape = count_image_model(fields, family, "ViT", tokens=1)
        return replace(
            shape, exact=False, counted="", notes=(first, "assumed: blocks and ends as in ViT", *shape.notes)
        )
    if fields.has("encoder_layers") and fields.has("decoder_layers"):
        return _encoder_decoder(fields, family, first)
    style, assumed = _style(fields)
    return replace(count_causal(fields, family, style), exact=False, counted="", notes=(first, *assumed, *style.notes))


def _style(fields: Fields) -> tuple[Style, tuple[str, ...]]:
    modern = fields.has("rms_norm_eps", "rope_theta", "rope_parameters")
    fields.read.update(ACTIVATION)
    activation = " ".join(str(fields.config.get(name) or "") for name in ACTIVATION).lower()
    gated = any(word in activation for word in GATES)
    rotary = modern or fields.has(*ROTARY)
    width = fields.size(WIDTH)
    experts, sparse = _experts(fields, width, gated), 0
    assumed = [
        f"assumed: {'a gated' if gated else 'a plain'} MLP, {'no biases' if modern else 'biases everywhere'}, "
        f"{'two scales' if modern else 'two layer norms'} in a block, "
        f"{'no position table' if rotary else 'a learned position table'}",
    ]
    if not fields.has(*MLP_WIDTH):
        assumed.append(f"assumed: an MLP of four times the width, as {' or '.join(MLP_WIDTH)} is not stated")
    if not fields.has("tie_word_embeddings"):
        assumed.append("assumed: input and output embedding are one table, as tie_word_embeddings is not stated")
    if not rotary and not fields.has(*POSITIONS):
        assumed.append("assumed: 2048 positions, as none are stated")
    if experts:
        first = fields.count("first_k_dense_replace", 0)
        sparse = max(0, fields.depth() - first)
        assumed.append(
            f"assumed: {sparse} layers have {experts.routed} experts, of which a token takes {experts.active}"
        )
    style = Style(
        counted="",
        vocab=fields.size(VOCAB),
        tied=True,
        mlp_fields=MLP_WIDTH,
        gated=gated,
        norm_bias=not modern,
        input_bias=fields.flag("attention_bias", not modern),
        output_bias=fields.flag("attention_bias", not modern),
        mlp_bias=fields.flag("mlp_bias", not modern),
        position_table=None if rotary else 0,
        experts=experts,
        sparse_layers=sparse,
    )
    return style, tuple(assumed)


def _experts(fields: Fields, width: int, gated: bool) -> Experts | None:
    routed = fields.optional(EXPERTS)
    if routed is None or routed == 1:
        return None
    hidden = fields.size(("moe_intermediate_size", "expert_ffn_hidden_size", *MLP_WIDTH), 4 * width)
    shared = fields.count("n_shared_experts", 0) * hidden + fields.count("shared_expert_intermediate_size", 0)
    return Experts(
        routed=routed,
        active=min(routed, fields.size(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts"), 1)),
        width=hidden,
        each=mlp(width, hidden, gated=gated, bias=False),
        always=mlp(width, shared, gated=gated, bias=False) if shared else 0,
        router=routed * width,
    )


def _encoder_decoder(fields: Fields, family: str, first: str) -> ModelShape:
    """As BART writes its sizes: one depth for each stack."""
    encoder, decoder = fields.depth(("encoder_layers",)), fields.depth(("decoder_layers",))
    config = dict(fields.config)
    config.setdefault(HEADS[0], config.get("encoder_attention_heads"))
    config.setdefault(MLP_WIDTH[0], config.get("encoder_ffn_dim"))
    config["num_hidden_layers"] = encoder + decoder
    inner = Fields(config, fields.name)
    style, assumed = _style(inner)
    shape = count_causal(inner, family, style)
    fields.read.update(inner.read, ("encoder_attention_heads", "encoder_ffn_dim"))
    for one in ("attention_heads", "ffn_dim"):  # a decoder of other sizes is not counted
        if config.get(f"decoder_{one}") == config.get(f"encoder_{one}"):
            fields.read.add(f"decoder_{one}")
    one = {part: shape.parts[part] // shape.depth for part in ("attention", "norms")}
    parts = dict(shape.parts)
    parts["attention"] += decoder * one["attention"]
    parts["norms"] += decoder * (one["norms"] // 2)
    idle = shape.params - shape.active  # experts that a token does not take
    crossed = keys_and_values(shape.width, shape.head_width, shape.key_value_heads, bias=style.input_bias)
    encoder_token = {
        "attention": encoder * one["attention"] + decoder * crossed,
        "mlp": (parts["mlp"] - idle) * encoder // shape.depth,
        "router": parts["router"] * encoder // shape.depth,
        "norms": encoder * one["norms"],
    }
    return replace(
        shape,
        exact=False,
        counted="",
        decoder_depth=decoder,
        parts=parts,
        active=sum(parts.values()) - idle - sum(encoder_token.values()),
        encoder_token=encoder_token,
        notes=(first, *assumed, "assumed: each decoder layer also attends to the encoder"),
    )
