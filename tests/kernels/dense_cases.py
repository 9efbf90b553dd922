"""Linear layers and perceptrons by their kernels beside torch's in float64, batched as training batches them."""

from __future__ import annotations

import json
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, jvp, vmap

from tests.kernels.interpreted import mend_interpreter
from theodolite.kernels import dense

SIZES = [(2, 3, 5, 8), (1, 1, 7, 13), (3, 2, 20, 33), (1, 9, 70, 16)]  # members, rows, tokens, width
OUTPUTS = 5


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return dense.linear(x, weight, bias) if x.dtype == torch.float32 else F.linear(x, weight, bias)


def perceptron(x: Tensor, *layers: Tensor) -> Tensor:
    if x.dtype == torch.float32:
        return dense.perceptron(x, *layers)
    wide, wide_bias, narrow, narrow_bias = layers
    return F.linear(F.gelu(F.linear(x, wide, wide_bias)), narrow, narrow_bias)


def errors(device: str) -> dict[str, float]:
    """‖difference‖ / ‖truth‖ of results, gradients and forward derivatives, the worst of each case; weights lie in
    memory as training lays them, and as torch does."""
    draw, found = torch.Generator().manual_seed(0), {}
    cases: dict[str, tuple[Callable[..., Tensor], Callable[[int], list[tuple[int, ...]]]]] = {
        "linear": (linear, lambda width: [(OUTPUTS, width), (OUTPUTS,)]),
        "perceptron": (perceptron, lambda width: [(4 * width, width), (4 * width,), (OUTPUTS, 4 * width), (OUTPUTS,)]),
    }
    for name, (layer, shapes) in cases.items():
        for number, size in enumerate(SIZES):
            x = torch.randn(size, generator=draw)
            weights = [torch.randn(size[0], *shape, generator=draw) / size[-1] ** 0.5 for shape in shapes(size[-1])]
            if number % 2:
                weights = [w.mT.contiguous().mT if w.dim() == 3 else w for w in weights]
            outcomes = [measured(layer, x, weights, device, kind) for kind in (torch.float32, torch.float64)]
            found[f"{name} {size}"] = worst(*outcomes)
    return found


def measured(
    layer: Callable[..., Tensor], x: Tensor, weights: list[Tensor], device: str, kind: torch.dtype
) -> list[Tensor]:
    """The result, its gradient by everything, and the derivative along ones; then every example's own gradient."""
    held = [t.to(device, kind, copy=True).requires_grad_() for t in (x, *weights)]
    y = vmap(layer)(*held)
    grads = torch.autograd.grad(y.square().sum(), held)
    own = [t.detach() for t in held]
    along = jvp(vmap(layer), tuple(own), tuple(torch.ones_like(t) for t in own))[1]
    first = [t[0] for t in own]
    alone = vmap(grad(lambda w, row: layer(row, w, *first[2:]).square().sum()), in_dims=(None, 0))(first[1], first[0])
    return [y.detach(), *grads, along, alone]


def worst(given: list[Tensor], truth: list[Tensor]) -> float:
    pairs = zip(given, truth, strict=True)
    return max(((a.double() - b).norm() / b.norm().clamp(min=1e-6)).item() for a, b in pairs)


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps(errors("cpu")))
