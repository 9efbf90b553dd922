"""Members of one net trained on one task side by side, as a measure: what claims about training are decided by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.device import resolve_device
from theodolite.measurement import canonical, seed_of
from theodolite.tasks.contract import make_task
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching
from theodolite.training.session import MemberSpec, Schedule, Session

_TOLD = ("status", "accuracy", "unseen", "exact", "unseen_exact", "by_length", "solved_at", "steps")


def measure_trained_members(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: net, shape, task, task_args, seeds, rates, schedule (the fields of `Schedule`). One member per seed and
    rate, all in one batched call; each member's seed is drawn from the cell's."""
    where = resolve_device(device)
    task = make_task(config["task"], config["task_args"])
    schedule = Schedule(**{**config["schedule"], "unseen": tuple(config["schedule"].get("unseen", ()))})
    pairing = pair(config["net"], task, config["shape"], max(schedule.unseen, default=None))
    members = [
        MemberSpec(canonical([number, rate]), seed_of([seed, number]), Rates(rate, 0.0))
        for number in range(config["seeds"])
        for rate in config["rates"]
    ]
    batching = Batching(len(members), batched=True, graphs=where.type == "cuda")
    session = Session(pairing, members, schedule, Rule(), batching, where)
    found: dict[str, dict[str, Any]] = {}
    while not session.done:
        found |= {one.key: one.result for one in session.advance()[0]}
    return {
        "members": [{"rate": m.rates.lr, **{name: found[m.key][name] for name in _TOLD}} for m in members],
        "parameters": found[members[0].key]["parameters"],
        "chance": task.spec.chance,
    }
