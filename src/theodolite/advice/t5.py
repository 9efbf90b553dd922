"""T5, mT5 and UMT5: an encoder and a decoder whose attention may be wider or narrower than the model."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advice.counting import attention, keys_and_values, mlp, norm
from theodolite.advice.fields import HEADS, LARGEST_DEPTH, VOCAB, WIDTH, Fields
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

DEPTH = ("num_layers", "num_hidden_layers")


@dataclass(frozen=True)
class TextToText:
    prefix: str  # of its class names
    vocab: int
    mlp_width: int
    activation: str
    bias_per_layer: bool = False  # each layer has its own table of relative positions, not one for a stack


T5 = TextToText("T5", vocab=32128, mlp_width=2048, activation="relu")
MT5 = TextToText("MT5", vocab=250112, mlp_width=1024, activation="gated-gelu")
UMT5 = TextToText("UMT5", vocab=250112, mlp_width=1024, activation="gated-gelu", bias_per_layer=True)


def count_text_to_text(fields: Fields, name: str, family: TextToText) -> ModelShape:
    counted, encoder_only, headless = _counted(fields, family)
    encoder = fields.depth(DEPTH)
    decoder = 0 if encoder_only else fields.size("num_decoder_layers", encoder, largest=LARGEST_DEPTH)
    width, heads = fields.size(WIDTH), fields.size(HEADS)
    head_width = fields.size(("d_kv", "head_dim"), 64)
    hidden, vocab = fields.size("d_ff", family.mlp_width), fields.size(VOCAB, family.vocab)
    activation = fields.text("feed_forward_proj", family.activation)
    gated = activation.startswith("gated-")
    tied = fields.flag("tie_word_embeddings", True)
    notes = ()
    if not tied and not headless:
        notes = ("counted with the untied output map the configuration states; transformers 5 ties it all the same",)

    buckets = fields.size("relative_attention_num_buckets", 32) * heads
    tables = encoder + decoder if family.bias_per_layer else (encoder > 0) + (decoder > 0)
    one_attention = attention(width, heads, head_width, heads, input_bias=False, output_bias=False)
    one_mlp, one_norm = mlp(width, hidden, gated=gated, bias=False), norm(width, bias=False)
    crossed = decoder * keys_and_values(width, head_width, heads, bias=False)
    parts = {
        "embedding": vocab * width,
        "positions": tables * buckets,
        "head": 0 if tied or headless else vocab * width,
        "other": (1 if encoder_only else 2) * one_norm,
        "attention": (encoder + 2 * decoder) * one_attention,  # a decoder's layer also looks at the encoder
        "mlp": (encoder + decoder) * one_mlp,
        "router": 0,
        "norms": (2 * encoder + 3 * decoder) * one_norm,
    }
    encoder_token = {
        "positions": (encoder if family.bias_per_layer else 1) * buckets,
        "other": one_norm,
        "attention": encoder * one_attention + crossed,
        "mlp": encoder * one_mlp,
        "norms": 2 * encoder * one_norm,
    }
    if encoder_only:
        encoder_token = {}
    return ModelShape(
        name=fields.name,
        family=name,
        modality="bytes" if fields.text("tokenizer_class", "").startswith("ByT5") else "language",
        depth=encoder + decoder,
        width=width,
        heads=heads,
        head_width=head_width,
        key_value_heads=heads,
        mlp_width=hidden,
        gated=gated,
        vocab=vocab,
        embedding_rank=None,
        tied=tied,
        parts=parts,
        active=sum(parts.values()) - sum(encoder_token.values()),
        decoder_depth=decoder,
        encoder_token=encoder_token,
        positions=fields.optional("n_positions"),
        headless=headless,
        counted=counted,
        notes=notes,
    )


def _counted(fields: Fields, family: TextToText) -> tuple[str, bool, bool]:
    """The class counted, whether it is the encoder alone, and whether it lacks an output map."""
    default = f"{family.prefix}ForConditionalGeneration"
    named = fields.architecture() or default
    kind = named.removeprefix(family.prefix)
    if kind == "EncoderModel":
        return named, True, True
    if kind == "Model":
        return named, False, True
    if kind in ("ForConditionalGeneration", "WithLMHeadModel"):
        return default, False, False
    raise BadInput(f"architectures of {fields.name} names {named}: {default}, {family.prefix}Model or "
                   f"{family.prefix}EncoderModel can be counted")  # fmt: skip
