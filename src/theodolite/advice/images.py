"""ViT and DeiT: Transformers over the patches of an image.

Counted is the class that the configuration's `architectures` names, by default the image classifier.
"""

from __future__ import annotations

from collections.abc import Mapping

from theodolite.advice.counting import attention, linear, mlp, norm
from theodolite.advice.fields import HEADS, MLP_WIDTH, WIDTH, Fields
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput


def count_image_model(fields: Fields, name: str, prefix: str, tokens: int) -> ModelShape:
    """Of classes that start with `prefix` and put `tokens` learned tokens before the patches."""
    depth, width, heads = fields.depth(), fields.size(WIDTH), fields.size(HEADS)
    head_width = fields.head_width(width, heads)
    hidden = fields.size(MLP_WIDTH, 3072)
    image, patch = _sides(fields, "image_size", 224), _sides(fields, "patch_size", 16)
    if patch[0] > image[0] or patch[1] > image[1]:
        raise BadInput(
            f"patches of {patch} of {fields.name} do not fit in an image of {image}: make patch_size smaller"
        )
    positions = (image[0] // patch[0]) * (image[1] // patch[1]) + tokens
    channels = fields.size("num_channels", 3)
    counted, head, pooler, notes = _ends(fields, prefix, width)
    parts = {
        "embedding": linear(channels * patch[0] * patch[1], width, bias=True),
        "positions": positions * width,
        "head": head,
        "other": tokens * width + norm(width, bias=True) + pooler,
        "attention": depth
        * attention(width, heads, head_width, heads, input_bias=fields.flag("qkv_bias", True), output_bias=True),
        "mlp": depth * mlp(width, hidden, gated=False, bias=True),
        "router": 0,
        "norms": depth * 2 * norm(width, bias=True),
    }
    return ModelShape(
        name=fields.name,
        family=name,
        modality="image",
        depth=depth,
        width=width,
        heads=heads,
        head_width=head_width,
        key_value_heads=heads,
        mlp_width=hidden,
        gated=False,
        vocab=None,
        embedding_rank=None,
        tied=False,
        parts=parts,
        active=sum(parts.values()),
        positions=positions,
        exact=not notes,
        counted=counted,
        notes=notes,
    )


def _ends(fields: Fields, prefix: str, width: int) -> tuple[str, int, int, tuple[str, ...]]:
    """The class counted, the parameters of its head and of its pooler, and what was assumed."""
    counted = fields.architecture() or f"{prefix}ForImageClassification"
    kind = counted.removeprefix(prefix)
    if kind == "Model":
        return counted, 0, linear(width, fields.size("pooler_output_size", width), bias=True), ()
    if kind == "ForImageClassification":
        return counted, linear(width, _labels(fields), bias=True), 0, ()
    if kind == "ForImageClassificationWithTeacher":
        return counted, 2 * linear(width, _labels(fields), bias=True), 0, ()
    return counted, 0, 0, (f"the head of {counted} is not counted",)


def _labels(fields: Fields) -> int:
    named = fields.config.get("id2label")
    if isinstance(named, Mapping) and named:
        return len(named)
    return fields.size("num_labels", 2)


def _sides(fields: Fields, name: str, default: int) -> tuple[int, int]:
    value = fields.config.get(name)
    if isinstance(value, list | tuple) and len(value) == 2:
        height, width = (Fields({name: side}, fields.name).size(name) for side in value)
        return height, width
    side = fields.size(name, default)
    return side, side
