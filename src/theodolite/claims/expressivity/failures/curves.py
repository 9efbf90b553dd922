"""§4: piecewise-linear curves, from the curve back to its breakpoints, in four variants.

A curve on n = 100 points is f = p·W, W_ij = max(0, j − i + 1), where p holds the changes of slope and is zero but at
3 places; its inverse is the second difference, p_j = f_j − 2·f_{j−1} + f_{j−2}.

    linear      (4.1.1) a 100×100 matrix from f to p, from zero: badly conditioned
    filter      (4.1.2) three numbers, slid along f
    conditioned (4.1.3) the same after C^(−1/2), C the second moments of three neighbours
    autoencoder (4.1.4) 100 → 500 → 100 → 6 → 100 → 100 → 100, ReLU, curves with random slopes

The loss of `linear` is summed over the points of a curve, the others' averaged, as in the paper's code; there the
bottleneck of `autoencoder` has a ReLU, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from theodolite.claims.expressivity.failures.layers import ADAM, affine, apply
from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result, shortened
from theodolite.claims.tables.failures_published import CONDITION, COVARIANCE
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.nets.contract import positive
from theodolite.training.loop import train
from theodolite.training.optimiser import Rates
from theodolite.training.step import Weights

Variant = Literal["linear", "filter", "conditioned", "autoencoder"]
PUBLISHED_STEPS = 50_000
SLOPES = ((1.0, -1.0, 1.0), (1.0, -2.0, 1.0), (-2.0, 1.0, -1.0), (1.0, -1.0, 2.0))
_LR = {"linear": 1e-4, "filter": 0.05, "conditioned": 0.99, "autoencoder": 1e-3}
_BATCH = {"linear": 100, "filter": 100, "conditioned": 10, "autoencoder": 100}
_MARGIN = 3  # no breakpoint nearer to an end


@dataclass(frozen=True)
class Curves:
    """`lr` and `batch` are the variant's own unless given."""

    variant: Variant
    seeds: int = 5
    steps: int = PUBLISHED_STEPS
    points: int = 100
    train: int = 10_000
    test: int = 1_000
    lr: float | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.variant not in get_args(Variant):
            raise BadInput(f"there is no variant '{self.variant}' of the curves: use {', '.join(get_args(Variant))}")
        positive(seeds=self.seeds, steps=self.steps, train=self.train, test=self.test)
        if self.points < 10:
            raise BadInput(f"a curve of {self.points} points has no room for its breakpoints: use 10 or more")

    @property
    def name(self) -> str:
        return self.variant


def run(settings: Curves, seed: int, device: str = "cpu") -> dict[str, Any]:
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    members, points, variant = settings.seeds, settings.points, settings.variant
    make = _smooth if variant == "autoencoder" else curves
    inputs, targets = make((members, settings.train), points, generator)
    unseen = make((members, settings.test), points, generator)
    weights, predict, conditioner = _model(settings, inputs, generator)
    reduce = torch.sum if variant == "linear" else torch.mean
    rows = torch.arange(members, device=generator.device)[:, None]
    batch = settings.batch or _BATCH[variant]

    def loss(weights: Mapping[str, Tensor], drawn: tuple[Tensor, ...]) -> Tensor:
        (places,) = drawn
        error = predict(weights, inputs[rows, places]) - targets[rows, places]
        return reduce(error.square(), -1).mean(1)

    def draw(count: int) -> tuple[Tensor]:
        shape = (count, members, batch)
        return (torch.randint(0, settings.train, shape, generator=generator, device=generator.device),)

    def look(step: int, weights: Weights) -> None:
        with torch.no_grad():
            error = reduce((predict(weights, unseen[0]) - unseen[1]).square(), -1).mean(1)
        quantities[f"loss at {step:,}"] = error

    looks = sorted({n for n in (500, 10_000, 50_000) if n < settings.steps} | {settings.steps})
    quantities: dict[str, Tensor] = {}
    rates = Rates(settings.lr or _LR[variant])
    weights = train(weights, loss, draw, steps=settings.steps, rule=ADAM, rates=rates, looks=[0, *looks], look=look)
    details: dict[str, Any] = {"iterations": settings.steps, "looks": looks}
    if variant == "linear":
        quantities[CONDITION] = torch.tensor([condition(curve_matrix(points))] * members)
    elif variant != "autoencoder":
        found = weights["filter"]
        details["filters"] = (found if conditioner is None else conditioner @ found)[..., 0].tolist()
        quantities[COVARIANCE] = torch.tensor([condition(c) for c in moments(inputs)])
        exact = torch.tensor([1.0, -2.0, 1.0])
        quantities["distance of the filter from (1, −2, 1)"] = (torch.tensor(details["filters"]) - exact).norm(dim=1)
    return result(
        settings.name,
        {name: values.tolist() for name, values in quantities.items()},
        shortened(settings.steps, 500 if variant == "conditioned" else PUBLISHED_STEPS),
        **details,
    )


