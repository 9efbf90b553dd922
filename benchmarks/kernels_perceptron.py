"""Steps of small perceptrons by their kernel, captured operation by operation, and compiled.

    python benchmarks/kernels_perceptron.py --out kernels-perceptron.json

512 members, 32 rows, `parity` of 20 bits, two hidden layers; blocks of 16 steps captured as CUDA graphs, all sides in
turns. Microseconds of a step of all members, medians of seven stretches.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from pathlib import Path
from unittest.mock import patch

import torch

import training
from theodolite.kernels.perceptron import PerceptronDescent
from theodolite.tasks import make_task
from theodolite.training.optimiser import Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from timing import hardware

WIDTHS, CLIPS, PRECISIONS = (16, 32), (None, 1.0), ("float32", "tf32")
MEMBERS = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.7, help="per figure")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device, rows = torch.device("cuda"), []
    precisions: list[str] = options.precisions.split(",")
    for (width, clip), precision in itertools.product(itertools.product(WIDTHS, CLIPS), precisions):
        pairing = pair("mlp", make_task("parity", {"bits": 20}), {"width": width})
        modules = [pairing.build(seed) for seed in range(MEMBERS)]
        batches = training.drawn(pairing, MEMBERS, device)
        captured = Batching(MEMBERS, batched=True, graphs=True)
        ways = {"kernel": captured, "captured": captured, "compiled": Batching(MEMBERS, True, True, compiled=True)}
        runs = {}
        with patch.object(training, "RULE", Rule(clip=clip)):
            for name, batching in ways.items():
                run = training.ensemble(pairing, modules, batches, batching, device, precision)
                with patch.object(PerceptronDescent, "takes", PerceptronDescent.takes if name == "kernel" else _never):
                    for _ in range(3):  # captured with the way that was chosen here
                        run()
                runs[name] = run
            found, errors = training.rates(runs, [], device, options.seconds)
        medians = {name: MEMBERS * 1e6 / statistics.median(each) for name, each in found.items()}
        rows.append({"width": width, "clip": clip, "precision": precision, "microseconds": medians, "errors": errors})
        print(rows[-1], file=sys.stderr, flush=True)
        document = {"benchmark": "kernels_perceptron", "hardware": hardware(device), "rows": rows}
        if options.out is not None:
            options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _never(*_: object) -> bool:
    return False


if __name__ == "__main__":
    main()
