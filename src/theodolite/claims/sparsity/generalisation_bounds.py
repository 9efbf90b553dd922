"""Networks of a tree's graph, with weights of their own (graph) or shared along a level (convolution), and dense ones:
trained on one task, and what norm-based bounds say of their test errors at the same training error.

All seeds are trained side by side. No network has biases (the bounds know none): each input token carries a 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.theory.generalisation import (
    dense_complexity,
    margin_bound,
    path_complexity,
    sparse_complexity,
    spectral_complexity,
)
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine

KINDS = ("graph", "convolution", "dense")
_FEATURES = 2  # the token and a 1
_SHORT = 0.1  # share of the samples that fall short of the margin, the same for every network: the training error


@dataclass(frozen=True)
class Layered:
    """ReLU networks, one a seed: layer l has weights (seed, node, inputs of a node, outputs of a node); a single node
    of a `shared` layer stands for all. `fan_ins` says how many nodes below a node reads."""

    weights: Sequence[Tensor]
    fan_ins: Sequence[int]
    tokens: int

    def __call__(self, x: Float[Tensor, "seed batch token feature"]) -> Float[Tensor, "seed batch"]:
        last = len(self.weights) - 1
        for number, (weight, fan_in) in enumerate(zip(self.weights, self.fan_ins, strict=True)):
            x = x.unflatten(2, (-1, fan_in)).flatten(-2)  # (seed, batch, node, inputs of a node)
            if weight.shape[1] == 1:  # one matrix for all nodes
                x = (x.flatten(1, 2) @ weight[:, 0]).unflatten(1, x.shape[1:3])
            else:
                x = (x.transpose(1, 2) @ weight).transpose(1, 2)
            x = x if number == last else x.relu()
        return x.flatten(2).squeeze(-1)

    def nodes(self) -> list[int]:
        """Of every layer, as they stand in the network."""
        counts, below = [], self.tokens
        for fan_in in self.fan_ins:
            below //= fan_in
            counts.append(below)
        return counts

    def matrices(self, seed: int) -> list[Float[Tensor, "outputs inputs"]]:
        """The layers as if the network were dense: block-diagonal, a shared block as often as it stands."""
        found = []
        for weight, count in zip(self.weights, self.nodes(), strict=True):
            own = weight[seed].expand(count, -1, -1)
            found.append(torch.block_diag(*own.transpose(1, 2)))
        return found


def layered(kind: str, tokens: int, width: int, seeds: int, generator: torch.Generator) -> Layered:
    """A binary tree over the tokens with a readout, or a dense network of the same depth; He's start."""
    depth = int(math.log2(tokens))
    if kind not in KINDS or 2**depth != tokens:
        raise BadInput(f"a '{kind}' network of {tokens} tokens is unknown: use {', '.join(KINDS)} and 4, 8, 16, …")
    fan_ins = [tokens] + [1] * depth if kind == "dense" else [2] * depth + [1]
    weights, below = [], _FEATURES
    count = tokens
    for number, fan_in in enumerate(fan_ins):
        count //= fan_in
        outputs = width if number < depth else 1
        own = 1 if kind == "convolution" else count
        start = torch.randn(seeds, own, fan_in * below, outputs, generator=generator, device=generator.device)
        weights.append(start * math.sqrt(2 / (fan_in * below)))
        below = outputs
    return Layered(weights, fan_ins, tokens)


def target(x: Float[Tensor, "seed batch token"], constituents: Float[Tensor, "seed level 4"]) -> Tensor:
    """A binary tree of h(u, v) = tanh(a·u + b·v + c·u·v + d), one h a level: local, and the same everywhere in a "
    "level."""
    level = 0
    while x.shape[-1] > 1:
        a, b, c, d = constituents[:, level, :, None, None].unbind(1)
        u, v = x[..., ::2], x[..., 1::2]
        x = torch.tanh(a * u + b * v + c * u * v + d)
        level += 1
    return x.squeeze(-1)


