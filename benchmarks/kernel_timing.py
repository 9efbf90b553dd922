"""What the benchmarks of kernels share: passes captured as CUDA graphs, errors against float64, rows of a table."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from timing import hardware

Run = Callable[[], tuple[Tensor, ...]]


class Passes(NamedTuple):
    forward: Run
    both: Run  # forward and backward: what comes out, and the gradients at what enters


class Members(NamedTuple):
    """A net, the weights of all its members, inputs, and the gradient at the outputs."""

    net: nn.Module
    weights: dict[str, Tensor]
    x: Tensor
    toward: Tensor


def options(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=80, help="no candidate is begun after so many")
    return parser


def begin(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, and `until`: the time after which no candidate is begun."""
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("kernels are timed on a GPU and this machine has no CUDA device: run it on one that has")
    given.until = time.monotonic() + given.seconds
    print(hardware(torch.device("cuda")))
    return given


def row(label: str, measured: Callable[[], str]) -> None:
    """One of a table; what fails is said in it."""
    try:
        said = measured()
    except Exception as error:
        said = f" {brief(error)}"
    print(f"{label}{said}", flush=True)
    torch.cuda.empty_cache()


def brief(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def passes(entering: Sequence[Tensor], mix: Callable[..., Tensor], toward: Tensor) -> Passes:
    def both() -> tuple[Tensor, ...]:
        y = mix(*entering)
        return y.detach(), *torch.autograd.grad(y, entering, toward)

    return Passes(lambda: (mix(*entering),), both)


def passes_of(members: Members, kind: torch.dtype = torch.float32) -> Passes:
    """Gradients are those at the weights."""
    net, weights, x, toward = members
    net, x, toward = net.to(kind), x.to(kind), toward.to(kind)

    def mix(*own: Tensor) -> Tensor:
        laid = dict(zip(weights, own, strict=True))
        return vmap(lambda own, x: functional_call(net, own, (x,)))(laid, x)

    return passes([w.detach().to(kind).requires_grad_() for w in weights.values()], mix, toward)


def errors(found: Sequence[Tensor], true: Sequence[Tensor]) -> list[float]:
    """Of each result, relative, on the rows that were computed in float64."""
    pairs = [(given[: len(truth)].double(), truth) for given, truth in zip(found, true, strict=True)]
    return [float((given - truth).norm() / truth.norm()) for given, truth in pairs]


def captured_ms(run: Run, replays: int = 10) -> float:
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
