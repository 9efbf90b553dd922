"""Many networks at once, one by one, in JAX and compiled: python benchmarks/training.py --json [--device cuda].

Model-steps per second (forward, backward, AdamW), all sides in turns, after a warm-up, on the same batches of 32 rows
and 20 tokens, drawn beforehand: medians of seven stretches, and of the seven ratios. *small* is width 16, *middle*
about 16,000 and *large* about 64,000 parameters. `ensemble` is the bench as it would run: batched, or the loop where a
short trial found that faster (`batching`). Nothing clips gradients on any side. Peers (`--peers`):

- `loop` is plain PyTorch, one net after another, with the faster of AdamW's default and fused forms; `loop_nn_lstm`
  the same with `torch.nn.LSTM`; `loop_written_out` with the cell as a loop over tokens: our recurrent nets use torch's
  kernels where they run alone.
- `jax`: the same nets in plain JAX (jax_peer.py); `compile`: under `torch.compile` by hand (compiled_peer.py). Both
  are checked to train the same net. On CUDA also with TF32 products, ours too (`…_tf32`, and their ratios).

On a CPU everybody has `--threads` cores: the process is bound to them. `--chomsky` instead gives the speed of the nets
of `reproduce chomsky --preset full` (training_chomsky.py). All peers of six cells in five minutes on a GPU:
--cells mlp:small,mlp:large,lstm:small,lstm:large,transformer:small,transformer:large --seconds 1 --evaluated ""
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from compiled_peer import PRECISIONS, plain_operations, precision_of
from theodolite.nets.size import count_parameters, fit_budget
from theodolite.tasks import Batch, Task, make_task
from theodolite.training.evaluation import evaluate
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing, pair, task_sizes
from theodolite.training.program import Batching, Program
from theodolite.training.scoring import losses
from theodolite.training.trial import try_sizes
from theodolite.version import __version__
from timing import hardware, synchronise, timed
from training_chomsky import BATCHES, chomsky
from training_chomsky import NETS as CHOMSKY_NETS
from training_peers import Peer, Run, Setting, one_line, prepare

ROWS, LENGTH = 32, 10  # the task `copy` at length 10 has 20 tokens
RULE, RATES = Rule(clip=None), Rates(lr=1e-3, weight_decay=0.0)
NETS = ("mlp", "rnn", "lstm", "convolution", "transformer")
SIZES = ("small", "large")
PEERS = ("loop", "jax", "compile")
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


def rates(
    runs: dict[str, Run], waits: Sequence[Callable[[], None]], device: torch.device, seconds: float
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Model-steps per second in seven stretches each, in turns, so that a busy machine slows everyone alike; and what
    went wrong with those that have none. A stretch is so many calls, and nobody waits for the device between them."""

    def spent(name: str, calls: int) -> tuple[int, float]:
        started = time.perf_counter()
        done = sum(runs[name]() for _ in range(calls))
        synchronise(device)
        for wait in waits:
            wait()
        return done, time.perf_counter() - started

    errors: dict[str, str] = {}
    calls: dict[str, int] = {}
    for name in runs:
        try:
            spent(name, 2)
            calls[name] = max(1, round(seconds / ROUNDS / spent(name, 1)[1]))
        except Exception as error:
            errors[name] = one_line(error)
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, stretches in found.items():
            done, took = spent(name, calls[name])
            stretches.append(done / took)
    return found, errors


def loop(
    pairing: Pairing, module: nn.Module, fused: bool | None, device: torch.device, written_out: bool = False
) -> Run:
    """Plain PyTorch. One net is trained: others would take as long."""
    batches, one_hot = drawn(pairing, 1, device), pairing.one_hot(device)
    module = module.to(device).train()
    optimiser = torch.optim.AdamW(module.parameters(), lr=RATES.lr, weight_decay=0.0, fused=fused)

    def run() -> int:
        with plain_operations(written_out):
            for batch in batches:
                optimiser.zero_grad()
                outputs = module(pairing.feed(batch.inputs[0], one_hot))
                losses(pairing.task.spec, outputs[None], batch).sum().backward()
                optimiser.step()
        return len(batches)

    return run


