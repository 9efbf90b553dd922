"""A forward pass on the meta device: every shape is checked, nothing is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from theodolite.advice.building.build import Built, first_line
from theodolite.advice.building.library import quiet

TOKENS = 8


class CannotRun(Exception):
    """The text is the model's own reason."""


def run_forward(built: Built) -> None:
    """One short text, or one image; code that looks at its data, to choose experts for example, sees pretended ones."""
    import torch

    from theodolite.advice.building.pretended import PretendedData

    model = built.model
    reasons: list[str] = []
    with quiet(), torch.device("meta"), torch.no_grad():
        _choose_plain_code(built.config)
        for mode in (nullcontext, PretendedData):
            for inputs in _inputs(model, built.config):
                try:
                    with mode():
                        model(**inputs)
                    return
                except Exception as error:
                    reasons.append(first_line(error))
    raise CannotRun(reasons[0] if reasons else "it takes neither text nor images")


def _choose_plain_code(config: Any) -> None:
    for one in (
        config,
        *(getattr(config, key) for key in getattr(config, "sub_configs", {}) if getattr(config, key, None)),
    ):
        if hasattr(one, "_attn_implementation"):
            one._attn_implementation = "eager"
        if hasattr(one, "_experts_implementation"):
            one._experts_implementation = "batched_mm"


def _inputs(model: Any, config: Any) -> Iterator[dict[str, Any]]:
    import torch

    ids = torch.zeros(1, TOKENS, dtype=torch.long)
    main = getattr(model, "main_input_name", "input_ids")
    if main == "pixel_values":
        side = getattr(config, "image_size", None) or 224
        height, width = side if isinstance(side, list | tuple) else (side, side)
        yield {"pixel_values": torch.zeros(1, getattr(config, "num_channels", 3) or 3, height, width)}
    if getattr(config, "is_encoder_decoder", False):
        yield {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}
        yield {"input_ids": ids, "decoder_input_ids": ids}
    plain = {"input_ids": ids, "use_cache": False}
    everywhere = torch.zeros(1, 1, TOKENS, TOKENS)  # a mask of four axes is taken as it is, without a look at its data
    yield {**plain, "attention_mask": everywhere, "position_ids": torch.zeros(1, TOKENS, dtype=torch.long)}
    yield {**plain, "attention_mask": everywhere}
    yield {**plain, "attention_mask": torch.ones(1, TOKENS, dtype=torch.long)}
    yield plain
    yield {"input_ids": ids}
