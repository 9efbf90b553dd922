"""The gradient signal along training: what the gradient says of all parities while one of them is learnt."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.gradient.example_gradients import example_gradients
from theodolite.instruments.gradient.signal import LOSSES, Net, Progress, builder, check_bits, parity_spectrum
from theodolite.instruments.gradient.subclass import read_subclass
from theodolite.instruments.gradient.walsh import cube, number_of
from theodolite.measurement import SCHEMA, Provenance, finite
from theodolite.nets.contract import positive
from theodolite.tasks.contract import make_task
from theodolite.theory.gradient import variance_bound
from theodolite.training.loop import singly, train
from theodolite.training.optimiser import ADAM, Rates, Rule
from theodolite.training.step import Weights

_BATCH_SEED = 1_000_003  # keeps the data's stream apart from the weights'


@dataclass(frozen=True)
class Checkpoint:
    """`target` is the squared signal of the parity that is trained on, `accuracy` over all inputs."""

    step: int
    accuracy: float
    loss: float
    variance: float
    bound: float
    ratio: float
    target: float
    by_degree: tuple[float, ...]
    identity_error: float


@dataclass(frozen=True)
class SignalAlong:
    """One checkpoint for every step that was asked for, the start first."""

    net: str
    bits: int
    relevant: int
    loss: str
    subclass: str
    optimiser: str
    learning_rate: float
    batch: int
    checkpoints: tuple[Checkpoint, ...]
    seconds: float
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "gradient-signal-along", **finite(asdict(self))}


def signal_along(
    net: Net,
    bits: int,
    relevant: int,
    steps: int,
    *,
    checkpoints: int | Sequence[int] = 8,
    loss: str = "hinge",
    subclass: str = "all",
    optimiser: str = "sgd",
    learning_rate: float = 0.1,
    batch: int = 32,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
    **shape: Any,
) -> SignalAlong:
    """Train on the parity of the first `relevant` bits, fresh inputs at every step, and measure at checkpoints.

    `checkpoints`: how many, evenly spread, or the steps themselves; the start and the end are always among them.
    """
    started = time.perf_counter()
    positive(bits=bits, steps=steps, batch=batch)
    if loss not in LOSSES:
        raise BadInput(f"the loss '{loss}' is unknown: use {', '.join(LOSSES)}")
    if optimiser not in ("sgd", "adam"):
        raise BadInput(f"the optimiser '{optimiser}' is unknown: use sgd or adam")
    device = resolve_device(device)
    task = make_task("parity", {"bits": bits, "relevant": relevant})
    chosen = read_subclass(subclass, bits)
    name, build = builder(net, task, shape)
    module = build(seed).to(device)
    check_bits(bits, torch.float32, device, module, name)
    inputs = cube(bits, torch.float32, device)
    answers = inputs[:, :relevant].prod(dim=1)
    target = number_of(tuple(range(relevant)))
    trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
    generator = torch.Generator(device=device).manual_seed(seed + _BATCH_SEED)
    count = max(1, checkpoints) if isinstance(checkpoints, int) else 0
    asked = [round(steps * i / count) for i in range(count + 1)] if isinstance(checkpoints, int) else checkpoints
    wanted = {0, steps, *asked}
    found = []

    def look(step: int, weights: Weights) -> None:
        if progress and step:
            progress("training", 1 / steps)
        if step not in wanted:
            return
        with torch.no_grad():
            for own, parameter in trained.items():
                parameter.copy_(weights[own][0])
        gradients = example_gradients(module, inputs, name)
        spectrum = parity_spectrum(gradients, loss, chosen)
        bound = variance_bound(spectrum.gradient_power, chosen.members)
        right = (gradients.outputs * answers > 0).float().mean()
        found.append(
            Checkpoint(
                step=step,
                accuracy=float(right),
                loss=float(mean_loss(gradients.outputs, answers, loss)),
                variance=spectrum.variance,
                bound=bound,
                ratio=spectrum.variance / bound if bound else 0.0,
                target=float(spectrum.power[target]),
                by_degree=tuple(spectrum.by_degree.tolist()),
                identity_error=spectrum.identity_error,
            )
        )

    def draw() -> tuple[Tensor, Tensor]:
        drawn = task.sample(1, batch, None, generator)
        return drawn.inputs[0], drawn.targets[0, :, 0]

    def losses(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        outputs = functional_call(module, {own: w[0] for own, w in weights.items()}, (batch[0],))
        return mean_loss(outputs.reshape(-1), batch[1], loss)[None]

    train(
        {own: p.detach()[None] for own, p in trained.items()},
        losses,
        singly(draw),
        steps=steps,
        rule=Rule("sgd", momentum=0.0, clip=None) if optimiser == "sgd" else ADAM,
        rates=Rates(learning_rate),
        looks=range(steps + 1) if progress else wanted,
        look=look,
    )
    return SignalAlong(
        net=name,
        bits=bits,
        relevant=relevant,
        loss=loss,
        subclass=chosen.name,
        optimiser=optimiser,
        learning_rate=learning_rate,
        batch=batch,
        checkpoints=tuple(found),
        seconds=time.perf_counter() - started,
        provenance=Provenance.here(seed, device_name(device)),
    )


def mean_loss(outputs: Tensor, answers: Tensor, loss: str) -> Tensor:
    if loss == "square":
        return (outputs - answers).square().mean() / 2
    margins = outputs * answers
    return torch.relu(1 - margins).mean() if loss == "hinge" else torch.nn.functional.softplus(-margins).mean()


def measure_signal_along(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, and any argument of `signal_along`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    seed %= 2**62
    return signal_along(config["net"], seed=seed, device=device, **options, **config.get("shape", {})).to_json()
