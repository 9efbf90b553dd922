"""Groups of networks one after another, and side by side on one GPU: python benchmarks/streams.py --out streams.json.

The same cells each time: four networks of width 128, 30 members of each, `reverse` at lengths 1–40, batch 32, some
steps without compiling. The first run warms kernels up and is not counted; then every engine runs in turn, twice, and
the faster counts. Seconds are of the whole command: plan, capture, training, evaluation, store.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from theodolite import learn
from timing import hardware

NETS = ("rnn", "lstm", "stack-rnn", "transformer")
WAYS: dict[str, dict[str, Any]] = {
    "one after another": {"engine": "local"},
    **{f"{workers} side by side": {"engine": "streams", "workers": workers} for workers in (2, 4)},
}


def seconds(steps: int, seed: int, way: dict[str, Any], precision: str) -> float:
    started = time.perf_counter()
    found = learn(
        NETS,
        "reverse",
        task_args={"longest": 40},
        shape={"width": 128},
        seeds=30,
        seed=seed,
        steps=steps,
        lr=1e-3,
        batch=32,
        to_the_end=True,
        device="cuda",
        precision=precision,
        chunk=30,
        compile="never",
        **way,
    )
    assert len(found.summary) == len(NETS)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seconds(20, 0, WAYS["one after another"], options.precision)
    rows = [{"way": name, "seconds": []} for name in WAYS]
    for seed in (1, 2):
        for row in rows:
            row["seconds"].append(seconds(options.steps, seed, WAYS[row["way"]], options.precision))
            print(row, flush=True)
    document = {
        "benchmark": "streams",
        "hardware": hardware(torch.device("cuda")),
        "steps": options.steps,
        "precision": options.precision,
        "nets": list(NETS),
        "rows": rows,
        "ratio": {row["way"]: min(rows[0]["seconds"]) / min(row["seconds"]) for row in rows},
    }
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(document["ratio"])


if __name__ == "__main__":
    main()
