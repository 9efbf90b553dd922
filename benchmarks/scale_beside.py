"""Beside the study of depth against width (T9): does the valley move with the vocabulary, the rank of the embedding,
the heads, the width of attention, or another architecture, and what does a depth cost in seconds?

    python benchmarks/scale_text.py --out text
    python benchmarks/scale_beside.py --device cuda --store beside --out beside.json [--parts heads-1,lstm,clock]
    python benchmarks/scale_beside.py --device cuda --store study --out rates.json --parts rates-2M,rates-10M,deeper-10M
    python benchmarks/scale_beside.py --device cuda --store beside --out nets.json --parts delta-net-30k,delta-net-500k
    python benchmarks/scale_beside.py --join one.json other.json --out beside.json

Every part but the clock and the rates is `scale` at one size, 120k parameters, as the study has it there: 16M bytes
read, batches of 32 windows of 128 symbols, four seeds (from 4000 on, none of the study's), depths 1 to 8, rates over
the width: 0.1 for decoders, which the study found best or within its noise at most depths, the better of 0.1 and 0.2
for other nets (whose sizes are equal within 5 %, their width alone being there to come near by). All of them are
trained side by side, those named first first; what is finished in the store is not trained again, and with `--kept`
nothing is trained. `--join` puts results of several runs into one.

The rates ask whether the study's rule for them, 0.1 over the width where it tried no other, cost it its result: the
same seeds and tokens at half of that rate (in a copy of the study's store, whose rows are taken up), so that every
shape has the better of two. At 2M depths 1, 4, 8 and 24, at 10M those at which networks had stumbled, 1, 2 and 4, and
the study's best, 8. (A first plan had all depths and 48; a GPU's half hour does not hold it, and was begun and left.)

Deeper asks for depth 48 at 10M, which the study left out, as the study has its others, beside 8, its best, whose rows
are taken up: 48 has no part in the bottom of that valley if the 95 % interval of the best depth of the two is 8 alone.

Whether the decoder's line is another network's too is asked at a smaller and a larger size, 30k (sizes within 8 %, for
widths are few) and 500k (`NET-30k`, `NET-500k`), by the same rule: a network follows the line if its best
depth has moved at none of the three sizes.

Fixed before the run: a part's best depth has *moved* from the decoder's on bytes if the 95 % intervals of both over
resampled seeds have no depth in common, the decoder's being the study's over the depths of the part alone; that is
said of no part otherwise. The rule for rates has cost the study its result at a size where the best depth has moved so.
T9 is decided by its own rule and not by this.

The clock times a step of every shape of the study alone on the device, four members at once; joined, it reads from the
study's curves how long each shape needs to the loss that the slowest learner of its size reaches.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theodolite.bench.plan import TrainingPlan
from theodolite.claims.tensors.t9_regimes import SEEDS, SIZES, Size, options
from theodolite.lab.campaign import Listener
from theodolite.lab.condition import condition
from theodolite.lab.running import Running
from theodolite.lab.work import Context
from theodolite.measurement import seed_of
from theodolite.scaling.experiment import Experiment
from theodolite.scaling.scale import scale
from theodolite.scaling.shapes import WITHIN, shapes_of
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.tasks import make_task
from theodolite.tasks.text import Text
from theodolite.training.optimiser import Rule
from theodolite.training.precision import check_precision, multiplying
from theodolite.training.program import Batching
from theodolite.training.trial import member_steps
from timing import hardware
from told import Told

RESULTS = Path(__file__).parent / "results"
SIZE, FIRST, BYTES, BATCH, CONTEXT, ROWS, RESAMPLES = 120_000, 4000, 16_000_000, 32, 128, 512, 2000
DEPTHS = (1, 2, 3, 4, 6, 8)
LIKE: Mapping[str, Any] = {"rates": (0.1, 0.2), "within": 0.05}
HALF = 0.05
CHECKED = {2_000_000: (1, 4, 8, 24), 10_000_000: (1, 2, 4, 8)}  # depths
LARGEST = SIZES[-1]


def _at_half(size: Size) -> dict[str, Any]:
    own = {"size": size.parameters, "depths": CHECKED[size.parameters], "rates": (HALF, *size.rates)}
    return {**own, "first": options(size)["seed"], "bytes": size.tokens}


NETS: Mapping[str, Mapping[str, Any]] = {
    "lstm": {"net": "lstm", **LIKE},
    **{net: {"net": net, "shape": {"heads": 2}, **LIKE} for net in ("delta-net", "state-space", "linear-transformer")},
}
PARTS: Mapping[str, Mapping[str, Any]] = {
    **NETS,
    **{f"{net}-30k": {**own, "size": 30_000, "within": 0.08} for net, own in NETS.items()},
    **{f"{net}-500k": {**own, "size": 500_000} for net, own in NETS.items()},
    "vocabulary-1024": {"vocabulary": 1024},
    "vocabulary-4096": {"vocabulary": 4096},
    "rank-8": {"shape": {"rank": 8}},
    "attention-double": {"shape": {"head_width": 32}},
    "attention-half": {"shape": {"head_width": 8}},
    "rank-2": {"shape": {"rank": 2}},
    "heads-4": {"shape": {"heads": 4}},
    "heads-1": {"shape": {"heads": 1}},
    **{f"rates-{size.parameters // 1_000_000}M": _at_half(size) for size in SIZES if size.parameters in CHECKED},
    "deeper-10M": {
        "size": LARGEST.parameters,
        "depths": (8, 48),
        "first": options(LARGEST)["seed"],
        "bytes": LARGEST.tokens,
    },
}
SECONDS = 0.3  # a shape's steps are timed for


def experiment(name: str, text: str, precision: str) -> Experiment:
    given = {"size": SIZE, "depths": DEPTHS, "rates": (0.1,), "first": FIRST, "bytes": BYTES, **PARTS[name]}
    task = make_task("text", {"corpus": text, "vocabulary": given.get("vocabulary", 256), "context": CONTEXT})
    assert isinstance(task, Text)
    return Experiment(
        given.get("net", "decoder"),
        task,
        [given["size"]],
        given["depths"],
        range(given["first"], given["first"] + SEEDS),
        given["rates"],
        given["bytes"] / task.symbols.bytes_per_symbol / given["size"],
        BATCH,
        ROWS,
        precision,
        given.get("shape", {}),
        given.get("within", WITHIN),
        per_width=True,
    )


def train(experiments: Mapping[str, Experiment], running: Running) -> None:
    """All of them side by side, each from its deepest networks on, which take longest."""
    plans = [replace(one, depths=[depth]).plan().training for one in experiments.values() for depth in _deep(one)]
    whole = sum(plans, TrainingPlan())
    with running.open() as store:
        context = Context(checkpoints=store.checkpoints.resolve(), locations=whole.locations)
        outcome = running.run(whole.cells, store, context, listener=Listener(watch=Told()))
    for failure in outcome.failures:
        print(f"{len(failure.cells)} cells: {failure.sentence}", flush=True)


def _deep(one: Experiment) -> list[int]:
    shapes, _ = shapes_of(one.net, one.sizes[0], one.depths, one.shape, one.within)
    return sorted((shape.depth for shape in shapes), reverse=True)


def part(name: str, one: Experiment, running: Running) -> dict[str, Any] | None:
    """None where the store lacks some of it."""
    with running.open() as store:
        cells = one.plan().cells
        if len(store.finished(cell.key for cell in cells)) < len(cells):
            return None
    found = scale(
        one.task.corpus,
        one.net,
        sizes=one.sizes,
        depths=one.depths,
        seeds=SEEDS,
        seed=one.seeds[0],
        rates=one.rates,
        per_width=one.per_width,
        tokens=one.tokens,
        vocabulary=one.task.vocabulary,
        context=one.task.context,
        batch=one.batch,
        rows=one.rows,
        precision=one.precision,
        shape=one.shape,
        within=one.within,
        running=running,
    )
    low, high = decoders(one.sizes[0], tuple(point.shape.depth for point in found.valleys[0].points))
    ours = found.valleys[0].interval
    return {**found.to_json(), "decoder_on_bytes": [low, high], "moved": ours[0] > high or ours[1] < low}


def decoders(size: int, depths: tuple[int, ...]) -> tuple[int, int]:
    """The interval of the study's best depth among these."""
    points = next(studied["points"] for studied in newest()["sizes"] if studied["size"] == size)
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
    parser.add_argument("--parts", default=",".join([*(name for name in PARTS if "size" not in PARTS[name]), "clock"]))
    parser.add_argument("--engine", default="streams", help="of a GPU: streams, or local for processes of their own")
    parser.add_argument("--compile", default="never", help="training steps: always, auto or never")
    parser.add_argument("--workers", type=int, default=12, help="groups of networks side by side on a GPU")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--kept", action="store_true", help="train nothing")
    parser.add_argument("--join", type=Path, nargs="+", help="results to put into one")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.join:
        joined: dict[str, Any] = {}
        for path in chosen.join:
            joined |= json.loads(path.read_text(encoding="utf-8"))
        if "clock" in joined:
            joined["clock"] = at_equal_loss(joined["clock"])
        chosen.out.write_text(json.dumps(joined, indent=1) + "\n", encoding="utf-8")
        return
    engine: dict[str, Any] = {}
    if chosen.device.startswith("cuda"):
        engine = {"engine": chosen.engine, "workers": chosen.workers, "chunk": SEEDS * len(LIKE["rates"])}
    running = Running(chosen.device, chosen.store, compile=chosen.compile, **engine)
    names = chosen.parts.split(",")
    experiments = {name: experiment(name, chosen.text, chosen.precision) for name in names if name != "clock"}
    if experiments and not chosen.kept:
        train(experiments, running)
    device = torch.device(chosen.device)
    found: dict[str, Any] = {"hardware": hardware(device), "study": {"sizes": [size.parameters for size in SIZES]}}
    for name, one in experiments.items():
        measured = part(name, one, running)
        print(name, "is not finished" if measured is None else (measured["sizes"][0]["best"], measured["moved"]))
        found |= {} if measured is None else {name: measured}
    if "clock" in names:
        found["clock"] = clock(chosen.text, device, chosen.precision)
    chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
