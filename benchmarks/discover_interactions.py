"""Which pairs of variables interact, from data: ours beside peers.  python benchmarks/discover_interactions.py --json

F1–F10 (Tsang, Cheng and Liu 2018), the area under the ROC curve over the 45 pairs, on the same rows for all:
- ours: joint effects of an ensemble on rows it has not seen, and what the sum of the sure terms leaves over
  (theodolite.structure.search.pairs.pair_scores);
- nid: neural interaction detection, written from the paper: a ReLU perceptron 140-100-60-20 under ℓ₁ with a univariate
  network (10-10-10) a variable beside it, strength of a pair = Σ_units (influence of the unit · smaller of its two
  first-layer weights), the best pass by held-out rows;
- fast: interpret-core's measure_interactions after an additive fit, left out where interpret is not installed;
- hessian: mean |∂²f/∂x_i∂x_j| of one smooth perceptron 64-64 over the rows.
Results are kept in --results a (function, noise, method) and seed, so that a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.known_structures.interaction_functions import INTERACTION_FUNCTIONS
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from theodolite.structure.search.pairs import pair_scores
from timing import hardware

Scores = dict[tuple[int, int], float]
PENALTY = 5e-5  # ℓ₁ of NID, as in its authors' code, with their batch of 100 and rate of 0.005


def ours(x: np.ndarray, y: np.ndarray, seed: int) -> Scores:
    names = [f"x{i + 1}" for i in range(x.shape[1])]
    found = pair_scores(x, y, names, np.random.default_rng(seed))
    return {(names.index(a), names.index(b)): score for (a, b), score in found.items()}


def fast(x: np.ndarray, y: np.ndarray, seed: int) -> Scores:
    from interpret.glassbox import ExplainableBoostingRegressor
    from interpret.utils import measure_interactions

    additive = ExplainableBoostingRegressor(interactions=0, random_state=seed, n_jobs=1).fit(x, y)
    ranked = measure_interactions(x, y, init_score=additive)
    scores = dict.fromkeys(combinations(range(x.shape[1]), 2), 0.0)
    return scores | {(min(pair), max(pair)): float(score) for pair, score in ranked}


def hessian(x: np.ndarray, y: np.ndarray, seed: int) -> Scores:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    rows = train(lambda batch: net(batch)[:, 0], list(net.parameters()), x, y, seed)[1]
    second = torch.func.vmap(torch.func.hessian(lambda row: net(row)[0]))(rows[:2000]).detach().abs().mean(0)
    return {pair: float(second[pair]) for pair in combinations(range(x.shape[1]), 2)}


def nid(x: np.ndarray, y: np.ndarray, seed: int) -> Scores:
    torch.manual_seed(seed)
    variables = x.shape[1]
    sizes = [variables, 140, 100, 60, 20, 1]
    layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]
    body = nn.Sequential(*[part for layer in layers[:-1] for part in (layer, nn.ReLU())], layers[-1])
    # one network a variable, 10-10-10, as grouped weights
    mains = nn.ParameterList()
    for a, b in ((1, 10), (10, 10), (10, 10), (10, 1)):
        mains += [nn.Parameter(torch.randn(variables, a, b) / math.sqrt(a)), nn.Parameter(torch.zeros(variables, 1, b))]

    def forward(rows: Tensor) -> Tensor:
        hidden = rows.T[:, :, None]
        for k in range(0, len(mains), 2):
            hidden = torch.baddbmm(mains[k + 1], torch.relu(hidden) if k else hidden, mains[k])
        return body(rows)[:, 0] + hidden[..., 0].sum(0)

    l1 = lambda: PENALTY * sum(layer.weight.abs().sum() for layer in layers)
    train(forward, [*body.parameters(), *mains], x, y, seed, l1, batch=100)
    with torch.no_grad():
        influence = layers[-1].weight.abs()
        for layer in reversed(layers[1:-1]):
            influence = influence @ layer.weight.abs()
        first = layers[0].weight.abs()
        strength = lambda i, j: float((influence[0] * torch.minimum(first[:, i], first[:, j])).sum())
        return {pair: strength(*pair) for pair in combinations(range(variables), 2)}


def train(
    forward: Callable[[Tensor], Tensor],
    parameters: list[Tensor],
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
    penalty: Callable[[], Tensor | float] = lambda: 0.0,
    passes: int = 100,
    batch: int = 200,
    rate: float = 5e-3,
) -> tuple[float, Tensor]:
    """Adam with cosine decay on four fifths of the rows; the weights kept are the best on the last fifth. Returns their
    mean square there and the standardised rows."""
    rows = torch.from_numpy(((x - x.mean(0)) / x.std(0)).astype(np.float32))
    targets = torch.from_numpy(((y - y.mean()) / y.std()).astype(np.float32))
    cut = len(rows) * 4 // 5
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(parameters, lr=rate, fused=True)
    steps = passes * (cut // batch)
    best, kept, step = math.inf, [p.detach().clone() for p in parameters], 0
    for _ in range(passes):
        order = torch.randperm(cut, generator=generator)
        for drawn in order.split(batch)[: cut // batch]:
            optimiser.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            loss = ((forward(rows[drawn]) - targets[drawn]) ** 2).mean() + penalty()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
        with torch.no_grad():
            error = float(((forward(rows[cut:]) - targets[cut:]) ** 2).mean())
            if error < best:
                best, kept = error, [p.detach().clone() for p in parameters]
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    return best, rows


METHODS = {"ours": ours, "nid": nid, "fast": fast, "hessian": hessian}


def measure(method: str, function: str, noise: float, points: int, seed: int) -> dict[str, Any]:
    target = INTERACTION_FUNCTIONS[function]
    x, y = target.sample(points, np.random.default_rng(seed), noise)
    started = time.perf_counter()
    scores = METHODS[method](x, y, seed)
    seconds = time.perf_counter() - started
    auc = roc_auc_score([pair in target.pairs for pair in scores], list(scores.values()))
    return {"auc": round(float(auc), 4), "seconds": round(seconds, 1)}


def available(methods: list[str]) -> list[str]:
    try:
        import interpret  # noqa: F401
    except ImportError:
        return [method for method in methods if method != "fast"]
    return methods


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the functions, a noise and a method."""
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["noise"], row["method"]), []).append(row)
    return [
        {
            "noise": noise,
            "method": method,
            "functions": len(own),
            "mean_auc": round(statistics.fmean(row["auc"] for row in own), 4),
            "mean_seconds": round(statistics.fmean(row["seconds"] for row in own), 1),
        }
        for (noise, method), own in groups.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--functions", nargs="+", choices=list(INTERACTION_FUNCTIONS), default=list(INTERACTION_FUNCTIONS)
    )
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--noise", nargs="+", type=float, default=[0.0, 0.001, 0.01], help="of the target's deviation")
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("discover-interactions.json"), help="kept as the run goes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    methods = available(options.methods)
    kept = json.loads(options.results.read_text()) if options.results.exists() else {}
    wanted = {}
    for noise in options.noise:
        for function in options.functions:
            for method in methods:
                key = f"{function} {noise} {method} {options.points} {options.seed}"
                if key not in kept:
                    row = measure(method, function, noise, options.points, options.seed)
                    kept[key] = {"function": function, "noise": noise, "method": method, **row}
                    options.results.write_text(json.dumps(kept, indent=1))
                wanted[key] = kept[key]
                if not options.json:
                    print(
                        f"{function} noise {noise:g} {method}: {kept[key]['auc']:.3f} in {kept[key]['seconds']} s",
                        flush=True,
                    )
    document: dict[str, Any] = {
        "benchmark": "pairs that interact, F1–F10",
        "hardware": hardware(torch.device("cpu")),
        "points": options.points,
        "seed": options.seed,
        "mean": summary(list(wanted.values())),
        "rows": list(wanted.values()),
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for row in document["mean"]:
        print(row)


if __name__ == "__main__":
    main()
