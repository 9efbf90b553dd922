"""Nets with a memory by their kernels beside the same nets in float64, which run the loop over tokens."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

from tests.kernels.interpreted import mend_interpreter
from theodolite.nets import nets

FEATURES = 3
# net, its arguments, and of what is computed: members, rows, tokens
SMALL: list[tuple[str, dict[str, Any], tuple[int, int, int]]] = [
    ("stack-rnn", {"width": 5, "cell": 3}, (2, 3, 1)),
    ("stack-rnn", {"width": 16, "cell": 8, "activation": "tanh"}, (1, 17, 2)),
    ("stack-rnn", {"width": 24, "cell": 2, "stack": 2, "activation": "tanh"}, (2, 2, 5)),
    ("stack-rnn", {"width": 40, "cell": 15}, (1, 3, 6)),
    ("tape-rnn", {"width": 5, "cell": 3}, (2, 3, 1)),
    ("tape-rnn", {"width": 16, "cell": 8, "activation": "tanh"}, (1, 17, 2)),
    ("tape-rnn", {"width": 40, "cell": 3, "write_layers": 2}, (2, 3, 3)),
    ("tape-rnn", {"width": 8, "cell": 2, "write_layers": 1, "jump": 2, "tape": 9, "activation": "tanh"}, (1, 2, 6)),
    ("tape-rnn", {"width": 8, "cell": 12, "write_layers": 3}, (1, 2, 4)),
]


def errors(
    name: str, arguments: dict[str, Any], size: tuple[int, int, int], device: str, autocast: bool = False
) -> dict[str, float]:
    """‖difference‖ / ‖truth‖ of the outputs and of each gradient, members batched as training batches them."""
    members, rows, tokens = size
    torch.manual_seed(1)
    modules = [nets[name].build(features=FEATURES, outputs=2, **arguments) for _ in range(members)]
    weights = {n: w.detach() for n, w in stack_module_state(modules)[0].items()}
    x, direction = torch.randn(members, rows, tokens, FEATURES), torch.randn(members, rows, tokens, 2)
    present = torch.arange(tokens) < torch.randint(1, tokens + 1, (members, rows, 1))

    def found(kind: torch.dtype) -> dict[str, Tensor]:
        net = modules[0].to(device, kind)
        own = {n: w.to(device, kind).requires_grad_() for n, w in weights.items()}
        apply = vmap(lambda own, x, present: functional_call(net, own, (x, present)))
        given = x.to(device, kind), present.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=autocast and kind == torch.float32):
            outputs = apply(own, *given)
            with torch.no_grad():
                assert torch.equal(apply(own, *given), outputs)
        toward = direction.to(device, kind)
        slopes = torch.autograd.grad((outputs * toward).sum(), list(own.values()), materialize_grads=True)
        return {"outputs": outputs.detach(), **dict(zip(own, slopes, strict=True))}

    fused, truth = found(torch.float32), found(torch.float64)
    return {n: float((fused[n] - truth[n]).norm() / truth[n].norm().clamp(min=1e-30)) for n in truth}


def example_error(name: str, device: str) -> float:
    """Of the gradients of every example alone: the gradient inside, batched."""
    torch.manual_seed(2)
    net, x = nets[name].build(features=FEATURES, outputs=1, width=6).to(device), torch.randn(2, 3, FEATURES)

    def found(kind: torch.dtype) -> Tensor:
        own = {n: p.detach() for n, p in net.to(kind).named_parameters()}
        loss = lambda own, row: functional_call(net, own, (row[None],)).square().sum()
        return vmap(grad(loss), in_dims=(None, 0))(own, x.to(device, kind))["layers.0.control.across.weight"]

    truth = found(torch.float64)
    return float((found(torch.float32) - truth).norm() / truth.norm())


def refusal(name: str) -> str:
    """What a second derivative is answered."""
    x = torch.randn(2, 3, FEATURES, requires_grad=True)
    net = nets[name].build(features=FEATURES, outputs=1, width=4)
    (first,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    try:
        first.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    mend_interpreter()
    names = sorted({name for name, _, _ in SMALL})
    json.dump(
        {
            "batched": [max(errors(*case, device="cpu").values()) for case in SMALL],
            "examples": {name: example_error(name, "cpu") for name in names},
            "twice": {name: refusal(name) for name in names},
        },
        sys.stdout,
    )
