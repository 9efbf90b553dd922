"""What iterating z ↦ f(z, x) does: it converges, repeats with a period, stays chaotic or neutral, or diverges (G18).

Many starts run at once. After `steps` applications, the smallest p with z(t+p) = z(t) over a window is looked for: 1 is
convergence, more a period. The largest Lyapunov exponent is the mean logarithm by which a tangent vector grows along
the orbit, by forward derivatives; what neither repeats nor diverges is chaos if the exponent lies clearly above 0 and
undecided otherwise (quasi-periodic where it lies within the threshold of 0). At a fixed point or along a cycle, the
spectral radius of the (product of) Jacobians says how fast the iteration is drawn to it.
"""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.fixed_points.iteration import Iteration, attractors_of, iterate, jacobian, tangent
from theodolite.instruments.fixed_points.load_map import load_map
from theodolite.instruments.fixed_points.maps import named_map
from theodolite.measurement import SCHEMA, Provenance, finite, seed_of
from theodolite.notebook import Shown
from theodolite.statistics.intervals import mean_interval

Progress = Callable[[str, float], None]
Outcome = Literal["converges", "period", "chaos", "quasi-periodic", "undecided", "diverges"]
CHAOS = 0.01  # per step; an exponent nearer to 0 than this is called neither chaotic nor drawn in
_LARGEST = 1024  # numbers in z up to which the Jacobian's eigenvalues are computed
_TOGETHER = 1 << 22  # entries of Jacobians at once


@dataclass(frozen=True)
class Attractor:
    """A fixed point (period 1) or a cycle that some starts ended on; `share` of all starts."""

    period: int
    share: float
    point: tuple[float, ...]  # of a cycle, its lexicographically smallest state
    spectral_radius: float | None

    @property
    def kind(self) -> str:
        return "fixed point" if self.period == 1 else f"cycle of {self.period}"

    @property
    def place(self) -> str:
        """At most four of its numbers."""
        shown = ", ".join(f"{number:.4g}" for number in self.point[:4])
        return f"({shown}{', …' if len(self.point) > 4 else ''})"


@dataclass(frozen=True)
class FixedPoints(Shown):
    """`outcome`, `period` and `lyapunov` are those of most starts; `interval` of the exponent over these starts.

    `steps_to_tolerance` is the median of the starts that converged. `shares` counts all outcomes.
    """

    outcome: Outcome
    period: int | None
    lyapunov: float | None
    interval: tuple[float, float] | None
    spectral_radius: float | None
    steps_to_tolerance: float | None
    shares: Mapping[str, float]
    attractors: Sequence[Attractor]
    size: int
    starts: int
    steps: int
    tolerance: float
    method: str
    seconds: float
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "fixed points", **finite(asdict(self))}


@dataclass(frozen=True)
class Basin(Shown):
    """Where each start of a grid over two directions ends: `label[row][column]` indexes `attractors`, and is −1 where
    the start diverges, −2 where it does neither. Rows go from low to high in the second direction."""

    label: list[list[int]]
    attractors: Sequence[Attractor]
    within: tuple[float, float]
    steps: list[list[int]]  # to the tolerance, or all that were taken

    @property
    def names(self) -> list[str]:
        return [f"{one.kind} at {one.place}" for one in self.attractors]


