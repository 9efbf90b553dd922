"""`degree`, the function behind `theodolite degree`: blocks of degree 2, 3, 4, … at one budget of square matrices.

The exact side measures the separation rank of almost all weights, with the cap that holds for all of them. The training
side, where it is asked for, trains product nets of the same degrees at the same budget.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from theodolite.device import require_memory, resolve_device
from theodolite.errors import BadInput, NotPolynomial
from theodolite.instruments.degree.effort import MAX_POINTS, affordable_points
from theodolite.instruments.degree.equal_budget import USUAL, Design, Family, designs
from theodolite.instruments.rank.exact import SURPLUS, Progress, exact_rank
from theodolite.instruments.rank.result import RankResult
from theodolite.measurement import finite
from theodolite.nets.contract import number_list, positive
from theodolite.nets.parts.degrees import at_least_two
from theodolite.notebook import Entries

logger = logging.getLogger(__name__)

TRAINED = "product-net"  # what stands for degrees that are trained and have no exact rank
ORDERS = 6  # of mixed degrees, per budget and count
LARGEST_DEGREE = 1 << 20  # modulo primes near 2^23 a polynomial of higher degree is not told from others
_FIRST_LOOK = 256  # points: a small rank needs no more, and a net without a cap would take as many as it may
_OPTIONS = {"task_args": "--task-arg"}
_LARGEST_BUDGET = 10_000
_LARGEST_INTEGER = 10**300  # beyond only logarithms are given


@dataclass(frozen=True)
class DegreeRow:
    """One network: its blocks' degrees (`degree` is None where they are mixed) and what it expresses.

    `count` says how many square matrices a block of degree d has, `matrices` how many all blocks have, `parameters`
    is measured. `rank` is the separation rank of one output entry; `exact` and `lower_bound` say what may be claimed
    of it; None: not measured, the degree being too large or not whole. `cap` bounds it for all weights, and `saturated`
    says whether the rank equals it, None where that is not known. Integers above 10³⁰⁰ are None and have their
    logarithms only. `error` is the median test error after training, relative to the variance of the target, with its
    `interval` over seeds, of the kind "95 %" or, of fewer than 6 seeds, "range".

    A trained net of a real degree has the `degrees`, `total_degree` and `matrices` that its whole units really make.
    """

    family: str
    net: str
    budget: int
    count: str
    degree: int | float | None
    degrees: tuple[int | float, ...]
    depth: int
    width: int
    matrices: int | float | None
    parameters: int
    total_degree: int | None
    log10_total_degree: float
    rank: int | None = None
    exact: bool = False
    saturated: bool | None = None
    lower_bound: int | None = None
    cap: int | None = None
    log10_cap: float | None = None
    failure_probability: float | None = None
    covers: tuple[str, ...] = ()  # what it counts: points, weights, primes
    ranks: tuple[int, ...] = ()
    primes: tuple[int, ...] = ()
    points: int = 0
    partition: str | None = None
    seed: int = 0
    seconds: float = 0.0
    error: float | None = None
    interval: tuple[float, float] | None = None
    interval_kind: str | None = None
    training: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The degree that was asked for, as a reader spells it: `3`, `e`, or `3,3,2` of mixed blocks."""
        return spelt(self.degrees if self.degree is None else (self.degree,))

    def to_json(self) -> dict[str, Any]:
        return finite(asdict(self))


