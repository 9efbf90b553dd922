"""How much the gradient at given weights says about which parity is to be learnt: Var(H, F, w), exactly.

F_S(w) is the expected loss of the net on the target χ_S over all 2^d inputs. With g(x) = ∂p(x)/∂w,

    square loss ½(p − h)²:      ∇F_S = E[p g] − E[χ_S g]
    margin loss r(p·h), h = ±1:  r′(p h) h = (r′(p) − r′(−p))/2 + h (r′(p) + r′(−p))/2, so
                                 ∇F_S = a vector the same for all S + E[χ_S s g], s = (r′(p) + r′(−p))/2

so in both cases what differs between targets is a Walsh–Hadamard transform of s·g (s = −1 for the square loss), taken
for all 2^d parities at once. Parseval's identity Σ_S ‖E[χ_S s g]‖² = E‖s g‖² checks every run (`identity_error`).

The **signal spectrum** is the mean of ‖E[χ_S s g]‖² over the parities of each degree |S|.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.device import device_name, free_bytes, resolve_device
from theodolite.errors import BadInput, NotEnoughMemory
from theodolite.instruments.gradient.example_gradients import (
    STEP,
    ExampleGradients,
    example_gradients,
    power_of,
    stored_rows,
)
from theodolite.instruments.gradient.subclass import Subclass, read_subclass
from theodolite.instruments.gradient.walsh import cube, degrees, walsh_hadamard
from theodolite.measurement import SCHEMA, Provenance, finite
from theodolite.nets.contract import positive
from theodolite.notebook import Shown
from theodolite.statistics.intervals import mean_interval
from theodolite.tasks.contract import Task, make_task
from theodolite.theory.gradient import variance_bound
from theodolite.training.pairing import pair

Net = str | nn.Module | Callable[..., Any]
Progress = Callable[[str, float], None]

LOSSES = ("square", "hinge", "logistic")
_NUMBERS = 1 << 24  # transformed at a time
_ROWS, _BYTES = 40, 160  # numbers, and bytes of float64 and whole numbers, that are kept of every input beside the rest
_USABLE = 0.8  # of the free memory
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Signal(Shown):
    """`variance` is Var(H, F, w) and `bound` what Theorem 1 allows it, G²/|H|; means over `draws` of the weights, with
    an interval where there are several. `exact`: over all inputs and all targets, up to rounding, of which
    `identity_error` is the measure. `by_degree[k]` is the mean signal of parities of k bits (None for other classes).
    """

    net: str
    family: str
    subclass: str
    bits: int
    loss: str
    members: int
    parameters: int
    draws: int
    variance: float
    bound: float
    ratio: float
    exact: bool
    interval: tuple[float, float] | None
    by_degree: tuple[float, ...] | None
    share_by_degree: tuple[float, ...] | None
    identity_error: float | None
    mean_norm: float
    gradient_power: float
    applies: bool
    method: str
    dtype: str
    seconds: float
    provenance: Provenance
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "gradient-signal", **finite(asdict(self))}


def signal(
    net: Net,
    *,
    family: str | Callable[..., Any] = "parity",
    bits: int = 10,
    loss: str = "square",
    subclass: str | Sequence[Sequence[int]] = "all",
    draws: int = 1,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    members: int = 256,
    radius: float = 4.0,
    inputs: str | None = None,
    samples: int = 16384,
    progress: Progress | None = None,
    **shape: Any,
) -> Signal:
    """Var(H, F, w) of a class of targets at the weights a net starts from (a module: at its own).

    Parameters:
        net: a built-in net, `file.py:Name`, a module or what builds one
        family: parity, linear-periodic, random, graph, scrambled, or `file.py:Name` of a function that returns a
            (members, inputs) matrix of targets
        bits: of the input, or its dimensions
        loss: square, hinge (also called margin) or logistic
        subclass: of the parities: all, degree=k, prefixes, or subsets of bits
        draws: of the weights, averaged over
        seed: of every draw
        device: cpu, cuda, …
        dtype: float32 or float64
        members: functions drawn from another class, `radius` the norm of v in cos⟨v, x⟩
        inputs: of another class: cube (all ±1 bits) or normal, of which `samples` are drawn
        shape: arguments of the net

    Examples:
        >>> found = signal("mlp", bits=8, width=16)
        >>> found.exact, found.variance <= found.bound, len(found.by_degree)
        (True, True, 9)
    """
    positive(bits=bits, draws=draws, members=members, samples=samples)
    if loss not in (*LOSSES, "margin"):
        raise BadInput(f"the loss '{loss}' is unknown: use {', '.join(LOSSES)} (margin is hinge)")
    if dtype not in _DTYPES:
        raise BadInput(f"gradients are not taken in '{dtype}': use float32 or float64")
    loss = "hinge" if loss == "margin" else loss
    options = {"draws": draws, "seed": seed, "device": device, "dtype": dtype, "progress": progress}
    if family != "parity":
        if subclass != "all":
            raise BadInput(f"the subclass '{subclass}' is one of parities: leave it out, or use the class parity")
        from theodolite.instruments.gradient.function_classes import class_signal

        extra = {"members": members, "radius": radius, "inputs": inputs, "samples": samples}
        return class_signal(net, family, bits=bits, loss=loss, **extra, **options, **shape)
    return _parity_signal(net, bits, loss, subclass, shape, **options)


def measure_gradient_signal(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, and any argument of `signal`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    seed %= 2**62  # every draw adds to it
    return signal(config["net"], seed=seed, device=device, **options, **config.get("shape", {})).to_json()


def _parity_signal(
    net: Net,
    bits: int,
    loss: str,
    subclass: str | Sequence[Sequence[int]],
    shape: dict[str, Any],
    draws: int,
    seed: int,
    device: str | torch.device,
    dtype: str,
    progress: Progress | None,
) -> Signal:
    started = time.perf_counter()
    device, number = resolve_device(device), _DTYPES[dtype]
    chosen = read_subclass(subclass, bits)
    name, build = builder(net, make_task("parity", {"bits": bits, "relevant": 1}), shape)
    check_bits(bits, number, device, build(seed), name)
    inputs = cube(bits, number, device)
    found: list[ParitySpectrum] = []
    total = 0.0
    parameters, method = 0, ""
    for draw in range(draws):
        gradients = example_gradients(build(seed + draw), inputs, name)
        parameters, method = gradients.parameters, gradients.method
        spectrum = parity_spectrum(gradients, loss, chosen, progress)
        del gradients  # before the next draw's are taken
        total += float(spectrum.power.sum()) / draws
        found.append(replace(spectrum, power=torch.empty(0, dtype=spectrum.power.dtype)))
    variances = [each.variance for each in found]
    bounds = [variance_bound(each.gradient_power, chosen.members) for each in found]
    by_degree = torch.stack([each.by_degree for each in found]).mean(dim=0)
    counts = torch.bincount(degrees(bits, device), minlength=bits + 1).to(by_degree)
    return Signal(
        net=name,
        family="parity",
        subclass=chosen.name,
        bits=bits,
        loss=loss,
        members=chosen.members,
        parameters=parameters,
        draws=draws,
        variance=sum(variances) / draws,
        bound=sum(bounds) / draws,
        ratio=sum(variances) / sum(bounds) if sum(bounds) else 0.0,
        exact=True,
        interval=mean_interval(variances),
        by_degree=tuple(by_degree.tolist()),
        share_by_degree=tuple((by_degree * counts / (total or 1.0)).tolist()),
        identity_error=max(each.identity_error for each in found),
        mean_norm=sum(each.mean_norm for each in found) / draws,
        gradient_power=sum(each.gradient_power for each in found) / draws,
        applies=True,
        method=f"Walsh–Hadamard transform, gradients by {method}",
        dtype=dtype,
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
        details={
            "signal_power": total,
            "largest_ratio": max(v / b if b else 0.0 for v, b in zip(variances, bounds, strict=True)),
            # What rounding alone puts into every entry of the spectrum.
            "rounding": float(torch.finfo(number).eps ** 2) * total / 2**bits,
        },
    )


@dataclass(frozen=True)
class ParitySpectrum:
    """`power[s]` is ‖E[χ_S s g]‖², the squared signal of parity number s."""

    power: Float[Tensor, " parities"]
    by_degree: Float[Tensor, " degree"]
    variance: float
    mean_norm: float
    gradient_power: float
    identity_error: float


def parity_spectrum(
    gradients: ExampleGradients, loss: str, subclass: Subclass, progress: Progress | None = None
) -> ParitySpectrum:
    """The signal of all parities, and its variance over the subclass."""
    outputs = gradients.outputs
    size = len(outputs)
    bits = size.bit_length() - 1
    slopes = loss_slopes(outputs, loss)
    mask = subclass.mask(outputs.device)
    power, squared_mean = _transform(gradients, slopes / size, mask.to(outputs.dtype), progress)
    direct = float((gradients.power * slopes.double().square()).mean())
    level = degrees(bits, outputs.device)
    sums = torch.zeros(bits + 1, dtype=power.dtype, device=power.device).index_add_(0, level, power)
    squared_mean /= subclass.members**2
    return ParitySpectrum(
        power=power,
        by_degree=sums / torch.bincount(level, minlength=bits + 1),
        variance=max(0.0, float(power[mask].sum()) / subclass.members - squared_mean),
        mean_norm=squared_mean**0.5,
        gradient_power=float(gradients.power.mean()),
        identity_error=abs(float(power.sum()) - direct) / direct if direct else 0.0,
    )


def _transform(
    gradients: ExampleGradients, slopes: Tensor, mask: Tensor, progress: Progress | None
) -> tuple[Tensor, float]:
    """Σ_j ĝ_j(S)² of every S, and ‖Σ_{S in the subclass} ĝ(S)‖²."""
    power = torch.zeros(len(slopes), dtype=torch.float64, device=slopes.device)
    squared = torch.zeros((), dtype=torch.float64, device=slopes.device)
    bits = len(slopes).bit_length() - 1
    rows = max(1, _NUMBERS // len(slopes))
    for layer in gradients.layers:
        if not layer.raw:
            continue
        # An input bit is a parity itself: times x_j, the coefficient of S becomes that of S with j added or removed.
        neighbours = [*range(bits), *[None] * layer.bias]
        for back in layer.back.split(rows):
            transformed = walsh_hadamard(back * slopes)
            own = power_of(transformed)
            for start in range(0, len(neighbours), rows):
                some = neighbours[start : start + rows]
                for j in some:
                    power += _flipped(own, j)
                masks = torch.stack([_flipped(mask, j) for j in some], dim=1)
                squared += (transformed @ masks).double().square().sum()
            if progress:
                progress("transforming gradients", len(back) * len(neighbours) / gradients.parameters)
    for block in gradients.blocks(skip_raw=True):
        transformed = walsh_hadamard(block.mul_(slopes))
        power += torch.linalg.vecdot(transformed, transformed, dim=0).double()
        squared += (transformed @ mask).double().square().sum()
        if progress:
            progress("transforming gradients", len(block) / gradients.parameters)
    return power, float(squared)


def _flipped(values: Float[Tensor, " parities"], j: int | None) -> Float[Tensor, " parities"]:
    """At S, the value of S with j added or removed; without j the values themselves."""
    return values if j is None else values.view(-1, 2, 1 << j).flip(1).view(-1)


def loss_slopes(outputs: Tensor, loss: str) -> Tensor:
    """s(x): what multiplies the target in the gradient."""
    if loss == "square":
        return -torch.ones_like(outputs)
    if loss == "logistic":  # r′(t) = −1/(1 + eᵗ), and r′(t) + r′(−t) = −1
        return torch.full_like(outputs, -0.5)
    return -((outputs < 1).to(outputs.dtype) + (outputs > -1).to(outputs.dtype)) / 2


def builder(net: Net, task: Task, shape: dict[str, Any]) -> tuple[str, Callable[[int], nn.Module]]:
    """The net's name, and what builds it for the task from a seed; a module keeps its weights whatever the seed."""
    if isinstance(net, nn.Module):
        if shape:
            raise BadInput(f"a {type(net).__name__} is built already, so '{next(iter(shape))}' cannot be set")
        return type(net).__name__, lambda _: net
    pairing = pair(net, task, shape)
    return pairing.name, pairing.build


