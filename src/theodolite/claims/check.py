"""`check_claims`: the cells of all claims as one campaign, and a verdict on each from the rows that the store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from theodolite.bench.plan import location
from theodolite.claims.contract import Claim, claims, ordered
from theodolite.claims.judge import judge
from theodolite.claims.tables.experiment import Preset
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener, Watch
from theodolite.lab.cell import Cell, Row
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.run_cells import place
from theodolite.lab.running import Running, check_kept
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context
from theodolite.nets.load import blueprint
from theodolite.notebook import Entries

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
    preset: Preset = "quick",
    kept: bool = False,
) -> Entries[dict[str, Any]]:
    """Measure what claims need and decide them by the rules fixed beforehand.

    Parameters:
        ids: of the claims, such as T4; all of them when none is given
        device: cpu, cuda, …
        watch: is told of progress
        out: folder of a store: what is in it is not measured again, so that a check that was stopped goes on
        engine: `local` is this machine; `streams`, `ray` and `slurm` as in `learn`, and `cluster` says which cluster
        workers: processes side by side, of one thread each; without a number this process alone
        preset: full for claims that have a rule at the size of their published table, which takes a GPU; their second
            stage follows the first
        kept: only by what is finished in `out`, wherever that was; nothing is measured

    Examples:
        >>> [claim["verdict"] for claim in check_claims(["T8"])]
        ['holds']
    """
    if preset not in get_args(Preset):
        raise BadInput(f"preset '{preset}' is unknown: use {' or '.join(get_args(Preset))}")
    if kept:
        check_kept(out)
    chosen = [claims[name] for name in ids] if ids else ordered()
    running = Running(device, out, engine, cluster or Cluster(), workers, threads=1)
    listener = None if watch is None else Listener(watch=watch)
    with running.open() as store:
        context = Context(checkpoints=store.checkpoints.resolve(), locations=locations(chosen))

        def measured(planned: Mapping[str, Sequence[Cell]]) -> dict[str, list[Row]]:
            if kept:
                return {name: _kept(name, cells, store) for name, cells in planned.items()}
            return _measured(
                [(claims[name], cells) for name, cells in planned.items()], running, store, context, listener
            )

        if preset == "quick":
            rows = measured({claim.id: claim.cells() for claim in chosen})
            return Entries("verdicts", [judge(claim, rows[claim.id]) for claim in chosen])
        rules = {claim.id: claim.at("full") for claim in chosen}
        first = measured({name: rule.cells() for name, rule in rules.items()})
        second = measured({name: rule.second_stage(first[name]) for name, rule in rules.items()})
        return Entries("verdicts", [judge(claim, first[claim.id], second[claim.id]) for claim in chosen])


def _measured(
    planned: Sequence[tuple[Claim, Sequence[Cell]]],
    running: Running,
    store: Store,
    context: Context,
    listener: Listener | None,
) -> dict[str, list[Row]]:
    """The rows of each claim's cells, all run as one campaign."""
    weights = {cell.key: (_HEAVY if claim.heavy else 1.0) / len(cells) for claim, cells in planned for cell in cells}
    # Long cells first, so that the workers end together; a claim that has few of them has long ones.
    heaviest_first = sorted(planned, key=lambda one: (not one[0].heavy, len(one[1])))
    outcome = running.run(
        [cell for _, cells in heaviest_first for cell in cells],
        store,
        context,
        {"chunk": _CHUNK},
        listener,
        weigh=lambda cell: weights[cell.key],
    )
    # As they are read back: a verdict is the same whether its rows were measured now or before.
    outcome = replace(outcome, rows=store.finished(weights))
    return {claim.id: list(outcome.of(cells)) for claim, cells in planned}


def _kept(name: str, cells: Sequence[Cell], store: Store) -> list[Row]:
    found = store.finished([cell.key for cell in cells])
    if missing := len(cells) - len(found):
        raise BadInput(f"{missing} of the {len(cells)} cells of {name} are not kept there: measure them without --kept")
    return [found[cell.key] for cell in cells]


def locations(chosen: Sequence[Claim]) -> dict[str, str]:
    """Where workers find the nets of these claims that no registry knows."""
    found = {}
    for net in (net for claim in chosen for net in claim.nets):
        plan = blueprint(net)
        found[place({"net": plan.name, "source": plan.code})] = location(net)
    return found
