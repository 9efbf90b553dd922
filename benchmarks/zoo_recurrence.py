"""Linear recurrences in chunks against a plain loop over time, forward and backward.

A part of `benchmarks/zoo.py`.

The rows are those of the nets `delta-net` (one and two steps a token) and `state-space` (selective and fixed) at their
core: 8 sequences, 4 heads of width 16 or 64 channels, float32. Both sides read the same tensors; `difference` is the
largest between their outputs, relative to the largest output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from theodolite.nets.parts.scan import decaying_sum, delta_rule, diagonal_system
from timing import timed

LENGTHS = (64, 256, 1024)
ROWS, HEADS, SIZE, STATE = 8, 4, 16, 16
REPEATS = 5


def delta_loop(query: Tensor, key: Tensor, value: Tensor, rate: Tensor, log_decay: Tensor) -> Tensor:
    steps = key.shape[-2] // query.shape[-2]
    state, found = key.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1]), []
    keys, values = key.unsqueeze(-2).unbind(-3), value.unsqueeze(-2).unbind(-3)  # taken apart once: so are gradients
    corrections = (rate.unsqueeze(-1) * key).unsqueeze(-1).unbind(-3)
    decays = log_decay.exp()[..., None, None].unbind(-3)
    for t, q in enumerate(query.unsqueeze(-2).unbind(-3)):
        state = decays[t] * state
        for j in range(t * steps, (t + 1) * steps):
            state = state + corrections[j] @ (values[j] - keys[j] @ state)
        found.append(q @ state)
    return torch.cat(found, dim=-2)


def sum_loop(query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    state, found = key.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1]), []
    decays = log_decay.exp()[..., None, None].unbind(-3)
    keys, values = key.unsqueeze(-1).unbind(-3), value.unsqueeze(-2).unbind(-3)
    for t, q in enumerate(query.unsqueeze(-2).unbind(-3)):
        state = decays[t] * state + keys[t] * values[t]
        found.append(q @ state)
    return torch.cat(found, dim=-2)


def system_loop(x: Tensor, log_size: Tensor, turn: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
    factor, weight = torch.exp(torch.complex(log_size, turn)), torch.complex(real, imaginary)
    state, found = torch.zeros(x.shape[0], *factor.shape, dtype=factor.dtype, device=x.device), []
    for entering in x.unsqueeze(-1).unbind(1):
        state = factor * state + entering
        found.append((weight * state).sum(dim=-1).real)
    return torch.stack(found, dim=1)


def cases(tokens: int, device: torch.device) -> dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], list]]:
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device)

    def delta(steps: int) -> list[Tensor]:
        key = torch.nn.functional.normalize(drawn(ROWS, HEADS, steps * tokens, SIZE), dim=-1)
        value, rate = drawn(ROWS, HEADS, steps * tokens, SIZE), 2 * torch.sigmoid(drawn(ROWS, HEADS, steps * tokens))
        return [drawn(ROWS, HEADS, tokens, SIZE), key, value, rate, -0.1 * drawn(ROWS, HEADS, tokens).exp()]

    into, out = drawn(ROWS, HEADS, tokens, STATE), drawn(ROWS, HEADS, tokens, STATE)
    selective = [into, out, drawn(ROWS, HEADS, tokens, SIZE), -0.1 * drawn(ROWS, HEADS, tokens).exp()]
    modes = [drawn(HEADS * SIZE, STATE) for _ in range(4)]
    fixed = [drawn(ROWS, tokens, HEADS * SIZE), -0.1 * modes[0].exp(), *modes[1:]]
    return {
        "delta-net": (delta_rule, delta_loop, delta(1)),
        "delta-net, 2 steps a token": (delta_rule, delta_loop, delta(2)),
        "state-space, selective": (decaying_sum, sum_loop, selective),
        "state-space, fixed": (diagonal_system, system_loop, fixed),
    }


def measure(device: str | torch.device) -> list[dict[str, Any]]:
    device, rows = torch.device(device), []
    for tokens in LENGTHS:
        for name, (chunked, loop, given) in cases(tokens, device).items():
            leaves = [x.requires_grad_() for x in given]
            form = torch.ones_like(loop(*leaves))

            def train(compute: Callable[..., Tensor], leaves: list[Tensor] = leaves, form: Tensor = form) -> object:
                return torch.autograd.grad(compute(*leaves), leaves, form)

            with torch.no_grad():
                ours, theirs = chunked(*leaves), loop(*leaves)
            seconds = {
                kind: timed(lambda compute=compute: train(compute), REPEATS, device)
                for kind, compute in (("chunked", chunked), ("loop", loop))
            }
            rows.append(
                {
                    "case": name,
                    "tokens": tokens,
                    "device": device.type,
                    "chunked_seconds": seconds["chunked"],
                    "loop_seconds": seconds["loop"],
                    "ratio": seconds["loop"] / seconds["chunked"],
                    "difference": float((ours - theirs).abs().max() / theirs.abs().max()),
                }
            )
    return rows