def measure_generalisation_bounds(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: kind, tokens, width, samples, seeds, steps, batch, rate, decays. The same data for every kind; for every
    seed and weight decay training error, margin, test error and the bounds, at 99 %."""
    device = resolve_device(device)
    seeds, samples, tokens = config["seeds"], config["samples"], config["tokens"]
    data = torch.Generator(device).manual_seed(config.get("data", 0))
    constituents = torch.randn(seeds, int(math.log2(tokens)), 4, generator=data, device=device)
    constituents = constituents * torch.tensor([1.0, 1.0, 1.5, 0.0], device=device)
    x = torch.randn(seeds, samples + 4000, tokens, generator=data, device=device)
    value = target(x, constituents)
    y = torch.where(value > value.median(dim=1, keepdim=True).values, 1.0, -1.0)
    x = torch.stack((x, torch.ones_like(x)), dim=-1)
    seen, test = (x[:, :samples], y[:, :samples]), (x[:, samples:], y[:, samples:])
    found: list[dict[str, Any]] = []
    parameters = 0
    for decay in config["decays"]:
        generator = torch.Generator(device).manual_seed(seed)
        net = layered(config["kind"], tokens, config["width"], seeds, generator)
        net = _trained(net, *seen, config["steps"], config["batch"], Rates(config["rate"], decay), generator)
        with torch.no_grad():
            margins = seen[1] * net(seen[0])
            wrong = (test[1] * net(test[0]) <= 0).double().mean(dim=1)
        parameters = sum(w[0].numel() for w in net.weights)
        for member in range(seeds):
            found.append({
                "seed": member, "decay": decay, "train_error": float((margins[member] <= 0).double().mean()),
                "margin": float(margins[member].quantile(_SHORT)),
                "test_error": float(wrong[member]), **_bounds(net, member, seen[0][member], margins[member]),
            })  # fmt: skip
    return {"members": found, "parameters": parameters}


def _trained(
    net: Layered, x: Tensor, y: Tensor, steps: int, batch: int, rates: Rates, generator: torch.Generator
) -> Layered:
    """Logistic loss, Adam, decoupled decay; the rate falls to 0. Every batch is new, the same samples for all seeds."""
    shaped = lambda weights: replace(net, weights=tuple(weights.values()))

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        (chosen,) = batch
        return torch.nn.functional.softplus(-y[:, chosen] * shaped(weights)(x[:, chosen])).mean(dim=1)

    def draw(count: int) -> tuple[Tensor]:
        return (torch.randint(x.shape[1], (count, batch), generator=generator, device=x.device),)

    weights = {str(number): weight for number, weight in enumerate(net.weights)}
    return shaped(train(weights, loss, draw, steps=steps, rule=ADAM, rates=rates, schedule=cosine(steps)))


def _bounds(net: Layered, member: int, x: Float[Tensor, "batch token feature"], margins: Tensor) -> dict[str, Any]:
    """What every bound says of the test error at the margin γ that nine samples in ten have; None where there is "
    "none."""
    margin = float(margins.quantile(_SHORT))
    if margin <= 0:
        return {"bounds": None}
    samples = len(x)
    whole = float(x.square().sum())
    matrices = [m.detach().double() for m in net.matrices(member)]
    norms = [float(m.norm()) for m in matrices]
    own = [float(w[member].detach().double().norm(dim=(1, 2)).max()) for w in net.weights]
    seen = x.square().sum(dim=(0, 2))  # Σ‖x_i‖² of every token
    worst = float(seen.max()) if net.fan_ins[0] < net.tokens else whole
    first = 1 if net.fan_ins[0] == net.tokens else net.fan_ins[0]  # a dense network's one input node is the sample
    path = torch.ones(1, dtype=torch.float64, device=x.device)
    for matrix in reversed(matrices):
        path = path @ matrix.abs()
    spectral = [float(torch.linalg.matrix_norm(m, 2)) for m in matrices]
    sums = [float(m.norm(dim=1).sum()) for m in matrices]  # ‖Wᵀ‖_(2,1): over the rows of W
    widest = max(max(m.shape) for m in matrices)
    found = {
        "graph": sparse_complexity(own, [first, *net.fan_ins[1:]], worst, samples),
        "dense": dense_complexity(norms, whole, samples),
        "spectral": spectral_complexity(spectral, sums, whole, samples, widest),
        "path": path_complexity(float(path.sum()), len(matrices), float(x.abs().max()), x[0].numel(), samples),
    }
    return {"bounds": {name: _SHORT + margin_bound(r, margin, samples) for name, r in found.items()}}
