"""Blocks whose degree is not whole: their exact rank where they are polynomials, and what training makes of them.

A *share* block gives ⌈d⌉ factors to some of its units and ⌊d⌋ to the others, so its parameters are those of degree d
and its rank is exact. Blocks of signed powers and of learnt exponents are no polynomials and are only trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from theodolite.errors import BadInput
from theodolite.instruments.device import resolve_device
from theodolite.instruments.measures import measures
from theodolite.instruments.separation import separation_rank
from theodolite.measurement import seed_of
from theodolite.nets.load import load, seeded
from theodolite.nets.product_net import ProductNet
from theodolite.nets.size import count_parameters
from theodolite.theory.cap import homogeneous_cap

TARGETS = ("smooth", "rough")
_BARE = {"power": "share", "normalise": False, "bias": False, "residual": False}
_POOL, _TEST = 4_000, 1_000
_RIDGES = 64
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


def spread_degree(total: int, depth: int, width: int) -> list[float]:
    """`depth` share blocks whose degrees sum to `total`, as equal as whole units of `width` allow, larger ones first:
    whatever the depth, as many parameters as any list of whole degrees with this sum."""
    if not 1 <= depth <= total:
        raise BadInput(f"{depth} blocks of degree 1 or more cannot sum to {total}: use 1 to {total} blocks")
    each, left = divmod(total * width, depth)
    return [(each + (number < left)) / width for number in range(depth)]


def whole_degrees(total: int, least: int = 2) -> Iterator[tuple[int, ...]]:
    """Every list of whole degrees, each `least` or more, that sums to `total`; the order counts."""
    if total == 0:
        yield ()
    for first in range(least, total + 1):
        yield from ((first, *rest) for rest in whole_degrees(total - first, least))


@measures.register("real-degree-rank")
def real_degree_rank(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    """config: features, width, degrees, points, repeats. The exact rank of share blocks without norm, biases and
    residual path, half of the features on each side; `at_least` says that there were too few points to see all of it.
    """
    shape = {"features": config["features"], "width": config["width"], "degrees": list(config["degrees"]), **_BARE}
    found = separation_rank(
        "product-net",
        seed=seed,
        device=device,
        progress=progress,
        max_points=config["points"],
        repeats=config["repeats"],
        **shape,
    )
    sides = [min(side, config["width"]) for side in (config["features"] // 2, (config["features"] + 1) // 2)]
    return {
        "rank": found.rank,
        "ranks": list(found.ranks),
        "degree": found.degree,
        "at_least": found.rank >= config["points"],
        "cap": homogeneous_cap(math.prod(math.ceil(each) for each in config["degrees"]), *sides),
        "parameters": count_parameters(load("product-net", **shape).module),
    }


@measures.register("real-degree-training")
def real_degree_training(config: Mapping[str, Any], seed: int, device: str, progress: Any = None) -> dict[str, Any]:
    """config: targets (of smooth, rough), features, width, degrees, power, seeds, steps, batch, rates.

    `errors` are relative root mean squares on points not trained on, by target, rate and seed; every seed has a target
    of its own, the same for all networks. `degrees` are those of the blocks after training, the mean over all members;
    `exponents`, where they are learnt, their 10 %, 50 % and 90 % quantiles.
    """
    where = resolve_device(device)
    kinds, rates, seeds = config["targets"], config["rates"], config["seeds"]
    drawn = [draw_targets(kind, config["features"], seeds, where) for kind in kinds]
    x, y = (torch.cat([part for one in drawn for part in [one[i]] * len(rates)]) for i in (0, 1))
    each = torch.tensor(rates, device=where).repeat_interleave(seeds).repeat(len(kinds))
    build = lambda: ProductNet(
        config["features"], 1, width=config["width"], degrees=config["degrees"], power=config["power"]
    )
    with_seed = [seed_of([seed, number]) for number in range(seeds)] * (len(rates) * len(kinds))
    members = _members(build, with_seed, where)
    generator = torch.Generator(where).manual_seed(seed_of([seed, "batches"]))
    weights, errors = _trained(members, x, y, each, config["steps"], config["batch"], generator, progress)
    learnt = [F.softplus(w) for name, w in sorted(weights.items()) if name.endswith(".exponents")]
    marks = torch.tensor([0.1, 0.5, 0.9], device=where)
    return {
        "parameters": count_parameters(members[0]),
        "errors": dict(zip(kinds, errors.view(len(kinds), len(rates), seeds).tolist(), strict=True)),
        "degrees": [float(e.sum(dim=1).mean()) for e in learnt] or members[0].block_degrees(),
        "exponents": torch.cat([e.flatten() for e in learnt]).quantile(marks).tolist() if learnt else None,
    }


def draw_targets(kind: str, features: int, seeds: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs (seed, row, feature) and values (seed, row), of mean 0 and variance 1: sums of 64 waves cos(⟨w, x⟩ + b),
    smooth, or of as many kinks |⟨w, x⟩ + b|, rough."""
    if kind not in TARGETS:
        raise BadInput(f"there is no target '{kind}': use {' or '.join(TARGETS)}")
    inputs, values = [], []
    for number in range(seeds):
        generator = torch.Generator().manual_seed(seed_of(["real-degree", kind, features, number]))
        normal = lambda *shape, g=generator: torch.randn(*shape, generator=g)
        x = (torch.rand(_POOL + _TEST, features, generator=generator) - 0.5) * math.sqrt(12)
        # One variable carries faster waves than many do together: both kinds stay learnable, neither is trivial.
        slopes = normal(features, _RIDGES) * (2.0 if features == 1 else 1.5 / math.sqrt(features))
        if kind == "smooth":
            ridges = torch.cos(x @ slopes + 2 * math.pi * torch.rand(_RIDGES, generator=generator))
        else:
            ridges = (x @ slopes + 2 * normal(_RIDGES)).abs()
        y = ridges @ normal(_RIDGES)
        inputs.append(x)
        values.append((y - y.mean()) / y.std())
    return torch.stack(inputs).to(device), torch.stack(values).to(device)