def ensemble(
    pairing: Pairing,
    modules: Sequence[nn.Module],
    batches: Sequence[Batch],
    batching: Batching,
    device: torch.device,
    precision: str = "float32",
) -> Run:
    members = len(modules)
    own = [copy.deepcopy(modules[0]), *modules[1:]]  # the first is moved to the device
    stacked = Members(pairing, own, device, batching.batched)
    program = Program(stacked, Optimiser(RULE, [RATES] * members, stacked.parameters), batching, device)
    step = 0

    def run() -> int:
        nonlocal step
        with precision_of(precision):
            program.train(batches, step + 1)
        step += len(batches)
        return members * len(batches)

    return run


def loops(pairing: Pairing, device: torch.device) -> dict[str, Run]:
    """Every kind of loop, each with AdamW's default and fused forms."""
    runs: dict[str, Run] = {}
    for fused in (None, True):
        runs[f"loop {fused}"] = loop(pairing, pairing.build(0), fused, device)
        if pairing.name in ("rnn", "lstm"):
            runs[f"loop_written_out {fused}"] = loop(pairing, pairing.build(0), fused, device, written_out=True)
        if pairing.name == "lstm":
            spec = pairing.task.spec
            torch_lstm = TorchLSTM(spec.features, spec.outputs, pairing.shape["width"])
            runs[f"loop_nn_lstm {fused}"] = loop(pairing, torch_lstm, fused, device)
    return runs


def compare(
    net: str,
    size: str,
    members: int,
    device: torch.device,
    seconds: float,
    peers: Sequence[str],
    precisions: Sequence[str],
    compiled: str | None,
) -> dict[str, Any]:
    pairing = paired(net, size)
    trial = try_sizes(pairing, RULE, ROWS, members, device)
    batching = trial.choose(members, graphs=device.type == "cuda")
    with_compiler = replace(
        batching if batching.batched else Batching(members, True, device.type == "cuda"), compiled=True
    )
    if compiled is not None:
        batching = with_compiler if compiled == "yes" else replace(batching, compiled=False)
    modules, batches = [pairing.build(seed) for seed in range(members)], drawn(pairing, members, device)
    ours = {"float32": "ensemble", "tf32": "ensemble_tf32"}
    runs = {ours[kind]: ensemble(pairing, modules, batches, batching, device, kind) for kind in precisions}
    if compiled == "both":
        runs["ensemble_compiled"] = ensemble(pairing, modules, batches, with_compiler, device)
    if device.type == "cuda":
        runs["without_graphs"] = ensemble(pairing, modules, batches, Batching(batching.chunk, True), device)
    row: dict[str, Any] = {
        "net": net,
        "size": size,
        "parameters": count_parameters(modules[0]),
        "device": device.type,
        "members": members,
        "batching": str(batching),
    }
    if "loop" in peers:
        runs |= loops(pairing, device)
    named = dict(modules[0].named_parameters())
    weights = {n: torch.stack([dict(m.named_parameters())[n].detach() for m in modules]).to(device) for n in named}
    setting = Setting(pairing, weights, batches, RULE, RATES, device, precisions)
    waits = []
    for peer in peers:
        made = Peer() if peer == "loop" else prepare(peer, setting)
        runs |= made.runs
        row |= made.facts
        waits += made.waits
    found, errors = rates(runs, waits, device, seconds)
    row |= {f"{name}_error": error for name, error in errors.items()} | dict.fromkeys(errors)
    return row | figures(found)


