"""Rules that a configuration can be checked against, each with a name that does not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.advice.bottlenecks import bottlenecks
from theodolite.advice.hardware import EXPERTS, Hardware, hidden_sizes
from theodolite.advice.shape import ModelShape
from theodolite.errors import UnknownName

RULES: dict[str, str] = {
    "attention-width": "no head lies beyond those that read all of the input and fill the width",
    "embedding-rank": "the inputs have the rank of the width: no narrower factored embedding, no smaller patch",
    "vocabulary": "the vocabulary has at least as many symbols as the width",
    "too-many-heads": "heads are at least about ten numbers wide",
    "count-mismatch": "the parameters are counted exactly, and transformers, where installed, counts as many",
    "heads-divide-tp": "--tp divides the heads",
    "kv-heads-divide-tp": "--tp divides the key-value heads",
    "depth-divides-pp": "--pp divides the layers",
    "width-multiple": "the width is a multiple of --multiple-of",
    "mlp-multiple": "the MLP's width is a multiple of --multiple-of on each of the --tp devices",
    "expert-multiple": "so is an expert's",
    "vocab-multiple": "so is the vocabulary's size",
}


@dataclass(frozen=True)
class Broken:
    """One rule that a configuration breaks, and by what."""

    rule: str
    why: str


def check_names(ignored: Iterable[str]) -> frozenset[str]:
    """Rules to be left out; a name that is none is refused."""
    names = frozenset(ignored)
    for name in sorted(names - set(RULES)):
        raise UnknownName(f"there is no rule '{name}' for --ignore: use {', '.join(RULES)}")
    return names


def broken_rules(
    config: Mapping[str, Any], shape: ModelShape, hardware: Hardware, rank: int | None = None
) -> tuple[Broken, ...]:
    """All of them, in the order of `RULES`."""
    found = [Broken(one.kind, one.why) for one in bottlenecks(shape, rank)] if shape.speaks else []
    found += _count(config, shape)
    found += broken_by_hardware(config, shape, hardware)
    order = list(RULES)
    return tuple(sorted(found, key=lambda one: order.index(one.rule) if one.rule in order else len(order)))


def broken_by_hardware(config: Mapping[str, Any], shape: ModelShape, hardware: Hardware) -> Iterator[Broken]:
    """What of it cannot be shared among the devices, or leaves tiles half empty there."""
    tp, unit = hardware.tp, hardware.multiple_of
    if shape.heads % tp:
        yield Broken("heads-divide-tp", f"{shape.heads} heads cannot be shared equally by {tp} devices.")
    if shape.key_value_heads % tp:
        yield Broken(
            "kv-heads-divide-tp", f"{shape.key_value_heads} key-value heads cannot be shared equally by {tp} devices."
        )
    if shape.depth % hardware.pp:
        yield Broken("depth-divides-pp", f"{shape.depth} layers cannot be shared equally by {hardware.pp} stages.")
    if shape.width % unit:
        yield Broken("width-multiple", f"The width {shape.width} is no multiple of {unit}.")
    each = f"no multiple of {unit} on each of {tp} devices" if tp > 1 else f"no multiple of {unit}"
    for name, size in hidden_sizes(config, shape).items():
        if size % hardware.sharded:
            rule = "expert-multiple" if name in EXPERTS else "mlp-multiple"
            yield Broken(rule, f"{name} is {size}, {each}.")
    if shape.vocab is not None and shape.vocab % hardware.sharded:
        yield Broken("vocab-multiple", f"The vocabulary of {shape.vocab:,} symbols is {each}.")


def _count(config: Mapping[str, Any], shape: ModelShape) -> Iterator[Broken]:
    from theodolite.advice.building.library import available

    if not shape.exact:
        yield Broken("count-mismatch", "The parameters are about so many: not every field was read; see the notes.")
        return
    if not available():
        return
    from theodolite.advice.building.build import CannotBuild, build
    from theodolite.advice.building.read import counted_parameters

    try:
        theirs = counted_parameters(build(config, shape.name))
    except CannotBuild:
        return  # it knows no such model: nothing contradicts the count
    if theirs != shape.params:
        yield Broken("count-mismatch", f"{shape.params:,} parameters are counted here, {theirs:,} by transformers.")
