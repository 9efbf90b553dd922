"""Steps of online SGD to learn a sparse parity, beside published ones.  python benchmarks/sparse_parity.py --json

One hidden layer of 100 ReLU units, hinge loss, SGD 0.1, batches of 32 fresh inputs, 10 seeds; steps to 98 % accuracy on
2,048 fresh inputs, looked at every 50 steps. The published figures are medians of 10 seeds in the same setting (theirs
are multiples of 200, the steps between their looks); their initialisation is not stated, ours is torch's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

from parity_order import Network, Setting, train
from timing import hardware

PUBLISHED = {  # (k, n): median steps
    (2, 10): 200,
    (2, 20): 200,
    (2, 40): 200,
    (3, 10): 400,
    (3, 20): 800,
    (3, 30): 1400,
    (3, 40): 2200,
    (4, 10): 400,
    (4, 15): 800,
    (4, 20): 1000,
}
SEEDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    device = torch.device(options.device)
    setting = Setting(
        bits=(), degrees=(), seeds=SEEDS, steps=8000, sequence_steps=0, every=50, draws=0, tested=2048, networks=()
    )
    members = [(bits, degree, seed) for degree, bits in PUBLISHED for seed in range(SEEDS)]
    started = time.perf_counter()
    steps = train(Network("perceptron", 100, "relu", "drawn"), members, setting, device)
    rows = []
    for place, ((degree, bits), published) in enumerate(PUBLISHED.items()):
        own = steps[place * SEEDS : (place + 1) * SEEDS]
        solved = sorted(step for step in own if step is not None)
        rows.append(
            {
                "bits": bits,
                "relevant": degree,
                "published": published,
                "median": statistics.median(solved) if len(solved) > SEEDS / 2 else None,
                "range": [solved[0], solved[-1]] if solved else None,
                "solved": len(solved),
            }
        )
    document = {
        "benchmark": "sparse parity",
        "hardware": hardware(device),
        "seeds": SEEDS,
        "seconds": round(time.perf_counter() - started, 2),
        "rows": rows,
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for row in rows:
        print(f"k = {row['relevant']}, n = {row['bits']}: {row['median']} {row['range']}, published {row['published']}")


if __name__ == "__main__":
    main()
