"""Blocks whose degree is not whole: their exact rank where they are polynomials, and what training makes of them.

A *share* block gives ⌈d⌉ factors to some of its units and ⌊d⌋ to the others, so its parameters are those of degree d
and its rank is exact. Blocks of signed powers and of learnt exponents are no polynomials and are only trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.degree.descent import Descent, Examples, Member, train_members
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import seed_of
from theodolite.nets.load import load
from theodolite.nets.product_net import ProductNet
from theodolite.nets.size import count_parameters
from theodolite.theory.cap import homogeneous_cap

TARGETS = ("smooth", "rough")
_BARE = {"power": "share", "normalise": False, "bias": False, "residual": False}
_POOL, _VALIDATION, _TEST = 3_750, 250, 1_000
_RIDGES = 64


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


def measure_real_degree_rank(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: features, width, degrees, points, repeats. The exact rank of share blocks without norm, biases and
    residual path, half of the features on each side; `at_least` says that there were too few points to see all of it.
    """
    shape = {"features": config["features"], "width": config["width"], "degrees": list(config["degrees"]), **_BARE}
    found = separation_rank(
        "product-net",
        seed=seed,
        device=device,
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


def measure_real_degree_training(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: targets (of smooth, rough), features, width, degrees, power, seeds, steps, batch, rates.

    `errors` are relative root mean squares on points not trained on, by target, rate and seed; every seed has a target
    of its own, the same for all networks. `degrees` are those of the blocks after training, the mean over all members;
    `exponents`, where they are learnt, their 10 %, 50 % and 90 % quantiles.
    """
    device = resolve_device(device)
    kinds, rates, seeds = config["targets"], config["rates"], config["seeds"]
    drawn = [draw_targets(kind, config["features"], seeds, device) for kind in kinds]
    x, y = (torch.cat([one[part] for one in drawn]) for part in (0, 1))
    ends = (_POOL, _POOL + _VALIDATION)
    train, validation, test = zip(x.tensor_split(ends, 1), y.unsqueeze(-1).tensor_split(ends, 1), strict=True)
    examples = Examples(train, validation, test, "square", 1, fresh=False, constant=1.0, constant_error=1.0)
    members = [
        Member(kind * seeds + number, seed_of([seed, number]), rate)
        for kind in range(len(kinds))
        for rate in rates
        for number in range(seeds)
    ]
    build = lambda: ProductNet(
        config["features"], 1, width=config["width"], degrees=config["degrees"], power=config["power"]
    )
    weights: dict[str, Tensor] = {}
    descent = Descent(config["steps"], config["batch"], looks=1)
    reached = train_members(build, members, examples, descent, device, seed_of([seed, "batches"]), keep=weights.update)
    errors = torch.tensor([one.error for one in reached]).sqrt().view(len(kinds), len(rates), seeds)
    learnt = [F.softplus(w) for name, w in sorted(weights.items()) if name.endswith(".exponents")]
    marks = torch.tensor([0.1, 0.5, 0.9], device=device)
    built = build()
    return {
        "parameters": count_parameters(built),
        "errors": dict(zip(kinds, errors.tolist(), strict=True)),
        "degrees": [float(e.sum(dim=1).mean()) for e in learnt] or built.block_degrees(),
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
        x = (torch.rand(_POOL + _VALIDATION + _TEST, features, generator=generator) - 0.5) * math.sqrt(12)
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
