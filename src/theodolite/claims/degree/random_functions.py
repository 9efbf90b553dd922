"""Random functions of two groups of variables, from smooth to white, and how their ε-rank goes with nonlinearity.

Inputs are uniform over [0, 1], and all functions are about centred, so that no constant hides what they do. Two numbers
say how nonlinear one is: the share of its variance that no affine function explains, and how often it turns along a
straight line through the cube.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.rank.epsilon import first_within, spectrum_of
from theodolite.measurement import seed_of
from theodolite.registry import Registry

_HIGHEST = {1: 256, 2: 12, 3: 4, 4: 2}  # frequency of a field along each variable, by the variables of a side
_AT_ONCE = 4096  # points that stay near a processor's cache
_LINES, _STATIONS = 8, 1500  # straight lines along which turns are counted, and points of each


@dataclass(frozen=True)
class RandomFunction:
    """`at` takes (points, 2·variables); `matrix`, where it is quicker, the points of both sides."""

    variables: int
    at: Callable[[Tensor], Tensor]
    quick: Callable[[Tensor, Tensor], Tensor] | None = None
    singular_values: Tensor | None = None  # of the operator, where they are known

    def matrix(self, a: Tensor, b: Tensor) -> Tensor:
        if self.quick is not None:
            return self.quick(a, b)
        rows, columns = len(a), len(b)
        pairs = torch.cat([a[:, None].expand(-1, columns, -1), b.expand(rows, -1, -1)], -1)
        parts = pairs.flatten(0, 1).split(_AT_ONCE)
        return torch.cat([self.at(part) for part in parts]).view(rows, columns)


Family = Callable[..., RandomFunction]  # (generator, variables, **options)
families: Registry[Family] = Registry("family of functions")


@families.register("field")
def field(
    generator: torch.Generator, variables: int = 1, smoothness: float = math.inf, scale: float = 0.3
) -> RandomFunction:
    """A periodic Gaussian field: Σ C_kl·φ_k(a)·φ_l(b) over waves, of variance (1 + |f|²)^−(ν + variables) at frequency
    f/(2π·scale), as Matérn's kernel of smoothness ν has (∞: e^−|f|²/2, the Gaussian's).

    The waves are orthonormal, so that the singular values of y are exactly those of C.
    """
    if smoothness <= 0 or scale <= 0 or variables not in _HIGHEST:
        raise BadInput(
            f"a field of smoothness {smoothness}, scale {scale} and {variables} variables a side: use positive numbers "
            f"and {', '.join(map(str, _HIGHEST))} variables"
        )
    highest = _HIGHEST[variables]
    axis = torch.arange(-highest, highest + 1, dtype=torch.float64)
    waves = torch.cartesian_prod(*[axis] * variables).reshape(-1, variables)
    square = (2 * math.pi * scale * waves).square().sum(1)
    square = square[:, None] + square
    spread = torch.exp(-square / 4) if math.isinf(smoothness) else (1 + square) ** (-(smoothness + variables) / 2)
    weights = spread * torch.randn(spread.shape, generator=generator, dtype=torch.float64)
    weights[len(waves) // 2, len(waves) // 2] = 0  # the constant
    weights = weights / weights.norm()

    def basis(x: Tensor) -> Tensor:
        """√2·cos for positive frequencies, √2·sin for negative ones, 1 for none; products over the variables."""
        angle = 2 * math.pi * x[:, :, None] * axis.to(x.device)
        one = torch.where(axis.to(x.device) > 0, angle.cos(), angle.sin()) * math.sqrt(2)
        one[:, :, highest] = 1
        whole = one[:, 0]
        for number in range(1, variables):
            whole = (whole[:, :, None] * one[:, number, None]).flatten(1)
        return whole

    def quick(a: Tensor, b: Tensor) -> Tensor:
        return basis(a) @ weights.to(a.device) @ basis(b).T

    def at(x: Tensor) -> Tensor:
        return ((basis(x[:, :variables]) @ weights.to(x.device)) * basis(x[:, variables:])).sum(-1)

    return RandomFunction(variables, at, quick, torch.linalg.svdvals(weights))


@families.register("fourier")
def fourier(generator: torch.Generator, variables: int = 1, scale: float = 0.1, waves: int = 512) -> RandomFunction:
    """Σ √(2/waves)·cos(⟨ω, x⟩ + φ) with normal ω of deviation 1/scale and uniform φ: nearly a Gaussian process whose
    kernel is e^(−|x − x′|²/(2·scale²)). Each wave has rank 2."""
    if scale <= 0 or waves < 1:
        raise BadInput(f"{waves} waves of scale {scale}: use at least one and a positive scale")
    frequency = torch.randn(2 * variables, waves, generator=generator, dtype=torch.float64) / scale
    phase = 2 * math.pi * torch.rand(waves, generator=generator, dtype=torch.float64)
    height = math.sqrt(2 / waves)

    def at(x: Tensor) -> Tensor:
        return height * torch.cos(x @ frequency.to(x.device) + phase.to(x.device)).sum(-1)

    def quick(a: Tensor, b: Tensor) -> Tensor:
        left = a @ frequency[:variables].to(a.device)
        right = b @ frequency[variables:].to(b.device) + phase.to(b.device)
        return height * (left.cos() @ right.cos().T - left.sin() @ right.sin().T)

    return RandomFunction(variables, at, quick)


@families.register("mlp")
def mlp(
    generator: torch.Generator,
    variables: int = 1,
    activation: str = "tanh",
    depth: int = 3,
    gain: float = 1.0,
    width: int = 64,
) -> RandomFunction:
    """A random network on inputs from −1 to 1: weights of variance gain²/fan-in, biases of a tenth of gain²; its
    mean is taken off."""
    if activation not in ("tanh", "relu"):
        raise BadInput(f"the activation '{activation}' is unknown: use tanh or relu")
    bend = torch.tanh if activation == "tanh" else torch.relu
    sizes = [2 * variables] + [width] * depth + [1]
    layers = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = gain * torch.randn(fan_in, fan_out, generator=generator, dtype=torch.float64) / math.sqrt(fan_in)
        layers.append((weight, gain * math.sqrt(0.1) * torch.randn(fan_out, generator=generator, dtype=torch.float64)))

    def network(x: Tensor) -> Tensor:
        x = 2 * x - 1
        for number, (weight, bias) in enumerate(layers):
            x = x @ weight.to(x.device) + bias.to(x.device)
            x = bend(x) if number < depth else x
        return x[:, 0]

    mean = float(network(torch.rand(4096, 2 * variables, generator=generator, dtype=torch.float64)).mean())
    return RandomFunction(variables, lambda x: network(x) - mean)


@families.register("tent-of-sum")
def tent_of_sum(_: torch.Generator, variables: int = 1, depth: int = 10) -> RandomFunction:
    """The tent map, `depth` times, of the whole sum of the inputs modulo 1: 2^depth pieces along every unit of it."""
    return RandomFunction(variables, lambda x: _tent(x.sum(-1) % 1, depth) - 0.5)


@families.register("tent-product")
def tent_product(_: torch.Generator, variables: int = 1, depth: int = 10) -> RandomFunction:
    """g(a)·g(b), g the tent map `depth` times: one product, as wild as one likes."""

    def at(x: Tensor) -> Tensor:
        a, b = x[:, :variables].sum(-1) % 1, x[:, variables:].sum(-1) % 1
        return (_tent(a, depth) - 0.5) * (_tent(b, depth) - 0.5)

    return RandomFunction(variables, at)


@families.register("wave")
def wave(_: torch.Generator, variables: int = 1, frequency: float = 1000.0) -> RandomFunction:
    """cos(ω·(sum of all inputs)): two products at any frequency."""
    return RandomFunction(variables, lambda x: torch.cos(frequency * x.sum(-1)))


@families.register("coupled-maps")
def coupled_maps(_: torch.Generator, variables: int = 1, depth: int = 12) -> RandomFunction:
    """Two logistic maps 4u(1 − u), started at the means of a and b and mixed a little after every step."""

    def at(x: Tensor) -> Tensor:
        u, v = x[:, :variables].mean(-1), x[:, variables:].mean(-1)
        for _ in range(depth):
            u, v = 4 * u * (1 - u), 4 * v * (1 - v)
            u, v = 0.9 * u + 0.1 * v, 0.1 * u + 0.9 * v
        return u - 0.5

    return RandomFunction(variables, at)


@families.register("noise")
def noise(generator: torch.Generator, variables: int = 1, share: float = 1.0) -> RandomFunction:
    """White noise; below 1, `share` is its part of the variance and the rest is the plane of the sum of all inputs."""
    if not 0 < share <= 1:
        raise BadInput(f"the share {share} of noise is not above 0 and up to 1")
    keys = torch.randint(2**62, (2 * variables,), generator=generator) | 1
    level, slope = math.sqrt(share), math.sqrt((1 - share) * 6 / variables)  # the sum has variance variables/6

    def at(x: Tensor) -> Tensor:
        cell = (x * 2**40).long()
        return level * _hashed((cell * keys.to(x.device)).sum(-1)) + slope * (x.sum(-1) - variables)

    return RandomFunction(variables, at)


@families.register("bilinear")
def bilinear(_: torch.Generator, variables: int = 64) -> RandomFunction:
    """Σ_k a_k·b_k, centred: a polynomial of degree 2, linear along every direction of either side."""

    def quick(a: Tensor, b: Tensor) -> Tensor:
        return (a - 0.5) @ (b - 0.5).T

    return RandomFunction(variables, lambda x: ((x[:, :variables] - 0.5) * (x[:, variables:] - 0.5)).sum(-1), quick)


def _hashed(number: Tensor) -> Tensor:
    """A number of mean 0 and variance 1, uniform, that nearby integers do not share (the mixing of splitmix64)."""
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685), (31, 1)):
        number = (number ^ ((number >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return ((number & (2**53 - 1)).double() / 2**53 - 0.5) * math.sqrt(12)


def _tent(t: Tensor, depth: int) -> Tensor:
    for _ in range(depth):
        t = 1 - (2 * t - 1).abs()
    return t


def nonlinear_share(function: RandomFunction, generator: torch.Generator, points: int = 2048) -> float:
    """The share of the variance that no affine function of the inputs explains, on points it was not fitted to."""
    x = torch.rand(2 * points, 2 * function.variables, generator=generator, dtype=torch.float64)
    y, design = function.at(x), torch.cat([x, torch.ones(2 * points, 1, dtype=torch.float64)], 1)
    fit = torch.linalg.lstsq(design[:points], y[:points, None]).solution[:, 0]
    rest = y[points:] - design[points:] @ fit
    return min(1.0, float(rest.square().mean() / y[points:].var()))


def turns(function: RandomFunction, generator: torch.Generator) -> float:
    """How often y changes direction along a straight line between two drawn points, on average (as far as the points
    along it resolve)."""
    ends = torch.rand(2, _LINES, 1, 2 * function.variables, generator=generator, dtype=torch.float64)
    along = torch.linspace(0, 1, _STATIONS, dtype=torch.float64)[None, :, None]
    x = ends[0] + along * (ends[1] - ends[0])
    y = function.at(x.flatten(0, 1)).view(_LINES, _STATIONS)
    steps = y.diff(dim=1)
    return float(((steps[:, 1:] * steps[:, :-1]) < 0).double().sum(1).mean())


def measure_random_function_rank(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: family, variables, options, points (a list), epsilons, members.

    For every member, number of points and ε: the rank in the sample (biased low) and held out (null if not reached);
    for a field also the true one, and x of ε-rank ~ ε^−x.
    """
    device = resolve_device(device)
    options = {k: math.inf if v == "inf" else v for k, v in config.get("options", {}).items()}
    members = []
    for member in range(config["members"]):
        generator = torch.Generator().manual_seed(seed_of(["random-function", config["family"], member, seed]))
        function = families[config["family"]](generator, variables=config["variables"], **options)
        found: dict[str, Any] = {
            "nonlinear_share": nonlinear_share(function, generator),
            "turns": turns(function, generator),
            "ranks": {},
        }
        for points in config["points"]:
            shape = (points + points // 2, config["variables"])
            a, b = (torch.rand(shape, generator=generator, dtype=torch.float64).to(device) for _ in range(2))
            spectrum = spectrum_of(function.matrix(a, b), points, 1e-14 * points)
            found["ranks"][str(points)] = [
                [first_within(spectrum.in_sample, e), first_within(spectrum.held_out, e)] for e in config["epsilons"]
            ]
        if function.singular_values is not None:
            errors = _tails(function.singular_values)
            found["true_ranks"] = [first_within(errors, e) for e in config["epsilons"]]
            found["exponent"] = rank_exponent(errors)
        members.append(found)
    return {"members": members}


def _tails(singular_values: Tensor) -> Tensor:
    energy = singular_values.square()
    rest = torch.cat([energy.flip(0).cumsum(0).flip(0), energy.new_zeros(1)])
    return (rest / energy.sum()).sqrt()


def rank_exponent(errors: Tensor) -> float | None:
    """x of ε-rank ~ ε^−x: minus 1 over the slope of log error against log rank, from rank 6 to an eighth of the waves
    (beyond, the waves that a field leaves out would be missed) and above rounding."""
    kept = [(math.log(r), math.log(float(errors[r]))) for r in range(6, max(12, len(errors) // 8)) if errors[r] > 1e-10]
    if len(kept) < 5:
        return None
    x, y = zip(*kept, strict=True)
    return -1 / statistics.linear_regression(x, y).slope
