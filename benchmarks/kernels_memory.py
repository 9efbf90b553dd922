"""Kernels of nets with a stack or a tape on a GPU: candidate tilings beside the loop over tokens captured as a CUDA
graph, and errors against float64.

    PYTHONPATH=src python benchmarks/kernels_memory.py [--nets stack-rnn,tape-rnn] [--seconds 80]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from theodolite.kernels import controller, stack, tape
from theodolite.kernels.controller import Tiling
from theodolite.kernels.launch import fusing
from theodolite.nets import nets, stack_rnn, tape_rnn
from timing import hardware

ARGUMENTS = {"stack-rnn": {}, "tape-rnn": {"write_layers": 2}}
MODULES = {"stack-rnn": (stack, stack_rnn), "tape-rnn": (tape, tape_rnn)}
FEATURES, MEMBERS, WIDTH, CHECKED = 8, 30, 256, 3  # members that train, and those that are compared with float64


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="stack-rnn,tape-rnn", help="which, with commas")
    parser.add_argument("--seconds", type=float, default=80, help="no candidate is begun after so many")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    names = given.nets.split(",")
    print(hardware(torch.device("cuda")))
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
                if time.monotonic() < until and tiling != controller.tiling(MEMBERS, size.rows, WIDTH):
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
        with mock.patch.object(MODULES[name][0], "tiling", return_value=tiling):
            outcome(name, Size(2, 4), 1, torch.float32)
    except Exception as error:
        return brief(error)
    return ""


def line(name: str, size: Size, tiling: Tiling | None) -> None:
    """One row of the table; what fails is said in it."""
    said = f"{name:11}{size.rows:4}{size.tokens:7} {'loop over tokens' if tiling is None else str(tiling):74}"
    try:
        if tiling is None:
            forward, both = loop_times(name, size)
            with mock.patch.object(MODULES[name][1], "usable", return_value=False):
                outputs, gradients = errors(name, size)
        else:
            with mock.patch.object(MODULES[name][0], "tiling", return_value=tiling):
                forward, both = times(name, size)
                outputs, gradients = errors(name, size)
        slow = loop_times(name, size)
        faster = f"{slow[0] / forward:7.1f}{slow[1] / both:7.1f}"
        print(f"{said}{forward:9.3f}{both:9.3f}{faster}{outputs:9.1e}{gradients:10.1e}", flush=True)
    except Exception as error:
        print(f"{said} {brief(error)}", flush=True)
    torch.cuda.empty_cache()


def brief(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


@cache
def loop_times(name: str, size: Size) -> tuple[float, float]:
    with mock.patch.object(MODULES[name][1], "usable", return_value=False):
        return times(name, size)


def times(name: str, size: Size) -> tuple[float, float]:
    net, weights, x, toward = case(name, size, MEMBERS)
    leaves = {n: w.requires_grad_() for n, w in weights.items()}

    def forward() -> Tensor:
        return batched(net, leaves, x)

    def both() -> Sequence[Tensor]:
        return torch.autograd.grad(forward(), list(leaves.values()), toward)

    return captured_ms(forward), captured_ms(both)


def errors(name: str, size: Size) -> tuple[float, float]:
    """Of the outputs, and the largest of the gradients'."""
    pairs = zip(outcome(name, size, CHECKED, torch.float32), truth(name, size), strict=True)
    outputs, *gradients = (float((given - true).norm() / true.norm()) for given, true in pairs)
    return outputs, max(gradients)


@cache
def truth(name: str, size: Size) -> list[Tensor]:
    return outcome(name, size, CHECKED, torch.float64)


def outcome(name: str, size: Size, members: int, kind: torch.dtype) -> list[Tensor]:
    """Outputs and gradients."""
    net, weights, x, toward = case(name, size, members)
    leaves = {n: w.to(kind).requires_grad_() for n, w in weights.items()}
    outputs = batched(net.to(kind), leaves, x.to(kind))
    return [outputs.detach(), *torch.autograd.grad(outputs, list(leaves.values()), toward.to(kind))]


def case(name: str, size: Size, members: int) -> tuple[nn.Module, dict[str, Tensor], Tensor, Tensor]:
    """A net, the weights of all members as they start, inputs, and the gradient at the outputs."""
    torch.manual_seed(0)
    made = [nets[name].build(features=FEATURES, outputs=1, width=WIDTH, **ARGUMENTS[name]) for _ in range(members)]
    weights = {n: w.detach().cuda() for n, w in stack_module_state(made)[0].items()}
    x, toward = (torch.randn(members, *size, last).cuda() for last in (FEATURES, 1))
    return made[0].cuda(), weights, x, toward


def batched(net: nn.Module, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    return vmap(lambda own, x: functional_call(net, own, (x,)))(weights, x)


def captured_ms(run: Callable[[], object], replays: int = 3) -> float:
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
