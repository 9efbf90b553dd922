"""How far one changed symbol moves the output at another token, as a function of the number n of tokens.

Sources: Hahn 2020, "Theoretical limitations of self-attention in neural sequence models", Lemma 5, for attention
with bounded logits; the others are countings written out below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from theodolite.theory.domain import whole


@dataclass(frozen=True)
class InfluenceLaw:
    """`power`: change ~ (log n)^`log_power`·n^`exponent`; `window`: exactly 0 from `window` tokens on; `none`: no law.

    `log_power` belongs to the first symbol; for symbols at a fixed share of the length there is no logarithm.
    """

    law: Literal["power", "window", "none"]
    reason: str
    exponent: float | None = None
    log_power: int = 0
    window: int | None = None  # the largest distance at which a symbol can still be felt
    circular: bool = False  # distances are counted around the end


def attention_law(depth: int, causal: bool, softmax: bool = True) -> InfluenceLaw:
    """Attention whose weights lie within a constant factor of each other gives each of n tokens O(1/n).

    Softmax: logits in a range of r make the factor eʳ. Linear: φ > 0 on a bounded set. With a causal mask token k has
    k tokens to share among, and the first symbol reaches the last one through Σ_k 1/k ≈ log n tokens per layer.
    """
    whole("depth", depth)
    kind = "bounded logits" if softmax else "positive bounded features"
    if not causal:
        return InfluenceLaw("power", f"Hahn's Lemma 5: {kind}, each of n tokens has a share of order 1/n", -1.0)
    return InfluenceLaw(
        "power",
        f"{kind}: order 1/n at a fixed share of the length, (log n)^{depth - 1}/n for the first symbol",
        -1.0,
        depth - 1,
    )


def first_symbol_exponents(depth: int, shortest: int, longest: int) -> tuple[float, float]:
    """Between which slopes of log change over log n the first symbol of a causal net lies: 1/n and (log n)^(L−1)/n."""
    whole("depth", depth)
    whole("shortest", shortest, least=2)
    whole("longest", longest, least=shortest + 1)
    rise = math.log(math.log(longest) / math.log(shortest)) / math.log(longest / shortest)
    return -1.0, -1.0 + (depth - 1) * rise


def convolution_law(depth: int, kernel: int, dilation: int, causal: bool, circular: bool = False) -> InfluenceLaw:
    """Layer l looks (kernel − 1)·dilationˡ tokens back, or half of that to either side; the layers add up."""
    for name, size in {"depth": depth, "kernel": kernel, "dilation": dilation}.items():
        whole(name, size)
    reach = sum((kernel - 1) * dilation**layer for layer in range(depth))
    reach = reach if causal else reach // 2
    reason = f"{depth} windows of {kernel} tokens reach {reach} tokens far" + (", around the end" if circular else "")
    return InfluenceLaw("window", reason, window=reach, circular=circular)


def no_law(reason: str) -> InfluenceLaw:
    return InfluenceLaw("none", reason)