def _trained(
    members: Sequence[ProductNet],
    x: Tensor,
    y: Tensor,
    rates: Tensor,
    steps: int,
    batch: int,
    generator: torch.Generator,
    progress: Any,
) -> tuple[dict[str, Tensor], Tensor]:
    """All members as one program, by Adam, each with its rate, which falls along half a cosine; weights and errors."""
    weights, buffers = stack_module_state(members)  # pyright: ignore[reportArgumentType]
    weights = {name: value.detach().clone() for name, value in weights.items()}
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}

    def run(own: dict[str, Tensor], held: dict[str, Tensor], points: Tensor) -> Tensor:
        return functional_call(members[0], (own, held), (points,))[:, 0]

    for step in range(steps):
        chosen = torch.randint(_POOL, (batch,), generator=generator, device=x.device)
        leaves = {name: w.requires_grad_() for name, w in weights.items()}
        loss = (vmap(run)(leaves, buffers, x[:, chosen]) - y[:, chosen]).square().mean(dim=1).sum()
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        scale = 0.5 * (1 + math.cos(math.pi * step / steps)) / (1 - _BETAS[0] ** (step + 1))
        root = 1 / math.sqrt(1 - _BETAS[1] ** (step + 1))
        with torch.no_grad():
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
                first, second = moments[name]
                first.lerp_(gradient, 1 - _BETAS[0])
                second.lerp_(gradient.square(), 1 - _BETAS[1])
                own = (rates * scale).view(-1, *[1] * (weight.dim() - 1))
                weight.sub_(own * first / (second.sqrt() * root + _EPSILON))
        if progress is not None:
            progress("training", 1 / steps)
    with torch.no_grad():
        off = vmap(run)(weights, buffers, x[:, _POOL:]) - y[:, _POOL:]
    return {name: w.detach() for name, w in weights.items()}, off.square().mean(dim=1).sqrt()


def _members(build: Callable[[], ProductNet], seeds: Sequence[int], device: torch.device) -> list[ProductNet]:
    members = []
    for each in seeds:
        with seeded(each):
            members.append(build().to(device))
    return members
