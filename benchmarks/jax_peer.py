"""Our nets in plain JAX, as `benchmarks/training.py` sets them beside ours: `vmap` over members, `lax.scan` over the
steps of a block, one `jit`, donated buffers, AdamW written out.

Weights come from torch by name; matrices are kept (in, out), as is usual in JAX. The loop over tokens of a recurrent
net is a `lax.scan`, `unrolled` or not.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.tasks.contract import Batch, TaskSpec
from theodolite.training.optimiser import Rates, Rule

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch and JAX share the device

import jax
import jax.numpy as jnp
from jax import lax

NETS = ("mlp", "rnn", "lstm", "transformer")
RECURRENT = ("rnn", "lstm")
PRECISIONS = {"float32": "highest", "tf32": "tensorfloat32"}  # of `jax_default_matmul_precision`
_EPSILON = 1e-5  # of torch's LayerNorm
_LONGEST = 10000.0  # of rotary positions

Weights = dict[str, jax.Array]  # by torch's names


class JaxPeer:
    """Members of one net with their batches on the device, compiled for a block of them: `run` trains through all
    batches, `wait` until that is done, and `losses` (step, member) are those before each step of the last block."""

    def __init__(
        self,
        net: str,
        shape: Mapping[str, Any],
        spec: TaskSpec,
        weights: Mapping[str, Tensor],
        batches: Sequence[Batch],
        rule: Rule,
        rates: Rates,
        device: torch.device,
        precision: str = "float32",
        unrolled: bool = False,
    ) -> None:
        place = jax.devices("gpu" if device.type == "cuda" else "cpu")[0]
        forward = forward_of(net, shape, spec, list(weights), unrolled)
        start = {n: np.swapaxes(_array(w), 1, 2) if w.dim() == 3 else _array(w) for n, w in weights.items()}
        zeros = lambda: {n: np.zeros_like(w) for n, w in start.items()}
        self._state = jax.device_put((start, zeros(), zeros(), np.float32(0)), place)
        kinds = (torch.stack([getattr(b, kind) for b in batches]) for kind in ("inputs", "targets", "mask"))
        self._batches = jax.device_put(tuple(_array(kind) for kind in kinds), place)
        block = functools.partial(_block, forward=forward, loss=loss_of(spec), rule=rule, rates=rates)
        started = time.perf_counter()
        with jax.default_matmul_precision(PRECISIONS[precision]):
            self._compiled = jax.jit(block, donate_argnums=0).lower(self._state, self._batches).compile()
        self.compile_seconds = time.perf_counter() - started

    def run(self) -> None:
        self._state, self._losses = self._compiled(self._state, self._batches)

    def wait(self) -> None:
        jax.block_until_ready(self._state)

    def losses(self) -> np.ndarray:
        return np.asarray(self._losses)


def _array(values: Tensor) -> np.ndarray:
    found = values.detach().cpu().numpy()
    return found.astype(np.int32) if found.dtype == np.int64 else np.array(found)


def _block(state: Any, batches: Any, *, forward: Any, loss: Any, rule: Rule, rates: Rates) -> Any:
    """One step of AdamW per batch for every member."""

    def loss_of_member(weights: Weights, inputs: Any, targets: Any, mask: Any) -> Any:
        return loss(forward(weights, inputs), targets, mask)

    def step(state: Any, batch: Any) -> Any:
        weights, first, second, number = state
        found, gradients = jax.vmap(jax.value_and_grad(loss_of_member))(weights, *batch)
        number, (beta1, beta2) = number + 1, rule.betas
        first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, first, gradients)
        second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, second, gradients)
        size, root = rates.lr / (1 - beta1**number), jnp.sqrt(1 - beta2**number)
        kept = 1 - rates.lr * rates.weight_decay
        move = lambda w, m, v: kept * w - size * m / (jnp.sqrt(v) / root + rule.epsilon)
        return (jax.tree.map(move, weights, first, second), first, second, number), found

    return lax.scan(step, state, batches)


def loss_of(spec: TaskSpec) -> Callable[[Any, Any, Any], Any]:
    """The mean over the scored positions of one member."""

    def loss(outputs: Any, targets: Any, mask: Any) -> Any:
        if spec.loss == "cross-entropy":
            own = jnp.take_along_axis(outputs, targets[..., None], axis=-1).squeeze(-1)
            each = jax.nn.logsumexp(outputs, axis=-1) - own
        elif spec.loss == "hinge":
            each = jax.nn.relu(1 - outputs * targets)
        else:
            each = jnp.square(outputs - targets)
        return jnp.where(mask, each, 0).sum() / mask.sum()

    return loss


def forward_of(
    net: str, shape: Mapping[str, Any], spec: TaskSpec, names: Sequence[str], unrolled: bool
) -> Callable[[Weights, Any], Any]:
    """Of one member: (row, feature) or ids (row, token) to outputs."""
    if net == "mlp":
        run = functools.partial(_mlp, layers=[n.removesuffix(".weight") for n in names if n.endswith(".weight")])
    elif net in RECURRENT:
        layer = _lstm_layer if net == "lstm" else functools.partial(_rnn_layer, activation=shape["activation"])
        run = functools.partial(_recurrent, depth=shape["depth"], layer=functools.partial(layer, unrolled=unrolled))
    elif net == "transformer" and (shape["block"], shape["positions"]) == ("serial", "rotary") and shape["causal"]:
        run = functools.partial(_transformer, depth=shape["depth"], heads=shape["heads"])
    else:
        raise ValueError(f"'{net}' with {dict(shape)} is not written in JAX")
    vocab = spec.vocab
    if vocab is None:
        return run
    return lambda weights, ids: run(weights, jax.nn.one_hot(ids, vocab, dtype=jnp.float32))


def _linear(weights: Weights, name: str, x: Any) -> Any:
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _mlp(weights: Weights, x: Any, layers: Sequence[str]) -> Any:
    for name in layers[:-1]:
        x = jax.nn.relu(_linear(weights, name, x))
    return _linear(weights, layers[-1], x)


def _recurrent(weights: Weights, x: Any, depth: int, layer: Callable[..., Any]) -> Any:
    x = x.swapaxes(0, 1)  # tokens first
    for place in range(depth):
        name = f"layers.{place}"
        x = layer(_linear(weights, f"{name}.into", x), weights[f"{name}.across.weight"])
    return _linear(weights, "read", x).swapaxes(0, 1)


def _lstm_layer(entering: Any, across: Any, unrolled: bool) -> Any:
    """Gates in the order forget, input, output, candidate."""

    def step(state: Any, entering: Any) -> Any:
        hidden, cell = state
        forget_gate, input_gate, output_gate, candidate = jnp.split(entering + hidden @ across, 4, axis=-1)
        cell = jax.nn.sigmoid(forget_gate) * cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((entering.shape[1], across.shape[0]), entering.dtype)
    return lax.scan(step, (zeros, zeros), entering, unroll=len(entering) if unrolled else 1)[1]


def _rnn_layer(entering: Any, across: Any, unrolled: bool, activation: str) -> Any:
    bend = {"tanh": jnp.tanh, "relu": jax.nn.relu}[activation]

    def step(hidden: Any, entering: Any) -> Any:
        hidden = bend(entering + hidden @ across)
        return hidden, hidden

    zeros = jnp.zeros((entering.shape[1], across.shape[0]), entering.dtype)
    return lax.scan(step, zeros, entering, unroll=len(entering) if unrolled else 1)[1]


def _transformer(weights: Weights, x: Any, depth: int, heads: int) -> Any:
    x = _linear(weights, "embed", x)
    tokens, width = x.shape[-2:]
    size = width // heads
    pair = jnp.arange(size // 2, dtype=x.dtype)
    angles = (jnp.arange(tokens, dtype=x.dtype)[:, None] * _LONGEST ** (pair * (-2 / size)))[:, None]
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    seen = jnp.tril(jnp.ones((tokens, tokens), bool))

    def rotate(x: Any) -> Any:
        first, second, left = jnp.split(x, (size // 2, 2 * (size // 2)), axis=-1)
        return jnp.concatenate((first * cosine - second * sine, first * sine + second * cosine, left), axis=-1)

    for place in range(depth):
        name = f"blocks.{place}"
        projected = _linear(weights, f"{name}.project", _norm(weights, f"{name}.before_attention", x))
        query, key, value = jnp.split(projected.reshape(*x.shape[:-1], 3 * heads, size), 3, axis=-2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", rotate(query), rotate(key))
        shares = jax.nn.softmax(jnp.where(seen, scores / size**0.5, -jnp.inf), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value)
        x = x + _linear(weights, f"{name}.combine", mixed.reshape(x.shape))
        inner = _linear(weights, f"{name}.mlp.0", _norm(weights, f"{name}.before_mlp", x))
        x = x + _linear(weights, f"{name}.mlp.2", jax.nn.gelu(inner, approximate=False))
    return _linear(weights, "read.1", _norm(weights, "read.0", x))


def _norm(weights: Weights, name: str, x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = lax.rsqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + _EPSILON)
    return centred * scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]
