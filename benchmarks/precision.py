"""What does a lower precision of products do to the share of networks that learn a task?

    python benchmarks/precision.py --device cuda --out precision.json

Three nets on a task each, stopped where about half of them have learnt it, which is where a change would show: widths,
rates and steps were chosen on a CPU in float32 with 16 other seeds. Fixed before the run: 128 seeds, the same in every
precision; a precision changes a share if Fisher's exact test against float32 says so, two-sided, Holm at 5 % over all
of them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from scipy.stats import fisher_exact

from theodolite import learn
from theodolite.statistics.paired import holm
from timing import hardware

SEEDS, FIRST = 128, 5000
PRECISIONS = ("float32", "tf32", "bf16")


class Case(NamedTuple):
    net: str
    task: str
    task_args: dict[str, Any]
    width: int
    steps: int
    lr: float


CASES = (
    Case("mlp", "parity", {"bits": 16, "relevant": 4}, 32, 800, 1e-3),
    Case("lstm", "parity-check", {"longest": 12}, 16, 700, 3e-3),
    Case("transformer", "even-pairs", {"longest": 10}, 16, 400, 3e-3),
)


def measured(case: Case, precision: str, device: str, seeds: int) -> dict[str, Any]:
    started = time.perf_counter()
    found = learn(
        case.net,
        case.task,
        task_args=case.task_args,
        shape={"width": case.width},
        seeds=seeds,
        seed=FIRST,
        steps=case.steps,
        lr=case.lr,
        batch=32,
        device=device,
        precision=precision,
        chunk=seeds,
        compile="never",
    )
    (entry,) = found.summary
    return {
        **case._asdict(),
        "precision": precision,
        "solved": entry["solved"]["count"],
        "seeds": seeds,
        "interval": entry["solved"]["interval"],
        "seconds": time.perf_counter() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for case in CASES:
        for precision in options.precisions.split(","):
            rows.append(measured(case, precision, options.device, options.seeds))
            print({k: rows[-1][k] for k in ("net", "task", "precision", "solved", "seeds", "seconds")}, flush=True)
    chances = []
    for row in (others := [row for row in rows if row["precision"] != "float32"]):
        plain = next(r for r in rows if r["net"] == row["net"] and r["precision"] == "float32")
        table = [[each["solved"], each["seeds"] - each["solved"]] for each in (row, plain)]
        found: Any = fisher_exact(table)
        chances.append(float(found.pvalue))
    for row, chance, clear in zip(others, chances, holm(chances), strict=True):
        row |= {"p": chance, "changes": bool(clear)}
    document = {"benchmark": "precision", "hardware": hardware(torch.device(options.device)), "rows": rows}
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
