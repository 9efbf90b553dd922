"""Fused attention beside torch's own in float64: heads split from a projection, every form of bias, odd sizes."""

from __future__ import annotations

import json
import math

import torch
from torch import Tensor
from torch.func import functional_call, grad, jvp, stack_module_state, vmap
from torch.nn.functional import scaled_dot_product_attention

from theodolite.kernels import attention
from theodolite.kernels.attention import Settings, attend
from theodolite.nets import nets

from .interpreted import mend_interpreter

CPU = torch.device("cpu")
SHAPES = [(3, 2, 9, 13), (2, 2, 7, 8), (1, 4, 10, 4), (2, 1, 1, 16), (2, 2, 6, 12), (1, 1, 18, 3), (2, 1, 5, 1)]
NETS = ["transformer", "alibi-transformer", "universal-transformer"]


def biases(batch: int, heads: int, tokens: int, draw: torch.Generator) -> dict[str, Tensor | None]:
    """0 or another number where a key is seen and −∞ where it is not; every token sees itself."""
    causal = torch.ones(tokens, tokens).tril().bool()
    seen = (torch.rand(batch, 1, tokens, tokens, generator=draw) < 0.6) | torch.eye(tokens).bool()
    first = (torch.rand(batch, 1, 1, tokens, generator=draw) < 0.6) | (torch.arange(tokens) == 0)
    far = -torch.rand(heads, tokens, tokens, generator=draw)
    forms = {
        "causal": torch.zeros(tokens, tokens).masked_fill(~causal, -math.inf),
        "padding": torch.zeros(seen.shape).masked_fill(~seen, -math.inf),
        "keys": torch.zeros(first.shape).masked_fill(~first, -math.inf),
        "distance": far,
        "distance, causal": far.masked_fill(~causal, -math.inf),
    }
    return {"none": None, **forms}


def distance(found: Tensor, true: Tensor) -> float:
    return ((found.double() - true).norm() / true.norm().clamp(min=1e-12)).item()


def compare_all(device: torch.device, shapes: list[tuple[int, ...]]) -> dict[str, float]:
    """As the kernels are chosen, and those over rows where others would be."""
    found, chosen = compare(device, shapes), attention.settings
    try:
        attention.settings = lambda *_: Settings(tiles=False, warps=4)
        by_rows = compare(device, [shape for shape in shapes if shape[-1] >= 12])
    finally:
        attention.settings = chosen
    return {**found, **{f"{case}, by rows": error for case, error in by_rows.items()}}


def compare(device: torch.device, shapes: list[tuple[int, ...]]) -> dict[str, float]:
    """Relative errors of the result and of its gradient at the projection."""
    draw, found = torch.Generator().manual_seed(0), {}
    for place, (batch, heads, tokens, width) in enumerate(shapes):
        forms = list(biases(batch, heads, tokens, draw).items())
        for name, bias in forms if device.type == "cuda" else forms[place % 3 :: 3]:
            projected, toward = (
                torch.randn(batch, tokens, n * heads * width, generator=draw).to(device) for n in (3, 1)
            )
            bias = None if bias is None else bias.to(device)

            def once(mix, dtype, projected=projected, toward=toward, bias=bias, heads=heads):
                x = projected.to(dtype, copy=True).requires_grad_()
                parts = (part.transpose(1, 2) for part in x.unflatten(-1, (3 * heads, -1)).chunk(3, dim=2))
                y = mix(*parts, None if bias is None else bias.to(dtype)).transpose(1, 2).flatten(-2)
                return y, torch.autograd.grad(y, x, toward.to(dtype))[0]

            fused, true = once(attend, torch.float32), once(scaled_dot_product_attention, torch.float64)
            case = f"{batch}×{heads}×{tokens}×{width}, {name}"
            found[case] = max(distance(a, b) for a, b in zip(fused, true, strict=True))
            assert fused[0].is_contiguous()
    return found


def strange(device: torch.device, width: int) -> dict[str, float]:
    """Entries that are NaN here or in the written-out form alone, and gradients at hidden keys that are not 0."""
    draw = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(1, 2, 6, width, generator=draw).to(device) for _ in range(3))
    query[0, 0, 2], query[0, 1, 4, 1] = math.nan, math.inf
    key[:, :, :, 1] = key[:, :, :, 1].abs()
    bias = torch.zeros(6, 6, device=device)
    bias[:, 5], bias[3] = -math.inf, -math.inf
    seen = value.clone().requires_grad_()
    weights = torch.softmax(query / math.sqrt(width) @ key.mT + bias, dim=-1)
    y = attend(query, key, seen, bias)
    (slope,) = torch.autograd.grad(attend(query[:, :, :2], key, seen, bias[:2]).sum(), seen)
    return {
        f"not a number, width {width}": (y.isnan() != (weights @ value).isnan()).sum().item(),
        f"hidden keys, width {width}": torch.count_nonzero(slope[:, :, 5]).item(),
    }


def through_nets(device: torch.device, members: int, batch: int, tokens: int, width: int) -> dict[str, float]:
    """An ensemble's outputs and gradients in float32, where kernels are used, and in float64, where they are not."""
    found = {}
    for place, name in enumerate(NETS):
        for causal in (True, False) if device.type == "cuda" else (place % 2 == 0,):
            torch.manual_seed(0)
            modules = [
                nets[name].build(features=4, outputs=2, width=width, depth=1, causal=causal).eval()
                for _ in range(members)
            ]
            weights, _ = stack_module_state(modules)
            x = torch.randn(members, batch, tokens, 4).to(device)
            present = (torch.arange(tokens) < torch.randint(1, tokens + 1, (members, batch, 1))).to(device)

            def apply(weights, x, present, module=modules[0]):
                return functional_call(module, weights, (x, present))

            def loss(weights, x, present, apply=apply):
                return (apply(weights, x, present) * present.unsqueeze(-1)).square().sum()

            outcomes = []
            for dtype in (torch.float32, torch.float64):
                modules[0].to(device, dtype)
                held = {k: v.detach().to(device, dtype).requires_grad_() for k, v in weights.items()}
                total = vmap(loss)(held, x.to(dtype), present)
                outside = torch.autograd.grad(total.sum(), list(held.values()))
                inside = vmap(grad(loss))(held, x.to(dtype), present).values()
                along = jvp(lambda x: vmap(apply)(held, x, present), (x.to(dtype),), (torch.ones_like(x, dtype=dtype),))  # noqa: B023
                outcomes.append([torch.cat([t.flatten() for t in each]) for each in ([total], outside, inside, along)])
            found[f"{name}, causal {causal}"] = max(distance(a, b) for a, b in zip(*outcomes, strict=True))
    return found


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps(compare_all(CPU, SHAPES) | strange(CPU, 4) | strange(CPU, 16) | through_nets(CPU, 2, 2, 4, 8)))
