"""Does the growth of rank with depth survive softmax, residual paths and norms? python benchmarks/growth_epsilon.py.

    python benchmarks/growth_epsilon.py --out growth.json          a quarter of an hour on one core

One head of full width d = 2, 3, 4, without positions or MLP, 2d tokens, depths 1 to 4, twelve draws of weights. Four
networks: Eq. 7.6, the same with softmax, with softmax and residual paths, and with RMS norms before each layer too.
ε-rank under d₂ by `instruments.rank`, 192 points a side and 96 held out, one sample for each draw; inputs uniform in
[−1, 1], as of normal ones a few points outweigh all others at degree 81.

THE RULE, fixed before the run. r(L) of a draw is its held-out ε-rank. A draw is resolved if the held-out error reaches
ε at a rank of at most half the points and of at most three times the rank in the sample. A step L → L+1 of a network is
resolved if at least 10 of the 12 draws are, at both depths. Its growth is the mean over these draws of
log₃ r(L+1) − log₃ r(L), with a bootstrap interval over draws at level 1 − 0.05/(number of resolved steps). ε = 0.1
decides; ε = 0.01 is reported.

- *The law survives* in a network and width if the last resolved step's interval reaches what exact rank does there,
  log₃ cap(L+1) − log₃ cap(L), or lies above it.
- *It does not* if the interval lies below it.
- Where no step is resolved the instrument cannot tell, which is said.

What this cannot show: the slope D = d(d+1)/2 itself, which exact rank reaches only where ranks are far beyond any
number of points (d = 2: 3, 18, 232, 4,538 at depths 1 to 4).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.instruments.rank.epsilon import first_within, spectrum_of
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.nets.load import load
from theodolite.partition import Partition
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.theory.cap import attention_cap
from timing import hardware

NETWORKS = ("eq-7.6", "softmax", "softmax-residual", "softmax-residual-norm")
WIDTHS, DEPTHS, DRAWS, POINTS, EPSILONS = (2, 3, 4), (1, 2, 3, 4), 12, 192, (0.1, 0.01)


class Attention(nn.Module):
    """One head of full width, layer on layer; logits over √d where there is a softmax."""

    def __init__(self, network: str, depth: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.softmax, self.residual, self.norm = (part in network for part in ("softmax", "residual", "norm"))
        draws = torch.randn(depth, 4, width, width, generator=generator, dtype=torch.float64) / math.sqrt(width)
        self.weights = nn.Parameter(draws)

    def forward(self, x: Tensor) -> Tensor:
        for query, key, value, output in self.weights:
            seen = x / (x.square().mean(dim=-1, keepdim=True) + 1e-9).sqrt() if self.norm else x
            scores = (seen @ query.T) @ (seen @ key.T).transpose(-1, -2)
            if self.softmax:
                scores = torch.softmax(scores / math.sqrt(x.shape[-1]), dim=-1)
            mixed = scores @ (seen @ value.T) @ output.T
            x = x + mixed if self.residual else mixed
        return x


def measure(network: str, depth: int, width: int, draw: int) -> dict[str, Any]:
    """[in-sample, held-out] ε-rank at every ε, from one sample of points."""
    random = torch.Generator().manual_seed(1000 * width + draw)
    subject = load(Attention(network, depth, width, random).double(), tokens=2 * width, features=width)
    trial = torch.randn(6, 2 * width, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    evaluate, _ = ScalarFunction.of(subject, None, 0).in_floats(torch.float64, torch.device("cpu"), trial)
    drawn = (2, POINTS + POINTS // 2, width, width)
    a, b = 2 * torch.rand(drawn, generator=random, dtype=torch.float64) - 1
    matrix = pair_matrix(evaluate, a, b, Partition.parse("left-right", 2 * width))
    found = spectrum_of(matrix, POINTS, POINTS * torch.finfo(torch.float64).eps)
    row: dict[str, Any] = {"network": network, "depth": depth, "width": width, "draw": draw}
    return row | {str(e): [first_within(errors, e) for errors in (found.in_sample, found.held_out)] for e in EPSILONS}


def steps(rows: list[dict[str, Any]], epsilon: float) -> list[dict[str, Any]]:
    """What the rule says of every network, width and step, the intervals at the level of all that are resolved."""
    ranks = {(r["network"], r["width"], r["depth"], r["draw"]): _resolved(*r[str(epsilon)]) for r in rows}
    found = []
    for network in NETWORKS:
        for width in WIDTHS:
            for depth in DEPTHS[:-1]:
                pairs = [
                    [ranks[network, width, layers, draw] for layers in (depth, depth + 1)] for draw in range(DRAWS)
                ]
                kept = [(before, after) for before, after in pairs if before is not None and after is not None]
                exact = [math.log(attention_cap(layers, width, width, width), 3) for layers in (depth, depth + 1)]
                grown = [math.log(after / before, 3) for before, after in kept]
                found.append(
                    {"network": network, "width": width, "step": [depth, depth + 1], "resolved": len(kept) >= 10}
                    | {
                        "draws": len(kept),
                        "exact": exact[1] - exact[0],
                        "growth": float(np.mean(grown)) if grown else None,
                    }
                    | {"_": grown}
                )
    level = 1 - 0.05 / max(1, sum(step["resolved"] for step in found))
    for step in found:
        grown = step.pop("_")
        if step["resolved"]:
            means = resampled_means(grown, np.random.default_rng(0), 10_000)
            step["interval"] = list(percentile_interval(means, level))
    return found


def _resolved(in_sample: int, held_out: int | None) -> int | None:
    return held_out if held_out is not None and held_out <= min(POINTS // 2, 3 * in_sample) else None


def verdicts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = []
    for network in NETWORKS:
        for width in WIDTHS:
            own = [s for s in found if (s["network"], s["width"]) == (network, width) and s["resolved"]]
            if not own:
                said.append({"network": network, "width": width, "verdict": "not resolved"})
                continue
            last = own[-1]
            verdict = "survives" if last["interval"][1] >= last["exact"] else "does not"
            said.append({"network": network, "width": width, "verdict": verdict, "step": last["step"]})
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    started = time.perf_counter()
    rows = [
        measure(network, depth, width, draw)
        for network in NETWORKS
        for width in WIDTHS
        for depth in DEPTHS
        for draw in range(DRAWS)
    ]
    document: dict[str, Any] = {"hardware": hardware(torch.device("cpu")), "seconds": time.perf_counter() - started}
    for epsilon in EPSILONS:
        found = steps(rows, epsilon)
        document[str(epsilon)] = {"verdicts": verdicts(found), "steps": found}
    out.write_text(json.dumps(document | {"rows": rows}, indent=1), encoding="utf-8")
    for said in document[str(EPSILONS[0])]["verdicts"]:
        print(*said.values())


if __name__ == "__main__":
    main()
