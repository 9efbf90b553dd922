"""What a network costs, counted from its shape: parameters, multiplications, and the numbers it keeps of the past.

A matrix product of m×k with k×n counts 2·m·k·n floating-point operations; what is done entry by entry (activations,
norms, softmax, sums) is not counted, here as in `torch.utils.flop_counter`. Hence 2 per weight and token (Kaplan et
al. 2020, Section 2.1), and for softmax attention 4·n·d more per layer, n the tokens: all of them, since a masked
product is computed whole. Formulas are counted from the built-in nets, whose arguments they take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from theodolite.theory.domain import whole

CHUNK = 64  # tokens among which causal linear attention is computed pair by pair


@dataclass(frozen=True)
class Price:
    """`state` numbers are carried from token to token, plus `state_per_token` for every token of the past.

    Both count what can be told apart; a cache may hold more than that, `cache_per_token` numbers.
    """

    parameters: int
    flops_per_token: float  # forward; a training step takes 3 times as many
    formula: str
    state: int | None = None
    state_per_token: int | None = None
    cache_per_token: int | None = None
    state_formula: str = ""


def mlp_price(features: int, outputs: int, depth: int, width: int) -> Price:
    _sizes(features=features, outputs=outputs, depth=depth, width=width)
    weights = features * width + (depth - 1) * width**2 + width * outputs
    return Price(
        parameters=weights + depth * width + outputs,
        flops_per_token=2.0 * weights,
        formula="N = f·d + (L−1)·d² + d·o, and a bias per unit; 2·N operations for one input",
    )


def rnn_price(features: int, outputs: int, depth: int, width: int) -> Price:
    return _recurrent(features, outputs, depth, width, gates=1)


def lstm_price(features: int, outputs: int, depth: int, width: int) -> Price:
    return _recurrent(features, outputs, depth, width, gates=4)


def convolution_price(
    features: int,
    outputs: int,
    depth: int,
    width: int,
    kernel: int,
    dilation: int,
    causal: bool = True,
    padding: str = "zeros",
) -> Price:
    """Windows that read on at the other end (circular) carry all tokens there are, for which there is no formula."""
    _sizes(features=features, outputs=outputs, depth=depth, width=width, kernel=kernel, dilation=dilation)
    weights = features * width + depth * (kernel + 1) * width**2 + width * outputs
    reach = sum((kernel - 1) * dilation**layer for layer in range(depth))
    return Price(
        parameters=weights + (2 * depth + 1) * width + outputs,
        flops_per_token=2.0 * weights,
        formula="N = f·d + L·(k+1)·d² + d·o, and biases; 2·N operations per token",
        state=None if padding == "circular" else width * (reach if causal else reach // 2),
        state_per_token=None if padding == "circular" else 0,
        state_formula="" if padding == "circular" else "d·Σ_l (k−1)·dilationˡ" + ("" if causal else " / 2"),
    )


def transformer_price(
    features: int, outputs: int, depth: int, width: int, tokens: int, block: str = "serial", causal: bool = True
) -> Price:
    """A token enters every layer through a norm, which leaves d − 1 of its d numbers: its keys and values, 2·d·L
    numbers in a cache, are functions of those (of what a causal mask lets it see, which earlier tokens gave).
    """
    _sizes(features=features, outputs=outputs, depth=depth, width=width, tokens=tokens)
    weights = features * width + 12 * depth * width**2 + width * outputs
    return Price(
        parameters=weights + _block_biases(depth, width, outputs, block),
        flops_per_token=2.0 * weights + 4.0 * depth * tokens * width,
        formula="N = 12·L·d² + (f+o)·d, and biases and norms; 2·N + 4·L·n·d operations per token",
        state=None,
        state_per_token=width - 1,
        cache_per_token=2 * width * depth if causal else None,
        state_formula="d−1 per token" + (", in a cache of 2·d·L keys and values" if causal else ", each read again"),
    )


def linear_transformer_price(
    features: int,
    outputs: int,
    depth: int,
    width: int,
    heads: int,
    tokens: int,
    block: str = "serial",
    causal: bool = True,
) -> Price:
    """Causal: pairs inside chunks, and from chunk to chunk one matrix of a·(a + 1) per head, a = d / H.

    Without a mask, layers above the first read every token again, and the past has no fixed size. Values hold at most
    d − 1 numbers of a token, its mean being taken away by the norm; that is fewer than a where there is one head.
    """
    _sizes(features=features, outputs=outputs, depth=depth, width=width, heads=heads, tokens=tokens)
    weights = features * width + 12 * depth * width**2 + width * outputs
    size = width // heads
    if causal:
        chunk = min(CHUNK, tokens)
        chunks = -(-tokens // chunk)
        pairs = 2 * chunks * chunk**2 * (2 * size + 1)
        mixing = pairs + 4 * (chunks - 1) * chunk * size * (size + 1)
    else:
        mixing = 4 * tokens * size * (size + 1)
    return Price(
        parameters=weights + _block_biases(depth, width, outputs, block),
        flops_per_token=2.0 * weights + depth * heads * mixing / tokens,
        formula="N = 12·L·d² + (f+o)·d, and biases and norms; 2·N per token, and per head and layer "
        + (f"2·c·(2a+1) in chunks of c ≤ {CHUNK} tokens and 4·a·(a+1) between them" if causal else "4·a·(a+1)"),
        state=depth * heads * size * (min(size, width - 1) + 1) if causal or depth == 1 else None,
        state_per_token=0 if causal or depth == 1 else width - 1,
        state_formula="L·H·a·(min(a, d−1)+1): Σ φ(k) vᵀ and Σ φ(k) of every head"
        if causal or depth == 1
        else "d−1 per token, each read again",
    )


# By the name of the net whose arguments the formula takes.
PRICES: Mapping[str, Callable[..., Price]] = {
    "mlp": mlp_price,
    "rnn": rnn_price,
    "lstm": lstm_price,
    "convolution": convolution_price,
    "transformer": transformer_price,
    "linear-transformer": linear_transformer_price,
}


def _recurrent(features: int, outputs: int, depth: int, width: int, gates: int) -> Price:
    _sizes(features=features, outputs=outputs, depth=depth, width=width)
    weights = gates * width * (features + width + 2 * (depth - 1) * width) + width * outputs
    states = depth * width * (2 if gates == 4 else 1)
    times = "4·" if gates == 4 else ""
    return Price(
        parameters=weights + gates * depth * width + outputs,
        flops_per_token=2.0 * weights,
        formula=f"N = {times}d·(f + d + 2·(L−1)·d) + d·o, and biases; 2·N operations per token",
        state=states,
        state_per_token=0,
        state_formula="2·d·L: hidden states and cells" if gates == 4 else "d·L: hidden states",
    )


def _block_biases(depth: int, width: int, outputs: int, block: str) -> int:
    """Of the embedding, of every block (3 + 1 + 4 + 1 widths), of its norms and the last norm, and of the readout."""
    norms = 1 if block == "parallel" else 2
    return width + depth * (9 + 2 * norms) * width + 2 * width + outputs


def _sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        whole(name, size)
