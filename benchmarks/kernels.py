"""Kernels of recurrences on a GPU: candidate tiles beside the loop over tokens captured as a CUDA graph, and errors
against float64.

    PYTHONPATH=src python benchmarks/kernels.py [--cells lstm,gru,tanh,relu] [--seconds 80]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple
from unittest import mock

import torch
from torch import nn

from kernel_timing import Members, begin, captured_ms, errors, options, passes_of, row
from theodolite.kernels import recurrence
from theodolite.kernels.launch import fusing
from theodolite.kernels.recurrence import Tiles
from theodolite.nets import gru, lstm, rnn

LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "lstm": lstm.LSTMLayer,
    "gru": gru.GRULayer,
    "tanh": rnn.RNNLayer,
    "relu": partial(rnn.RNNLayer, activation="relu"),
}
FEATURES, CHECKED = 8, 4  # features that enter, and members that are compared with float64


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
    parser = options(__doc__ or "")
    parser.add_argument("--cells", default="lstm,gru,tanh", help="which, with commas")
    given = begin(parser)
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
                if time.monotonic() < given.until:
                    line(cell, size, "", chosen=chosen)


def line(cell: str, size: Size, how: str, *, loop: bool = False, chosen: Tiles | None = None) -> None:
    name = how if chosen is None else f"{how} {chosen}".strip().replace("Tiles", "")

    def measured() -> str:
        with nullcontext() if chosen is None else mock.patch.object(recurrence, "tiles", return_value=chosen):
            forward, both = times(cell, size, loop)
            error = "" if loop else f"{worst_error(cell, size):10.1e}"
        return f"{forward:9.3f}{both:9.3f}{error}"

    row(f"{cell:5}{'{:7} {:4} {:6} {:5}'.format(*size):27}{name:76}", measured)


def times(cell: str, size: Size, loop: bool) -> tuple[float, float]:
    module = {"lstm": lstm, "gru": gru}.get(cell, rnn)
    forward, both = passes_of(case(cell, size))
    with mock.patch.object(module, "usable", return_value=not loop):
        return captured_ms(forward), captured_ms(both)


def worst_error(cell: str, size: Size) -> float:
    few = case(cell, size._replace(members=CHECKED))
    return max(errors(passes_of(few).both(), passes_of(few, torch.float64).both()))


def case(cell: str, size: Size) -> Members:
    """The weights as training lays them in memory."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, device="cuda")
    layer = LAYERS[cell](FEATURES, size.width).cuda()
    weights = {n: draw(size.members, *p.shape) / size.width**0.5 for n, p in layer.named_parameters()}
    laid = {n: w.mT.contiguous().mT if w.dim() == 3 else w for n, w in weights.items()}
    x = draw(size.members, size.rows, size.tokens, FEATURES)
    return Members(layer, laid, x, draw(size.members, size.rows, size.tokens, size.width))


if __name__ == "__main__":
    with fusing():
        main()
