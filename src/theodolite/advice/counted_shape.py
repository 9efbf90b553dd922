"""The shape around a count: a model's sizes by their common field names, from fields that are all filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.advice.fields import DEPTH, HEAD_WIDTH, HEADS, KEY_VALUE_HEADS, MLP_WIDTH, POSITIONS, VOCAB, WIDTH
from theodolite.advice.other_networks import kind_of
from theodolite.advice.quantised import quantised
from theodolite.advice.shape import ModelShape
from theodolite.advice.windows import windows

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
ACTIVE = (
    *("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts", "top_k"),
    *("num_selected_experts", "expert_top_k", "experts_per_token"),
)
TAKEN = {"switch_transformers": 1, "nllb-moe": 2}  # experts a token takes, where no field says it
PARTS = ("embedding", "positions", "head", "other", "attention", "mlp", "router", "norms")
MORE_WIDTHS = ("embed_dim", "projection_dim", "encoder_hidden_size", "model_dim")
GATES = ("silu", "swish", "swiglu", "geglu", "gated")


def counted_shape(
    fields: Mapping[str, Any],
    name: str,
    family: str,
    counted: str,
    parts: Mapping[str, int],
    of_experts: int,
    *,
    exact: bool,
    notes: tuple[str, ...],
    whole: int | None = None,
    of_encoder: Mapping[str, int] | None = None,
) -> ModelShape:
    """`fields` are one level of names; `parts` are parameters, `of_experts` those of which a token uses a share.

    `of_encoder` are those that a token of the encoder uses, where they are known by name.
    """
    depth, width, heads = (_size(fields, names) for names in (DEPTH, (*WIDTH, *MORE_WIDTHS), HEADS))
    encoder, decoder = (_size(fields, (f"{stack}_layers",)) for stack in ("encoder", "decoder"))
    heads = heads or _size(fields, ("encoder_attention_heads", "decoder_attention_heads"))
    decoder_depth = 0
    encodes = counted.endswith(("EncoderModel", "Encoder"))
    if encoder and decoder and fields.get("is_encoder_decoder") is not False:
        depth, decoder_depth = encoder + decoder, decoder
    elif fields.get("is_encoder_decoder") is True and depth and not encodes:
        decoder_depth = _size(fields, ("num_decoder_layers",)) or depth
        depth += decoder_depth
    elif not depth:
        depth = encoder or decoder
    kind = kind_of(fields, family)
    latent = _size(fields, ("kv_lora_rank",)) if _size(fields, ("qk_rope_head_dim",)) else 0
    head_width = _size(fields, ("v_head_dim",)) if latent else _size(fields, HEAD_WIDTH)
    if not head_width and heads and width % heads == 0:
        head_width = width // heads
    kv = _size(fields, KEY_VALUE_HEADS) or heads
    if fields.get("multi_query") is True and not _size(fields, KEY_VALUE_HEADS[:2]):
        kv = 1
    kv = min(kv, heads)
    parts = {part: parts.get(part, 0) for part in PARTS} | {k: v for k, v in parts.items() if k not in PARTS}
    if kind in ("recurrent", "convolutional"):
        parts["mixer"] = parts["attention"]
        parts["attention"] = 0
    total = sum(parts.values())
    rank = _size(fields, ("embedding_size", "word_embed_proj_dim"))
    rank = rank if rank and width and rank != width else 0
    vocab = _size(fields, VOCAB)
    looked_up = vocab and width and parts["embedding"] + parts["other"] >= vocab * (rank or width)
    image = not looked_up and any(fields.get(one) is not None for one in ("image_size", "patch_size"))
    if not looked_up and not image and kind == "Transformer":
        kind = "other"
    if not (depth and width and heads) and kind == "Transformer":
        kind = "other"
    routed, taken = (_size(fields, EXPERTS), _size(fields, ACTIVE) or TAKEN.get(family, 0)) if of_experts else (0, 0)
    active, more = total, []
    if of_experts and routed > 1 and 0 < taken <= routed:
        active = total - of_experts * (routed - taken) // routed
    elif of_experts:
        more.append("how many experts a token takes is not read: all parameters count as used")
        routed = taken = 1
    encoder_token: dict[str, int] = {}
    if decoder_depth and decoder_depth < depth:
        if of_encoder and total == active:
            encoder_token = dict(of_encoder)
        else:
            encoder_token = _encoder_share(parts, total - active, depth, decoder_depth)
            more.append("parameters are divided between encoder and decoder by their layers")
    shared = _size(fields, ("num_kv_shared_layers",))
    return ModelShape(
        name=name,
        family=family,
        modality="image" if image else "language",
        depth=depth,
        width=width,
        heads=heads,
        head_width=head_width,
        key_value_heads=kv,
        mlp_width=_size(fields, ("moe_intermediate_size",) if routed > 1 else ()) or _mlp(fields, width),
        gated=any(word in str(fields.get("hidden_act") or fields.get("hidden_activation") or "") for word in GATES),
        vocab=vocab if looked_up else None,
        embedding_rank=rank or None,
        tied=fields.get("tie_word_embeddings") is True,
        parts=parts,
        active=active - sum(encoder_token.values()),
        decoder_depth=decoder_depth,
        encoder_token=encoder_token,
        experts=max(1, routed),
        active_experts=max(1, taken),
        positions=_size(fields, POSITIONS) or None,
        cached_numbers=latent + _size(fields, ("qk_rope_head_dim",)) if latent else None,
        headless=not parts["head"] and fields.get("tie_word_embeddings") is not True,
        kind=kind,
        score_width=_score_width(fields) if latent else None,
        windows=windows(fields, family, depth) if kind == "Transformer" and not decoder_depth else {},
        caching_layers=depth - shared if 0 < shared < depth else None,
        quantised=quantised(fields),
        whole=whole,
        exact=exact,
        counted=counted,
        notes=(*notes, *more),
    )


def _size(fields: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """The first that is a positive whole number; 0 where none is."""
    return next((fields[name] for name in names if type(fields.get(name)) is int and fields[name] > 0), 0)


def _mlp(fields: Mapping[str, Any], width: int) -> int:
    return _size(fields, (*MLP_WIDTH, "encoder_ffn_dim", "decoder_ffn_dim")) or 4 * width


def _score_width(fields: Mapping[str, Any]) -> int | None:
    return _size(fields, ("qk_nope_head_dim",)) + _size(fields, ("qk_rope_head_dim",)) or None


def _encoder_share(parts: Mapping[str, int], idle: int, depth: int, decoder: int) -> dict[str, int]:
    """By layers: a decoder's layer has two attentions, of which the encoder's tokens use half of the second."""
    encoder = depth - decoder
    attention = parts["attention"] // (encoder + 2 * decoder)
    return {
        "attention": attention * encoder + attention * decoder // 2,
        "mlp": (parts["mlp"] - min(idle, parts["mlp"])) * encoder // depth,
        "router": parts["router"] * encoder // depth,
        "norms": parts["norms"] * 2 * encoder // (2 * encoder + 3 * decoder),
    }
