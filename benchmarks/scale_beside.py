"""Beside the study of depth against width (T9): does the valley move with the vocabulary, the rank of the embedding,
the heads, the width of attention, or another architecture, and what does a depth cost in seconds?

    python benchmarks/scale_text.py --out text
    python benchmarks/scale_beside.py --device cuda --store beside --out beside.json [--parts heads-1,lstm,clock]
    python benchmarks/scale_beside.py --join one.json other.json --out beside.json

Every part but the clock is `scale` at one size, 120k parameters, as the study has it there: 16M bytes read, batches of
32 windows of 128 symbols, four seeds (from 4000 on, none of the study's), depths 1 to 8, rates over the width: 0.1 for
decoders, which the study found best or within its noise at most depths, the better of 0.1 and 0.2 for other nets (whose
sizes are equal within 5 %, their width alone being there to come near by). What is finished in the store is not trained
again. `--join` puts results of several runs into one.

Fixed before the run: a part's best depth has *moved* from the decoder's on bytes if the 95 % intervals of both over
resampled seeds have no depth in common, the decoder's being taken over the depths of the part alone; that is said of
no part otherwise.

The clock times a step of every shape of the study alone on the device, four members at once; joined, it reads from the
study's curves how long each shape needs to the loss that the slowest learner of its size reaches.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theodolite.claims.tensors.t9_regimes import SEEDS, SIZES
from theodolite.lab.condition import condition
from theodolite.lab.running import Running
from theodolite.measurement import seed_of
from theodolite.scaling.experiment import Experiment
from theodolite.scaling.scale import scale
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.tasks import make_task
from theodolite.tasks.text import Text
from theodolite.training.optimiser import Rule
from theodolite.training.precision import check_precision, multiplying
from theodolite.training.program import Batching
from theodolite.training.trial import member_steps
from timing import hardware

RESULTS = Path(__file__).parent / "results"
SIZE, FIRST, BYTES, BATCH, CONTEXT, ROWS, RESAMPLES = 120_000, 4000, 16_000_000, 32, 128, 512, 2000
DEPTHS = (1, 2, 3, 4, 6, 8)
LIKE: Mapping[str, Any] = {"rates": (0.1, 0.2), "within": 0.05}
PARTS: Mapping[str, Mapping[str, Any]] = {
    "heads-1": {"shape": {"heads": 1}},
    "vocabulary-1024": {"vocabulary": 1024},
    "vocabulary-4096": {"vocabulary": 4096},
    "rank-8": {"shape": {"rank": 8}},
    "lstm": {"net": "lstm", **LIKE},
    **{net: {"net": net, "shape": {"heads": 2}, **LIKE} for net in ("linear-transformer", "delta-net", "state-space")},
    "heads-4": {"shape": {"heads": 4}},
    "attention-half": {"shape": {"head_width": 8}},
    "attention-double": {"shape": {"head_width": 32}},
    "rank-2": {"shape": {"rank": 2}},
}
SECONDS = 0.3  # a shape's steps are timed for


def part(name: str, text: str, running: Running, precision: str) -> dict[str, Any]:
    given = {"rates": (0.1,), **PARTS[name]}
    task = make_task("text", {"corpus": text, "vocabulary": given.get("vocabulary", 256), "context": CONTEXT})
    assert isinstance(task, Text)
    found = scale(
        text,
        sizes=[SIZE],
        depths=DEPTHS,
        seeds=SEEDS,
        seed=FIRST,
        per_width=True,
        tokens=BYTES / task.symbols.bytes_per_symbol / SIZE,
        context=CONTEXT,
        batch=BATCH,
        rows=ROWS,
        precision=precision,
        running=running,
        **given,
    )
    low, high = decoders(tuple(point.shape.depth for point in found.valleys[0].points))
    ours = found.valleys[0].interval
    return {**found.to_json(), "decoder_on_bytes": [low, high], "moved": ours[0] > high or ours[1] < low}


def decoders(depths: tuple[int, ...]) -> tuple[int, int]:
    """The interval of the study's best depth among these."""
    points = next(size["points"] for size in newest()["sizes"] if size["size"] == SIZE)
    own = [point for point in points if point["depth"] in depths]
    generator = np.random.default_rng(seed_of(["decoders beside", list(depths)]))
    means = np.stack([resampled_means(point["seeds"], generator, RESAMPLES) for point in own])
    low, high = percentile_interval([own[place]["depth"] for place in means.argmin(axis=0)])
    return round(low), round(high)


def clock(text: str, device: torch.device, precision: str) -> list[dict[str, Any]]:
    """Seconds of a step of all seeds together."""
    task = make_task("text", {"corpus": text, "context": CONTEXT})
    assert isinstance(task, Text)
    rows = []
    for size in SIZES:
        experiment = Experiment("decoder", task, [size.parameters], size.depths, [0], [1e-3], 1, BATCH, ROWS, precision)
        planned = experiment.plan()
        for cell in planned.cells:
            shape = planned.shapes[cell.key]
            _, pairing = planned.training.conditions[condition(cell.config)]
            together = Batching(SEEDS, batched=True, graphs=device.type == "cuda")
            with multiplying(check_precision(precision, str(device)), device):
                seconds = SEEDS / member_steps(pairing, Rule(), BATCH, together, device, SECONDS)
            about = {"size": size.parameters, "depth": shape.depth, "width": shape.width}
            rows.append({**about, "seconds_a_step": seconds})
    return rows


def at_equal_loss(timed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """With the steps and seconds of each shape to the loss that all of its size reach, where the study has it."""
    rows = []
    for size in newest()["sizes"]:
        level = max(point["curve"][-1][1] for point in size["points"])
        for point in size["points"]:
            row = next(row for row in timed if (row["size"], row["depth"]) == (size["size"], point["depth"]))
            assert row["width"] == point["width"]
            steps = next(step for step, bits in point["curve"] if bits <= level)
            rows.append({**row, "level": level, "steps": steps, "seconds": steps * row["seconds_a_step"]})
    return rows


def newest() -> dict[str, Any]:
    path = max(RESULTS.glob("scale-study-*.json"), key=lambda path: path.stem[-10:])
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default="text")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--store", type=Path, default=Path("beside"))
    parser.add_argument("--parts", default=",".join([*PARTS, "clock"]))
    parser.add_argument("--join", type=Path, nargs="+", help="results to put into one")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.join:
        joined: dict[str, Any] = {}
        for path in options.join:
            joined |= json.loads(path.read_text(encoding="utf-8"))
        if "clock" in joined:
            joined["clock"] = at_equal_loss(joined["clock"])
        options.out.write_text(json.dumps(joined, indent=1) + "\n", encoding="utf-8")
        return
    device, on_gpu = torch.device(options.device), options.device.startswith("cuda")
    precision = "tf32" if on_gpu else "float32"
    engine: dict[str, Any] = {"engine": "streams", "workers": 4} if on_gpu else {}
    running = Running(options.device, options.store, compile="never", **engine)
    found: dict[str, Any] = {"hardware": hardware(device), "study": {"sizes": [size.parameters for size in SIZES]}}
    for name in options.parts.split(","):
        found[name] = (
            clock(options.text, device, precision) if name == "clock" else part(name, options.text, running, precision)
        )
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, *([] if name == "clock" else [found[name]["sizes"][0]["best"], found[name]["moved"]]))


if __name__ == "__main__":
    main()
