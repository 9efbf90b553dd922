"""Nets of an architecture with drawn weights, and their outputs, checked: what is measured over draws starts here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.instruments.precision import Precision, precision_of
from theodolite.instruments.through_embedding import Fed
from theodolite.measurement import seed_of
from theodolite.nets.failure import advice
from theodolite.nets.load import Blueprint, seeded
from theodolite.nets.real_outputs import real

_NOISE = 0.02  # added to every weight, so that none that starts at 0 or 1 makes the net a special one


def random_net(
    plan: Blueprint,
    seed: int,
    draw: int,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
    sizes: Mapping[str, int] | None = None,
) -> nn.Module:
    """The net number `draw`: its own initial weights, and a little noise. One that is built already stays as it is."""
    with seeded(seed_of(["weights", seed, draw])):
        known = {name: size for name, size in (sizes or {}).items() if name in plan.known}
        module = plan.build(**known).to(dtype=dtype).eval()
    if not plan.built:
        generator = torch.Generator().manual_seed(seed_of(["noise", seed, draw]))
        with torch.no_grad():
            for parameter in module.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.add_(noise.to(dtype), alpha=_NOISE)
    return module.to(device)


def trial_precision(plan: Blueprint, seed: int, device: torch.device, sites: int | None = None) -> Precision:
    """What the net can be measured in, found on a first draw of it."""
    sizes = None if sites is None else {"tokens": sites} if plan.kind == "sequence" else {"features": sites}
    module = random_net(plan, seed, 0, device, sizes=sizes)
    tokens = int(plan.shape["tokens"]) if plan.kind == "sequence" else features_of(plan, module)
    generator = torch.Generator().manual_seed(seed_of(["precision", seed]))
    return precision_of(module, draw_tokens(plan, module, 2, sites or tokens, generator, device))


def features_of(plan: Blueprint, module: nn.Module) -> int:
    """Numbers per token, or in the vector; a registered net may choose them itself, as its width."""
    own = getattr(module, "features", None) if plan.registered or isinstance(module, Fed) else None
    return int(own or plan.shape.get("features", 1))


def draw_tokens(
    plan: Blueprint,
    module: nn.Module,
    count: int,
    tokens: int,
    generator: torch.Generator,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """`count` inputs: standard normal numbers, or ids for a net that reads them. Drawn on the CPU, for any device."""
    if plan.vocab is not None:
        return torch.randint(plan.vocab, (count, tokens), generator=generator).to(device)
    shape = (count, tokens, features_of(plan, module)) if plan.kind == "sequence" else (count, tokens)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device=device, dtype=dtype)


def output_of(plan: Blueprint, module: nn.Module, x: Tensor) -> Tensor:
    """The net's output with no gradient; whatever it raises becomes a sentence."""
    with torch.no_grad():
        return checked(plan, x, call(plan, module, x))


def call(plan: Blueprint, module: nn.Module, x: Tensor) -> Any:
    try:
        return module(x)
    except TheodoliteError:
        raise
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise BadInput(
            f"'{plan.name}' failed on an input of shape {tuple(x.shape)} ({type(error).__name__}: "
            f"{_first_line(error)}): {advice(error) or 'check the shapes it expects'}"
        ) from error


def checked(plan: Blueprint, x: Tensor, output: Any) -> Tensor:
    """(batch, token, output), or (batch, output) where the net pools its tokens or reads a vector."""
    if not isinstance(output, Tensor):
        raise BadInput(f"'{plan.name}' returns a {type(output).__name__}: return one tensor")
    if output.dim() == 1 and output.shape[0] == x.shape[0]:
        output = output.unsqueeze(1)
    sequence = plan.kind == "sequence"
    fits = output.dim() == 2 or (sequence and output.dim() == 3 and output.shape[1] == x.shape[1])
    if not fits or output.shape[0] != x.shape[0]:
        wanted = "(batch, token, output) or (batch, output)" if sequence else "(batch, output)"
        raise BadInput(f"'{plan.name}' maps {tuple(x.shape)} to {tuple(output.shape)}: it must return {wanted}")
    if not bool(torch.isfinite(output).all()):
        raise BadInput(f"'{plan.name}' returned NaN or infinity on {x.shape[1]} tokens: check its initialisation")
    return real(output, plan.name)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]
