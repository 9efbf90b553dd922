"""Member-steps per second of the nets of `theodolite reproduce chomsky --preset full`, as the bench trains them: 30
members in one session, at the shapes of the table, data drawn as training draws it, one length a step.

One checkout has one figure: to compare two, run `python benchmarks/training.py --chomsky` in each of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from theodolite.claims.tables.chomsky import LONGEST, RATES, SHAPES, TRAINING, UNSEEN
from theodolite.claims.tables.chomsky_published import TASK_ARGS
from theodolite.claims.tables.trained import RULE
from theodolite.nets.size import count_parameters
from theodolite.tasks import make_task
from theodolite.training.group import MemberSpec, Schedule
from theodolite.training.optimiser import Rates
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from theodolite.training.session import Session
from timing import synchronise
from training_peers import one_line

TASK = "reverse"
NETS = ("rnn", "lstm", "stack-rnn", "tape-rnn", "transformer", "delta-net", "state-space")
BATCHES = (32, 128)
_STEPS = 1_000_000  # never reached
_WARM_UP = 256  # steps: every number of tokens comes twice, after which its step is captured
_CAPTURING = 30.0  # seconds that may take on CUDA


def chomsky(
    nets: Sequence[str],
    members: int | None,
    device: torch.device,
    seconds: float,
    compiled: Sequence[bool] = (False,),
    batches: Sequence[int] = BATCHES,
    precisions: Sequence[str] = ("float32",),
) -> Iterator[dict[str, Any]]:
    """A row for every net, batch, precision and way to take a step."""
    for net, batch, precision, way in itertools.product(nets, batches, precisions, compiled):
        row = {"net": net, "task": TASK, "batch": batch, "precision": precision, "device": device.type}
        try:
            yield row | _measured(net, batch, members, device, seconds, way, precision)
        except Exception as error:
            yield row | {"member_steps": None, "error": one_line(error)}
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _measured(
    net: str, batch: int, members: int | None, device: torch.device, seconds: float, compiled: bool, precision: str
) -> dict[str, Any]:
    task = make_task(TASK, {"longest": LONGEST["full"], **TASK_ARGS.get(TASK, {})})
    pairing = pair(net, task, SHAPES["full"][net], max(UNSEEN["full"]))
    count = members or TRAINING["full"].seeds * len(RATES)
    specs = [MemberSpec(f"{net} {i}", i, Rates(RATES[i % len(RATES)])) for i in range(count)]
    way: dict[str, Any] = {"compiled": True} if compiled else {}  # older checkouts know nothing of it
    batching = Batching(count, batched=True, graphs=device.type == "cuda", **way)  # all at once, as the table asks
    multiplied: dict[str, Any] = {} if precision == "float32" else {"precision": precision}  # nor of this
    session = Session(pairing, specs, Schedule(_STEPS, batch, every=_STEPS), RULE, batching, device, **multiplied)
    warm, warm_up = _train(session, _CAPTURING if device.type == "cuda" else seconds, _WARM_UP)
    steps, spent = _train(session, seconds)
    return {
        "parameters": count_parameters(pairing.build(0)),
        "members": count,
        "batching": str(session.program.batching),
        "warm_up_steps": warm,
        "warm_up_seconds": warm_up,
        "steps": steps,
        "member_steps": count * steps / spent,
    }


def _train(session: Session, seconds: float, most: int = _STEPS) -> tuple[int, float]:
    """Blocks until the seconds are over, one at least, and `most` steps; how many and how long they took."""
    started, before = time.perf_counter(), session.step
    while True:
        session.advance()
        synchronise(session.device)
        spent, steps = time.perf_counter() - started, session.step - before
        if spent >= seconds or steps >= most:
            return steps, spent