def degree(
    budget: int | str | Sequence[int] = 12,
    width: int | None = None,
    *,
    family: str = "fully-connected",
    matrices: str = "d",
    degrees: str | Sequence[int | float] | None = None,
    mixed: bool = False,
    inputs: int | None = None,
    tokens: int | None = None,
    max_points: int | None = None,
    repeats: int = 3,
    train: bool = False,
    task: str | None = None,
    task_args: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Entries[DegreeRow]:
    """Rank, cap and total degree of networks that differ in the degree of their blocks and cost the same.

    Parameters:
        budget: square matrices (width × width) to spend on blocks; several may be given
        width: 4 by default, and 2 for attention and mixer
        family: fully-connected, attention, mixer or `file.py:Name`
        matrices: how many a block of degree d has: d-1, d, d+1, or all for one row each
        degrees: to compare; those from 2 to 6 whose blocks divide the budget otherwise
        mixed: add the best mixed degrees, in some orders
        inputs: numbers on each side of a fully connected net's partition; half the width by default
        tokens: all tokens of the others
        max_points: above it a rank is a lower bound only; 2,048 by default, fewer where the nets are so large that it
            would take more than about a minute
        repeats: fresh primes, weights and points that must agree
        train: add errors of product nets on `task` (prescribed-rank by default; any regression on vectors, or the real
            sets digits and diabetes) with its `task_args`, over `seeds` (8) of `steps` (1,000); degrees that were asked
            for take part also where they do not divide the budget, at a depth and width of their own
        seed: of every draw
        device: cpu, cuda, …
        on_note: receives a sentence of what is left out

    Examples:
        >>> [(row.name, row.rank) for row in degree(budget=6, degrees=[2, 3], repeats=2)]
        [('2', 25), ('3', 30)]
    """
    budgets = _budgets(budget)
    blocks = Family.named(family, width, inputs, tokens)
    counts = blocks.counts(matrices)
    positive(max_points=MAX_POINTS if max_points is None else max_points, repeats=repeats)
    if train and (blocks.net != "polynomial-mlp" or counts != ("d",)):
        raise BadInput("--train is for fully connected nets with d matrices a block: leave --family and --matrices out")
    effort = _effort(train, task=task, task_args=task_args, seeds=seeds, steps=steps)
    whole, real = _degrees(degrees, train)
    torch_device = resolve_device(device)
    most = MAX_POINTS if max_points is None else max_points
    require_memory(8 * most**2, torch_device, f"a matrix of {most:,} × {most:,} points")
    if blocks.own:  # before its budget, which means nothing for blocks that have no rank
        _check_polynomial(blocks, counts[0], min(whole or USUAL), seed, device)

    def tell(note: str) -> None:
        logger.info(note)
        if on_note is not None:
            on_note(note)

    chosen: list[Design] = []
    if whole or not real:
        orders, needed = ORDERS if mixed else 0, not (train and whole)
        chosen, notes = designs(blocks, budgets, counts, whole or None, orders, needed)
        for note in notes:
            tell(note)
    for design in chosen:
        require_memory(16 * design.parameters, torch_device, f"a net of {design.parameters:,} parameters")
    ranked = [design for design in chosen if design.total_degree <= LARGEST_DEGREE]
    points = affordable_points(ranked, torch_device) if max_points is None else [max_points] * len(ranked)
    if points and (fewest := min(points)) < most:
        tell(
            f"ranks of nets as large as these are looked for with {fewest:,} points a side instead of {most:,}, to "
            "stay below about a minute: --max-points sets more"
        )
    trained: list[DegreeRow] = []
    if train:  # before the ranks, so that a task that does not fit is refused at once
        effort = {**effort, "seed": seed, "device": device}
        trained = _trained(chosen, budgets, blocks.width, [*whole, *real], effort, progress)
        for row in _merged([], trained):
            if off := (row.training or {})["note"]:
                tell(f"trained degree {row.name} at budget {row.budget} has {off}")
    rest = iter(points)
    rows = []
    for number, design in enumerate(chosen):
        label = f"network {number + 1} of {len(chosen)}, degree {spelt(design.degrees)}"
        logger.info("%s: depth %d, %d parameters", label, len(design.degrees), design.parameters)
        taken = next(rest) if design.total_degree <= LARGEST_DEGREE else 0
        rows.append(_measured(design, taken, repeats, seed, device, _labelled(progress, label)))
    return Entries("degrees", _merged(rows, trained))


def spelt(degrees: Sequence[int | float]) -> str:
    """`3` for equal blocks, else each in its order: `3,3,2`, with many equal neighbours as `2×9,3`."""
    if len(set(degrees)) == 1:
        return "e" if degrees[0] == math.e else f"{degrees[0]:g}"
    runs = [(value, len(list(same))) for value, same in groupby(degrees)]
    return ",".join(f"{value:g}×{many}" if many > 3 else ",".join([f"{value:g}"] * many) for value, many in runs)


def _budgets(given: int | str | Sequence[int]) -> list[int]:
    found = number_list("budget", given)
    for each in found:
        if not isinstance(each, int) or each < 1:
            raise BadInput(f"a budget is a whole number of square matrices of at least 1, not {each:g}")
        if each > _LARGEST_BUDGET:
            raise BadInput(f"a budget of {each} square matrices is too large: use at most {_LARGEST_BUDGET:,}")
    return sorted(set(map(int, found)))


def _degrees(given: str | Sequence[int | float] | None, train: bool) -> tuple[list[int], list[float]]:
    """Whole degrees, whose rank can be exact, and real ones, which only training takes."""
    if isinstance(given, str):
        given = ",".join(repr(math.e) if part.strip() == "e" else part for part in given.split(","))
    found = [] if given is None else list(dict.fromkeys(number_list("degrees", given)))
    real = [each for each in found if isinstance(each, float)]
    for each in found:
        if train and each <= 1:
            kind = "linear" if each == 1 else "no product"
            raise BadInput(f"a block of degree {each:g} is {kind}: with --train use degrees above 1, real ones too")
        if each < 1:
            raise BadInput(f"a block of degree {each:g} is no polynomial of its input: use degrees of at least 2")
        if each == 1:
            at_least_two(1)
    if real and not train:
        fault = f"exact mode needs whole degrees and {spelt(real[:1])} is not one"
        raise BadInput(f"{fault}: use --train for real degrees, any above 1")
    return [int(each) for each in found if isinstance(each, int)], [float(each) for each in real]


def _effort(train: bool, **given: Any) -> dict[str, Any]:
    """What training is told; options of it are refused without it instead of being ignored."""
    for name, value in given.items():
        if value not in (None, {}) and not train:
            raise BadInput(f"{_OPTIONS.get(name, f'--{name}')} is for training: add --train")
    chosen = {name: value for name, value in given.items() if value is not None}
    if (seeds := chosen.get("seeds", 2)) < 2:
        raise BadInput(f"--seeds must be at least 2, not {seeds}: degrees are compared over several trained networks")
    return {"task": "prescribed-rank", "seeds": 8, "steps": 1000, **chosen}


def _labelled(progress: Progress | None, label: str) -> Progress | None:
    return None if progress is None else lambda what, share: progress(f"{label}: {what}", share)


def _described(design: Design, seed: int) -> DegreeRow:
    total, equal = design.total_degree, len(set(design.degrees)) == 1
    return DegreeRow(
        family=design.family.name,
        net=design.family.net,
        budget=design.budget,
        count=design.count,
        degree=design.degrees[0] if equal else None,
        degrees=design.degrees,
        depth=len(design.degrees),
        width=design.family.width,
        matrices=design.matrices,
        parameters=design.parameters,
        total_degree=_sensible(total),
        log10_total_degree=_log10(total),
        seed=seed,
    )


def _measured(
    design: Design, max_points: int, repeats: int, seed: int, device: str, progress: Progress | None
) -> DegreeRow:
    """Without points the row has no rank."""
    row = _described(design, seed)
    if not max_points:
        return row
    started = time.perf_counter()
    subject = design.family.subject(design.degrees, design.count, seed)

    def measure(times: int, most: int) -> RankResult:
        return exact_rank(subject, repeats=times, max_points=most, seed=seed, device=device, progress=progress)

    result = measure(1, min(_FIRST_LOOK, max_points))
    if not _settled(result) and result.points < max_points:
        result = measure(1, max_points)
    # One repeat proves a rank equal to its cap, and no repeat helps where the points are used up.
    if repeats > 1 and not result.saturated and _settled(result):
        result = measure(repeats, result.points)
    found = result.degree if result.degree is not None else design.total_degree
    return replace(
        row,
        total_degree=_sensible(found),
        log10_total_degree=_log10(found),
        rank=result.rank,
        exact=result.exact,
        saturated=result.saturated if result.saturated or (result.exact and result.cap is not None) else None,
        lower_bound=result.lower_bound,
        cap=None if result.cap is None else _sensible(result.cap),
        log10_cap=None if result.cap is None else _log10(result.cap),
        failure_probability=result.failure_probability,
        covers=result.covers,
        ranks=result.ranks,
        primes=result.primes,
        points=result.points,
        partition=result.partition,
        seconds=time.perf_counter() - started,
    )


def _check_polynomial(family: Family, count: str, degree: int, seed: int, device: str) -> None:
    """Refuse a user's net by the operation that is not polynomial."""
    try:
        exact_rank(family.subject((degree,), count, seed), repeats=1, max_points=1, seed=seed, device=device)
    except NotPolynomial as error:
        fault = f"the blocks of '{family.name}' have no exact rank, for {error} of 'theodolite rank'"
        raise NotPolynomial(fault) from error


def _settled(result: RankResult) -> bool:
    return result.saturated or result.points - result.rank >= SURPLUS


def _sensible(value: int) -> int | None:
    return value if value <= _LARGEST_INTEGER else None


def _log10(value: int) -> float:
    return round(math.log10(value), 6) if value > 0 else 0.0  # a polynomial of degree 0 has no logarithm to show


def _trained(
    chosen: Sequence[Design],
    budgets: Sequence[int],
    width: int,
    degrees: Sequence[int | float],
    effort: Mapping[str, Any],
    progress: Progress | None,
) -> list[DegreeRow]:
    """A row for every degree that was asked for, or else divides the budget, and every mixed design, at each budget."""
    from theodolite.instruments.degree.trained import train_degrees  # all tasks come with it

    rows: list[DegreeRow] = []
    for budget in budgets:
        own = [design.degrees for design in chosen if design.budget == budget]
        mixed = [blocks for blocks in own if len(set(blocks)) > 1]
        asked = degrees or [blocks[0] for blocks in own if len(set(blocks)) == 1]
        wanted = [*(degree for degree in asked if degree <= budget), *mixed]
        if not wanted:
            least = spelt((min(asked),))
            raise BadInput(f"a budget of {budget} is smaller than one block of degree {least}: raise the budget")
        logger.info("training at budget %d: %s", budget, ", ".join(map(str, wanted)))
        step = _labelled(progress, f"training at budget {budget}")
        found = train_degrees(wanted, budget=budget, width=width, **effort, progress=step)
        rows += [_trained_row(budget, one, reached, effort["seed"]) for one, reached in zip(wanted, found, strict=True)]
    return rows


def _trained_row(budget: int, asked: int | float | tuple[int, ...], report: Mapping[str, Any], seed: int) -> DegreeRow:
    low, high = report["interval"]
    matrices = report["matrices"]
    return DegreeRow(
        family="fully-connected",
        net=TRAINED,
        budget=budget,
        count="d",
        degree=None if isinstance(asked, tuple) else asked,
        degrees=tuple(report["block_degrees"]),
        depth=report["depth"],
        width=report["width"],
        matrices=int(matrices) if matrices == int(matrices) else matrices,
        parameters=report["parameters"],
        total_degree=_sensible(report["total_degree"]),
        log10_total_degree=_log10(report["total_degree"]),
        seed=seed,
        seconds=report["seconds"],
        error=report["error"],
        interval=(low, high),
        interval_kind=report["interval_kind"],
        training={name: value for name, value in report.items() if name != "total_degree"},
    )


def _merged(rows: Sequence[DegreeRow], trained: Sequence[DegreeRow]) -> list[DegreeRow]:
    """Ranks with the errors of the same blocks, and what was trained and has no rank: by budget, count and degree."""
    errors = {(row.budget, row.degrees): row for row in trained}
    result: list[DegreeRow] = []
    for row in rows:
        own = errors.pop((row.budget, row.degrees), None)
        if own is not None:
            row = replace(
                row,
                error=own.error,
                interval=own.interval,
                interval_kind=own.interval_kind,
                training=own.training,
            )
        result.append(row)
    place = {count: number for number, count in enumerate(dict.fromkeys(row.count for row in result))}
    every = [*result, *errors.values()]
    return sorted(every, key=lambda r: (r.budget, place.get(r.count, 0), r.degree is None, r.degree or 0, r.degrees))
