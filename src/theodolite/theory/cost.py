"""What a network costs, counted from its shape: parameters, multiplications, and the numbers it keeps of the past.

A matrix product of m×k with k×n counts 2·m·k·n floating-point operations; what is done entry by entry (activations,
norms, softmax, sums) is not counted, here as in `torch.utils.flop_counter`. Hence 2 per weight and token (Kaplan et
al. 2020, Section 2.1), and for softmax attention 4·n·d more per layer, n the tokens: all of them, since a masked
product is computed whole. Formulas are counted from the built-in nets, whose arguments they take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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


def gru_price(features: int, outputs: int, depth: int, width: int) -> Price:
    return _recurrent(features, outputs, depth, width, gates=3)


def stack_rnn_price(features: int, outputs: int, depth: int, width: int, tokens: int, cell: int = 8) -> Price:
    """Moving the stack multiplies entry by entry and is not counted."""
    return _with_memory(features, outputs, depth, width, tokens, cell, actions=3, moving=0.0, of_memory="")


def tape_rnn_price(
    features: int,
    outputs: int,
    depth: int,
    width: int,
    tokens: int,
    cell: int = 8,
    tape: int | None = None,
    write_layers: int = 0,
    writer_width: int = 64,
) -> Price:
    """A tape of M cells is turned and read by its k = M // 2 + 1 coefficients; the last token does nothing to it."""
    coefficients = (2 * tokens if tape is None else tape) // 2 + 1
    moving = 4.0 * coefficients * (5 + cell)
    of_memory = ", and 4·k·(5 + c) for k = M // 2 + 1 coefficients of a tape of M cells at all tokens but the last"
    sizes = [width] + [writer_width] * write_layers + [cell]
    writer = list(pairwise(sizes)) if write_layers else []
    return _with_memory(features, outputs, depth, width, tokens, cell, 5, moving, of_memory, writer)


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


def universal_transformer_price(
    features: int,
    outputs: int,
    depth: int,
    width: int,
    tokens: int,
    block: str = "serial",
    causal: bool = True,
    halting: bool = True,
) -> Price:
    """One block and a halting unit, which is read before every step but the last; all L steps are computed."""
    _sizes(features=features, outputs=outputs, depth=depth, width=width, tokens=tokens)
    inside, ends = 12 * width**2, (features + outputs) * width
    halts = halting and depth > 1
    return Price(
        parameters=inside + ends + _block_biases(1, width, outputs, block) + halts * (width + 1),
        flops_per_token=2.0 * ends + depth * (2.0 * inside + 4.0 * tokens * width) + 2.0 * halts * (depth - 1) * width,
        formula="N = 12·d² + (f+o)·d" + (" + d" if halts else "") + ", and biases and norms; 24·L·d² + 2·(f+o)·d + "
        "4·L·n·d" + (" + 2·(L−1)·d" if halts else "") + " operations per token",
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


def mixer_price(features: int, outputs: int, depth: int, width: int, tokens: int, expansion: int = 2) -> Price:
    """With a causal mask too: masked products are computed whole."""
    _sizes(features=features, outputs=outputs, depth=depth, width=width, tokens=tokens, expansion=expansion)
    across, ends = 2 * expansion * tokens**2, (features + outputs) * width
    biases = (expansion + 1) * tokens + 9 * width  # of both perceptrons, and two norms
    return Price(
        parameters=ends + depth * (across + 8 * width**2 + biases) + 3 * width + outputs,
        flops_per_token=2.0 * ends + depth * (2.0 * across / tokens * width + 16.0 * width**2),
        formula="N = L·(2·e·n² + 8·d²) + (f+o)·d, and biases and norms; 2·(f+o)·d + L·(4·e·n·d + 16·d²) operations "
        "per token",
    )


def graph_network_price(features: int, outputs: int, depth: int, width: int) -> Price:
    """Messages depend on their sender, so that a node receives one sum, which is not counted."""
    _sizes(features=features, outputs=outputs, depth=depth, width=width)
    weights = (features + outputs) * width + 7 * depth * width**2
    return Price(
        parameters=weights + (6 * depth + 3) * width + outputs,
        flops_per_token=2.0 * weights,
        formula="N = 7·L·d² + (f+o)·d, and biases and norms; 2·N operations per token",
    )


# By the name of the net whose arguments the formula takes.
PRICES: Mapping[str, Callable[..., Price]] = {
    "mlp": mlp_price,
    "rnn": rnn_price,
    "lstm": lstm_price,
    "gru": gru_price,
    "stack-rnn": stack_rnn_price,
    "tape-rnn": tape_rnn_price,
    "convolution": convolution_price,
    "transformer": transformer_price,
    "thresholded-transformer": transformer_price,
    "sparsemax-transformer": transformer_price,
    "entmax-transformer": transformer_price,
    "alibi-transformer": transformer_price,
    "random-offset-transformer": transformer_price,
    "universal-transformer": universal_transformer_price,
    "linear-transformer": linear_transformer_price,
    "mixer": mixer_price,
    "graph-network": graph_network_price,
}


def _recurrent(features: int, outputs: int, depth: int, width: int, gates: int) -> Price:
    _sizes(features=features, outputs=outputs, depth=depth, width=width)
    weights = gates * width * (features + width + 2 * (depth - 1) * width) + width * outputs
    states = depth * width * (2 if gates == 4 else 1)
    times = f"{gates}·" if gates > 1 else ""
    return Price(
        parameters=weights + gates * depth * width + outputs,
        flops_per_token=2.0 * weights,
        formula=f"N = {times}d·(f + d + 2·(L−1)·d) + d·o, and biases; 2·N operations per token",
        state=states,
        state_per_token=0,
        state_formula="2·d·L: hidden states and cells" if gates == 4 else "d·L: hidden states",
    )


def _with_memory(
    features: int,
    outputs: int,
    depth: int,
    width: int,
    tokens: int,
    cell: int,
    actions: int,
    moving: float,
    of_memory: str,
    writer: Sequence[tuple[int, int]] = (),
) -> Price:
    """A controller that reads a cell, and heads for the actions and for what is written, or a writer for that."""
    _sizes(features=features, outputs=outputs, depth=depth, width=width, tokens=tokens, cell=cell)
    control = width * (features + width + cell) + (depth - 1) * width * (2 * width + cell)
    heads = actions + (0 if writer else cell)
    weights = control + depth * width * heads + width * outputs
    writing = sum(a * b for a, b in writer)
    biases = width + heads + sum(b for _, b in writer)
    at_last = (tokens - 1) / tokens
    return Price(
        parameters=weights + depth * (writing + biases) + outputs,
        flops_per_token=2.0 * weights + depth * (2.0 * writing + moving) * at_last,
        formula=f"N = d·(f + d + c) + (L−1)·d·(2·d + c) + L·d·{actions if writer else f'(c + {actions})'} + d·o, and "
        f"biases; 2·N operations per token{', those of the writer' if writer else ''}{of_memory}",
    )


def _block_biases(depth: int, width: int, outputs: int, block: str) -> int:
    """Of the embedding, of every block (3 + 1 + 4 + 1 widths), of its norms and the last norm, and of the readout."""
    norms = 1 if block == "parallel" else 2
    return width + depth * (9 + 2 * norms) * width + 2 * width + outputs


def _sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        whole(name, size)
