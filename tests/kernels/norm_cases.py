"""Layer norm by its kernel beside torch's in float64, members batched as training batches them."""

from __future__ import annotations

import json

import torch
from torch.func import vmap
from torch.nn.functional import layer_norm as plain

from tests.kernels.interpreted import mend_interpreter
from theodolite.kernels.norm import layer_norm

SIZES = [(2, 3, 5, 16), (1, 7, 1, 13), (3, 2, 40, 64), (2, 1, 3, 3), (1, 1, 2, 300)]  # members, rows, tokens, width


def errors(device: str) -> dict[str, float]:
    """‖difference‖ / ‖truth‖ of the result and its gradients, the worst of them."""
    draw = torch.Generator().manual_seed(0)
    found = {}
    for size in SIZES:
        members, width = size[0], size[-1]
        x = torch.randn(size, generator=draw) * 3 + 1
        weight, bias = (torch.randn(members, width, generator=draw) for _ in range(2))
        toward = torch.randn(size, generator=draw)
        outcomes = []
        for dtype in (torch.float32, torch.float64):
            held = [t.to(device, dtype, copy=True).requires_grad_() for t in (x, weight, bias)]
            if dtype == torch.float32:
                y = vmap(lambda x, w, b: layer_norm(x, w, b, 1e-5))(*held)
            else:
                y = vmap(lambda x, w, b: plain(x, w.shape, w, b, 1e-5))(*held)
            outcomes.append([y, *torch.autograd.grad(y, held, toward.to(device, dtype))])
        pairs = zip(*outcomes, strict=True)
        found[str(size)] = max(((a.double() - b).norm() / b.norm().clamp(min=1e-3)).item() for a, b in pairs)
    return found


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps(errors("cpu")))
