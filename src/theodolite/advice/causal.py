"""Decoder-only language models: the rule that counts them all.

Counted is the causal language model, or the bare model where the configuration's `architectures` names that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from theodolite.advice.counting import Experts, Latent, attention, linear, mlp, norm
from theodolite.advice.fields import HEADS, MLP_WIDTH, POSITIONS, VOCAB, WIDTH, Fields, divided
from theodolite.advice.shape import ModelShape
from theodolite.advice.windows import windows


@dataclass(frozen=True)
class Style:
    """What a family's block and ends look like; the defaults are Llama's."""

    counted: str  # the class that is counted
    # Used where the configuration does not state them:
    vocab: int
    tied: bool = False
    positions: int = 2048
    mlp_width: int | None = None  # None: four times the width
    mlp_fields: tuple[str, ...] = MLP_WIDTH[:1]  # the names that are read; others are ignored
    heads: int | None = None  # None: the configuration must state them
    key_value_heads: int | None = None  # None: as many as heads
    head_width: int | None = None  # None: an equal share of the width
    grouped: bool = True  # False: key-value heads and a head's width cannot be stated, what is written there is ignored
    # The family's own:
    gated: bool = True
    norm_bias: bool = False
    norms: int = 2  # in a block
    head_norm: bool = False  # queries and keys are normalised, with a scale of a head's width
    input_bias: bool = False  # of queries, keys and values
    output_bias: bool = False
    attention_bias: bool | None = None  # the default of the field of this name, which sets both; None: no such field
    mlp_bias: bool = False
    position_table: int | None = None  # extra rows of a learned table; None: no table
    embedding_norm: bool = False
    final_norm: bool = True
    head_bias: bool = False
    embedding_rank: int | None = None
    latent: Latent | None = None
    experts: Experts | None = None
    sparse_layers: int = 0
    notes: tuple[str, ...] = ()


def count_causal(fields: Fields, family: str, style: Style | Callable[[Fields], Style]) -> ModelShape:
    """Of one family by its style, or by the rule that gives it."""
    if not isinstance(style, Style):
        style = style(fields)
    depth, width, heads = fields.depth(), fields.size(WIDTH), fields.size(HEADS, style.heads)
    if style.grouped:
        head_width = fields.head_width(width, heads, style.head_width)
        kv = fields.key_value_heads(heads, style.key_value_heads)
    else:
        head_width = style.head_width or divided(fields.name, width, heads)
        kv = style.key_value_heads or heads
    vocab = fields.size(VOCAB, style.vocab)
    positions = fields.size(POSITIONS, style.positions)
    hidden = fields.size(style.mlp_fields, style.mlp_width or 4 * width)
    tied = fields.flag("tie_word_embeddings", style.tied)
    rank = style.embedding_rank if style.embedding_rank != width else None
    counted, bare = _counted(fields, style.counted)

    one_norms = style.norms * norm(width, style.norm_bias)
    if style.latent:
        one_attention = style.latent.params
        one_norms += style.latent.norms
    else:
        biases = (style.input_bias, style.output_bias)
        if style.attention_bias is not None:
            biases = (fields.flag("attention_bias", style.attention_bias),) * 2
        one_attention = attention(width, heads, head_width, kv, input_bias=biases[0], output_bias=biases[1])
    if style.head_norm:
        one_norms += 2 * norm(head_width, style.norm_bias)
    experts, sparse = style.experts, style.sparse_layers
    dense_mlp = mlp(width, hidden, gated=style.gated, bias=style.mlp_bias)
    sparse_mlp = experts.routed * experts.each + experts.always if experts else 0
    table = vocab * (rank or width)
    parts = {
        "embedding": table + (2 * linear(rank, width, bias=False) if rank else 0),
        "positions": 0 if style.position_table is None else (positions + style.position_table) * width,
        "head": 0 if bare else (0 if tied else table) + (vocab if style.head_bias else 0),
        "other": (style.final_norm + style.embedding_norm) * norm(width, style.norm_bias),
        "attention": depth * one_attention,
        "mlp": (depth - sparse) * dense_mlp + sparse * sparse_mlp,
        "router": sparse * experts.router if experts else 0,
        "norms": depth * one_norms,
    }
    return ModelShape(
        name=fields.name,
        family=family,
        modality="language",
        depth=depth,
        width=width,
        heads=heads,
        head_width=head_width,
        key_value_heads=kv,
        mlp_width=experts.width if experts and sparse else hidden,
        gated=style.gated,
        vocab=vocab,
        embedding_rank=rank,
        tied=tied,
        parts=parts,
        active=sum(parts.values()) - (sparse * experts.idle if experts else 0),
        experts=experts.routed if experts and sparse else 1,
        active_experts=experts.active if experts and sparse else 1,
        positions=positions,
        cached_numbers=style.latent.cached if style.latent else None,
        score_width=style.latent.score_width if style.latent else None,
        windows=windows(fields.config, family, depth),
        headless=bare,
        counted=counted,
        notes=style.notes,
    )


def _counted(fields: Fields, default: str) -> tuple[str, bool]:
    """The class to count, and whether it is the bare model without a head."""
    named = fields.architecture()
    if named is None or named == default:
        return default, default.endswith("TextModel")
    if named.endswith(("ForCausalLM", "LMHeadModel")):
        return named, False
    if named.endswith("Model"):
        return named, True
    return default, False