def figures(found: dict[str, list[float]]) -> dict[str, float]:
    """The median of every side, and of ours over theirs, at the same precision; of a loop's two forms the faster."""
    kinds: dict[str, list[float]] = {}
    for name, stretches in found.items():
        kind = name.split()[0]
        kinds[kind] = max(kinds.get(kind, []), stretches, key=lambda each: statistics.median(each or [0.0]))
    row = {kind: statistics.median(stretches) for kind, stretches in kinds.items()}
    for kind, theirs in kinds.items():
        ours = kinds.get("ensemble_tf32" if kind.endswith("_tf32") else "ensemble")
        if ours is None or kind in ("ensemble", "ensemble_tf32", "without_graphs"):
            continue
        name = kind.replace("loop", "ratio") if kind.startswith("loop") else f"ratio_{kind}"
        row[name] = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
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
    parser.add_argument("--out", type=Path, help="a file for the same document, written anew after every row")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads, of all sides")
    parser.add_argument("--members", type=int, help="64 on a CPU, 512 on CUDA (30 with --chomsky) unless given")
    parser.add_argument("--seconds", type=float, default=3.0, help="per figure")
    parser.add_argument("--nets", help="of all sizes; with --chomsky, which of its nets")
    parser.add_argument("--cells", help="NET:SIZE,… instead of all sizes of --nets")
    parser.add_argument("--peers", default=",".join(PEERS), help="who stands beside us")
    parser.add_argument("--precisions", help="float32,tf32: both on CUDA, float32 on a CPU unless given")
    parser.add_argument(
        "--evaluated", default="rnn,lstm,convolution,transformer", help="nets whose evaluation is timed"
    )
    parser.add_argument("--compiled", choices=("yes", "no", "both"), help="our steps; as the trial finds unless given")
    parser.add_argument("--chomsky", action="store_true", help="only the nets of `reproduce chomsky`, and no peers")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)), help="with --chomsky")
    options = parser.parse_args()
    device = torch.device(options.device)
    cuda = device.type == "cuda"
    cells = cells_of(options.cells, _names(options.nets or ",".join(NETS)))
    precisions = _names(options.precisions or ("float32,tf32" if cuda else "float32"), tuple(PRECISIONS))
    peers = _names(options.peers, PEERS)
    torch.set_num_threads(options.threads)
    if not cuda and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    results: dict[str, Any] = {
        "benchmark": "training",
        "hardware": hardware(device),
        "versions": versions(),
        "precision": "float32, and tf32 where a figure says so" if "tf32" in precisions else "float32",
    }

    def add(table: str, row: dict[str, Any], line: str) -> None:
        results.setdefault(table, []).append(row)
        print(line, file=sys.stderr, flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")

    if options.chomsky:
        nets = _names(options.nets or ",".join(CHOMSKY_NETS), CHOMSKY_NETS)
        ways = {"yes": [True], "both": [False, True]}.get(options.compiled, [False])
        batches = [int(size) for size in _names(options.batches)]
        for row in chomsky(nets, options.members, device, options.seconds, ways, batches, precisions):
            add("chomsky", row, _chomsky_line(row))
    else:
        if cuda:
            results["ceilings"] = ceilings(device)
        for net, size in cells:
            members = options.members or (512 if cuda else 64)
            row = compare(net, size, members, device, options.seconds, peers, precisions, options.compiled)
            add("training", with_shares(row, results["ceilings"]) if cuda else row, _line(row))
        for net, size in itertools.product(_names(options.evaluated), SIZES):
            row = evaluation(net, size, 8 if cuda else 1, 8, device)
            add("evaluation", row, f"{net} {size}: all lengths 41-500 {row['ratio']:.1f}× one call each")
    if options.json:
        print(json.dumps(results, indent=2))


def cells_of(text: str | None, nets: Sequence[str]) -> list[tuple[str, str]]:
    """`mlp:small,lstm:large`, or every size of the nets."""
    if text is None:
        return list(itertools.product(nets, SIZES))
    named = [tuple(cell.split(":")) for cell in _names(text)]
    wrong = [cell for cell in named if len(cell) != 2 or cell[0] not in NETS or cell[1] not in ("small", *BUDGET)]
    if wrong:
        raise SystemExit(
            f"{':'.join(wrong[0])} is no cell: name NET:SIZE with {', '.join(NETS)} and small, middle, large"
        )
    return [(net, size) for net, size in named]


def _names(text: str, known: Sequence[str] | None = None) -> list[str]:
    names = [name for name in text.split(",") if name]
    if known is not None and (wrong := [name for name in names if name not in known]):
        raise SystemExit(f"there is no '{wrong[0]}': use {', '.join(known)}")
    return names


def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"theodolite": __version__}
    for package in ("torch", "triton", "jax", "jaxlib"):
        found[package] = None
        with suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _line(row: dict[str, Any]) -> str:
    ratios = [f"{n.removeprefix('ratio_').replace('ratio', 'loop')} {v:.2f}×" for n, v in row.items() if "ratio" in n]
    errors = [f"{n.removesuffix('_error')}: {v}" for n, v in row.items() if n.endswith("_error")]
    ours = f"{row['ensemble']:.0f}/s" if row.get("ensemble") else "failed"
    return (
        f"{row['net']} {row['size']} ({row['parameters']} parameters): {row['batching']} {ours}; "
        f"over {', '.join([*ratios, *errors]) or 'nobody'}"
    )


def _chomsky_line(row: dict[str, Any]) -> str:
    found = row.get("error") or f"{row['member_steps']:.0f} member-steps/s, {row['batching']}"
    return f"{row['net']} batch {row['batch']} {row['precision']}: {found}"


if __name__ == "__main__":
    main()
