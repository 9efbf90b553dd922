"""Kernels of nets with a stack or a tape on a GPU: candidate tilings beside the loop over tokens captured as a CUDA
graph, and errors against float64.

    PYTHONPATH=src python benchmarks/kernels_memory.py [--nets stack-rnn,tape-rnn] [--seconds 80]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.func import stack_module_state

from kernel_timing import Members, begin, brief, captured_ms, errors, options, passes_of, row
from theodolite.kernels import controller, stack, tape
from theodolite.kernels.controller import Tiling
from theodolite.kernels.launch import fusing
from theodolite.nets import nets, stack_rnn, tape_rnn

ARGUMENTS = {"stack-rnn": {}, "tape-rnn": {"write_layers": 2}}
MODULES = {"stack-rnn": (stack, stack_rnn), "tape-rnn": (tape, tape_rnn)}
FEATURES, MEMBERS, WIDTH, CHECKED = 8, 30, 256, 3  # members that train, and those that are compared with float64
REPLAYS = 3


class Size(NamedTuple):
    rows: int
    tokens: int


SIZES = [Size(32, 40), Size(32, 80), Size(128, 40), Size(128, 80)]
CANDIDATES = [
    Tiling(16, 32, 4, 3, 2048),
    Tiling(32, 32, 8, 3, 2048),
    Tiling(16, 32, 8, 3, 2048),
    Tiling(32, 32, 8, 3, 8192),
    Tiling(16, 32, 8, 3, 4096),
    Tiling(16, 32, 8, 5, 2048),
    Tiling(32, 32, 16, 3, 4096),
    Tiling(16, 64, 8, 3, 2048),
    Tiling(32, 16, 8, 4, 4096),
]


def main() -> None:
    parser = options(__doc__ or "")
    parser.add_argument("--nets", default="stack-rnn,tape-rnn", help="which, with commas")
    given = begin(parser)
    names = given.nets.split(",")
    compile_all(names)
    print(
        f"{MEMBERS} members, width {WIDTH}: ms of a forward pass and of one with gradients, times faster than the loop,"
    )
    print(
        "and the largest error against float64 of outputs and of gradients; these differ the more where a unit that is"
    )
    print("cut off at 0 in one is not in the other, in the loop as in the kernels")
    columns = f"{'forward':>9}{'both':>9}{'×':>7}{'×':>7}{'outputs':>9}{'gradients':>10}"
    print(f"{'net':11}{'rows':>4}{'tokens':>7} {'how':74}{columns}")
    for name in names:
        for size in SIZES:
            line(name, size, None)
            line(name, size, controller.tiling(MEMBERS, size.rows, WIDTH))
    for tiling in CANDIDATES:
        for name in names:
            for size in SIZES[1::2]:
                if time.monotonic() < given.until and tiling != controller.tiling(MEMBERS, size.rows, WIDTH):
                    line(name, size, tiling)


def compile_all(names: Sequence[str]) -> None:
    """All kernels at once, in processes of their own; here they are then read from Triton's cache."""
    jobs = [(name, tiling) for tiling in CANDIDATES for name in names]
    with ProcessPoolExecutor(8, get_context("spawn")) as pool:
        for (name, tiling), said in zip(jobs, pool.map(compiled, *zip(*jobs, strict=True)), strict=True):
            if said:
                print(f"{name} {tiling}: {said}", flush=True)


def compiled(name: str, tiling: Tiling) -> str:
    try:
        with tiled(name, tiling):
            passes_of(case(name, Size(2, 4), 1)).both()
    except Exception as error:
        return brief(error)
    return ""


def line(name: str, size: Size, tiling: Tiling | None) -> None:
    def measured() -> str:
        forward, both = loop_times(name, size) if tiling is None else times(name, size, tiling)
        outputs, *gradients = off(name, size, tiling)
        slow = loop_times(name, size)
        faster = f"{slow[0] / forward:7.1f}{slow[1] / both:7.1f}"
        return f"{forward:9.3f}{both:9.3f}{faster}{outputs:9.1e}{max(gradients):10.1e}"

    how = "loop over tokens" if tiling is None else str(tiling)
    row(f"{name:11}{size.rows:4}{size.tokens:7} {how:74}", measured)


@cache
def loop_times(name: str, size: Size) -> tuple[float, float]:
    return times(name, size, None)


def times(name: str, size: Size, tiling: Tiling | None) -> tuple[float, float]:
    forward, both = passes_of(case(name, size, MEMBERS))
    with tiled(name, tiling):
        return captured_ms(forward, REPLAYS), captured_ms(both, REPLAYS)


def off(name: str, size: Size, tiling: Tiling | None) -> list[float]:
    """How far from float64 the outputs are, and each gradient."""
    with tiled(name, tiling):
        return errors(passes_of(case(name, size, CHECKED)).both(), truth(name, size))


@cache
def truth(name: str, size: Size) -> tuple[Tensor, ...]:
    return passes_of(case(name, size, CHECKED), torch.float64).both()


def tiled(name: str, tiling: Tiling | None) -> Any:
    """In here the kernels have this tiling, or there are none."""
    kernels, net = MODULES[name]
    if tiling is None:
        return mock.patch.object(net, "usable", return_value=False)
    return mock.patch.object(kernels, "tiling", return_value=tiling)


def case(name: str, size: Size, members: int) -> Members:
    """The weights as they start."""
    torch.manual_seed(0)
    made = [nets[name].build(features=FEATURES, outputs=1, width=WIDTH, **ARGUMENTS[name]) for _ in range(members)]
    weights = {n: w.detach().cuda() for n, w in stack_module_state(made)[0].items()}
    x, toward = (torch.randn(members, *size, last).cuda() for last in (FEATURES, 1))
    return Members(made[0].cuda(), weights, x, toward)


if __name__ == "__main__":
    with fusing():
        main()
