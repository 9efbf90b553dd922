"""Which reader counts which `model_type`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from theodolite.advice import decoders, mixture
from theodolite.advice.causal import count_causal
from theodolite.advice.encoders import ALBERT, BERT, DISTILBERT, ELECTRA, ROBERTA, XLM_ROBERTA, count_encoder
from theodolite.advice.fields import Fields
from theodolite.advice.images import count_image_model
from theodolite.advice.shape import ModelShape
from theodolite.advice.t5 import MT5, T5, UMT5, count_text_to_text

Reader = Callable[[Fields, str], ModelShape]

FAMILIES: dict[str, Reader] = {
    "gpt2": partial(count_causal, style=decoders.gpt2),
    "gpt_neo": partial(count_causal, style=decoders.GPT_NEO),
    "gpt_neox": partial(count_causal, style=decoders.GPT_NEOX),
    "gptj": partial(count_causal, style=decoders.GPTJ),
    "opt": partial(count_causal, style=decoders.opt),
    "bloom": partial(count_causal, style=decoders.BLOOM),
    "falcon": partial(count_causal, style=decoders.falcon),
    "llama": partial(count_causal, style=decoders.llama),
    "mistral": partial(count_causal, style=decoders.MISTRAL),
    "mixtral": partial(count_causal, style=mixture.mixtral),
    "qwen2": partial(count_causal, style=decoders.QWEN2),
    "qwen3": partial(count_causal, style=decoders.QWEN3),
    "qwen2_moe": partial(count_causal, style=mixture.qwen2_moe),
    "qwen3_moe": partial(count_causal, style=mixture.qwen3_moe),
    "gemma": partial(count_causal, style=decoders.GEMMA),
    "gemma2": partial(count_causal, style=decoders.GEMMA2),
    "gemma3_text": partial(count_causal, style=decoders.GEMMA3),
    "phi": partial(count_causal, style=decoders.phi),
    "phi3": partial(count_causal, style=decoders.PHI3),
    "deepseek_v2": partial(count_causal, style=mixture.deepseek_v2),
    "deepseek_v3": partial(count_causal, style=mixture.deepseek_v3),
    "qwen": partial(count_causal, style=decoders.qwen),
    "chatglm": partial(count_causal, style=decoders.chatglm),
    "clip_text_model": partial(count_causal, style=decoders.CLIP_TEXT),
    "t5": partial(count_text_to_text, family=T5),
    "mt5": partial(count_text_to_text, family=MT5),
    "umt5": partial(count_text_to_text, family=UMT5),
    "bert": partial(count_encoder, family=BERT),
    "roberta": partial(count_encoder, family=ROBERTA),
    "xlm-roberta": partial(count_encoder, family=XLM_ROBERTA),
    "distilbert": partial(count_encoder, family=DISTILBERT),
    "electra": partial(count_encoder, family=ELECTRA),
    "albert": partial(count_encoder, family=ALBERT),
    "vit": partial(count_image_model, prefix="ViT", tokens=1),
    "deit": partial(count_image_model, prefix="DeiT", tokens=2),
}
