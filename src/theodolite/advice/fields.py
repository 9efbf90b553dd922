"""Strict reading of a configuration's fields: sizes are positive integers of a believable magnitude, or an error."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from theodolite.errors import BadInput

# What a field is called across model families; the first name found is read.
DEPTH = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "n_embed")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num")
HEAD_WIDTH = ("head_dim", "d_kv", "kv_channels")
MLP_WIDTH = ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim", "ffn_hidden_size")
VOCAB = ("vocab_size", "n_vocab", "padded_vocab_size")
POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "n_ctx", "seq_length")

LISTED = "write one whole number, or install a transformers that knows the type, so that lists are counted"

# Sizes above these are typing errors: no model is within a factor of a thousand of them.
LARGEST_DEPTH = 10**5
LARGEST_SIZE = 10**9


class Fields:
    """A configuration, read field by field; an absent field and one that is null are the same."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self.config = config
        self.name = name
        self.read: set[str] = set()  # names that were asked for

    def has(self, *names: str) -> bool:
        return self._first(names) is not None

    def size(self, names: str | tuple[str, ...], default: int | None = None, *, largest: int = LARGEST_SIZE) -> int:
        """The first of these fields that is set, or the default; without one the field is required."""
        found = self._first((names,) if isinstance(names, str) else names)
        if found is None:
            if default is None:
                raise BadInput(f"{self.name} states no {_any_of(names)}: add that field to the configuration")
            return default
        return self._checked(*found, smallest=1, largest=largest)

    def count(self, name: str, default: int) -> int:
        """A number that may be zero, such as how many layers are different."""
        found = self._first((name,))
        return default if found is None else self._checked(*found, smallest=0, largest=LARGEST_SIZE)

    def optional(self, names: str | tuple[str, ...]) -> int | None:
        found = self._first((names,) if isinstance(names, str) else names)
        return None if found is None else self._checked(*found, smallest=1, largest=LARGEST_SIZE)

    def nullable(self, name: str, default: int) -> int | None:
        """A size whose null means that there is none, unlike its absence."""
        self.read.add(name)
        return None if self.config.get(name, default) is None else self.size(name, default)

    def flag(self, name: str, default: bool) -> bool:
        self.read.add(name)
        value = self.config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise BadInput(f"{name} of {self.name} is {reprlib.repr(value)}: write true or false")
        return value

    def text(self, name: str, default: str) -> str:
        self.read.add(name)
        value = self.config.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise BadInput(f"{name} of {self.name} is {reprlib.repr(value)}: write a string")
        return value

    def indices(self, name: str) -> tuple[int, ...]:
        """A list of layer numbers, empty when absent."""
        self.read.add(name)
        value = self.config.get(name)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(type(item) is int and item >= 0 for item in value):
            raise BadInput(f"{name} of {self.name} is {reprlib.repr(value)}: write a list of layer numbers")
        return tuple(value)

    def nested(self, name: str) -> Mapping[str, Any]:
        """A configuration inside this one."""
        self.read.add(name)
        value = self.config.get(name)
        if not isinstance(value, Mapping):
            raise BadInput(f"{name} of {self.name} is {reprlib.repr(value)}: write an object with the model's sizes")
        return value

    def architecture(self) -> str | None:
        """The model class the configuration was written by."""
        self.read.add("architectures")
        value = self.config.get("architectures")
        if value is None or value == []:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise BadInput(f"architectures of {self.name} is {reprlib.repr(value)}: write a list of class names")
        return value[0]

    def depth(self, names: tuple[str, ...] = DEPTH) -> int:
        return self.size(names, largest=LARGEST_DEPTH)

    def head_width(self, width: int, heads: int, default: int | None = None) -> int:
        """The stated width of a head, or an equal share of the model's."""
        stated = self.optional(HEAD_WIDTH) or default  # families with a default take null for it
        return divided(self.name, width, heads) if stated is None else stated

    def key_value_heads(self, heads: int, default: int | None = None) -> int:
        null = any(name in self.config and self.config[name] is None for name in KEY_VALUE_HEADS)
        kv = self.size(KEY_VALUE_HEADS, default=heads if default is None or null else default)
        if heads % kv:
            raise BadInput(
                f"{kv} key-value heads of {self.name} do not divide its {heads} heads: each must serve equally many"
            )
        return kv

    def _first(self, names: tuple[str, ...]) -> tuple[str, Any] | None:
        self.read.update(names)
        return next(((name, self.config[name]) for name in names if self.config.get(name) is not None), None)

    def _checked(self, field: str, value: Any, smallest: int, largest: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, list):
            raise BadInput(f"{field} of {self.name} is {reprlib.repr(value)}: {LISTED}")
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            kind = "a positive whole number" if smallest else "a whole number, zero or more"
            raise BadInput(f"{field} of {self.name} is {reprlib.repr(value)}: write {kind}")
        if value > largest:
            raise BadInput(
                f"{field} of {self.name} is {reprlib.repr(value)}, larger than any model's: at most {largest} is read"
            )
        return value


def divided(name: str, width: int, heads: int) -> int:
    if width % heads:
        raise BadInput(
            f"{heads} heads of {name} do not divide its width {width}: change one of them, or state head_dim"
        )
    return width // heads


def _any_of(names: str | tuple[str, ...]) -> str:
    return names if isinstance(names, str) else " or ".join(names)
