"""One file for a trainer, read back before it is given out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.advice.exports import litgpt, megatron, nanotron, torchtitan
from theodolite.advice.exports.blueprint import Blueprint
from theodolite.advice.exports.read_config import blueprint
from theodolite.advice.hardware import Hardware
from theodolite.advice.shape import ModelShape
from theodolite.errors import TheodoliteError, UnknownName


@dataclass(frozen=True)
class Format:
    file: str
    write: Callable[[Blueprint, Hardware], str]
    read: Callable[[str], Blueprint]


FORMATS = {
    name: Format(one.FILE, one.write, one.read)
    for name, one in (
        ("megatron", megatron),
        ("torchtitan", torchtitan),
        ("nanotron", nanotron),
        ("litgpt", litgpt),
    )
}


@dataclass(frozen=True)
class Exported:
    """`left_out`: what of the model has no parameters and no place in the file."""

    format: str
    file: str
    text: str
    left_out: tuple[str, ...]


def check_format(name: str) -> str:
    if name not in FORMATS:
        raise UnknownName(f"there is no format '{name}' for --export: use {', '.join(FORMATS)}")
    return name


def export(config: Mapping[str, Any], shape: ModelShape, name: str, hardware: Hardware) -> Exported:
    """The file's text; what it leaves out stands in its first lines."""
    form = FORMATS[check_format(name)]
    made, left_out = blueprint(config, shape)
    head = [f"# {shape.params:,} parameters, written by theodolite advise"]
    head += [f"# not carried over: {one}" for one in left_out]
    text = "\n".join(head) + "\n" + form.write(made, hardware)
    back = form.read(text).shape(shape.name)
    if back.params != shape.params or back.active != shape.active:
        raise TheodoliteError(
            f"the {name} file would have {back.params:,} parameters instead of {shape.params:,}: it is not written"
        )
    return Exported(name, form.file, text, left_out)
