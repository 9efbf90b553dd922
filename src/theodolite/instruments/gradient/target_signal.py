"""How much of the gradient's power speaks of one target h at the weights a net starts from.

‖E[(h − E h) g]‖² relative to E‖g‖² · Var h, with g(x) = ∂p(x)/∂w: between 0 and 1 by Cauchy–Schwarz. A parity drawn at
random from all 2^d gets 2^−d on average (Parseval), which is the baseline beside it. Since E[(h − E h) g] is the
gradient of E[(h − E h) p], one backward pass gives it; E‖g‖² takes the gradients of single examples.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.gradient.example_gradients import gradient_power
from theodolite.instruments.gradient.signal import Net, Progress, builder
from theodolite.instruments.gradient.walsh import cube
from theodolite.measurement import SCHEMA, Provenance, finite
from theodolite.nets.contract import positive
from theodolite.notebook import Shown
from theodolite.statistics.intervals import mean_interval
from theodolite.tasks.contract import Task
from theodolite.training.own_task import task_of
from theodolite.training.pairing import gives_signs

MOST_BITS = 14  # enumerated; above, inputs are drawn
_BATCHES = 16  # independent ones, of which pairs give an estimate without the noise's own square
_POWER_INPUTS = 256  # drawn inputs over which E‖g‖² is averaged


@dataclass(frozen=True)
class TargetSignal(Shown):
    """`share` is the mean over draws of the weights, `interval` Student's for that mean (95 %). `exact`: each draw's
    share is over all inputs; otherwise an unbiased estimate, which may be below 0. `baseline` is 2^−d on bits.

    `times_baseline` is the share over it; `resolved` is false where the noise of drawn inputs hides the share.
    """

    net: str
    task: str
    share: float
    interval: tuple[float, float] | None
    signal: float
    gradient_power: float
    target_variance: float
    baseline: float | None
    times_baseline: float | None
    exact: bool
    resolved: bool
    inputs: int
    draws: int
    shares: tuple[float, ...]
    seconds: float
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "target-signal", **finite(asdict(self))}


def target_signal(
    net: Net,
    task: str | Task,
    task_args: Mapping[str, Any] | None = None,
    *,
    draws: int = 5,
    seed: int = 0,
    device: str | torch.device = "cpu",
    samples: int = 8192,
    progress: Progress | None = None,
    **shape: Any,
) -> TargetSignal:
    """Of a task that maps a vector to one number: over all inputs where they are up to 14 signs, else by `samples`."""
    started = time.perf_counter()
    positive(draws=draws, samples=samples)
    target = task_of(task, task_args or {}).task if isinstance(task, str) else task
    spec = target.spec
    if spec.kind != "vector" or spec.outputs != 1:
        asked = "tokens" if spec.kind == "sequence" else f"{spec.outputs} numbers"
        raise NotApplicable(f"the task '{target.name}' asks for {asked}: the signal is that of one number for a vector")
    device = resolve_device(device)
    name, build = builder(net, target, shape)
    generator = torch.Generator(device=device).manual_seed(seed)
    exact = gives_signs(target) and spec.features <= MOST_BITS
    batches = 1 if exact else _BATCHES
    inputs, answers = _every_input(target, device) if exact else _drawn(target, samples, generator)
    variance = float(answers.var(correction=0))
    if variance == 0:
        raise BadInput(f"the task '{target.name}' has the same answer everywhere: there is nothing to learn")
    signals, powers = [], []
    for draw in range(draws):
        if draw and not exact:  # fresh inputs, so that the draws' errors are independent
            inputs, answers = _drawn(target, samples, generator)
        module = build(seed + draw).to(device=device, dtype=inputs.dtype).eval()
        pieces = zip(inputs.chunk(batches), answers.chunk(batches), strict=True)
        parts = torch.stack([_gradient(module, x, h) for x, h in pieces]).double()
        signals.append(float(parts[0].square().sum()) if exact else _without_noise(parts))
        some = inputs if exact else inputs[:_POWER_INPUTS]
        powers.append(gradient_power(module, some.float(), name))
        if progress:
            progress(f"signal of {target.name}", 1 / draws)
    shares = [s / (p * variance) if p else 0.0 for s, p in zip(signals, powers, strict=True)]
    share, interval = sum(shares) / draws, mean_interval(shares)
    resolved = exact or (interval is not None and interval[0] > 0)
    if interval is not None:  # no share lies outside; an estimate without its noise may
        interval = (min(max(interval[0], 0.0), 1.0), min(max(interval[1], 0.0), 1.0))
    baseline = 2.0**-spec.features if gives_signs(target) else None
    return TargetSignal(
        net=name,
        task=target.name,
        share=share,
        interval=interval,
        signal=sum(signals) / draws,
        gradient_power=sum(powers) / draws,
        target_variance=variance,
        baseline=baseline,
        times_baseline=None if baseline is None else share / baseline,
        exact=exact,
        resolved=resolved,
        inputs=len(inputs),
        draws=draws,
        shares=tuple(shares),
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
    )


def measure_target_signal(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, task, task_args, draws."""
    options = {k: config[k] for k in ("draws", "samples") if k in config}
    arguments = config.get("task_args", {})
    seed %= 2**62  # every draw adds to it
    net, shape = config["net"], config.get("shape", {})
    return target_signal(net, config["task"], arguments, seed=seed, device=device, **options, **shape).to_json()


def _gradient(module: nn.Module, inputs: Tensor, answers: Tensor) -> Tensor:
    """E[(h − E h) g] over these inputs, as one vector."""
    weights = [p for p in module.parameters() if p.requires_grad]
    total = ((answers - answers.mean()) * module(inputs).reshape(-1)).mean()
    found = torch.autograd.grad(total, weights, allow_unused=True)
    return torch.cat(
        [torch.zeros_like(w).flatten() if g is None else g.flatten() for w, g in zip(weights, found, strict=True)]
    )


def _without_noise(parts: Tensor) -> float:
    """‖E‖² from independent batches: the mean of ⟨a, b⟩ over all pairs of them, in which no noise is squared.

    A batch of n inputs takes its own mean from h, which leaves (n − 1)/n of the covariance: nothing, here.
    """
    count = len(parts)
    total = parts.sum(dim=0).square().sum() - parts.square().sum()
    return float(total / (count * (count - 1)))


def _every_input(task: Task, device: torch.device) -> tuple[Tensor, Tensor]:
    inputs = cube(task.spec.features, torch.float64, torch.device("cpu"))
    answers = itertools.chain.from_iterable(task.solve(row) for row in inputs.tolist())
    return inputs.to(device), torch.tensor(list(answers), dtype=torch.float64, device=device)


def _drawn(task: Task, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    batch = task.sample(1, samples, None, generator)
    return batch.inputs[0], batch.targets[0, :, 0]
