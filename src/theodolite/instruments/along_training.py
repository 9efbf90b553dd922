"""The instruments along training: how many products, how much of a far symbol and how many numbers of the past a net
uses, before it has learnt a task, on the way and after.

Inputs are the task's own symbols, drawn alike at every place. ε-rank and sensitivity are those of the other sections,
of one net with the weights it has. The state that is used is how many directions of the past's derivatives stand out of
its strongest one by no more than a factor of 100: the state size counts every direction, however faint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.instruments.rank.epsilon import epsilon_rank
from theodolite.instruments.sensitivity.one_symbol import sensitivity
from theodolite.instruments.state_past import NotMeasured, Past
from theodolite.instruments.through_embedding import through_embedding
from theodolite.measurement import SCHEMA, Provenance, finite, seed_of
from theodolite.nets.contract import positive
from theodolite.nets.load import Subject, blueprint, seeded
from theodolite.tasks.contract import Batch, Task, make_task
from theodolite.training.loop import singly, train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import Pairing, pair
from theodolite.training.scoring import losses, row_scores
from theodolite.training.step import Weights

_ROWS = 256  # on which a score is taken
_LENGTHS = (8, 16, 32, 64)
_PAST = 16  # tokens whose use is looked at
_FAINT = 0.01  # of the strongest direction

Net = str | Callable[..., Any]


@dataclass(frozen=True)
class Look:
    """After `step` steps. `felt`: change of the output by one symbol at the shortest and the longest length measured,
    with the exponent where a power of the length is its law; None where it could not be measured."""

    step: int
    score: float
    rank: int
    resolved: bool
    felt: tuple[float, float] | None
    exponent: float | None
    used: int | None


@dataclass(frozen=True)
class AlongTraining:
    net: str
    task: str
    chance: float
    epsilon: float
    lengths: tuple[int, ...]
    looks: tuple[Look, ...]
    seconds: float
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "along-training", **finite(asdict(self))}


def along_training(
    net: Net,
    task: str | Task,
    task_args: Mapping[str, Any] | None = None,
    *,
    steps: int = 300,
    looks: int = 3,
    learning_rate: float = 5e-3,
    batch: int = 32,
    epsilon: float = 0.01,
    points: int = 48,
    seed: int = 0,
    device: str | torch.device = "cpu",
    **shape: Any,
) -> AlongTraining:
    """Train one net on a task of strings or bits, and measure it `looks` times, the start and the end among them."""
    started = time.perf_counter()
    positive(steps=steps, batch=batch)
    if looks < 2:
        raise BadInput(f"{looks} looks have no before and after: ask for at least 2")
    device = resolve_device(device)
    target = make_task(task, dict(task_args or {})) if isinstance(task, str) else task
    if target.spec.kind == "sequence" and target.spec.vocab is None:
        raise NotApplicable(f"the task '{target.name}' gives numbers: symbols are needed")
    bench = _Bench(pair(net, target, shape), seed, device, epsilon, points)
    found: list[Look] = []
    train(
        {name: p.detach()[None] for name, p in bench.trained.items()},
        bench.losses,
        singly(lambda: bench.draw(batch)),
        steps=steps,
        rule=Rule("adamw"),
        rates=Rates(learning_rate),
        looks=sorted({round(steps * k / (looks - 1)) for k in range(looks)}),
        look=lambda step, weights: found.append(bench.look(step, weights)),
        block=1,
        graphs=False,
    )
    return AlongTraining(
        bench.pairing.name,
        target.name,
        target.spec.chance,
        epsilon,
        _LENGTHS,
        tuple(found),
        time.perf_counter() - started,
        Provenance.here(seed, device_name(device)),
    )


class _Bench:
    def __init__(self, pairing: Pairing, seed: int, device: torch.device, epsilon: float, points: int) -> None:
        self.pairing, self.seed, self.device, self.epsilon, self.points = pairing, seed, device, epsilon, points
        self.module = pairing.build(seed).to(device)
        self.trained = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.one_hot = pairing.one_hot(device)
        self.generator = torch.Generator(device=device).manual_seed(seed_of(["along", seed]))

    def draw(self, rows: int) -> tuple[Tensor, ...]:
        drawn = self._sample(rows, self.generator)
        return drawn.inputs[0], drawn.targets[0], drawn.mask[0]

    def _sample(self, rows: int, generator: torch.Generator) -> Batch:
        lengths, length = self.pairing.task.spec.lengths, None
        if lengths is not None:
            low, high = lengths
            length = low + int(torch.randint(high - low + 1, (1,), generator=generator, device=self.device))
        return self.pairing.task.sample(1, rows, length, generator)

    def losses(self, weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        inputs, targets, mask = batch
        read = self.pairing.feed(inputs, self.one_hot)
        outputs = functional_call(self.module.train(), {name: w[0] for name, w in weights.items()}, (read,))
        return losses(self.pairing.task.spec, outputs[None], Batch(inputs[None], targets[None], mask[None]))

    def look(self, step: int, weights: Weights) -> Look:
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(weights[name][0])
        self.module.eval()
        rank = epsilon_rank(
            self._subject(),
            epsilon=self.epsilon,
            points=self.points,
            resamples=1,
            inputs="signs",
            dtype="float32",
            relative_to="spread",
            seed=self.seed,
            device=self.device,
        )
        felt, exponent = self._felt()
        return Look(step, self._score(), rank.rank, bool(rank.details["resolved"]), felt, exponent, self._used())

    def _score(self) -> float:
        generator = torch.Generator(device=self.device).manual_seed(seed_of(["score", self.seed]))
        scores = []
        for _ in range(4):
            batch = self._sample(_ROWS // 4, generator)
            with torch.no_grad():
                outputs = self.module(self.pairing.feed(batch.inputs[0], self.one_hot))
            scores.append(row_scores(self.pairing.task.spec, outputs[None], batch).mean())
        return float(torch.stack(scores).mean())

    @property
    def _tokens(self) -> int:
        return max(2, self.pairing.most)

    def _subject(self) -> Subject:
        spec = self.pairing.task.spec
        if spec.kind == "vector":
            return Subject(self.pairing.name, self.module, "vector", spec.features, 1, {})
        reading = _OfIds(self.module, self.one_hot)
        return Subject(self.pairing.name, reading, "sequence", self._tokens, 1, {}, vocab=spec.vocab)

    def _felt(self) -> tuple[tuple[float, float] | None, float | None]:
        spec = self.pairing.task.spec
        if spec.kind != "sequence" or spec.vocab is None or spec.vocab < 2:
            return None, None
        reading = _OfIds(self.module, self.one_hot)
        try:
            found = sensitivity(
                reading, lengths=_LENGTHS, draws=3, seed=self.seed, device=self.device, vocab=spec.vocab, tokens=8
            )
        except TheodoliteError:  # made for fewer tokens
            return None, None
        curve = found.diagnostics["curve"]
        return (curve[0]["change"], curve[-1]["change"]), found.value

    def _used(self) -> int | None:
        spec = self.pairing.task.spec
        if spec.kind != "sequence" or spec.vocab is None:
            return None
        sizes = {"tokens": _PAST, "vocab" if self.pairing.reads_ids else "features": spec.vocab}
        try:
            with seeded(self.seed):
                plan = through_embedding(blueprint(self.module.cpu(), **sizes))
                return Past(plan, self.seed, 4.0).used(_PAST, _FAINT)
        except (NotMeasured, TheodoliteError):
            return None
        finally:
            self.module.to(self.device)


class _OfIds(nn.Module):
    """A net of symbols, whatever it reads them as."""

    def __init__(self, net: nn.Module, one_hot: Tensor | None) -> None:
        super().__init__()
        self.net, self.one_hot = net, None if one_hot is None else nn.Buffer(one_hot)

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(ids if self.one_hot is None else nn.functional.embedding(ids, self.one_hot))


def measure_along_training(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, task, task_args, and any option of `along_training`."""
    options = {k: v for k, v in config.items() if k not in ("net", "shape")}
    return along_training(config["net"], seed=seed, device=device, **options, **config.get("shape", {})).to_json()
