"""How many parameters the pieces of a Transformer block have."""

from __future__ import annotations

from dataclasses import dataclass


def linear(inputs: int, outputs: int, bias: bool) -> int:
    return inputs * outputs + (outputs if bias else 0)


def norm(width: int, bias: bool) -> int:
    """A scale, and the shift of a layer norm."""
    return width * (2 if bias else 1)


def attention(
    width: int, heads: int, head_width: int, key_value_heads: int, *, input_bias: bool, output_bias: bool
) -> int:
    """Queries, keys, values and the output map."""
    inner = heads * head_width
    seen = keys_and_values(width, head_width, key_value_heads, bias=input_bias)
    return linear(width, inner, input_bias) + seen + linear(inner, width, output_bias)


def keys_and_values(width: int, head_width: int, key_value_heads: int, *, bias: bool) -> int:
    """The two maps of attention that are applied to what is looked at: of cross-attention, the encoder's tokens."""
    return 2 * linear(width, key_value_heads * head_width, bias)


def mlp(width: int, hidden: int, *, gated: bool, bias: bool) -> int:
    """Up and down, and up once more for the gate."""
    return linear(width, hidden, bias) * (2 if gated else 1) + linear(hidden, width, bias)


@dataclass(frozen=True)
class Experts:
    """One sparse layer: `routed` MLPs of which a token takes `active`, and what every token uses."""

    routed: int
    active: int
    width: int
    each: int  # parameters of one expert
    always: int  # of the experts every token passes, with their gate
    router: int

    @property
    def idle(self) -> int:
        """Parameters that one token leaves unused."""
        return (self.routed - self.active) * self.each


@dataclass(frozen=True)
class Latent:
    """Attention whose queries, keys and values pass through a narrow map: parameters of one layer, and its norms.

    `cached` are the numbers it keeps for a token: the narrow one of keys and values, and the rotated key.
    `score_width` is that of a head's queries and keys.
    """

    params: int
    norms: int
    cached: int
    score_width: int
