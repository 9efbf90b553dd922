"""The gradient signal the slow way: the loss of every target, differentiated by itself. The transform is held to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.claims.expressivity.signal_along_training import mean_loss
from theodolite.device import resolve_device
from theodolite.instruments.gradient.signal import builder, signal
from theodolite.instruments.gradient.subclass import read_subclass
from theodolite.instruments.gradient.walsh import cube
from theodolite.tasks.contract import make_task


def enumerated_variance(module: nn.Module, bits: int, loss: str, numbers: Sequence[int], dtype: torch.dtype) -> float:
    """Var over the parities of these numbers."""
    found = enumerated_gradients(module, bits, loss, numbers, dtype)
    return float((found - found.mean(dim=0)).square().sum(dim=1).mean())


def enumerated_gradients(
    module: nn.Module, bits: int, loss: str, numbers: Sequence[int], dtype: torch.dtype = torch.float64
) -> Tensor:
    """∇F_S of each parity, (parities, parameters), on the module's device."""
    weights = [p for p in module.parameters() if p.requires_grad]
    inputs = cube(bits, dtype, weights[0].device)
    rows = []
    for number in numbers:
        subset = [i for i in range(bits) if number >> i & 1]
        answers = inputs[:, subset].prod(dim=1)
        value = mean_loss(module(inputs).reshape(-1), answers, loss)
        gradients = torch.autograd.grad(value, weights, allow_unused=True)
        flat = [torch.zeros_like(w) if g is None else g for w, g in zip(weights, gradients, strict=True)]
        rows.append(torch.cat([g.flatten() for g in flat]))
    return torch.stack(rows)


def measure_enumerated_signal(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, bits, loss, subclass. The variance by the transform and by enumeration, in float64."""
    bits, loss, shape = config["bits"], config["loss"], config.get("shape", {})
    seed %= 2**62
    options = {"bits": bits, "loss": loss, "subclass": config["subclass"], "seed": seed, "device": device}
    found = signal(config["net"], dtype="float64", **options, **shape)
    _, build = builder(config["net"], make_task("parity", {"bits": bits, "relevant": 1}), shape)
    module = build(seed).to(device=resolve_device(device), dtype=torch.float64).eval()
    numbers = read_subclass(config["subclass"], bits).mask(torch.device("cpu")).nonzero()[:, 0].tolist()
    slow = enumerated_variance(module, bits, loss, numbers, torch.float64)
    return {"variance": found.variance, "enumerated": slow, "bound": found.bound, "members": found.members}
