"""`reproduce`: published tables measured again, every published figure beside the measured one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from theodolite.claims.tables.contract import PublishedTable, Request, tables
from theodolite.claims.tables.experiment import Preset
from theodolite.claims.tables.failures import remedies
from theodolite.errors import BadInput
from theodolite.files import refuse_foreign
from theodolite.lab.campaign import Listener, Outcome, Watch
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.running import Running, check_kept
from theodolite.lab.work import Context
from theodolite.notebook import Entries
from theodolite.registry import unknown

__all__ = ["remedies", "reproduce", "statements", "tables"]


def reproduce(
    table: str = "failures",
    preset: Preset = "quick",
    only: Sequence[str] | None = None,
    seeds: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    watch: Watch | None = None,
    *,
    nets: Sequence[str] | None = None,
    steps: int | None = None,
    precision: str | None = None,
    out: str | Path | None = None,
    engine: str = "local",
    cluster: Cluster | None = None,
    workers: int | None = None,
    kept: bool = False,
    experiments: Sequence[str] | None = None,
) -> Entries[dict[str, Any]]:
    """Run the experiments of a table and put published figures beside the measured ones.

    Parameters:
        table: chomsky, universal-transformer, recall or failures
        preset: quick (minutes on a CPU) or full (as near to the paper as a GPU gets)
        only: experiments of it, all unless some are named; `experiments` is its name until 0.2
        seeds: networks for each part, instead of the preset's number
        device: cpu, cuda, …
        seed: the first of the seeds
        watch: is told of progress
        nets: columns of a table that compares nets, all unless some are named
        steps: of training, instead of the preset's number
        precision: of products of matrices, float32, tf32 (CUDA) or bf16, instead of the preset's
        out: folder of a store: what is in it is not run again, so that a run that was stopped goes on
        engine: `local` is this machine; `streams`, `ray` and `slurm` as in `learn`, and `cluster` says which cluster
        workers: processes side by side; without a number this process alone
        kept: only what is finished in `out`, wherever that was; nothing is trained

    Examples:
        >>> first = reproduce("failures", only=["remedies"], seeds=1)[0]
        >>> first["setting"], first["rows"][0]["measured"]
        ('reformulate: elimination over GF(2), d = 30', 31)
    """
    chosen = tables[table]
    running = Running(device, out, engine, cluster or Cluster(), workers, threads=1)
    if preset not in get_args(Preset):
        raise BadInput(f"preset '{preset}' is unknown: use {' or '.join(get_args(Preset))}")
    if seeds is not None and seeds < 1:
        raise BadInput(f"seeds = {seeds} trains nothing: give at least 1")
    if steps is not None and (steps < 1 or not chosen.nets):
        raise BadInput(
            f"steps = {steps} trains nothing: give at least 1"
            if chosen.nets
            else f"the experiments of the table '{table}' have steps of their own: leave out --steps"
        )
    if precision is not None and not chosen.nets:
        raise BadInput(f"the experiments of the table '{table}' are run in float32: leave out --precision")
    named = _experiments(chosen, preset, only or experiments), _nets(table, chosen, nets)
    request = Request(preset, *named, seeds, seed, steps, precision)
    if out is not None:
        refuse_foreign(out)
    if kept:
        check_kept(out)
    plan = chosen.plan(request)
    listener = None if watch is None else Listener(watch=watch)
    with running.open() as store:
        context = Context(checkpoints=store.checkpoints.resolve(), locations=plan.locations)
        if kept:
            outcome = Outcome(store.finished(cell.key for cell in plan.cells))
        else:
            outcome = running.run(plan.cells, store, context, plan.settings, listener, weigh=plan.weigh)
    results = plan.results(outcome)
    if not results:
        raise BadInput(f"'{table}' has no entry for {', '.join(nets or ())} there: name other nets or experiments")
    return Entries("table", results, table)


def statements(table: str, results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What the results say of sentences of the paper: statement, source, rule, verdict (holds, fails, open), detail."""
    return tables[table].statements(results)


def _experiments(table: PublishedTable, preset: Preset, named: Sequence[str] | None) -> tuple[str, ...]:
    known = list(table.experiments())
    if named is not None and not named:
        raise BadInput(f"no experiment is named: name some of {', '.join(known)}, or leave out --only")
    for name in named or ():
        if name not in known:
            raise BadInput(unknown("experiment", name, known))
    if named:
        return tuple(dict.fromkeys(named))
    return table.quick if preset == "quick" and table.quick is not None else tuple(known)


def _nets(name: str, table: PublishedTable, named: Sequence[str] | None) -> tuple[str, ...] | None:
    if named is None:
        return None
    if not table.nets:
        raise BadInput(f"the table '{name}' is not one of nets: leave out --nets")
    if not named:
        raise BadInput(f"no net is named: name some of {', '.join(table.nets)}, or leave out --nets")
    for net in named:
        if net not in table.nets:
            raise BadInput(unknown(f"net of the table '{name}'", net, table.nets))
    return tuple(named)