def curve_matrix(points: int) -> Tensor:
    """W: changes of slope to curves."""
    place = torch.arange(points, dtype=torch.float64)
    return (place[None, :] - place[:, None] + 1).clamp(min=0)


def condition(matrix: Tensor) -> float:
    values = torch.linalg.svdvals(matrix.double().cpu())
    return float(values[0] / values[-1])


def curves(shape: tuple[int, int], points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Curves and their changes of slope: three breakpoints at different places, slopes after them from `SLOPES`."""
    device = generator.device
    slopes = torch.tensor(SLOPES, device=device)
    changes = torch.diff(slopes, dim=1, prepend=torch.zeros(len(SLOPES), 1, device=device))
    keys = torch.rand(*shape, points - 2 * _MARGIN, generator=generator, device=device)
    places = _MARGIN + keys.topk(3, dim=-1).indices.sort(dim=-1).values
    kind = torch.randint(0, len(SLOPES), shape, generator=generator, device=device)
    p = torch.zeros(*shape, points, device=device).scatter_(-1, places, changes[kind])
    return p @ curve_matrix(points).to(p), p


def _smooth(shape: tuple[int, int], points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Curves of the auto-encoder, which are their own targets: breakpoints and changes of slope uniform."""
    place = torch.arange(points, device=generator.device)
    breaks = points * torch.rand(*shape, 3, generator=generator, device=generator.device)
    change = 2 * torch.rand(*shape, 3, generator=generator, device=generator.device) - 1
    f = sum((place - breaks[..., i, None]).clamp(min=0) * change[..., i, None] for i in range(3))
    assert isinstance(f, Tensor)
    return f, f


def neighbours(f: Tensor) -> Tensor:
    """(…, point, 3): the curve at j, j − 1 and j − 2, for every j from 2 on."""
    return torch.stack([f[..., 2:], f[..., 1:-1], f[..., :-2]], dim=-1)


def moments(f: Tensor) -> Tensor:
    """(member, 3, 3): C = E[u·uᵀ] over all three neighbours u of the member's curves."""
    u = neighbours(f.double()).flatten(1, 2)
    return u.mT @ u / u.shape[1]


def _model(settings: Curves, f: Tensor, generator: torch.Generator) -> tuple[Weights, Any, Tensor | None]:
    """Weights, what they predict, and the conditioner where there is one."""
    members, points, device = settings.seeds, settings.points, generator.device
    if settings.variant == "linear":
        return {"matrix": torch.zeros(members, points, points, device=device)}, lambda w, x: x @ w["matrix"], None
    if settings.variant == "autoencoder":
        sizes = (points, 500, 100, 6, 100, 100, points)
        weights: Weights = {}
        for number, (inner, outer) in enumerate(pairwise(sizes)):
            weights |= affine(str(number), members, inner, outer, generator)
        return weights, _autoencode, None
    conditioner = None
    if settings.variant == "conditioned":
        values, vectors = torch.linalg.eigh(moments(f))
        conditioner = (vectors * values.rsqrt()[:, None, :] @ vectors.mT).float()

    def slide(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
        u = neighbours(x).flatten(1, 2)
        inner = (u if conditioner is None else u @ conditioner) @ weights["filter"]
        return torch.nn.functional.pad(inner.view(len(x), x.shape[1], points - 2), (2, 0))

    return {"filter": torch.zeros(members, 3, 1, device=device)}, slide, conditioner


def _autoencode(weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    for number in range(5):
        x = apply(weights, str(number), x).relu()
    return apply(weights, "5", x)


def measure_failure_curves(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    return run(read(Curves, config), seed, device)


experiments.add(
    "curves",
    Experiment(
        "curves",
        "Piecewise-linear curves",
        "§4",
        {
            "full": (
                *(Part("failure-curves", Curves(v)) for v in ("linear", "filter", "autoencoder")),
                Part("failure-curves", Curves("conditioned", steps=500)),
            ),
            "quick": (
                Part("failure-curves", Curves("linear", seeds=3, steps=10_000)),
                Part("failure-curves", Curves("filter", seeds=3, steps=10_000)),
                Part("failure-curves", Curves("conditioned", seeds=3, steps=500)),
                Part("failure-curves", Curves("autoencoder", seeds=2, steps=5_000)),
            ),
        },
    ),
)