def check_bits(
    bits: int, dtype: torch.dtype, device: torch.device, module: nn.Module | None = None, name: str = "the net"
) -> None:
    """Refuse, before any work, a cube that does not fit with all that is computed on it, and say which one does.

    Of every input are kept: its bits, what `example_gradients` stores of the net, and `_BYTES` and `_ROWS` numbers for
    outputs, powers and a transform; besides, a few blocks of `_NUMBERS`.
    """
    size = torch.finfo(dtype).bits // 8
    trial = torch.ones(4, bits, dtype=dtype, device=device)
    trial[1:] = 1.0 - 2.0 * torch.randint(2, (3, bits), generator=torch.Generator().manual_seed(0)).to(trial)
    rows = 0 if module is None else stored_rows(module, trial, name)
    # Each block of example gradients is a few transforms large, and a GPU takes larger ones.
    block = 4 * max(_NUMBERS, STEP[device.type]) * size

    def needed(count: int) -> int:
        whole = ((count + rows + _ROWS) * size + _BYTES) << count
        return whole + min(block, 4 * (parameters or 1) * size << count)

    parameters = 0 if module is None else sum(p.numel() for p in module.parameters())
    free = int(_USABLE * free_bytes(device))
    if bits > 60 or needed(bits) > free:
        most = max((count for count in range(1, 60) if needed(count) <= free), default=0)
        advice = f"use at most {most} bits, or a smaller net" if most else "use a smaller net"
        raise NotEnoughMemory(
            f"{bits} bits are 2^{bits} inputs, for which '{name}' needs {needed(min(bits, 500)) / 2**30:.3g} GiB, and "
            f"{free / 2**30:.1f} GiB may be used on {device}: {advice}"
        )
