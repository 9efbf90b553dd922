"""`check_claims`: the cells of all claims as one campaign, and a verdict on each from the rows that the store holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from theodolite.bench.plan import location
from theodolite.claims.contract import Claim, claims, judge, ordered
from theodolite.lab.campaign import Listener, Watch
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.run_cells import place
from theodolite.lab.running import Running
from theodolite.lab.work import Context
from theodolite.nets.load import blueprint

_HEAVY = 10.0  # what a heavy claim weighs in the progress, beside any other's 1
_CHUNK = 64  # members in one batched call: all of one net on one task, so that no trial decides


def check_claims(
    ids: Sequence[str] | None = None,
    device: str = "cpu",
    watch: Watch | None = None,
    *,
    out: str | Path | None = None,
    engine: str = "local",
    cluster: Cluster | None = None,
    workers: int | None = None,
) -> list[dict[str, Any]]:
    """Measure what claims need and decide them by the rules fixed beforehand.

    Parameters:
        ids: of the claims, such as T4; all of them when none is given
        device: cpu, cuda, …
        watch: is told of progress
        out: folder of a store: what is in it is not measured again, so that a check that was stopped goes on
        engine: `local` is this machine; `streams`, `ray` and `slurm` as in `learn`, and `cluster` says which cluster
        workers: processes side by side, of one thread each; without a number this process alone

    Examples:
        >>> [claim["verdict"] for claim in check_claims(["T8"])]
        ['holds']
    """
    chosen = [claims[name] for name in ids] if ids else ordered()
    running = Running(device, out, engine, cluster or Cluster(), workers, threads=1)
    planned = [(claim, tuple(claim.cells())) for claim in chosen]
    weights = {cell.key: (_HEAVY if claim.heavy else 1.0) / len(cells) for claim, cells in planned for cell in cells}
    # Long cells first, so that the workers end together; a claim that has few of them has long ones.
    heaviest_first = sorted(planned, key=lambda one: (not one[0].heavy, len(one[1])))
    with running.open() as store:
        outcome = running.run(
            [cell for _, cells in heaviest_first for cell in cells],
            store,
            Context(checkpoints=store.checkpoints.resolve(), locations=locations(chosen)),
            {"chunk": _CHUNK},
            None if watch is None else Listener(watch=watch),
            weigh=lambda cell: weights[cell.key],
        )
        # As they are read back: a verdict is the same whether its rows were measured now or before.
        outcome = replace(outcome, rows=store.finished(weights))
    return [judge(claim, outcome.of(cells)) for claim, cells in planned]


def locations(chosen: Sequence[Claim]) -> dict[str, str]:
    """Where workers find the nets of these claims that no registry knows."""
    found = {}
    for net in (net for claim in chosen for net in claim.nets):
        plan = blueprint(net)
        found[place({"net": plan.name, "source": plan.code})] = location(net)
    return found
