"""Kernels of recurrences on a GPU: candidate tiles beside the loop over tokens captured as a CUDA graph, and errors
against float64.

    PYTHONPATH=src python benchmarks/kernels.py [--cells lstm,gru,tanh,relu] [--seconds 80]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from theodolite.kernels import recurrence
from theodolite.kernels.launch import fusing
from theodolite.kernels.recurrence import Tiles
from theodolite.nets import gru, lstm, rnn
from timing import hardware

LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "lstm": lstm.LSTMLayer,
    "gru": gru.GRULayer,
    "tanh": rnn.RNNLayer,
    "relu": partial(rnn.RNNLayer, activation="relu"),
}
FEATURES, CHECKED = 8, 4  # features that enter, and members that are compared with float64
Weights = dict[str, Tensor]


class Size(NamedTuple):
    members: int
    rows: int
    tokens: int
    width: int


SIZES = [Size(512, 32, 20, 16), Size(512, 32, 20, 122), Size(30, 128, 40, 256), Size(30, 32, 40, 256)]
SIZES += [Size(512, 32, 20, 64)]
SMALL = [Tiles(32, 16, 16, True, 2, 2), Tiles(16, 16, 16, True, 4, 2), Tiles(16, 16, 16, True, 1, 1)]
MIDDLE = [Tiles(16, 64, 16, True, 8, 2), Tiles(32, 64, 32, False, 8, 3), Tiles(16, 64, 32, False, 4, 3)]
LARGE = [
    Tiles(32, 64, 32, False, 8, 3),
    Tiles(32, 64, 32, False, 4, 3),
    Tiles(16, 64, 32, False, 4, 3),
    Tiles(32, 64, 32, False, 8, 4),
    Tiles(32, 128, 16, False, 8, 3),
    Tiles(64, 64, 32, False, 8, 3),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cells", default="lstm,gru,tanh", help="which, with commas")
    options.add_argument("--seconds", type=float, default=80, help="no candidate is begun after so many")
    given = options.parse_args()
    until = time.monotonic() + given.seconds
    print(hardware(torch.device("cuda")))
    print("ms of one layer, forward and forward with gradients; error of states and gradients against float64")
    print(f"{'cell':5}{'members rows tokens width':27}{'how':76}{'forward':>9}{'both':>9}{'error':>10}")
    cells = given.cells.split(",")
    for cell in cells:
        for size in SIZES:
            line(cell, size, "loop over tokens", loop=True)
            line(cell, size, "chosen")
    for cell in cells:
        for size in SIZES:
            for chosen in SMALL if size.width <= 32 else MIDDLE if size.width <= 64 else LARGE:
                if time.monotonic() < until:
                    line(cell, size, "", chosen=chosen)


def line(cell: str, size: Size, how: str, *, loop: bool = False, chosen: Tiles | None = None) -> None:
    """One row of the table; what fails is said in it."""
    name = how if chosen is None else f"{how} {chosen}".strip().replace("Tiles", "")
    said = f"{cell:5}{'{:7} {:4} {:6} {:5}'.format(*size):27}{name:76}"
    try:
        with nullcontext() if chosen is None else mock.patch.object(recurrence, "tiles", return_value=chosen):
            forward, both = times(cell, size, loop)
            error = f"{worst_error(cell, size):10.1e}" if not loop else ""
        print(f"{said}{forward:9.3f}{both:9.3f}{error}", flush=True)
    except Exception as error:
        print(f"{said} {type(error).__name__}: {' '.join(str(error).split())[:160]}", flush=True)
    torch.cuda.empty_cache()


def times(cell: str, size: Size, loop: bool) -> tuple[float, float]:
    layer, weights, x, direction = case(cell, size)
    module = {"lstm": lstm, "gru": gru}.get(cell, rnn)
    leaves = {n: w.requires_grad_() for n, w in weights.items()}

    def forward() -> Tensor:
        return batched(layer, leaves, x)

    def both() -> Sequence[Tensor]:
        return torch.autograd.grad(forward(), list(leaves.values()), direction)

    with mock.patch.object(module, "usable", return_value=not loop):
        return captured_ms(forward), captured_ms(both)


def worst_error(cell: str, size: Size) -> float:
    layer, weights, x, direction = case(cell, size._replace(members=CHECKED))

    def found(kind: torch.dtype) -> list[Tensor]:
        leaves = {n: w.detach().to(kind).requires_grad_() for n, w in weights.items()}
        states = batched(layer.to(kind), leaves, x.to(kind))
        return [states.detach(), *torch.autograd.grad(states, list(leaves.values()), direction.to(kind))]

    pairs = zip(found(torch.float32), found(torch.float64), strict=True)
    return max(float((given - truth).norm() / truth.norm()) for given, truth in pairs)


def case(cell: str, size: Size) -> tuple[nn.Module, Weights, Tensor, Tensor]:
    """A layer, weights of all members as training lays them in memory, inputs, and the gradient at the states."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, device="cuda")
    layer = LAYERS[cell](FEATURES, size.width).cuda()
    weights = {n: draw(size.members, *p.shape) / size.width**0.5 for n, p in layer.named_parameters()}
    laid = {n: w.mT.contiguous().mT if w.dim() == 3 else w for n, w in weights.items()}
    x = draw(size.members, size.rows, size.tokens, FEATURES)
    return layer, laid, x, draw(size.members, size.rows, size.tokens, size.width)


def batched(layer: nn.Module, weights: Weights, x: Tensor) -> Tensor:
    return vmap(lambda own, x: functional_call(layer, own, (x,)))(weights, x)


def captured_ms(run: Callable[[], object], replays: int = 10) -> float:
    """Milliseconds of one replay of a captured graph, the median of five times `replays` of them."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def once() -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(replays):
            graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / replays

    once()
    return statistics.median(once() for _ in range(5))


if __name__ == "__main__":
    with fusing():
        main()
