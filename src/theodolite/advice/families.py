"""Which reader counts which `model_type`."""

from __future__ import annotations

from collections.abc import Callable

from theodolite.advice import decoders, mixture
from theodolite.advice.causal import read_causal
from theodolite.advice.encoders import ALBERT, BERT, DISTILBERT, ELECTRA, ROBERTA, XLM_ROBERTA, read_encoder
from theodolite.advice.fields import Fields
from theodolite.advice.images import read_image_model
from theodolite.advice.shape import ModelShape
from theodolite.advice.t5 import MT5, T5, UMT5, read_text_to_text

Reader = Callable[[Fields, str], ModelShape]

FAMILIES: dict[str, Reader] = {
    "gpt2": read_causal(decoders.gpt2),
    "gpt_neo": read_causal(decoders.GPT_NEO),
    "gpt_neox": read_causal(decoders.GPT_NEOX),
    "gptj": read_causal(decoders.GPTJ),
    "opt": read_causal(decoders.opt),
    "bloom": read_causal(decoders.BLOOM),
    "falcon": read_causal(decoders.falcon),
    "llama": read_causal(decoders.llama),
    "mistral": read_causal(decoders.MISTRAL),
    "mixtral": read_causal(mixture.mixtral),
    "qwen2": read_causal(decoders.QWEN2),
    "qwen3": read_causal(decoders.QWEN3),
    "qwen2_moe": read_causal(mixture.qwen2_moe),
    "qwen3_moe": read_causal(mixture.qwen3_moe),
    "gemma": read_causal(decoders.GEMMA),
    "gemma2": read_causal(decoders.GEMMA2),
    "gemma3_text": read_causal(decoders.GEMMA3),
    "phi": read_causal(decoders.phi),
    "phi3": read_causal(decoders.PHI3),
    "deepseek_v2": read_causal(mixture.deepseek_v2),
    "deepseek_v3": read_causal(mixture.deepseek_v3),
    "clip_text_model": read_causal(decoders.CLIP_TEXT),
    "t5": read_text_to_text(T5),
    "mt5": read_text_to_text(MT5),
    "umt5": read_text_to_text(UMT5),
    "bert": read_encoder(BERT),
    "roberta": read_encoder(ROBERTA),
    "xlm-roberta": read_encoder(XLM_ROBERTA),
    "distilbert": read_encoder(DISTILBERT),
    "electra": read_encoder(ELECTRA),
    "albert": read_encoder(ALBERT),
    "vit": read_image_model("ViT", tokens=1),
    "deit": read_image_model("DeiT", tokens=2),
}
