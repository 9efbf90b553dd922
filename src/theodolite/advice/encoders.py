"""BERT and its relatives: encoders of text with learned positions, some with a factored embedding or shared layers.

Counted is the class that the configuration's `architectures` names, by default the masked language model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from theodolite.advice.counting import attention, linear, mlp, norm
from theodolite.advice.fields import HEADS, MLP_WIDTH, POSITIONS, VOCAB, WIDTH, Fields, divided
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

PREDICTING = ("ForMaskedLM", "LMHeadModel", "ForCausalLM")  # classes with a map to the vocabulary


@dataclass(frozen=True)
class Encoder:
    """What sets a family apart; the defaults are BERT's."""

    prefix: str  # of its class names
    vocab: int
    positions: int = 512
    mlp_width: int = 3072
    token_types: int = 2
    embedding_rank: int | None = None  # None: the table has the model's width
    always_mapped: bool = False  # the embedding is mapped to the width even where it has that width
    pooled: bool = True  # the bare model ends in a dense layer on the first token
    next_sentence: bool = False  # pre-training also judges the order of two sentences
    discriminator: bool = False  # pre-training tells replaced tokens
    second_bias: bool = True  # an untied output map brings a bias beside the head's own
    mlp_field: str = MLP_WIDTH[0]


BERT = Encoder("Bert", vocab=30522, next_sentence=True)
ROBERTA = Encoder("Roberta", vocab=50265)
XLM_ROBERTA = replace(ROBERTA, prefix="XLMRoberta", vocab=30522)
DISTILBERT = Encoder("DistilBert", vocab=30522, token_types=0, pooled=False, second_bias=False, mlp_field="hidden_dim")
ELECTRA = Encoder(
    "Electra", vocab=30522, mlp_width=1024, embedding_rank=128, pooled=False, discriminator=True, second_bias=False
)
ALBERT = Encoder("Albert", vocab=30000, mlp_width=16384, embedding_rank=128, always_mapped=True, next_sentence=True)


def count_encoder(fields: Fields, name: str, family: Encoder) -> ModelShape:
    calls, width, heads = fields.depth(), fields.size(WIDTH), fields.size(HEADS)
    inner = fields.size("inner_group_num", 1) if family is ALBERT else 1
    distinct = fields.size("num_hidden_groups", 1) * inner if family is ALBERT else calls
    if fields.flag("add_cross_attention", False):
        raise BadInput(f"{fields.name} sets add_cross_attention: an encoder with cross-attention is not counted")
    head_width = divided(fields.name, width, heads)
    vocab, positions = fields.size(VOCAB, family.vocab), fields.size(POSITIONS, family.positions)
    hidden = fields.size(family.mlp_field, family.mlp_width)
    token_types = fields.count("type_vocab_size", family.token_types) if family.token_types else 0
    rank = width if family.embedding_rank is None else fields.size("embedding_size", family.embedding_rank)
    mapped = family.always_mapped or rank != width
    tied = fields.flag("tie_word_embeddings", True)
    counted, head, pooled, notes = _ends(fields, family, width, rank, vocab, tied)
    parts = {
        "embedding": vocab * rank + (linear(rank, width, bias=True) if mapped else 0),
        "positions": positions * rank,
        "head": head,
        "other": token_types * rank + norm(rank, bias=True) + (linear(width, width, bias=True) if pooled else 0),
        "attention": distinct * attention(width, heads, head_width, heads, input_bias=True, output_bias=True),
        "mlp": distinct * mlp(width, hidden, gated=False, bias=True),
        "router": 0,
        "norms": distinct * 2 * norm(width, bias=True),
    }
    depth = calls * inner
    exact = not notes
    if distinct < depth:
        notes = (*notes, f"{depth} layers share the weights of {distinct}")
    return ModelShape(
        name=fields.name,
        family=name,
        modality="language",
        depth=depth,
        width=width,
        heads=heads,
        head_width=head_width,
        key_value_heads=heads,
        mlp_width=hidden,
        gated=False,
        vocab=vocab,
        embedding_rank=rank if rank != width else None,
        tied=tied,
        parts=parts,
        active=sum(parts.values()),
        distinct_layers=distinct if distinct < depth else None,
        positions=positions,
        headless=not _predicts(counted, family),
        exact=exact,
        counted=counted,
        notes=notes,
    )


def _predicts(counted: str, family: Encoder) -> bool:
    kind = counted.removeprefix(family.prefix)
    return kind in PREDICTING or (kind == "ForPreTraining" and family.next_sentence)


def _ends(
    fields: Fields, family: Encoder, width: int, rank: int, vocab: int, tied: bool
) -> tuple[str, int, bool, tuple[str, ...]]:
    """The class counted, the parameters of its head, whether it has the pooler, and what was assumed."""
    masked = linear(width, rank, bias=True) + norm(rank, bias=True) + vocab
    if not tied:
        masked += linear(rank, vocab, bias=family.second_bias)
    counted = fields.architecture() or f"{family.prefix}ForMaskedLM"
    kind = counted.removeprefix(family.prefix)
    if kind in PREDICTING:
        return counted, masked, False, ()
    if kind == "Model":
        return counted, 0, family.pooled, ()
    if kind == "ForPreTraining" and family.discriminator:
        return counted, linear(width, width, bias=True) + linear(width, 1, bias=True), False, ()
    if kind == "ForPreTraining" and family.next_sentence:
        return counted, masked + linear(width, 2, bias=True), True, ()
    return counted, 0, family.pooled, (f"the head of {counted} is not counted",)
