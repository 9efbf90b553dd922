"""Recurrent layers by their kernels beside the same layers in float64, which runs the loop over tokens."""

from __future__ import annotations

import json
import sys
from functools import partial
from unittest import mock

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from tests.kernels.interpreted import mend_interpreter
from theodolite.kernels import recurrence
from theodolite.kernels.recurrence import Tiles
from theodolite.nets.gru import GRULayer
from theodolite.nets.lstm import LSTMLayer
from theodolite.nets.parts.recurrent import Recurrent
from theodolite.nets.rnn import RNNLayer

LAYERS = {"tanh": RNNLayer, "relu": partial(RNNLayer, activation="relu"), "lstm": LSTMLayer, "gru": GRULayer}
FEATURES = 3
SMALL = [(2, 3, 4, 5), (1, 17, 1, 16), (1, 2, 2, 70)]  # members, rows, tokens, width


def errors(
    cell: str, members: int, rows: int, tokens: int, width: int, device: str, autocast: bool = False
) -> dict[str, float]:
    """‖difference‖ / ‖truth‖ of the states and of each gradient, members batched as training batches them."""
    generator = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=generator)
    layer = LAYERS[cell](FEATURES, width)
    inputs = {n: draw(members, *p.shape) / width**0.5 for n, p in layer.named_parameters()}
    inputs = {n: w.mT.contiguous().mT if w.dim() == 3 else w for n, w in inputs.items()}  # as training lays them
    inputs |= {"x": draw(members, rows, tokens, FEATURES)}
    direction = draw(members, rows, tokens, width)

    def found(kind: torch.dtype) -> dict[str, Tensor]:
        own = {n: t.to(device, kind).requires_grad_() for n, t in inputs.items()}
        with torch.autocast(device, torch.bfloat16, enabled=autocast and kind == torch.float32):
            states = batched(layer.to(device, kind), own)
            with torch.no_grad():
                assert torch.equal(batched(layer, own), states)
        grads = torch.autograd.grad((states * direction.to(device, kind)).sum(), list(own.values()))
        return {"states": states.detach(), **dict(zip(own, grads, strict=True))}

    given, truth = found(torch.float32), found(torch.float64)
    return {n: float((given[n] - truth[n]).norm() / truth[n].norm().clamp(min=1e-30)) for n in truth}


def streamed_error(cell: str, device: str) -> float:
    """The largest where one program takes all units of a member, as it does where there are many members; in the
    interpreter with tiles so small that few units cross their borders."""
    if device == "cuda":
        with mock.patch.object(recurrence, "_FEW", 0):
            return max(errors(cell, 2, 5, 3, 130, device).values())
    with mock.patch.object(recurrence, "tiles", return_value=Tiles(16, 64, 64, False, 8, 3)):
        return max(errors(cell, 2, 2, 3, 70, device).values())


def batched(layer: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    def one(inputs: dict[str, Tensor]) -> Tensor:
        weights = {n: t for n, t in inputs.items() if n != "x"}
        return functional_call(layer, weights, (inputs["x"],))

    return vmap(one)(inputs)


def example_error(cell: str, device: str) -> float:
    """Of the gradients of every example alone, in a net of two layers: the gradient inside, batched."""
    net, x = Recurrent(LAYERS[cell], FEATURES, 2, 2, 6).to(device), torch.randn(2, 3, FEATURES, device=device)

    def found(kind: torch.dtype) -> Tensor:
        own = {n: p.detach().to(kind) for n, p in net.to(kind).named_parameters()}
        loss = lambda own, row: functional_call(net, own, (row[None],)).square().sum()
        return vmap(grad(loss), in_dims=(None, 0))(own, x.to(kind))["layers.0.across.weight"]

    truth = found(torch.float64)
    return float((found(torch.float32) - truth).norm() / truth.norm())


def refusal(cell: str) -> str:
    """What a second derivative is answered."""
    x = torch.randn(2, 3, FEATURES, requires_grad=True)
    (first,) = torch.autograd.grad(LAYERS[cell](FEATURES, 4)(x).square().sum(), x, create_graph=True)
    try:
        first.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    mend_interpreter()
    worst = {(c, *size): max(errors(c, *size, device="cpu").values()) for c in LAYERS for size in SMALL}
    json.dump(
        {
            "batched": {" ".join(map(str, key)): error for key, error in worst.items()},
            "streamed": {cell: streamed_error(cell, "cpu") for cell in LAYERS},
            "examples": {cell: example_error(cell, "cpu") for cell in LAYERS},
            "twice": {cell: refusal(cell) for cell in LAYERS},
        },
        sys.stdout,
    )
