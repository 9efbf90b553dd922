"""What a cluster asks of a shape: counts that its groups of devices divide, sizes that fill tiles on each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.advice.fields import KEY_VALUE_HEADS, VOCAB, Fields
from theodolite.advice.shape import ModelShape
from theodolite.advice.text_part import text_part
from theodolite.errors import BadInput

MLP = ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim", "ffn_hidden_size")
MLP += ("encoder_ffn_dim", "decoder_ffn_dim")
EXPERTS = ("moe_intermediate_size", "shared_expert_intermediate_size")
# Where the MLP is four times the width unless it is stated: under which name.
UNSTATED = {"gpt2": "n_inner", "gptj": "n_inner", "gpt_neo": "intermediate_size", "falcon": "ffn_hidden_size"}
MOST = 10**6


@dataclass(frozen=True)
class Hardware:
    """`tp` devices share each layer's heads, MLP, experts and tables; `pp` of them the layers, one group after the
    other. On each device a size is a multiple of `multiple_of`, a tile of the matrix units or a block of quantisation.
    """

    tp: int = 1
    pp: int = 1
    multiple_of: int = 1

    def __post_init__(self) -> None:
        for name, value in (("--tp", self.tp), ("--pp", self.pp), ("--multiple-of", self.multiple_of)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise BadInput(f"{name} is {value!r}: pass an integer of at least 1")

    @property
    def asks(self) -> bool:
        return self != Hardware()

    @property
    def sharded(self) -> int:
        """What sizes that are split over devices are a multiple of."""
        return self.tp * self.multiple_of

    def __str__(self) -> str:
        pairs = (("--tp", self.tp), ("--pp", self.pp), ("--multiple-of", self.multiple_of))
        return " ".join(f"{name} {value}" for name, value in pairs if value > 1)


ANY = Hardware()
"""One device, and sizes as they come."""


def hidden_sizes(config: Mapping[str, Any], shape: ModelShape) -> dict[str, int]:
    """Widths of MLPs and of experts by the field that states them; `mlp` where none does."""
    inner, _ = text_part(config, "the configuration")
    fields = Fields(inner, "the configuration")
    stated = {name: fields.size(name) for name in (*MLP, *EXPERTS) if fields.has(name)}
    if _no_dense_layer(fields) and EXPERTS[0] in stated:
        stated.pop(MLP[0], None)
    return stated or {"mlp": shape.mlp_width}


def fill_tiles(
    config: Mapping[str, Any], hardware: Hardware, *, width: int, heads: int, vocab: int | None, group: int
) -> dict[str, Any]:
    """The configuration with its MLP and experts at the nearest multiple, its vocabulary at the next, and as many heads
    as `group` to a key-value head."""
    inner, key = text_part(config, "the configuration")
    new, unit = dict(inner), hardware.sharded
    fields = Fields(inner, "the configuration")
    for name in (*MLP, *EXPERTS):
        if fields.has(name):
            new[name] = max(1, round(fields.size(name) / unit)) * unit
    family = fields.text("model_type", "")
    if family in UNSTATED and not fields.has(*MLP) and 4 * width % unit:
        new[UNSTATED[family]] = max(1, round(4 * width / unit)) * unit
    if vocab is not None and vocab % unit:
        stated = [name for name in VOCAB if fields.has(name)] or [VOCAB[0]]
        new.update(dict.fromkeys(stated, -(-vocab // unit) * unit))
    stated = [name for name in KEY_VALUE_HEADS if fields.has(name)]
    if heads % group == 0 and (stated or group > 1):
        new.update(dict.fromkeys(stated or KEY_VALUE_HEADS[:1], heads // group))
    return new if key is None else {**config, key: new}


def _no_dense_layer(fields: Fields) -> bool:
    """Whether every layer of a Qwen mixture has experts, so that the MLP's stated width is nowhere used."""
    qwen = fields.text("model_type", "") in ("qwen2_moe", "qwen3_moe")
    return qwen and fields.size("decoder_sparse_step", 1) == 1 and not fields.indices("mlp_only_layers")
