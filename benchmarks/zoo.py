"""Every architecture that is trained: python benchmarks/zoo.py --json [--device cuda].

`training`: member-steps per second of an ensemble against a plain loop over members, as `benchmarks/training.py`
measures them, at about 16,000 parameters unless `--size` says otherwise. `equilibrium`: forward and backward against
torchdeq at equal tolerance. `recurrence`: chunked recurrences against a plain loop over time. Both sides of every ratio
come from one run, after a warm-up.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import torch

import zoo_equilibrium
import zoo_recurrence
from theodolite.nets import nets
from timing import hardware
from training import compare

TRAINED = [name for name, entry in nets.items() if not entry.polynomial]
PARTS = ("training", "equilibrium", "recurrence")


def training(options: argparse.Namespace, device: torch.device) -> list[dict[str, Any]]:
    members = options.members or (256 if device.type == "cuda" else 32)
    rows = []
    for net in options.nets.split(","):
        row = compare(net, options.size, members, device, options.seconds, ["loop"], ["float32"], None)
        rows.append(row)
        print(
            f"{net} ({row['parameters']} parameters): loop {row['loop']:.0f}/s, {row['batching']} "
            f"{row['ensemble']:.0f}/s, {row['ratio']:.1f}×",
            file=sys.stderr,
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads, of both sides")
    parser.add_argument("--members", type=int, help="32 on a CPU, 256 on CUDA unless given")
    parser.add_argument("--seconds", type=float, default=2.0, help="per figure")
    parser.add_argument("--size", choices=("small", "middle", "large"), default="middle")
    parser.add_argument("--nets", default=",".join(TRAINED))
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    measured: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "training": lambda: training(options, device),
        "equilibrium": lambda: zoo_equilibrium.measure(options.device),
        "recurrence": lambda: zoo_recurrence.measure(options.device),
    }
    results: dict[str, Any] = {"benchmark": "zoo", "hardware": hardware(device)}
    for part in options.parts.split(","):
        results[part] = measured[part]()
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
