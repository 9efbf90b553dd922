"""`survey`: plan the sections for the nets, measure what the store does not have, summarise."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from theodolite.bench.plan import Net, location
from theodolite.claims.check import locations as claim_locations
from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.files import refuse_foreign
from theodolite.lab.campaign import Listener
from theodolite.lab.cell import Cell, Row
from theodolite.lab.engines.by_name import HERE, Cluster
from theodolite.lab.run_cells import place
from theodolite.lab.running import Running
from theodolite.lab.work import Context
from theodolite.nets.contract import nets as registry
from theodolite.nets.load import blueprint
from theodolite.nets.size import parse_budget
from theodolite.notebook import Shown
from theodolite.report import Answer, Summary
from theodolite.surveys import saved
from theodolite.surveys.against import Against, refuse_unpaired
from theodolite.surveys.against import against as compare
from theodolite.surveys.candidate import Candidate, before_and_after, candidates
from theodolite.surveys.conclusions import conclusions
from theodolite.surveys.progress import Progress
from theodolite.surveys.saved import Saved
from theodolite.surveys.scoreboard import decided
from theodolite.surveys.section import Preset, Section, Setting, sections

# Architectures that are surveyed unless others are named, and that a user's net is compared with.
DEFAULT = ("mlp", "convolution", "lstm", "transformer", "linear-transformer")
ALL = "all"  # stands for every architecture that is trained
BUDGET = {"quick": 8_000, "standard": 16_000, "full": 128_000}  # parameters of built-in nets


@dataclass(frozen=True)
class SectionResult:
    id: str
    title: str
    summary: Summary
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Survey(Shown):
    """`reused` of the `asked` cells were in the store before. `command` makes all of it again; a table or figure with a
    command of its own is made by that alone. `against`: what changed since an earlier survey, where one was named."""

    nets: tuple[str, ...]
    preset: Preset
    sections: tuple[SectionResult, ...]
    not_applicable: tuple[str, ...]
    reused: int
    asked: int
    seconds: float
    command: str
    against: Against | None = None

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(answer for section in self.sections for answer in section.summary.answers)

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """By net: what stands at its name."""
        found: dict[str, dict[str, Any]] = {}
        for section in self.sections:
            for net, known in section.summary.facts.items():
                found.setdefault(net, {}).update(known)
        return found

    @property
    def conclusions(self) -> tuple[str, ...]:
        """All of it in at most three sentences."""
        trained = [answer for s in self.sections if s.id == "learnability" for answer in s.summary.answers]
        others = [answer for s in self.sections if s.id != "learnability" for answer in s.summary.answers]
        costs = [row for s in self.sections if s.id == "cost" for row in s.rows]
        return conclusions(self.nets, trained, others, costs)

    @property
    def failures(self) -> tuple[str, ...]:
        errors = [f"{row.cell.config.get('net')}: {row.error}" for s in self.sections for row in s.rows if row.error]
        return tuple(dict.fromkeys(errors))


@dataclass(frozen=True)
class _Planned:
    section: Section
    cells: tuple[Cell, ...]
    refused: tuple[Row, ...]
    troubles: Mapping[str, str]


def survey(
    nets: Sequence[Net] | Net = (),
    preset: Preset = "quick",
    *,
    args: Mapping[str, Any] | None = None,
    weights: str | Path | None = None,
    params: int | str | None = None,
    alone: bool = False,
    only: Sequence[str] = (),
    device: str = "cpu",
    engine: str = "local",
    cluster: Cluster | None = None,
    workers: int | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    against: str | Path | None = None,
    listener: Listener | None = None,
) -> Survey:
    """Turn every instrument on networks: what can they do, and what not?

    Parameters:
        nets: built-in ones, `file.py:Name`, or classes; the common ones when none is named, every built-in one that is
            trained where "all" is
        preset: quick, standard or full
        args: arguments of the nets that were named
        weights: a file of weights (safetensors, or torch.save's) of the one net that is named: it is measured as it is
            built anew and with these, and trained no further
        params: of built-in nets; by default as many as the user's net at the same task, or the preset's number
        alone: do not compare a user's net with built-in ones
        only: sections to run, all of them without it
        device: cpu, cuda, …
        engine: `local` is this machine; `streams`, `ray` and `slurm` as in `learn`, and `cluster` says which cluster
        workers: processes side by side; without a number this process alone
        threads: of each worker
        out: folder of a store: what is in it is not measured again
        against: folder of an earlier survey, or of another network's: `against` of the result is what changed
        listener: is told of progress

    Examples:
        >>> found = survey("sum-of-products", only=["separation-rank"])
        >>> found.answers[0].ability, found.answers[0].standing, found.answers[0].value
        ('separation rank (exact)', 'yes', '3')
    """
    started = time.perf_counter()
    if preset not in get_args(Preset):
        raise BadInput(f"preset '{preset}' is unknown: use {', '.join(get_args(Preset))}")
    running = Running(device, out, engine, cluster or Cluster(), workers, threads)
    named = [nets] if isinstance(nets, str) or callable(nets) else list(nets)
    budget = parse_budget(params) if isinstance(params, str) else params
    if args and not named:
        raise BadInput("arguments are for nets that are named: name one, or leave --arg out")
    if out is not None:
        refuse_foreign(out)
    earlier = None if against is None else saved.read(against)
    if weights is None:
        chosen = candidates(_expanded(named), DEFAULT, args, budget, BUDGET[preset], alone)
    else:
        _check_weights(named, params, engine)
        chosen = before_and_after(named[0], weights, args)
    if earlier is not None:
        refuse_unpaired(str(against), earlier.nets, [one.name for one in chosen])
    wanted = {name: sections[name] for name in only or sections}
    skipped, planned = _plan(chosen, preset, wanted)
    costs = {cell.key: one.section.seconds(cell) for one in planned for cell in one.cells}
    cells = sorted((cell for one in planned for cell in one.cells), key=lambda cell: -costs[cell.key])
    locations = {place(one.named()): location(one.net) for one in chosen}
    locations |= claim_locations(decided(preset)) if "claims" in wanted else {}
    titles = {cell.key: one.section.title for one in planned for cell in one.cells}
    progress = Progress(listener or Listener.unless_given(), titles)
    with running.open() as store:
        context = Context(checkpoints=store.checkpoints.resolve(), locations=locations)
        progress.begin(costs, store.finished(costs))
        outcome = running.run(cells, store, context, listener=progress.heard(), weigh=lambda cell: costs[cell.key])
    command = _command(named, preset, args, params, alone, only, device, weights)
    spelt = {one.name: one.spelt for one in chosen}
    shapes = {one.name: shape for one in chosen if (shape := _shape(one))}
    results = []
    for one in planned:
        rows = (*outcome.of(one.cells), *one.refused)
        if rows or one.troubles:
            summary = one.section.summarise(rows, Setting(preset, spelt, shapes, one.troubles))
            results.append(SectionResult(one.section.id, one.section.title, summary, rows))
    found = Survey(
        nets=tuple(one.name for one in chosen),
        preset=preset,
        sections=tuple(results),
        not_applicable=skipped,
        reused=outcome.reused,
        asked=len(costs),
        seconds=time.perf_counter() - started,
        command=command,
    )
    kept = Saved(found.nets, preset, command, found.answers, found.facts)
    if out is not None and results:
        saved.write(out, kept)
    return found if earlier is None else replace(found, against=compare(str(against), earlier, kept))


def _check_weights(named: Sequence[Net], params: object, engine: str) -> None:
    if len(named) != 1 or named[0] == ALL:
        raise BadInput(f"weights are of one net and {len(named)} are named: name that net alone")
    if params is not None:
        raise BadInput("weights have a size already: give --weights or --params, not both")
    if engine not in HERE:
        raise BadInput(f"weights are read on this machine, and the engine is {engine}: use local")


def _expanded(named: Sequence[Net]) -> list[Net]:
    """The nets, "all" replaced by those it stands for."""
    trained: list[Net] = [name for name, entry in registry.items() if not entry.polynomial]
    return [one for net in named for one in (trained if net == ALL else [net])]


def _shape(net: Candidate) -> Mapping[str, Any]:
    """All arguments of the net that most sections measure; empty where none of its size can be built."""
    try:
        return blueprint(net.net, **net.measured()).shape
    except TheodoliteError:
        return {}


def _plan(
    chosen: Sequence[Candidate], preset: Preset, wanted: Mapping[str, Section]
) -> tuple[tuple[str, ...], list[_Planned]]:
    """Every section's cells. A net that a section cannot be planned for fails there and nowhere else."""
    skipped: dict[tuple[str, str], list[str]] = {}  # nets, by section and what is said of the first of them

    def skip(net: Candidate | None, reason: object) -> None:
        name = "" if net is None else net.name
        alike = skipped.setdefault((section.title, str(reason).replace(f"'{name}'", "\0")), [])
        alike += [name] if name not in alike else []

    planned = []
    for section in wanted.values():
        cells: dict[str, Cell] = {}
        refused: list[Row] = []
        troubles: dict[str, str] = {}
        for net in chosen if section.of_nets else (None,):
            reason = _why_not(section, net) if net is not None else None
            if reason is not None:
                skip(net, reason)
                continue
            try:
                found = section.plan(net, preset)
            except NotApplicable as reason:
                skip(net, reason)
            except TheodoliteError as error:
                if net is None:
                    raise
                troubles[net.name] = str(error)
            else:
                cells |= {cell.key: cell for cell in found if isinstance(cell, Cell)}
                refused += [row for row in found if isinstance(row, Row)]
        planned.append(_Planned(section, tuple(cells.values()), tuple(refused), troubles))
    return _told_together(skipped), planned


def _told_together(skipped: Mapping[tuple[str, str], Sequence[str]]) -> tuple[str, ...]:
    """A line for what is said of the same nets in the same words, with all sections that it is said in."""
    sections_of: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (title, reason), names in skipped.items():
        sections_of.setdefault((reason, tuple(names)), []).append(title)
    lines = []
    for (reason, (first, *others)), titles in sections_of.items():
        told = reason.replace("\0", f"'{first}'")
        likewise = f"; likewise {', '.join(map(repr, others))}" if others else ""
        lines.append(f"{'; '.join(titles)}: {told}{likewise}")
    return tuple(lines)


def _why_not(section: Section, net: Candidate) -> str | None:
    if getattr(section, "trains", False) and net.built:
        return f"'{net.name}' has one set of weights; learn --weights trains on from those of a file"
    return section.applies(net)


def _command(
    named: Sequence[Net],
    preset: str,
    args: Mapping[str, Any] | None,
    params: int | str | None,
    alone: bool,
    only: Sequence[str],
    device: str,
    weights: str | Path | None,
) -> str:
    words = [net if isinstance(net, str) else getattr(net, "__name__", type(net).__name__) for net in named]
    for name, value in (args or {}).items():
        words += ["--arg", f"{name}={value}"]
    words += [] if weights is None else ["--weights", str(weights)]
    words += [] if params is None else ["--params", str(params)]
    words += ["--alone"] if alone else []
    words += ["--only", ",".join(only)] if only else []
    words += [] if device == "cpu" else ["--device", device]
    return shlex.join(["theodolite", "survey", *words, "--preset", preset])
