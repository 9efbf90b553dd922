"""The fused scan beside the same in chunks of matrices, in float64: odd sizes, several steps, with and without
decay, and through the nets that use it."""

from __future__ import annotations

import json

import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap

from theodolite.kernels.scan import recur
from theodolite.nets import nets
from theodolite.nets.parts.scan import decaying_sum, delta_rule, diagonal_system

from .interpreted import mend_interpreter

CPU = torch.device("cpu")
# batch, heads, tokens, key, value, steps per token, with a rate, with a decay
SHAPES = [
    (2, 2, 5, 4, 4, 1, True, False),
    (2, 2, 7, 8, 8, 1, True, True),
    (1, 3, 6, 5, 7, 2, True, True),
    (2, 2, 6, 16, 4, 1, False, True),
    (1, 1, 1, 3, 2, 1, True, True),
    (1, 2, 4, 13, 6, 3, True, False),
]
DIAGONAL = [(2, 5, 3, 4), (9, 7, 5, 3), (1, 36, 2, 8), (3, 1, 2, 1)]  # batch, tokens, channels, states
NETS = [
    ("delta-net", {"heads": 2}),
    ("delta-net", {"heads": 2, "gated": False, "negative": False}),
    ("delta-net", {"heads": 2, "products": 2}),
    ("state-space", {"heads": 2, "state": 4}),
    ("state-space", {"selective": False, "state": 3}),
]


def distance(found: Tensor, true: Tensor) -> float:
    return ((found.double() - true).norm() / true.norm().clamp(min=1e-6)).item()


def compare(device: torch.device, shapes: list[tuple[int, ...]]) -> dict[str, float]:
    """Relative errors of the result and of its gradient at all that enters, which lies as nets split it."""
    torch.manual_seed(0)
    found = {}
    for batch, heads, tokens, key, value, steps, delta, decays in shapes:
        many = tokens * steps
        entering = [torch.randn(batch, n, heads, w) for n, w in ((tokens, key), (many, key), (many, value))]
        entering[:2] = [torch.nn.functional.normalize(each, dim=-1) for each in entering[:2]]
        entering += [2 * torch.rand(batch, many, heads)] if delta else []
        entering += [-torch.rand(batch, tokens, heads) * torch.logspace(-3, 1, heads)] if decays else []
        entering = [each.transpose(1, 2).to(device) for each in entering]
        toward = torch.randn(batch, tokens, heads, value).transpose(1, 2).to(device)
        outcomes = []
        for dtype in (torch.float32, torch.float64):
            held = [each.to(dtype, copy=True).requires_grad_() for each in entering]
            if dtype == torch.float32:
                rest = held[3:] if delta else [None, *held[3:]]
                y = recur(*held[:3], *rest, *[None] * (2 - len(rest)))
            else:
                y = delta_rule(*held) if delta else decaying_sum(*held)
            outcomes.append([y, *torch.autograd.grad(y, held, toward.to(dtype))])
        case = f"{batch}×{heads}×{tokens}×{key}×{value}, {steps} steps, rate {delta}, decay {decays}"
        found[case] = max(distance(a, b) for a, b in zip(*outcomes, strict=True))
    return found


def compare_diagonal(device: torch.device, shapes: list[tuple[int, ...]]) -> dict[str, float]:
    """The same for diagonal systems; float64 goes by chunks."""
    torch.manual_seed(0)
    found = {}
    for batch, tokens, channels, states in shapes:
        modes = [torch.randn(channels, states) for _ in range(4)]
        modes[0] = -0.3 * modes[0].abs()
        entering = [each.to(device) for each in (torch.randn(batch, channels, tokens).transpose(1, 2), *modes)]
        toward = torch.randn(batch, tokens, channels).to(device)
        outcomes = []
        for dtype in (torch.float32, torch.float64):
            held = [each.to(dtype, copy=True).requires_grad_() for each in entering]
            y = diagonal_system(*held)
            outcomes.append([y, *torch.autograd.grad(y, held, toward.to(dtype))])
        case = f"{batch}×{tokens}×{channels}×{states}, diagonal"
        found[case] = max(distance(a, b) for a, b in zip(*outcomes, strict=True))
    return found


def through_nets(device: torch.device, members: int, batch: int, tokens: int, width: int) -> dict[str, float]:
    """An ensemble's outputs and gradients in float32, where kernels are used, and in float64, where they are not."""
    found = {}
    for name, shape in NETS:
        torch.manual_seed(0)
        modules = [nets[name].build(features=4, outputs=2, width=width, depth=1, **shape) for _ in range(members)]
        weights, _ = stack_module_state(modules)
        x = torch.randn(members, batch, tokens, 4).to(device)

        def loss(weights, x, module=modules[0]):
            return functional_call(module, weights, (x,)).square().sum()

        outcomes = []
        for dtype in (torch.float32, torch.float64):
            modules[0].to(device, dtype)
            held = {k: v.detach().to(device, dtype).requires_grad_() for k, v in weights.items()}
            total = vmap(loss)(held, x.to(dtype))
            outside = torch.autograd.grad(total.sum(), list(held.values()))
            inside = vmap(grad(loss))(held, x.to(dtype)).values()
            with torch.no_grad():
                alone = vmap(loss)(held, x.to(dtype))
            parts = ([total], outside, inside, [alone])
            outcomes.append([torch.cat([each.flatten() for each in part]) for part in parts])
        found[f"{name}, {shape}"] = max(distance(a, b) for a, b in zip(*outcomes, strict=True))
    return found


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps(compare(CPU, SHAPES) | compare_diagonal(CPU, DIAGONAL) | through_nets(CPU, 2, 2, 3, 8)))
