"""Many networks at once against one after another: python benchmarks/training.py --json [--device cuda].

Model-steps per second (forward, backward, AdamW), both sides in turns, after a warm-up, on the same batches of 32 rows
and 20 tokens, drawn beforehand: medians of seven stretches, and of the seven ratios. *small* is width 16, *middle*
about 16,000 and *large* about 64,000 parameters. `loop` is plain PyTorch, one net after another, with the faster of
AdamW's default and fused forms; `loop_nn_lstm` the same with `torch.nn.LSTM`; `loop_written_out` with the cell as a
loop over tokens: our recurrent nets use torch's kernels where they run alone. `ensemble` is the bench as it would run:
batched, or the loop where a short trial found that faster (`batching`). Nothing clips gradients on either side.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from theodolite.nets.size import count_parameters, fit_budget
from theodolite.tasks import Batch, Task, make_task
from theodolite.training.evaluation import evaluate
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing, pair, task_sizes
from theodolite.training.program import Batching, Program
from theodolite.training.scoring import losses
from theodolite.training.trial import try_sizes
from timing import hardware, synchronise, timed

ROWS, LENGTH = 32, 10  # the task `copy` at length 10 has 20 tokens
RULE, RATES = Rule(clip=None), Rates(lr=1e-3, weight_decay=0.0)
NETS = ("mlp", "rnn", "lstm", "convolution", "transformer")
SIZES = ("small", "large")
BUDGET = {"middle": 16_000, "large": 64_000}
BLOCK = 16
ROUNDS = 7


class TorchLSTM(nn.Module):
    """torch's own LSTM, which cannot be batched over members."""

    def __init__(self, features: int, outputs: int, width: int) -> None:
        super().__init__()
        self.layers = nn.LSTM(features, width, batch_first=True)
        self.read = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self.layers(x)[0])


