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

from theodolite.errors import BadInput, NotPolynomial
from theodolite.instruments.device import require_memory, resolve_device
from theodolite.instruments.equal_budget import USUAL, Design, Family, designs
from theodolite.instruments.rank import SURPLUS, Progress, exact_rank
from theodolite.instruments.result import RankResult
from theodolite.measurement import finite
from theodolite.nets.contract import number_list, positive
from theodolite.nets.degrees import at_least_two

logger = logging.getLogger(__name__)

MAX_POINTS = 2048
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
    of it; None: not measured, the degree being too large or not whole. `cap` bounds it for all weights. Integers above
    10³⁰⁰ are None and have their logarithms only. `error` is the median test error after training, relative to the
    variance of the target, with its 95 % `interval` over seeds.
    """

    family: str
    net: str
    budget: int
    count: str
    degree: int | float | None
    degrees: tuple[int | float, ...]
    depth: int
    width: int
    matrices: int | None
    parameters: int
    total_degree: int | float | None
    log10_total_degree: float
    rank: int | None = None
    exact: bool = False
    saturated: bool = False
    lower_bound: int | None = None
    cap: int | None = None
    log10_cap: float | None = None
    failure_probability: float | None = None
    ranks: tuple[int, ...] = ()
    primes: tuple[int, ...] = ()
    points: int = 0
    partition: str | None = None
    seed: int = 0
    seconds: float = 0.0
    error: float | None = None
    interval: tuple[float, float] | None = None
    training: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return finite(asdict(self))


def degree(
    budget: int | str | Sequence[int] = 12,
    width: int = 4,
    *,
    family: str = "fully-connected",
    matrices: str = "d",
    degrees: str | Sequence[int | float] | None = None,
    mixed: bool = False,
    inputs: int | None = None,
    tokens: int | None = None,
    max_points: int = MAX_POINTS,
    repeats: int = 3,
    train: bool = False,
    task: str | None = None,
    task_args: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    told: Callable[[str], None] | None = None,
) -> list[DegreeRow]:
    """Rank, cap and total degree of networks that differ in the degree of their blocks and cost the same.

    `budget` counts square matrices (width × width) to spend on blocks; several may be given. `family` is
    fully-connected, attention, mixer or `file.py:Name`; `matrices` how many a block of degree d has: d-1, d, d+1, or
    all for one row each. `inputs` are the numbers on each side of a fully connected net's partition (half the width by
    default), `tokens` all tokens of the others. `mixed` adds the best mixed degrees, in some orders. A degree whose
    blocks do not divide the budget is left out; `told` receives a sentence of those. Above `max_points` a rank is a
    lower bound only. `train` adds errors of product nets on `task` (prescribed-rank by default; any regression on
    vectors, or the real sets digits and diabetes), over `seeds` (8) of so many `steps` (1,000).
    """
    budgets = _budgets(budget)
    blocks = Family.named(family, width, inputs, tokens)
    counts = blocks.counts(matrices)
    positive(max_points=max_points, repeats=repeats)
    if train and (blocks.net != "polynomial-mlp" or counts != ("d",)):
        raise BadInput("--train is for fully connected nets with d matrices a block: leave --family and --matrices out")
    effort = _effort(train, task=task, task_args=task_args, seeds=seeds, steps=steps)
    whole, real = _degrees(degrees, train)
    where = resolve_device(device)
    require_memory(8 * max_points**2, where, f"a matrix of {max_points:,} × {max_points:,} points")
    chosen, notes = [], []
    if whole or not real:
        chosen, notes = designs(blocks, budgets, counts, whole or None, ORDERS if mixed else 0)
    for note in notes:
        logger.info(note)
        if told is not None:
            told(note)
    for design in chosen:
        require_memory(16 * design.parameters, where, f"a net of {design.parameters:,} parameters")
    trained: list[DegreeRow] = []
    if train:  # before the ranks, so that a task that does not fit is refused at once
        asked = [*whole, *real] or USUAL
        trained = _trained(chosen, budgets, width, asked, {**effort, "seed": seed, "device": device}, progress)
    rows = []
    for number, design in enumerate(chosen):
        label = f"network {number + 1} of {len(chosen)}, degree {spelt(design.degrees)}"
        rows.append(_measured(design, max_points, repeats, seed, device, _labelled(progress, label)))
    return _merged(rows, trained)


def spelt(degrees: Sequence[int | float]) -> str:
    """`3` for equal blocks, else each in its order: `3,3,2`, with many equal neighbours as `2×9,3`."""
    if len(set(degrees)) == 1:
        return f"{degrees[0]:g}"
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
        if each < 1:
            raise BadInput(f"a block of degree {each:g} is no polynomial of its input: use degrees of at least 2")
        if each == 1:
            at_least_two(1)
    if real and not train:
        raise BadInput(f"exact mode needs whole degrees and {real[0]:g} is not one: use --train for real degrees")
    return [int(each) for each in found if isinstance(each, int)], [float(each) for each in real]


def _effort(train: bool, **given: Any) -> dict[str, Any]:
    """What training is told; options of it are refused without it instead of being ignored."""
    for name, value in given.items():
        if value not in (None, {}) and not train:
            raise BadInput(f"{_OPTIONS.get(name, f'--{name}')} is for training: add --train")
    chosen = {name: value for name, value in given.items() if value is not None}
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
    row = _described(design, seed)
    if row.total_degree is None or row.total_degree > LARGEST_DEGREE:
        return row
    started = time.perf_counter()
    subject = design.family.subject(design.degrees, design.count, seed)

    def measure(times: int, most: int) -> RankResult:
        return exact_rank(subject, repeats=times, max_points=most, seed=seed, device=device, progress=progress)

    try:
        result = measure(1, min(_FIRST_LOOK, max_points))
    except NotPolynomial as error:
        told = f"the blocks of '{design.family.name}' have no exact rank, for {error} of 'theodolite rank'"
        raise NotPolynomial(told) from error
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
        saturated=result.saturated,
        lower_bound=result.lower_bound,
        cap=None if result.cap is None else _sensible(result.cap),
        log10_cap=None if result.cap is None else _log10(result.cap),
        failure_probability=result.failure_probability,
        ranks=result.ranks,
        primes=result.primes,
        points=result.points,
        partition=result.partition,
        seconds=time.perf_counter() - started,
    )


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
    """A row for every degree that was asked for and every mixed design, at each budget."""
    from theodolite.instruments.degree_training import train_degrees  # all tasks come with it

    rows: list[DegreeRow] = []
    for budget in budgets:
        mixed = [d.degrees for d in chosen if d.budget == budget and len(set(d.degrees)) > 1]
        wanted = [*(degree for degree in degrees if degree <= budget), *mixed]
        if not wanted:
            raise BadInput(
                f"a budget of {budget} is smaller than one block of degree {min(degrees):g}: raise the budget"
            )
        step = _labelled(progress, f"training at budget {budget}")
        for asked, told in zip(
            wanted, train_degrees(wanted, budget=budget, width=width, **effort, progress=step), strict=True
        ):
            rows.append(_trained_row(budget, asked, told, effort["seed"]))
    return rows


def _trained_row(budget: int, asked: int | float | tuple[int, ...], told: Mapping[str, Any], seed: int) -> DegreeRow:
    blocks = tuple(told["degrees"])
    log10 = sum(map(math.log10, blocks))
    low, high = told["interval"]
    return DegreeRow(
        family="fully-connected",
        net=TRAINED,
        budget=budget,
        count="d",
        degree=None if isinstance(asked, tuple) else asked,
        degrees=blocks,
        depth=told["depth"],
        width=told["width"],
        matrices=None,
        parameters=told["parameters"],
        total_degree=math.prod(blocks) if log10 < 300 else None,
        log10_total_degree=round(log10, 6),
        seed=seed,
        seconds=told["seconds"],
        error=told["error"],
        interval=(low, high),
        training=dict(told),
    )


def _merged(rows: Sequence[DegreeRow], trained: Sequence[DegreeRow]) -> list[DegreeRow]:
    """Ranks with the errors of the same blocks; then what was trained and has no rank; budget by budget."""
    errors = {(row.budget, row.degrees): row for row in trained}
    result: list[DegreeRow] = []
    for row in rows:
        own = errors.pop((row.budget, row.degrees), None)
        result.append(
            row if own is None else replace(row, error=own.error, interval=own.interval, training=own.training)
        )
    return sorted([*result, *errors.values()], key=lambda row: row.budget)