def fixed_points(
    map: str | Callable[..., Any] | nn.Module,
    x: Tensor | None = None,
    *,
    size: int | None = None,
    starts: int = 32,
    steps: int = 2000,
    within: tuple[float, float] | None = None,
    tolerance: float = 1e-9,
    longest_period: int = 64,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
    **arguments: Any,
) -> FixedPoints:
    """Iterate a map from starts drawn uniformly within a cube, in float64: what does it come to?

    Parameters:
        map: takes a batch z of (starts, size), as a network does, and x too where one is given; gives back the same
            shape, each start on its own. Or the name of one: logistic, tent, henon, …, `file.py:Name`
        x: handed to the map, a vector or a batch of one per start
        size: numbers in z; a named map knows its own
        starts: how many
        steps: applications of the map
        within: the range each entry of a start is drawn from; (-1, 1), or a named map's own
        tolerance: a change below this, relative to 1 + |z|, is none
        longest_period: cycles longer than this are not looked for
        seed: of the starts
        device: cpu, cuda, …
        progress: is told what is being done, and the share of it that was just finished
        arguments: of a named map

    Examples:
        >>> found = fixed_points("logistic", r=3.2, starts=8, steps=300)
        >>> found.outcome, found.period
        ('period', 2)
    """
    began = time.perf_counter()
    f, size, usual = load_map(map, size, arguments)
    _check(size=size, starts=starts, steps=steps, longest_period=longest_period)
    device = resolve_device(device)
    generator = torch.Generator().manual_seed(seed_of(["fixed points", seed]))
    low, high = _cube(within or usual)
    z = (low + (high - low) * torch.rand(starts, size, generator=generator, dtype=torch.float64)).to(device)
    g = bound(f, x, z)
    if progress is not None:
        g = _counted(g, progress, 2 * steps + 4 * longest_period)
    found = iterate(g, z, steps, tolerance, longest_period)
    growth = _lyapunov(g, found, steps, generator)
    outcomes = [_outcome(found, growth, row) for row in range(starts)]
    most, _ = collections.Counter(outcomes).most_common(1)[0]
    rows = [row for row in range(starts) if outcomes[row] == most]
    exponents = [rate for row in rows if (rate := growth[row]) is not None]
    attractors, _ = _attractors(g, found, tolerance)
    reached = sorted(int(found.reached[row]) for row in range(starts) if outcomes[row][0] == "converges")
    main = [a for a in attractors if a.period == most[1]]
    return FixedPoints(
        outcome=most[0],
        period=most[1],
        lyapunov=math.fsum(exponents) / len(exponents) if exponents else None,
        interval=mean_interval(exponents) if len(exponents) > 1 else None,
        spectral_radius=main[0].spectral_radius if main else None,
        steps_to_tolerance=float(reached[len(reached) // 2]) if reached else None,
        shares=_shares(outcomes),
        attractors=attractors,
        size=size,
        starts=starts,
        steps=steps,
        tolerance=tolerance,
        method=f"states compared at distances 1 to {longest_period}; tangent vector by forward derivatives, float64",
        seconds=time.perf_counter() - began,
        provenance=Provenance.here(seed, device_name(device)),
    )


def basin(
    map: str | Callable[..., Any] | nn.Module,
    x: Tensor | None = None,
    *,
    size: int | None = None,
    grid: int = 101,
    steps: int = 500,
    within: tuple[float, float] | None = None,
    through: Tensor | None = None,
    directions: Tensor | None = None,
    tolerance: float = 1e-9,
    longest_period: int = 16,
    device: str | torch.device = "cpu",
    **arguments: Any,
) -> Basin:
    """Starts on a square grid in the plane `through` a point along two `directions` (rows; the first two axes unless
    given; a map of one number has a line, whose rows are alike)."""
    f, size, usual = load_map(map, size, arguments)
    _check(size=size, grid=grid, steps=steps, longest_period=longest_period)
    device = resolve_device(device)
    low, high = _cube(within or usual)
    line = torch.linspace(low, high, grid, dtype=torch.float64)
    axes = torch.eye(2, size, dtype=torch.float64) if directions is None else directions.double()
    if axes.shape != (2, size):
        raise BadInput(f"a plane has two directions of {size} numbers each, not {tuple(axes.shape)}")
    if size == 1:
        axes = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    centre = torch.zeros(size, dtype=torch.float64) if through is None else through.double()
    z = (centre + line[None, :, None] * axes[0] + line[:, None, None] * axes[1]).flatten(0, 1).to(device)
    g = bound(f, x, z)
    found = iterate(g, z, steps, tolerance, longest_period)
    attractors, member = _attractors(g, found, tolerance)
    neither = torch.where(found.diverged, -1, -2)
    label = torch.where(member >= 0, member, neither.cpu()).unflatten(0, (grid, grid))
    return Basin(label.tolist(), attractors, (low, high), found.reached.cpu().unflatten(0, (grid, grid)).tolist())


def bound(f: Callable[..., Any] | nn.Module, x: Tensor | None, z: Tensor) -> Callable[[Tensor], Tensor]:
    """f with its x, in the type and on the device of z, tried once: what is wrong with it is said in a sentence."""
    if not callable(f):
        raise BadInput(f"a map is a function of z or an nn.Module, not a {type(f).__name__}")
    if isinstance(f, nn.Module):
        f = f.to(device=z.device, dtype=z.dtype).eval()
    given = None if x is None else x.to(device=z.device, dtype=z.dtype)

    def g(z: Tensor) -> Tensor:
        if given is None:
            return f(z)
        return f(z, given.expand(len(z), -1) if given.dim() == 1 else given[: len(z)])

    plain = getattr(f, "func", f)  # what a partial application was made of
    name = getattr(plain, "__name__", type(plain).__name__)
    takes = "z" if x is None else "z and x"
    try:
        with torch.no_grad():
            value, alone = g(z), g(z[:1])
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        hint = "; if it is a function of z and x, give x (--x)" if x is None and isinstance(error, TypeError) else ""
        raise BadInput(
            f"the map '{name}' could not be applied to {takes} of shape {tuple(z.shape)}: {reason}{hint}"
        ) from error
    if not isinstance(value, Tensor):
        raise BadInput(f"the map '{name}' returns {type(value).__name__}: return a tensor of the shape of z")
    if value.shape != z.shape:
        raise BadInput(
            f"the map '{name}' takes z of shape {tuple(z.shape)} and gives {tuple(value.shape)}: a map that is "
            "iterated gives back the shape it takes"
        )
    if not bool(torch.isfinite(value).any(dim=-1).any()):
        raise BadInput(
            f"the map '{name}' is not finite at any of its {len(z)} starts: draw them from another range (within)"
        )
    if not torch.allclose(alone, value[:1], rtol=1e-9, atol=1e-12, equal_nan=True):
        raise BadInput(f"the map '{name}' mixes the starts of a batch: index z from the right, as in z[..., 0]")
    return g


def _counted(g: Callable[[Tensor], Tensor], progress: Progress, about: int) -> Callable[[Tensor], Tensor]:
    """The map, told of whenever it is applied."""

    def counted(z: Tensor) -> Tensor:
        progress("applying the map", 1 / about)
        return g(z)

    return counted


def _outcome(found: Iteration, growth: list[float | None], row: int) -> tuple[Outcome, int | None]:
    if bool(found.diverged[row]):
        return "diverges", None
    period = int(found.period[row])
    if period:
        return ("converges" if period == 1 else "period"), period
    rate = growth[row]
    if rate is None or rate < -CHAOS:
        return "undecided", None
    return ("chaos" if rate > CHAOS else "quasi-periodic"), None


def _lyapunov(
    g: Callable[[Tensor], Tensor], found: Iteration, steps: int, generator: torch.Generator
) -> list[float | None]:
    """Mean log growth of a tangent vector per step, for each start that stays finite; None where it vanishes."""
    if bool(found.diverged.all()):
        return [None] * len(found.z)
    z = torch.where(found.diverged.unsqueeze(-1), torch.zeros_like(found.z), found.z)
    vector = torch.randn(z.shape, generator=generator, dtype=z.dtype).to(z.device)
    vector = vector / vector.norm(dim=-1, keepdim=True)
    total = torch.zeros(len(z), dtype=z.dtype, device=z.device)
    settle = min(100, steps // 4)  # until the vector lies along the direction that grows most
    for number in range(settle + steps):
        z, vector = tangent(g, z, vector)
        length = vector.norm(dim=-1)
        vector = vector / length.clamp(min=1e-300).unsqueeze(-1)
        if number >= settle:
            total = total + length.log()
    rates = (total / steps).tolist()
    lost = found.diverged.tolist()
    return [rate if math.isfinite(rate) and not gone else None for rate, gone in zip(rates, lost, strict=True)]


def _attractors(g: Callable[[Tensor], Tensor], found: Iteration, tolerance: float) -> tuple[list[Attractor], Tensor]:
    """Distinct cycles, the most frequent first, and which of them each start ended on (−1: none)."""
    points, periods, member = attractors_of(g, found, tolerance)
    counts = torch.bincount(member[member >= 0], minlength=len(points)).tolist()
    order = sorted(range(len(points)), key=lambda number: -counts[number])
    place = torch.full((len(points) + 1,), -1)
    place[order] = torch.arange(len(points))
    radii = _radii(g, points, periods)
    attractors = [
        Attractor(periods[number], counts[number] / len(member), tuple(points[number].tolist()), radii[number])
        for number in order
    ]
    return attractors, place[member]


def _radii(g: Callable[[Tensor], Tensor], points: Sequence[Tensor], periods: Sequence[int]) -> dict[int, float | None]:
    """Of the product of Jacobians along each cycle; None for vectors too long to have their eigenvalues computed."""
    found: dict[int, float | None] = dict.fromkeys(range(len(points)))
    if not points or len(points[0]) > _LARGEST:
        return found
    size = len(points[0])
    step = max(1, _TOGETHER // size**2)
    for period in set(periods):
        alike = [number for number, other in enumerate(periods) if other == period]
        for begin in range(0, len(alike), step):
            some = alike[begin : begin + step]
            z = torch.stack([points[number] for number in some])
            product = torch.eye(size, dtype=z.dtype, device=z.device).expand(len(some), -1, -1)
            for _ in range(period):
                product, z = jacobian(g, z) @ product, g(z)
            for number, one in zip(some, product, strict=True):
                if bool(torch.isfinite(one).all()):
                    found[number] = float(torch.linalg.eigvals(one).abs().max())
    return found


def _shares(outcomes: Sequence[tuple[str, int | None]]) -> dict[str, float]:
    named = [f"period {p}" if name == "period" else name for name, p in outcomes]
    return {name: count / len(named) for name, count in collections.Counter(named).most_common()}


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < (2 if name in ("starts", "grid") else 1):
            least = 2 if name in ("starts", "grid") else 1
            raise BadInput(f"{name.replace('_', ' ')} must be a whole number of at least {least}, not {count!r}")


def _cube(within: tuple[float, float]) -> tuple[float, float]:
    low, high = float(within[0]), float(within[1])
    if not low < high:
        raise BadInput(f"starts lie between two numbers, the first the smaller, not {low:g} and {high:g}")
    return low, high


def measure_fixed_points(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: map (a named one), size, arguments, and any option of `fixed_points`."""
    f, size, within = named_map(config["map"], config.get("size"), **config.get("arguments", {}))
    options = {k: v for k, v in config.items() if k not in ("map", "size", "arguments")}
    return fixed_points(f, size=size, seed=seed, device=device, **{"within": within, **options}).to_json()
