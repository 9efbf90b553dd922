"""How many members to run at once, and on how many CPU threads: found by trying, never by filling memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import cpu_threads
from theodolite.errors import NotEnoughMemory
from theodolite.nets.load import seeded
from theodolite.nets.parts.positions import RandomOffset
from theodolite.tasks.contract import Batch
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing
from theodolite.training.program import Batching, Program

_SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SECONDS = 0.3  # per size
_STRETCHES = 3  # the best counts: what else the machine does only ever slows down
_WORTH = 1.05  # a larger chunk, batching at all, or more than one thread must be this much faster
_RATES = Rates(lr=1e-3, weight_decay=0.0)


@dataclass(frozen=True)
class Trial:
    """What was tried: member-steps per second of the plain loop (`loop`) and of chunks, and why not, where not; on a
    CPU with so many `threads`, of `allowed` ones."""

    loop: float
    chunks: dict[int, float]
    agrees: bool
    reason: str | None = None
    threads: int | None = None
    allowed: int | None = None

    def choose(self, members: int, graphs: bool) -> Batching:
        """The smallest chunk that is nearly as fast as the fastest, evened out over the members; or the loop."""
        size = self.best_size(members, graphs)
        if size is None:
            return Batching(1, batched=False, threads=self.threads)
        calls = -(-members // size)
        return Batching(-(-members // calls), batched=True, graphs=graphs, threads=self.threads)

    def speaks_here(self) -> bool:
        """Whether this process may use as many threads as the one that tried."""
        return self.allowed in (None, torch.get_num_threads())

    def rate(self, size: int | None) -> float:
        """Of a chunk that was tried, or of the loop (None)."""
        return self.loop if size is None else self.chunks[size]

    def best_size(self, members: int, graphs: bool) -> int | None:
        """Of the chunks that were tried; None for the loop."""
        larger = [size for size in self.chunks if size >= members]
        usable = {size: rate for size, rate in self.chunks.items() if size <= min(larger, default=members)}
        best = max(usable.values(), default=0.0)
        alone = members == 1 and not graphs  # captured steps help one member too
        if alone or not self.agrees or best < _WORTH * self.loop:
            return None
        return min(size for size, rate in usable.items() if rate * _WORTH >= best)

    def to_json(self) -> dict[str, Any]:
        chunks = {str(size): rate for size, rate in self.chunks.items()}
        return {
            "loop": self.loop,
            "chunks": chunks,
            "agrees": self.agrees,
            "reason": self.reason,
            "threads": self.threads,
            "allowed": self.allowed,
        }

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Trial:
        chunks = {int(k): v for k, v in row["chunks"].items()}
        return cls(row["loop"], chunks, row["agrees"], row["reason"], row.get("threads"), row.get("allowed"))


def try_sizes(
    pairing: Pairing, rule: Rule, batch: int, members: int, device: torch.device, seconds: float = _SECONDS
) -> Trial:
    """Time a few steps of every size up to `members`; sizes grow while they pay. On a CPU with one thread, and with all
    that the process has where that pays too: small operations wait for threads longer than those save."""
    allowed = torch.get_num_threads()
    with cpu_threads(1 if device.type == "cpu" else None):
        agrees, reason = agreement(pairing, device)

    def rate(size: int | None, threads: int | None) -> float:
        batching = Batching(size or 1, size is not None, size is not None and device.type == "cuda", threads=threads)
        with cpu_threads(threads):
            return member_steps(pairing, rule, batch, batching, device, seconds)

    def sizes(threads: int | None) -> Trial:
        loop, chunks, best = rate(None, threads), {}, 0.0
        for size in _SIZES if agrees else ():
            if chunks and max(chunks) >= members:
                break
            try:
                chunks[size] = rate(size, threads)
            except NotEnoughMemory:
                break
            if size >= 8 and chunks[size] < 0.9 * best:
                break
            best = max(best, chunks[size])
        return Trial(loop, chunks, agrees, reason, threads, None if threads is None else allowed)

    if device.type != "cpu":
        return sizes(None)
    alone = sizes(1)
    if allowed == 1 or not threads_pay(alone, members, lambda size: rate(size, allowed)):
        return alone
    together = sizes(allowed)
    return together if _chosen_rate(together, members) > _chosen_rate(alone, members) else alone


def threads_pay(alone: Trial, members: int, rate: Callable[[int | None], float]) -> bool:
    """Whether more threads than one may be faster, told by what one thread runs best and by the largest chunk; `rate`
    is that of a size with more threads."""
    best = alone.best_size(members, graphs=False)
    asked = dict.fromkeys([best, max(alone.chunks, default=None) if members > 1 else None])
    return any(rate(size) >= _WORTH * alone.rate(best) for size in asked)


def _chosen_rate(trial: Trial, members: int) -> float:
    return trial.rate(trial.best_size(members, graphs=False))


def agreement(pairing: Pairing, device: torch.device) -> tuple[bool, str | None]:
    """Whether one batched step moves the weights of three members as three single steps do.

    What is compared is the move, at its own scale: weights are far larger, and would hide a gradient that is wrong.
    What a net draws is left out: it is other numbers when batched, which are as good.
    """
    pairing = without_draws(pairing)
    rule, lengths = Rule(name="sgd", momentum=0.0, clip=None), pairing.task.spec.lengths
    generator = torch.Generator(device).manual_seed(0)
    drawn = pairing.task.sample(3, 8, lengths[1] if lengths else None, generator)
    results = []
    for batching in (Batching(3, batched=True), Batching(1, batched=False)):
        program = _program(pairing, rule, 3, batching, device, Rates(lr=1.0, weight_decay=0.0))
        before = {n: t.double() for n, t in (program.members.parameters | program.members.buffers).items()}
        try:
            with seeded(0, device):
                program.train([drawn], 1)
        except NotEnoughMemory:
            raise
        except Exception as error:
            if not batching.batched:
                raise
            # The first sentence says which operation; torch's advice after it is long.
            said = [line.split(". ")[0] for line in str(error).strip().splitlines()[:1]]
            reason = ": ".join([type(error).__name__, *said])
            return False, f"it cannot be batched ({reason})"
        after = program.members.parameters | program.members.buffers
        results.append({n: after[n].double() - t for n, t in before.items()})
    together, alone = results
    largest = max(_extent(move) for move in alone.values())
    for name, move in alone.items():
        atol = 1e-2 * _extent(move) + 1e-5 * largest + 1e-6 * _extent(before[name])  # the last is rounding
        if not torch.allclose(together[name], move, rtol=0, atol=atol, equal_nan=True):
            return False, f"batched and single steps differ in '{name}'"
    return True, None


def _extent(values: Tensor) -> float:
    """The largest finite size among them."""
    return float(values.nan_to_num(0, 0, 0).abs().max()) if values.numel() else 0.0


def without_draws(pairing: Pairing) -> Pairing:
    """Its nets without dropout and random offsets of positions."""
    return replace(pairing, build=lambda seed: _settled(pairing.build(seed)))


def _settled(module: nn.Module) -> nn.Module:
    for part in module.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
        elif isinstance(part, RandomOffset):
            part.most = 0
    return module


def member_steps(
    pairing: Pairing, rule: Rule, batch: int, batching: Batching, device: torch.device, seconds: float = _SECONDS
) -> float:
    """Per second, of as many members as a chunk has: at the middle training length, data included, after warming up."""
    size = batching.chunk
    program = _program(pairing, rule, size, batching, device)
    lengths = pairing.task.spec.lengths
    length = None if lengths is None else (lengths[0] + lengths[1]) // 2
    generator = torch.Generator(device).manual_seed(0)
    block = 4

    def run(step: int) -> None:
        batches: list[Batch] = [pairing.task.sample(size, batch, length, generator) for _ in range(block)]
        program.train(batches, step)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    run(1)
    best, done = 0.0, 0
    for _ in range(_STRETCHES):
        started, before = time.perf_counter(), done
        while time.perf_counter() - started < seconds / _STRETCHES or done == before:
            done += 1
            run(1 + done * block)
        best = max(best, size * block * (done - before) / (time.perf_counter() - started))
    if program.batching.chunk < batching.chunk:
        raise NotEnoughMemory(f"{size} members at once do not fit")
    return best


def _program(
    pairing: Pairing, rule: Rule, size: int, batching: Batching, device: torch.device, rates: Rates = _RATES
) -> Program:
    members = Members(pairing, [pairing.build(seed) for seed in range(size)], device, batching.batched)
    return Program(members, Optimiser(rule, [rates] * size, members.parameters), batching, device)
