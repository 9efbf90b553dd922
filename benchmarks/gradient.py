"""The gradient signal of all 2^d parities: transform against enumeration, in one run.

python benchmarks/gradient.py --json
python benchmarks/gradient.py --device cuda --bits 20 --json

Enumeration differentiates the mean loss of every target by itself, with one forward pass and one backward pass each,
the same net, inputs and threads. Above 2^10 targets it is timed on 256 of them, spread evenly, and scaled (`scaled`).
Every figure is the median of repeated runs after a warm-up, except the largest cube's, which is run twice.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch

from theodolite.claims.expressivity.enumerated_signal import enumerated_gradients
from theodolite.instruments.gradient.signal import builder, signal
from theodolite.tasks.parity import Parity
from timing import hardware, timed

SHAPE: dict[str, Any] = {"depth": 1, "width": 100}
MOST_TARGETS = 1 << 10


def against_enumeration(bits: int, repeats: int, device: torch.device) -> dict[str, object]:
    _, build = builder("mlp", Parity(bits, 1), SHAPE)
    module = build(0).to(device)
    targets = 1 << bits
    step = 1 if targets <= MOST_TARGETS else targets // 256
    numbers = range(0, targets, step)
    run = lambda: enumerated_gradients(module, bits, "square", numbers, torch.float32)
    ours = timed(lambda: signal("mlp", bits=bits, device=str(device), **SHAPE), repeats, device)
    theirs = timed(run, 1, device) * step
    gradients = run()
    found = signal("mlp", bits=bits, device=str(device), **SHAPE)
    spread = None
    if step == 1:
        spread = float((gradients - gradients.mean(dim=0)).square().sum(dim=1).mean())
        assert abs(spread - found.variance) < 1e-3 * found.variance
    return {
        "bits": bits,
        "parameters": found.parameters,
        "seconds": ours,
        "enumeration_seconds": theirs,
        "scaled": step > 1,
        "times_faster": theirs / ours,
        "variance": found.variance,
        "enumerated_variance": spread,
        "identity_error": found.identity_error,
    }


def whole(bits: int, shape: dict[str, Any], repeats: int, device: torch.device) -> dict[str, object]:
    found = signal("mlp", bits=bits, device=str(device), **shape)
    seconds = timed(lambda: signal("mlp", bits=bits, device=str(device), **shape), repeats, device, warm_up=False)
    return {
        "bits": bits,
        "shape": shape,
        "parameters": found.parameters,
        "seconds": seconds,
        "ratio": found.ratio,
        "identity_error": found.identity_error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--bits", type=int, default=16, help="the largest cube [16]")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    wide = (10_000 - 1) // (options.bits + 2)  # one hidden layer: (d + 2) numbers a unit, and one
    results: dict[str, object] = {
        "benchmark": "gradient",
        "hardware": hardware(device),
        "against_enumeration": [against_enumeration(bits, options.repeats, device) for bits in (10, 12)],
        "largest": [
            whole(options.bits, {"depth": 1, "width": wide}, 1, device),
            whole(options.bits, {"depth": 2, "width": 90}, 1, device),
        ],
    }
    print(json.dumps(results, indent=2) if options.json else _table(results))


def _table(results: dict[str, object]) -> str:
    lines = []
    for name, part in results.items():
        rows = part if isinstance(part, list) else [part]
        lines += [f"{name}: {row}" for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
