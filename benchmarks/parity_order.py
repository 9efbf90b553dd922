"""Does the signal spectrum say which parities are learnt first?  python benchmarks/parity_order.py --out order.json

For every network, number n of bits and degree k: the signal of the parity of the first k bits where training starts
(mean over draws of the weights), and the steps SGD takes to 98 % accuracy, over seeds. Reported: Spearman's rank
correlation of signal and steps with a bootstrap interval over cells, overall and in groups, beside the correlation that
k alone and n^k alone have. Perceptrons: one hidden layer, torch's own initialisation, hinge loss, SGD 0.1, batches of
32 fresh inputs. Sequence nets read the bits as tokens, with Adam 0.003.

Every network is saved when it is finished; the same command goes on where it was stopped. `--full` is meant for a GPU.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from theodolite.instruments.gradient.example_gradients import example_gradients
from theodolite.instruments.gradient.signal import builder, parity_spectrum
from theodolite.instruments.gradient.subclass import read_subclass
from theodolite.instruments.gradient.walsh import cube, degrees, number_of
from theodolite.tasks.parity import Parity
from timing import hardware

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "gelu": nn.functional.gelu, "quadratic": torch.square}
SOLVED = 0.98


@dataclass(frozen=True)
class Network:
    """`bias`: drawn (torch's), zero (trained from 0) or none. Sequence nets have no activation or bias to set."""

    name: str
    width: int
    activation: str = ""
    bias: str = ""

    @property
    def key(self) -> str:
        return " ".join(str(part) for part in asdict(self).values() if part != "")


class Perceptron(nn.Module):
    def __init__(self, bits: int, network: Network) -> None:
        super().__init__()
        self.hidden = nn.Linear(bits, network.width, bias=network.bias != "none")
        self.read = nn.Linear(network.width, 1, bias=network.bias != "none")
        self.activation = ACTIVATIONS[network.activation]
        if network.bias == "zero":
            nn.init.zeros_(self.hidden.bias)
            nn.init.zeros_(self.read.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self.activation(self.hidden(x)))


@dataclass(frozen=True)
class Setting:
    bits: tuple[int, ...]
    degrees: tuple[int, ...]
    seeds: int
    steps: int
    sequence_steps: int
    every: int
    draws: int
    tested: int
    networks: tuple[Network, ...]


QUICK = Setting(
    bits=(8, 10, 12),
    degrees=(1, 2, 3, 4, 5),
    seeds=4,
    steps=4000,
    sequence_steps=0,
    every=50,
    draws=10,
    tested=512,
    networks=(
        Network("perceptron", 100, "relu", "drawn"),
        Network("perceptron", 100, "relu", "none"),
        Network("perceptron", 100, "tanh", "drawn"),
        Network("perceptron", 100, "quadratic", "drawn"),
    ),
)
FULL = Setting(
    bits=(8, 10, 12, 14),
    degrees=(1, 2, 3, 4, 5, 6),
    seeds=10,
    steps=12_000,
    sequence_steps=3000,
    every=50,
    draws=20,
    tested=2048,
    networks=(
        *(
            Network("perceptron", width, activation, bias)
            for activation in ACTIVATIONS
            for bias in ("drawn", "zero", "none")
            for width in (100, 400)
            if width == 100 or bias == "drawn"
        ),
    ),
)
ARCHITECTURES = Setting(
    bits=(8,),
    degrees=(1, 2, 3, 4, 5),
    seeds=5,
    steps=3000,
    sequence_steps=3000,
    every=50,
    draws=10,
    tested=512,
    networks=tuple(Network(name, 16) for name in ("rnn", "lstm", "convolution", "transformer", "linear-transformer")),
)


def build(network: Network, bits: int, seed: int) -> nn.Module:
    if network.name == "perceptron":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return Perceptron(bits, network)
    return builder(network.name, Parity(bits, 1), {"width": network.width})[1](seed)


def spectra(network: Network, bits: int, setting: Setting, device: torch.device) -> dict[str, list[float]]:
    """Mean over draws: the squared signal of the first k bits, the mean over all parities of degree k, and G²."""
    inputs = cube(bits, torch.float32, device)
    level = degrees(bits, device)
    own, mean, power = [], [], []
    for draw in range(setting.draws):
        found = example_gradients(build(network, bits, 10_000 + draw), inputs, network.name)
        spectrum = parity_spectrum(found, "hinge", read_subclass("all", bits))
        own.append([float(spectrum.power[number_of(tuple(range(k)))]) for k in setting.degrees])
        mean.append([float(spectrum.power[level == k].mean()) for k in setting.degrees])
        power.append(spectrum.gradient_power)
    average = lambda rows: [statistics.fmean(column) for column in zip(*rows, strict=True)]
    return {"first bits": average(own), "degree": average(mean), "gradient power": [statistics.fmean(power)]}


def train(network: Network, members: list[tuple[int, int, int]], setting: Setting, device: torch.device) -> list:
    """Steps to solve for every member (bits, degree, seed) of one ensemble, None where it was not solved.

    Perceptrons of different n share an ensemble: bits that a member does not have are 0 and so are their weights.
    """
    widest = max(bits for bits, _, _ in members)
    modules = [build(network, bits, seed) for bits, _, seed in members]
    generator = torch.Generator(device=device).manual_seed(len(members))
    answer: list[int | None] = [None] * len(members)
    if network.name == "perceptron":
        weights, forward = _perceptrons(modules, network, widest, device)
    else:
        weights, forward = _stack(modules, device)
    have = torch.tensor([[i < b for i in range(widest)] for b, _, _ in members], device=device).float()[:, None]
    skip = torch.tensor([[i >= k for i in range(widest)] for _, k, _ in members], device=device)[:, None]
    alive = list(range(len(members)))
    sgd = network.name == "perceptron"
    adam = {} if sgd else {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}
    limit = setting.steps if sgd else setting.sequence_steps

    def data(batch: int) -> tuple[Tensor, Tensor]:
        shape = (len(have), batch, widest)
        signs = 2 * torch.randint(2, shape, generator=generator, device=device).float() - 1
        return signs * have, torch.where(skip, 1.0, signs).prod(dim=-1)

    for step in range(limit + 1):
        if step % setting.every == 0:
            x, h = data(setting.tested)
            with torch.no_grad():
                right = ((forward(weights, x) * h) > 0).float().mean(dim=1)
            done = (right >= SOLVED).tolist()
            for place, solved in zip(alive, done, strict=True):
                if solved:
                    answer[place] = step
            keep = torch.tensor([not solved for solved in done], device=device)
            alive = [place for place, solved in zip(alive, done, strict=True) if not solved]
            if not alive:
                break
            if not bool(keep.all()):
                weights = {name: w[keep].detach().clone() for name, w in weights.items()}
                have, skip = have[keep], skip[keep]
                adam = {name: (a[keep], b[keep]) for name, (a, b) in adam.items()}
        x, h = data(32)
        weights = {name: w.detach().requires_grad_() for name, w in weights.items()}
        loss = torch.relu(1 - forward(weights, x) * h).mean(dim=1).sum()  # members do not meet: each its own gradient
        found = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for (name, w), g in zip(weights.items(), found, strict=True):
                if sgd:
                    w.add_(g, alpha=-0.1)
                    continue
                first, second = adam[name]
                first.mul_(0.9).add_(g, alpha=0.1)
                second.mul_(0.999).addcmul_(g, g, value=0.001)
                size = (second / (1 - 0.999 ** (step + 1))).sqrt_().add_(1e-8)
                w.addcdiv_(first, size, value=-0.003 / (1 - 0.9 ** (step + 1)))
    return answer


def _perceptrons(modules: list[Any], network: Network, widest: int, device: torch.device) -> tuple:
    pad = lambda w: nn.functional.pad(w, (0, widest - w.shape[1])).T
    weights = {
        "into": torch.stack([pad(m.hidden.weight.detach()) for m in modules]).to(device),
        "out": torch.stack([m.read.weight.detach().T for m in modules]).to(device),
    }
    if network.bias != "none":
        weights["shift"] = torch.stack([m.hidden.bias.detach()[None] for m in modules]).to(device)
        weights["offset"] = torch.stack([m.read.bias.detach()[None] for m in modules]).to(device)
    activation = ACTIVATIONS[network.activation]

    def forward(w: dict[str, Tensor], x: Tensor) -> Tensor:
        if "shift" not in w:
            return (activation(x @ w["into"]) @ w["out"])[..., 0]
        return torch.baddbmm(w["offset"], activation(torch.baddbmm(w["shift"], x, w["into"])), w["out"])[..., 0]

    return weights, forward


def _stack(modules: list[nn.Module], device: torch.device) -> tuple:
    for module in modules:
        module.to(device)
    parameters, buffers = stack_module_state(modules)
    buffers = {name: b[0] for name, b in buffers.items()}
    one = vmap(lambda w, x: functional_call(modules[0], {**w, **buffers}, (x,))[..., 0])
    return {name: p.detach() for name, p in parameters.items()}, one


def measure(network: Network, setting: Setting, device: torch.device) -> list[dict[str, object]]:
    """One row a cell (n, k)."""
    started = time.perf_counter()
    groups = [list(setting.bits)] if network.name == "perceptron" else [[setting.bits[0]]]
    rows = []
    for group in groups:
        members = [(n, k, seed) for n in group for k in setting.degrees for seed in range(setting.seeds)]
        steps = dict(zip(members, train(network, members, setting, device), strict=True))
        for n in group:
            found = spectra(network, n, setting, device)
            for place, k in enumerate(setting.degrees):
                rows.append(
                    {
                        **asdict(network),
                        "bits": n,
                        "degree": k,
                        "signal": found["first bits"][place],
                        "degree_signal": found["degree"][place],
                        "gradient_power": found["gradient power"][0],
                        "steps": [steps[n, k, seed] for seed in range(setting.seeds)],
                    }
                )
    print(f"{network.key}: {time.perf_counter() - started:.1f} s", flush=True)
    return rows


def summarise(cells: list[dict], limit: int) -> dict[str, object]:
    """Rank correlations; a cell that is not solved counts as slower than all that are, ties among themselves."""
    groups: dict[str, list[dict]] = {"all": cells}
    for cell in cells:
        for label in (
            f"network {cell['name']} {cell['width']} {cell['activation']} {cell['bias']}".strip(),
            f"n = {cell['bits']}",
            "odd k ≥ 3"
            if cell["degree"] % 2 and cell["degree"] > 1
            else "even k"
            if cell["degree"] % 2 == 0
            else "k = 1",
        ):
            groups.setdefault(label, []).append(cell)
    result = {}
    for label, members in groups.items():
        steps = [_median(cell["steps"], limit) for cell in members]
        predictors = {
            "signal": [-cell["degree_signal" if cell["name"] == "perceptron" else "signal"] for cell in members],
            "k": [cell["degree"] for cell in members],
            "n^k": [cell["degree"] * math.log(cell["bits"]) for cell in members],
        }
        result[label] = {
            "cells": len(members),
            "solved": sum(step <= limit for step in steps),
            **{name: _correlation(values, steps) for name, values in predictors.items()},
        }
    return result


def _median(steps: list[int | None], limit: int) -> float:
    return statistics.median(limit * 2 if step is None else step for step in steps)


def _correlation(x: list[float], y: list[float]) -> dict[str, object] | None:
    if len(x) < 4 or len(set(y)) == 1 or len(set(x)) == 1:
        return None
    generator = np.random.default_rng(0)
    pairs = np.array([x, y])
    draws = []
    for _ in range(1000):
        sample = pairs[:, generator.integers(len(x), size=len(x))]
        if len(set(sample[0])) > 1 and len(set(sample[1])) > 1:
            draws.append(float(stats.spearmanr(*sample).statistic))  # pyright: ignore[reportAttributeAccessIssue]
    low, high = np.quantile(draws, (0.025, 0.975))
    return {"spearman": float(stats.spearmanr(x, y).statistic), "interval": [float(low), float(high)]}


def pairs_of_degrees(cells: list[dict], limit: int) -> list[dict[str, object]]:
    """Odd k beside the next even k: the ratio of their signals and of their steps."""
    by = {(c["name"], c["width"], c["activation"], c["bias"], c["bits"], c["degree"]): c for c in cells}
    rows = []
    for key, cell in by.items():
        other = by.get((*key[:-1], key[-1] + 1))
        if key[-1] % 2 == 1 and other:
            rows.append(
                {
                    "network": " ".join(str(part) for part in key[:4] if part != ""),
                    "bits": key[4],
                    "odd": key[5],
                    "signal_odd": cell["degree_signal"],
                    "signal_even": other["degree_signal"],
                    "signal_odd_over_even": cell["degree_signal"] / other["degree_signal"]
                    if other["degree_signal"]
                    else None,
                    "steps_odd": _median(cell["steps"], limit),
                    "steps_even": _median(other["steps"], limit),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file, read first where it is there")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--full", action="store_true", help="14 bits, 6 degrees, 10 seeds, 16 perceptrons")
    which.add_argument("--architectures", action="store_true", help="networks of tokens instead, at 8 bits")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    setting = FULL if options.full else ARCHITECTURES if options.architectures else QUICK
    device = torch.device(options.device)
    asked = json.loads(json.dumps(asdict(setting)))
    document: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {"networks": {}}
    if document.get("setting", asked) != asked:
        parser.error(f"{options.out} was made with another setting: give another file")
    started = time.perf_counter()
    for network in setting.networks:
        if network.key not in document["networks"]:
            document["networks"][network.key] = measure(network, setting, device)
            cells = [cell for rows in document["networks"].values() for cell in rows]
            taken = document.get("seconds", 0.0) + time.perf_counter() - started
            started = time.perf_counter()
            document |= {
                "benchmark": "parity order",
                "hardware": hardware(device),
                "setting": asked,
                "seconds": taken,
                "correlation": summarise(cells, setting.steps),
                "odd_and_even": pairs_of_degrees(cells, setting.steps),
            }
            options.out.write_text(json.dumps(document, indent=1) + "\n")
    for label, found in document["correlation"].items():
        shown = {name: found[name] and round(found[name]["spearman"], 2) for name in ("signal", "k", "n^k")}
        print(f"{label}: {found['cells']} cells, {found['solved']} solved, Spearman {shown}")


if __name__ == "__main__":
    main()
