"""The gradient signal of classes other than parities: random functions, random graphs, waves, or a class you write.

A class is a (members, inputs) matrix of targets. On the cube of ±1 bits expectations over inputs are sums; elsewhere
inputs are drawn, in independent batches, and the variance is estimated from pairs of batches, so that the noise of a
batch never meets itself. Whether Theorem 1 applies is read off the Gram matrix E[h h′].
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from theodolite.device import device_name, require_memory, resolve_device
from theodolite.errors import BadInput, TheodoliteError
from theodolite.instruments.gradient.example_gradients import ExampleGradients, example_gradients
from theodolite.instruments.gradient.signal import Net, Progress, Signal, builder, check_bits, loss_slopes
from theodolite.instruments.gradient.walsh import cube, walsh_hadamard
from theodolite.measurement import Provenance
from theodolite.nets.from_file import is_file, named_in_file
from theodolite.registry import unknown
from theodolite.statistics.intervals import mean_interval
from theodolite.tasks.contract import make_task
from theodolite.theory.gradient import variance_bound

_BATCHES = 16
_TOLERANCE = 1e-5  # of orthogonality, in float32

FAMILIES = ("parity", "linear-periodic", "random", "graph", "scrambled")


@dataclass(frozen=True)
class Targets:
    """`values[m, n]` of member m at input n. `batches` is 1 where the inputs are all there are. `gram` is E[h h′]."""

    name: str
    inputs: Float[Tensor, "inputs feature"]
    values: Float[Tensor, "members inputs"]
    gram: Float[Tensor, "members members"]
    batches: int = 1


def class_signal(
    net: Net,
    family: str | Callable[..., Any],
    *,
    bits: int,
    loss: str,
    members: int,
    radius: float,
    inputs: str | None,
    samples: int,
    draws: int,
    seed: int,
    device: str | torch.device,
    dtype: str,
    progress: Progress | None = None,
    **shape: Any,
) -> Signal:
    """Var over the members of a class, beside the bound that its Gram matrix gives."""
    started = time.perf_counter()
    device, number = resolve_device(device), getattr(torch, dtype)
    generator = torch.Generator(device=device).manual_seed(seed)
    read = lambda: read_class(family, bits, members, radius, inputs, samples, generator, number)
    targets = read()
    signs = bool((targets.values.abs() == 1).all())
    if loss != "square" and not signs:
        raise BadInput(f"the loss '{loss}' needs targets of ±1 and the class '{targets.name}' has others: use square")
    name, build = builder(net, make_task("parity", {"bits": bits, "relevant": 1}), shape)
    estimates, bounds, means, powers, intervals, gradients, closed = [], [], [], [], [], None, []
    count = len(targets.values)
    eigenvalue, off, largest, applies = _orthogonality(targets.gram)
    for draw in range(draws):
        if draw and targets.batches > 1:  # fresh inputs, so that the draws' errors are independent
            targets = read()
            eigenvalue, off, largest, applies = _orthogonality(targets.gram)
        gradients = example_gradients(build(seed + draw), targets.inputs, name)
        products, mean = _products(gradients, loss, targets, progress)
        estimate, interval = _estimate(products, count)
        estimates.append(estimate)
        intervals.append(interval)
        means.append(mean)
        powers.append(float(gradients.power.mean()))
        bounds.append(variance_bound(powers[-1], count, 1.0 if applies else eigenvalue))
        if family in ("random", "graph"):
            closed.append(_closed_form(gradients, loss, str(family)))
    assert gradients is not None
    interval = mean_interval(estimates) or intervals[0]
    variance, bound = sum(estimates) / draws, sum(bounds) / draws
    exact = targets.batches == 1
    return Signal(
        net=name,
        family=targets.name,
        subclass="all",
        bits=bits,
        loss=loss,
        members=count,
        parameters=gradients.parameters,
        draws=draws,
        variance=variance,
        bound=bound,
        ratio=variance / bound if bound else 0.0,
        exact=exact,
        interval=interval,
        by_degree=None,
        share_by_degree=None,
        identity_error=None,
        mean_norm=sum(means) / draws,
        gradient_power=sum(powers) / draws,
        applies=applies,
        method=f"{'all' if exact else 'drawn'} inputs, gradients by {gradients.method}",
        dtype=dtype,
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        details={
            "inputs": len(targets.inputs),
            "largest_eigenvalue": eigenvalue,
            "largest_correlation": off,
            "largest_norm": largest,
            "resolved": exact or (interval is not None and interval[0] > 0),
            # Over the whole family, of which the members are a sample: Var of the sample is (m − 1)/m of it on average.
            "whole_family": sum(closed) / draws if closed else None,
        },
    )


def read_class(
    family: str | Callable[..., Any],
    bits: int,
    members: int,
    radius: float,
    inputs: str | None,
    samples: int,
    generator: torch.Generator,
    dtype: torch.dtype,
) -> Targets:
    """The class a user means, with its values on the cube, or on standard normal inputs."""
    device = generator.device
    kind = inputs or ("normal" if family == "linear-periodic" else "cube")
    if kind not in ("cube", "normal"):
        raise BadInput(f"inputs '{kind}' are unknown: use cube (±1 bits) or normal")
    if family in ("random", "graph", "scrambled") and kind != "cube":
        raise BadInput(f"the class '{family}' is one of functions on bits: leave out --inputs, or use cube")
    if kind == "cube":
        check_bits(bits, dtype, device)
        points = cube(bits, dtype, device)
    else:
        samples = max(2 * _BATCHES, samples - samples % _BATCHES)
        points = torch.randn(samples, bits, generator=generator, dtype=dtype, device=device)
    require_memory(members * len(points) * 8, device, f"a class of {members:,} functions on {len(points):,} inputs")
    batches = 1 if kind == "cube" else _BATCHES
    if family == "linear-periodic":
        if not radius > 0:
            raise BadInput(f"a radius of {radius} makes no wave: use one above 0")
        v = torch.randn(members, bits, generator=generator, dtype=dtype, device=device)
        v *= radius / v.norm(dim=1, keepdim=True)
        values = torch.cos(v @ points.T)
        exact = _cosine_gram(v) if kind == "normal" else _gram(values)
        return Targets("linear-periodic", points, values, exact, batches)
    if family == "random":
        values = _signs((members, len(points)), generator, dtype)
        return Targets("random", points, values, _gram(values))
    if family == "graph":
        values = _graphs(bits, members, generator, dtype)
        return Targets("graph", points, values, _gram(values))
    if family == "scrambled":
        values = _scrambled(points, members, generator)
        return Targets("scrambled", points, values, _gram(values))
    name, function = _user_class(family)
    values = _call(name, function, points, generator)
    return Targets(name, points, values, _gram(values), batches)


def _products(
    gradients: ExampleGradients, loss: str, targets: Targets, progress: Progress | None
) -> tuple[Tensor, float]:
    """Σ_h ⟨c_a(h), c_b(h)⟩ for every two batches, with c(h) = E[h s g] less its mean over h; and ‖mean‖."""
    slopes = loss_slopes(gradients.outputs, loss)
    size = len(slopes) // targets.batches
    values = targets.values.to(slopes.dtype).unflatten(1, (targets.batches, size)).permute(1, 2, 0) / size
    products = torch.zeros(targets.batches, targets.batches, dtype=torch.float64, device=slopes.device)
    squared = 0.0
    for block in gradients.blocks():
        pieces = block.mul_(slopes).unflatten(1, (targets.batches, size)).transpose(0, 1)
        found = (pieces @ values).double()  # (batch, parameter, member)
        mean = found.mean(dim=2, keepdim=True)
        squared += float(mean.mean(dim=0).square().sum())
        flat = (found - mean).flatten(1)
        products += flat @ flat.T
        if progress:
            progress("gradients for every member", len(block) / gradients.parameters)
    return products, math.sqrt(squared)


def _estimate(products: Tensor, members: int) -> tuple[float, tuple[float, float] | None]:
    """The variance from pairs of different batches, with a jackknife interval over batches (95 %)."""
    count = len(products)
    if count == 1:
        return float(products[0, 0]) / members, None
    off = products - torch.diag(products.diagonal())
    total = float(off.sum())
    estimate = total / (count * (count - 1)) / members
    left_out = [(total - 2 * float(off[b].sum())) / ((count - 1) * (count - 2)) / members for b in range(count)]
    spread = math.sqrt((count - 1) / count * sum((each - estimate) ** 2 for each in left_out))
    half = float(stats.t.ppf(0.975, count - 1)) * spread
    return estimate, (estimate - half, estimate + half)


def _closed_form(gradients: ExampleGradients, loss: str, family: str) -> float:
    """Over the whole family: values are independent fair signs, so the variance is a sum over inputs (or edges)."""
    slopes = loss_slopes(gradients.outputs, loss)
    size = len(slopes)
    if family == "random":
        return float((gradients.power * slopes.double().square()).sum()) / size**2
    side = math.isqrt(size)
    total = 0.0
    for block in gradients.blocks():
        square = block.mul_(slopes).unflatten(1, (side, side))
        both = (square + square.transpose(1, 2)).double()
        total += float((both.square().sum() - both.diagonal(dim1=1, dim2=2).square().sum()) / 2)
    return total / size**2


def _signs(shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    return 2 * torch.randint(2, shape, generator=generator, device=generator.device).to(dtype) - 1


def _graphs(bits: int, members: int, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """h_G(u, v) = +1 where {u, v} is an edge of G: half of the bits name u, half v; an edge is there with chance ½."""
    if bits % 2:
        raise BadInput(f"{bits} bits do not name two vertices: use an even number of bits for the class graph")
    side = 1 << (bits // 2)
    drawn = _signs((members, side, side), generator, dtype).triu(1)
    edges = drawn + drawn.transpose(1, 2)
    return (edges - torch.eye(side, dtype=dtype, device=edges.device)).flatten(1)  # no vertex is its own neighbour


def _scrambled(points: Tensor, members: int, generator: torch.Generator) -> Tensor:
    """Parities of the inputs after a random permutation of all of them: orthonormal, and no parities any more."""
    count = len(points)
    if members > count:
        raise BadInput(f"{members} orthogonal functions do not fit on {count} inputs: use at most {count} members")
    device = generator.device
    order = torch.randperm(count, generator=generator, device=device)
    chosen = torch.randperm(count, generator=generator, device=device)[:members]
    one_hot = torch.zeros(members, count, dtype=points.dtype, device=device)
    one_hot[torch.arange(members, device=device), chosen] = 1.0
    return walsh_hadamard(one_hot)[:, order]


def _orthogonality(gram: Tensor) -> tuple[float, float, float, bool]:
    """The largest eigenvalue, correlation and squared norm, and whether Theorem 1 applies."""
    off = float((gram - torch.diag(gram.diagonal())).abs().max())
    largest = float(gram.diagonal().max())
    return float(torch.linalg.eigvalsh(gram)[-1]), off, largest, off <= _TOLERANCE and largest <= 1 + _TOLERANCE


def _gram(values: Tensor) -> Tensor:
    return (values @ values.T).double() / values.shape[1]


def _cosine_gram(v: Tensor) -> Tensor:
    """E[cos⟨v, x⟩ cos⟨v′, x⟩] for normal x."""
    v = v.double()
    return (torch.exp(-(torch.cdist(v, v) ** 2) / 2) + torch.exp(-(torch.cdist(v, -v) ** 2) / 2)) / 2


def _user_class(family: str | Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    if not isinstance(family, str):
        return getattr(family, "__name__", type(family).__name__), family
    if not is_file(family):
        raise BadInput(f"{unknown('class', family, FAMILIES)}; or file.py:Name")
    named = named_in_file(family)
    if not callable(named.found):
        raise BadInput(f"'{named.name}' is a {type(named.found).__name__}: name a function of the inputs")
    return named.name, named.found


def _call(name: str, function: Callable[..., Any], points: Tensor, generator: torch.Generator) -> Tensor:
    """A function of the inputs (inputs, bits), and of a generator where it names one."""
    extra = {"generator": generator} if "generator" in inspect.signature(function).parameters else {}
    try:
        values = function(points, **extra)
    except TheodoliteError:
        raise
    except Exception as error:
        raise BadInput(f"the class '{name}' failed on inputs of {tuple(points.shape)}: {error}") from error
    if not isinstance(values, Tensor) or values.dim() != 2 or values.shape[1] != len(points) or len(values) < 2:
        shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise BadInput(f"the class '{name}' gave {shape}: it must return (2 or more members, {len(points)} inputs)")
    if not bool(torch.isfinite(values).all()):
        raise BadInput(f"the class '{name}' has targets that are not finite: check it")
    found = values.to(points)
    if not bool(torch.isfinite(_gram(found)).all()):
        largest = float(values.abs().max())
        raise BadInput(f"the class '{name}' has targets of up to {largest:.1g}, too large to be squared: scale them")
    return found