class WrittenOut(nn.Module):
    """A recurrent net kept from torch's kernels for whole sequences: the loop over tokens that an ensemble runs."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        with (
            mock.patch("theodolite.nets.lstm.runs_alone", _never),
            mock.patch("theodolite.nets.rnn.runs_alone", _never),
        ):
            return self.net(x)


def _never(_: Tensor) -> bool:
    return False


def paired(net: str, size: str) -> Pairing:
    task = (
        make_task("parity", {"bits": 20})
        if net == "mlp"
        else make_task("copy", {"shortest": LENGTH, "longest": LENGTH})
    )
    return pair(net, task, shape_of(net, size, task))


def shape_of(net: str, size: str, task: Task, longest: int | None = None) -> dict[str, Any]:
    sizes = task_sizes(net, task, longest)
    shape = {"width": 16} if size == "small" else fit_budget(net, BUDGET[size], **sizes)
    return {k: v for k, v in shape.items() if k not in sizes}


def drawn(pairing: Pairing, members: int, device: torch.device) -> list[Batch]:
    generator = torch.Generator(device).manual_seed(0)
    length = None if pairing.task.spec.lengths is None else LENGTH
    return [pairing.task.sample(members, ROWS, length, generator) for _ in range(BLOCK)]


Run = Callable[[], int]  # trains a little and says how many model-steps that was


def rates(runs: dict[str, Run], device: torch.device, seconds: float) -> dict[str, list[float]]:
    """Model-steps per second in seven stretches each, in turns, so that a busy machine slows everyone alike."""
    for run in runs.values():
        for _ in range(2):
            run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            synchronise(device)
            started, done = time.perf_counter(), 0
            while time.perf_counter() - started < seconds / ROUNDS or not done:
                done += run()
                synchronise(device)
            found[name].append(done / (time.perf_counter() - started))
    return found


def loop(pairing: Pairing, module: nn.Module, fused: bool | None, device: torch.device) -> Run:
    """Plain PyTorch. One net is trained: others would take as long."""
    batches, one_hot = drawn(pairing, 1, device), pairing.one_hot(device)
    module = module.to(device).train()
    optimiser = torch.optim.AdamW(module.parameters(), lr=RATES.lr, weight_decay=0.0, fused=fused)

    def run() -> int:
        for batch in batches:
            optimiser.zero_grad()
            outputs = module(pairing.feed(batch.inputs[0], one_hot))
            losses(pairing.task.spec, outputs[None], batch).sum().backward()
            optimiser.step()
        return len(batches)

    return run


def ensemble(pairing: Pairing, members: int, batching: Batching, device: torch.device) -> Run:
    modules = [pairing.build(seed) for seed in range(members)]
    stacked = Members(pairing, modules, device, batching.batched)
    program = Program(stacked, Optimiser(RULE, [RATES] * members, stacked.parameters), batching, device)
    batches = drawn(pairing, members, device)
    step = 0

    def run() -> int:
        nonlocal step
        program.train(batches, step + 1)
        step += len(batches)
        return members * len(batches)

    return run


def compare(net: str, size: str, members: int, device: torch.device, seconds: float) -> dict[str, Any]:
    pairing = paired(net, size)
    trial = try_sizes(pairing, RULE, ROWS, members, device)
    batching = trial.choose(members, graphs=device.type == "cuda")
    runs = {"ensemble": ensemble(pairing, members, batching, device)}
    for fused in (None, True):
        runs[f"loop {fused}"] = loop(pairing, pairing.build(0), fused, device)
        if net in ("rnn", "lstm"):
            runs[f"loop_written_out {fused}"] = loop(pairing, WrittenOut(pairing.build(0)), fused, device)
        if net == "lstm":
            spec = pairing.task.spec
            torch_lstm = TorchLSTM(spec.features, spec.outputs, pairing.shape["width"])
            runs[f"loop_nn_lstm {fused}"] = loop(pairing, torch_lstm, fused, device)
    if device.type == "cuda":
        runs["without_graphs"] = ensemble(pairing, members, Batching(batching.chunk, True), device)
    found = rates(runs, device, seconds)
    row: dict[str, Any] = {
        "net": net,
        "size": size,
        "parameters": count_parameters(pairing.build(0)),
        "device": device.type,
        "members": members,
        "ensemble": statistics.median(found["ensemble"]),
        "batching": str(batching),
    }
    for kind in ("loop", "loop_written_out", "loop_nn_lstm"):
        forms = [found[f"{kind} {fused}"] for fused in (None, True) if f"{kind} {fused}" in found]
        if forms:
            fastest = max(forms, key=statistics.median)
            row[kind] = statistics.median(fastest)
            row[kind.replace("loop", "ratio")] = statistics.median(
                ours / theirs for ours, theirs in zip(found["ensemble"], fastest, strict=True)
            )
    if "without_graphs" in found:
        row["without_graphs"] = statistics.median(found["without_graphs"])
    return row


def evaluation(net: str, size: str, members: int, rows: int, device: torch.device) -> dict[str, Any]:
    """All lengths 41 to 500 of `parity-check`: in buckets, against one call per length."""
    task = make_task("parity-check", {})
    pairing = pair(net, task, shape_of(net, size, task, 500), 500)
    stacked = Members(pairing, [pairing.build(seed) for seed in range(members)], device, members > 1)
    program = Program(stacked, None, Batching(members, batched=members > 1), device)
    lengths = list(range(41, 501))

    def seeded() -> torch.Generator:
        return torch.Generator(device).manual_seed(0)

    def apart() -> list[Tensor]:
        return [evaluate(program, [length], rows, seeded()).scores for length in lengths]

    together = timed(lambda: evaluate(program, lengths, rows, seeded()), 3, device)
    singly = timed(apart, 1, device, warm_up=False)
    return {
        "net": net,
        "size": size,
        "device": device.type,
        "members": members,
        "rows_per_length": rows,
        "lengths": "41-500",
        "one_call_per_length_seconds": singly,
        "buckets_seconds": together,
        "ratio": singly / together,
    }


def ceilings(device: torch.device) -> dict[str, float]:
    """What the device does at best: bytes copied per second (read and written), float32 products per second."""
    x = torch.randn(1 << 28, device=device)
    y = torch.empty_like(x)
    a = torch.randn(8192, 8192, device=device)
    return {
        "copy_bytes_per_second": 2 * 4 * x.numel() / timed(lambda: y.copy_(x), 10, device),
        "float32_flops": 2 * 8192**3 / timed(lambda: a @ a, 5, device),
    }


def with_shares(row: dict[str, Any], ceiling: dict[str, float]) -> dict[str, Any]:
    """At least 40 bytes a parameter and step move: the weight is read forward and backward, its gradient written and
    read, and weight and two moments read and written. About 6 operations a weight and token, or row of a vector."""
    positions = ROWS * (1 if row["net"] == "mlp" else 2 * LENGTH)
    moved = 40 * row["parameters"] * row["ensemble"]
    operations = 6 * row["parameters"] * positions * row["ensemble"]
    return {
        **row,
        "share_of_bandwidth": moved / ceiling["copy_bytes_per_second"],
        "share_of_float32_rate": operations / ceiling["float32_flops"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads, of both sides")
    parser.add_argument("--members", type=int, help="64 on a CPU, 512 on CUDA unless given")
    parser.add_argument("--seconds", type=float, default=3.0, help="per figure")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument(
        "--evaluated", default="rnn,lstm,convolution,transformer", help="nets whose evaluation is timed"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    cuda = device.type == "cuda"
    members = options.members or (512 if cuda else 64)
    ceiling = ceilings(device) if cuda else None
    rows = []
    for net in options.nets.split(","):
        for size in SIZES:
            row = compare(net, size, members, device, options.seconds)
            rows.append(with_shares(row, ceiling) if ceiling else row)
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    results: dict[str, Any] = {"benchmark": "training", "hardware": hardware(device), "training": rows}
    if ceiling:
        results["ceilings"] = ceiling
    results["evaluation"] = []
    for net, size in itertools.product(filter(None, options.evaluated.split(",")), SIZES):
        row = evaluation(net, size, 8 if cuda else 1, 8, device)
        results["evaluation"].append(row)
        print(f"{net} {size}: all lengths 41-500 {row['ratio']:.1f}× one call each", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


def _line(row: dict[str, Any]) -> str:
    others = "".join(f", {n} {row[f'ratio_{n}']:.1f}×" for n in ("written_out", "nn_lstm") if f"ratio_{n}" in row)
    return (
        f"{row['net']} {row['size']} ({row['parameters']} parameters): loop {row['loop']:.0f}/s, "
        f"{row['batching']} {row['ensemble']:.0f}/s, {row['ratio']:.1f}×{others}"
    )


if __name__ == "__main__":
    main()
