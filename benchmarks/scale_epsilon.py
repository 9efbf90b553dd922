"""Does the ε-rank of a trained decoder say how well it predicts? python benchmarks/scale_epsilon.py --out FILE.

Decoders of 120k parameters at six depths (1 to 8), four seeds each (from 5000 on), trained as in the study of depth
against width (T9) at a rate of 0.1/width. Of each the separation rank between the first and the last half of a window:
rows are the first halves of held-out windows, columns the last halves of others, an entry the logarithm of the
probability that a space comes next, less the mean of all entries; 192 points a side and 96 held out, ε = 0.1 and 0.3
under d₂.

Fixed before the run: ε-rank *predicts* the loss at equal parameters if Spearman's correlation over the 24 networks has
a 95 % interval over resampled networks without 0, at ε = 0.3; the other ε is reported.

Added after a first run, in which all 16 networks had rank 1, since what follows a window depends mostly on its last
symbols, and before any run that measures it: the *interaction* of the halves, the same matrix less the means of its
rows and of its columns, so that what one half says alone does not count. By the same rule, at ε = 0.3. On a CPU:
--device cpu --size 30000 --tokens 1500000 --points 64 --depths 1,2,3,4.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor, nn

from scale_beside import BATCH, BYTES, CONTEXT, DEPTHS, ROWS, SIZE
from theodolite.instruments.rank.epsilon import first_within, spectrum_of
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.lab.condition import condition
from theodolite.measurement import seed_of
from theodolite.partition import Partition
from theodolite.scaling.experiment import Experiment
from theodolite.statistics.bootstrap import percentile_interval
from theodolite.tasks import make_task
from theodolite.tasks.text import Text
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.precision import check_precision
from theodolite.training.program import Batching
from theodolite.training.session import Session
from timing import hardware

FIRST, SEEDS, RATE, POINTS, EPSILONS, DECIDES = 5000, 4, 0.1, 192, (0.1, 0.3), 0.3
SPACE, RESAMPLES = 32, 2000


def trained(task: Text, depth: int, size: int, tokens: int, device: torch.device) -> tuple[Session, dict[str, Any]]:
    experiment = Experiment("decoder", task, [size], [depth], [0], [RATE], tokens / size, BATCH, ROWS)
    planned = experiment.plan()
    cell = planned.cells[0]
    shape = planned.shapes[cell.key]
    _, pairing = planned.training.conditions[condition(cell.config)]
    steps = experiment.steps(size)
    specs = [MemberSpec(f"{depth} {i}", FIRST + i, Rates(RATE / shape.width)) for i in range(SEEDS)]
    session = Session(
        pairing,
        specs,
        Schedule(steps, BATCH, steps, ROWS, to_the_end=True),
        Rule(),
        Batching(SEEDS, batched=True, graphs=device.type == "cuda"),
        device,
        precision=check_precision("tf32" if device.type == "cuda" else "float32", device.type),
    )
    while session.step < steps - steps % 16:  # the last block hands members over, with their weights gone
        session.advance()
    return session, {"depth": depth, "width": shape.width}


def epsilon_ranks(module: nn.Module, text: Tensor, points: int) -> dict[str, Any]:
    """`text`: (window, symbol) held out. By ε, in sample and held out; `share`: of the variance, of the interaction."""
    half = text.shape[1] // 2
    hot = F.one_hot(text, 256).float()
    a, b = hot[: len(hot) // 2, :half], hot[len(hot) // 2 :, half:]

    def evaluate(x: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.log_softmax(module(x)[:, -1].double(), dim=-1)[:, SPACE]

    matrix = pair_matrix(evaluate, a, b, Partition.parse("left-right", 2 * half))
    both = matrix - matrix.mean(dim=0) - matrix.mean(dim=1, keepdim=True) + matrix.mean()
    share = float(both.square().sum() / (matrix - matrix.mean()).square().sum())
    return {**_within(matrix - matrix.mean(), points), "interaction": {**_within(both, points), "share": share}}


def _within(matrix: Tensor, points: int) -> dict[str, Any]:
    found = spectrum_of(matrix, points, points * torch.finfo(torch.float32).eps)
    return {str(e): [first_within(found.in_sample, e), first_within(found.held_out, e)] for e in EPSILONS}


def correlation(networks: list[dict[str, Any]], epsilon: float, of: Callable[[Any], Any]) -> dict[str, Any]:
    """Of the rank in the sample, which every network has, with the loss."""
    ranks = np.array([of(one["ranks"])[str(epsilon)][0] for one in networks], dtype=float)
    losses = np.array([one["loss"] for one in networks])
    generator = np.random.default_rng(seed_of(["epsilon-rank of trained decoders"]))
    drawn = generator.integers(len(networks), size=(RESAMPLES, len(networks)))
    if len(set(ranks)) == 1:
        return {"spearman": None, "interval": None}
    said = [_spearman(ranks[rows], losses[rows]) for rows in drawn if len(set(ranks[rows])) > 1]
    return {"spearman": _spearman(ranks, losses), "interval": percentile_interval(said)}


def _spearman(ranks: np.ndarray, losses: np.ndarray) -> float:
    said: Any = spearmanr(ranks, losses)
    return float(said.statistic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default="text")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--tokens", type=int, default=BYTES)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    device = torch.device(options.device)
    task = make_task("text", {"corpus": options.text, "context": CONTEXT})
    assert isinstance(task, Text)
    generator = torch.Generator(device).manual_seed(0)
    many = 2 * (options.points + options.points // 2)
    text = task.held_out.sample(1, many, None, generator).inputs[0]
    test = task.held_out.sample(1, ROWS, None, generator)
    networks: list[dict[str, Any]] = []
    for depth in map(int, options.depths.split(",")):
        session, about = trained(task, depth, options.size, options.tokens, device)
        for member in range(SEEDS):
            with session.program.members.alone(member) as module:
                ranks = epsilon_ranks(module, text, options.points)
                networks.append({**about, "loss": loss_of(module, test.inputs[0]), "ranks": ranks})
        print(networks[-SEEDS:], flush=True)
        found = {"hardware": hardware(device), "networks": networks, **decided(networks)}
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def decided(networks: list[dict[str, Any]]) -> dict[str, Any]:
    return {**_decided(networks, lambda ranks: ranks), "interaction": _decided(networks, lambda r: r["interaction"])}


def _decided(networks: list[dict[str, Any]], of: Callable[[Any], Any]) -> dict[str, Any]:
    said = {str(e): correlation(networks, e, of) for e in EPSILONS}
    low, high = said[str(DECIDES)]["interval"] or (0, 0)
    return {"correlation": said, "predicts": low > 0 or high < 0}


def loss_of(module: nn.Module, text: Tensor) -> float:
    """Bits a byte."""
    total = 0.0
    with torch.no_grad():
        for window in text.split(64):
            logits = module(F.one_hot(window, 256).float())[:, :-1].float()
            total += float(F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten(), reduction="sum"))
    return total / text[:, 1:].numel() / float(np.log(2))


if __name__ == "__main__":
    main()
