"""Our nets under `torch.compile` by hand, as `benchmarks/training.py` sets them beside ours: the gradient of the losses
of a `vmap` over members of `functional_call`, and AdamW written out, compiled as one function that updates in place; on
CUDA all steps of a block are captured in one graph. Kernels of ours have no part in it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from theodolite.nets.parts import positions
from theodolite.tasks.contract import Batch
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing
from theodolite.training.scoring import losses

PRECISIONS = {"float32": "highest", "tf32": "high"}  # of `torch.set_float32_matmul_precision`


@contextmanager
def precision_of(name: str) -> Iterator[None]:
    """How torch multiplies float32 matrices, for the while."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(PRECISIONS[name])
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def plain_operations(written_out: bool = False) -> Iterator[None]:
    """Our nets have no kernels of ours in here, as a peer has none; `written_out`: nor torch's for whole sequences, so
    that a recurrent net is the loop over tokens."""
    names = ("usable", "runs_alone") if written_out else ("usable",)
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("theodolite.")]
    before = [(module, name, vars(module)[name]) for module in ours for name in names if name in vars(module)]
    try:
        for module, name, _ in before:
            setattr(module, name, _never)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _never(*_: object) -> bool:
    return False


class CompiledPeer:
    """Members with their batches on the device: `run` trains through all batches and does not wait for the device.
    `fullgraph` says whether the step is one graph."""

    def __init__(
        self,
        pairing: Pairing,
        weights: Mapping[str, Tensor],
        batches: Sequence[Batch],
        rule: Rule,
        rates: Rates,
        device: torch.device,
        backend: str = "inductor",
    ) -> None:
        self._weights = {n: w.detach().clone(memory_format=torch.contiguous_format) for n, w in weights.items()}
        self._moments = [{n: torch.zeros_like(w) for n, w in self._weights.items()} for _ in range(2)]
        self._number = torch.zeros((), device=device)
        self._batches, self._device = batches, device
        self._losses = torch.zeros(len(batches), len(next(iter(weights.values()))), device=device)
        self._rotation = _known_turns(pairing, batches[0].inputs, device)
        self._graphs: dict[str, torch.cuda.CUDAGraph] = {}
        self._written, self._backend = _step(pairing, rule, rates, device), backend
        started = time.perf_counter()
        state = [t.clone() for t in self._state()]
        self.fullgraph = True
        try:
            self._compile()
        except Exception:
            self.fullgraph = False
            self._compile()
        self._wait()
        self.compile_seconds = time.perf_counter() - started
        self._compiled_for = "float32"
        for held, start in zip(self._state(), state, strict=True):
            held.copy_(start)

    def _compile(self) -> None:
        torch.compiler.reset()
        self._step = torch.compile(self._written, fullgraph=self.fullgraph, dynamic=False, backend=self._backend)
        self._steps(1)

    def run(self, precision: str = "float32") -> None:
        if self._device.type != "cuda":
            self._steps(len(self._batches))
            return
        if precision not in self._graphs:
            self._graphs[precision] = self._captured(precision)
        self._graphs[precision].replay()

    def losses(self) -> Tensor:
        """(step, member), before each step of the last block."""
        return self._losses.cpu()

    def _state(self) -> list[Tensor]:
        return [*self._weights.values(), *self._moments[0].values(), *self._moments[1].values(), self._number]

    def _steps(self, count: int) -> None:
        with plain_operations(written_out=True), mock.patch.object(positions, "rotation", self._rotation):
            for place, batch in enumerate(self._batches[:count]):
                found = self._step(self._weights, *self._moments, self._number, batch.inputs, batch.targets, batch.mask)
                self._losses[place].copy_(found)

    def _captured(self, precision: str) -> torch.cuda.CUDAGraph:
        """Compiled again for another precision, of which the compiler has a guard."""
        graph = torch.cuda.CUDAGraph()
        self._wait()
        before = [t.clone() for t in self._state()]
        with precision_of(precision):
            if precision != self._compiled_for:
                self._compile()
                self._compiled_for = precision
            stream = torch.cuda.Stream(self._device)
            stream.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(stream):
                self._steps(1)  # the libraries warm up
            torch.cuda.current_stream(self._device).wait_stream(stream)
            for held, start in zip(self._state(), before, strict=True):
                held.copy_(start)
            self._wait()
            with torch.cuda.graph(graph):
                self._steps(len(self._batches))
        return graph

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def _known_turns(pairing: Pairing, inputs: Tensor, device: torch.device) -> Callable[..., positions.Turns]:
    """Rotary positions from a table that is made once, as an expert would; left in the step, angles are computed again
    for every row."""
    if "heads" not in pairing.shape:
        return positions.rotation
    width = pairing.shape["width"] // pairing.shape["heads"]
    cosine, sine = (part.to(device) for part in positions.rotation(inputs.shape[2], width, torch.zeros(())))
    return lambda *_: (cosine, sine)


def _step(pairing: Pairing, rule: Rule, rates: Rates, device: torch.device) -> Callable[..., Tensor]:
    """Of all members at once, in place; the losses before it."""
    module, one_hot, spec = pairing.build(0).to(device), pairing.one_hot(device), pairing.task.spec
    (beta1, beta2), lr, kept = rule.betas, rates.lr, 1 - rates.lr * rates.weight_decay

    def one(weights: dict[str, Tensor], inputs: Tensor) -> Tensor:
        return functional_call(module, weights, (inputs,))

    def step(
        weights: dict[str, Tensor],
        first: dict[str, Tensor],
        second: dict[str, Tensor],
        number: Tensor,
        inputs: Tensor,
        targets: Tensor,
        mask: Tensor,
    ) -> Tensor:
        def total(weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            found = losses(spec, vmap(one)(weights, pairing.feed(inputs, one_hot)), Batch(inputs, targets, mask))
            return found.sum(), found

        gradients, (_, found) = grad_and_value(total, has_aux=True)(weights)
        number.add_(1)
        size, root = lr / (1 - beta1**number), (1 - beta2**number).sqrt()
        for name, gradient in gradients.items():
            weight, mean, square = weights[name], first[name], second[name]
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            weight.mul_(kept).sub_(size * mean / (square.sqrt() / root + rule.epsilon))
        return found

    return step
