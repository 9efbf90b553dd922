"""What two shapes cost on a device, measured: the only part of the advice that needs torch.

Built are plain blocks of attention and MLP with the shape's sizes and random weights: the whole stack where it is
small, else one block, whose time is then multiplied by the depth. Embeddings, the output layer and the family's own
details are left out, so numbers compare shapes and do not predict a product.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.advice.alive import AliveBytes
from theodolite.advice.shape import ModelShape
from theodolite.device import device_name, require_memory, resolve_device

if TYPE_CHECKING:
    from theodolite.advice.result import Advice

logger = logging.getLogger(__name__)

_SMALL = 5 * 10**7  # parameters up to which the whole stack is built
_REPEATS = 5
_SECONDS = 1.0  # at least this long is timed, unless the repeats take longer


@dataclass(frozen=True)
class Measured:
    """Forward passes of one sequence; `seconds` is the median of one pass through all `blocks` of the model."""

    device: str
    dtype: str
    tokens: int
    blocks: int
    blocks_built: int
    seconds: float
    tokens_per_second: float
    peak_bytes: int  # of what was built: its weights and its largest set of activations
    what: str


class Block(nn.Module):
    """Pre-norm attention and MLP, causal, without biases; experts are the active ones as one wider MLP."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        inner, kv = shape.attention_width, shape.key_value_heads * shape.head_width
        hidden = shape.mlp_width * shape.active_experts
        self.heads, self.head_width, self.kv_heads = shape.heads, shape.head_width, shape.key_value_heads
        self.gated = shape.gated
        self.before_attention, self.before_mlp = (nn.LayerNorm(shape.width, bias=False) for _ in range(2))
        self.query = nn.Linear(shape.width, inner, bias=False)
        self.key, self.value = (nn.Linear(shape.width, kv, bias=False) for _ in range(2))
        self.out = nn.Linear(inner, shape.width, bias=False)
        self.up = nn.Linear(shape.width, hidden * (2 if shape.gated else 1), bias=False)
        self.down = nn.Linear(hidden, shape.width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        y = self.before_attention(x)
        query = self._split(self.query(y), self.heads)
        key, value = (self._split(one(y), self.kv_heads) for one in (self.key, self.value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=self.kv_heads < self.heads)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.up(self.before_mlp(x))
        if self.gated:
            gate, y = y.chunk(2, dim=-1)
            y = F.silu(gate) * y
        else:
            y = F.gelu(y)
        return x + self.down(y)

    def _split(self, x: Float[Tensor, "batch token inner"], heads: int) -> Float[Tensor, "batch heads token head"]:
        return x.unflatten(2, (heads, self.head_width)).transpose(1, 2)


def measure_shapes(advice: Advice, device: str, tell: Callable[[int, str], None]) -> dict[str, Measured]:
    """`given` (where there is one) and `advised`, in turn on the same device at the advice's context; `tell` is told
    which one begins."""
    shapes = {} if advice.given is None else {"given": advice.given.shape}
    if advice.advised is not None:
        shapes["advised"] = advice.advised.shape
    found = {}
    for place, (name, shape) in enumerate(shapes.items()):
        tell(place, f"timing the {name} shape, {shape.depth} layers of width {shape.width:,}")
        found[name] = measure_shape(shape, advice.judged.cost.context, device)
    return found


def measure_shape(shape: ModelShape, tokens: int, device: str = "cpu") -> Measured:
    """Time forward passes of `tokens` tokens through this shape's blocks, in bfloat16 on CUDA, float32 on the CPU."""
    place = resolve_device(device)
    dtype = torch.bfloat16 if place.type == "cuda" else torch.float32
    one = _parameters(shape)
    built = shape.depth if one * shape.depth <= _SMALL else 1
    width = max(shape.width, shape.mlp_width * shape.active_experts * (2 if shape.gated else 1))
    require_memory((one * built + 8 * tokens * width) * dtype.itemsize, place, f"measuring {built} blocks")
    with torch.no_grad():
        with torch.device("meta"):
            stack = nn.Sequential(*(Block(shape) for _ in range(built)))
        stack = stack.to(dtype).to_empty(device=place)
        generator = torch.Generator(place).manual_seed(0)
        for weight in stack.parameters():
            weight.normal_(std=0.02, generator=generator)
        x = torch.randn(1, tokens, shape.width, device=place, dtype=dtype, generator=generator)
        seconds = _timed(lambda: stack(x), place) * shape.depth / built
        weights = sum(weight.numel() * weight.element_size() for weight in stack.parameters())
        peak = weights + _peak(lambda: stack(x), place)
    what = "all blocks were built"
    if built < shape.depth:
        what = f"one block was built, its time taken {shape.depth} times"
    logger.info("%s: %s, %.4f s", shape.name, what, seconds)
    return Measured(
        device=device_name(place),
        dtype=str(dtype).removeprefix("torch."),
        tokens=tokens,
        blocks=shape.depth,
        blocks_built=built,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        peak_bytes=peak,
        what=f"{what}; forward, one sequence of {tokens} tokens, no embeddings and no output layer",
    )


def _parameters(shape: ModelShape) -> int:
    with torch.device("meta"):
        return sum(weight.numel() for weight in Block(shape).parameters())


def _timed(run: Callable[[], Tensor], device: torch.device) -> float:
    run()  # warm up: kernels are chosen and loaded
    found: list[float] = []
    while len(found) < _REPEATS or sum(found) < _SECONDS:
        _wait(device)
        started = time.perf_counter()
        run()
        _wait(device)
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak(run: Callable[[], Tensor], device: torch.device) -> int:
    """Bytes that a pass holds at most, beyond what was there before it."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        run()
        _wait(device)
        return torch.cuda.max_memory_allocated(device) - before
    with AliveBytes() as alive:
        kept = run()
    del kept
    return alive.most
