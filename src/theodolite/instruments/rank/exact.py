"""Exact separation rank: the rank over GF(p) of y at random points, with surplus points and independent repeats.

What is proven. For any points rank M ≤ sep(y), and rank over GF(p) ≤ rank over ℚ, so the rank found is a lower bound
for almost all real weights (Claim 7.2). Equal to the cap, it is the rank. Otherwise `doubt` bounds the chance that all
draws miss some of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from theodolite.device import device_name, free_bytes, require_memory, resolve_device
from theodolite.errors import BadInput, NotEnoughMemory
from theodolite.field import Elimination, draw_prime, eliminate
from theodolite.instruments.rank.doubt import Covered, Drawn, by_points, missed_rank
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import line_degree, weight_degree
from theodolite.instruments.rank.own_net import PAIRS, check_own_net
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.result import RankResult, described, predict, predicted_fields
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.measurement import Provenance
from theodolite.nets.contract import Prediction
from theodolite.nets.load import Subject
from theodolite.partition import Partition

SURPLUS = 64
SMALLEST_PRIME = 1 << 20  # modulo a small prime a polynomial can vanish without being 0, in every repeat alike
LARGEST_DOUBT = 1e-9  # a rank is called exact only when missing some of it is less likely than this
_FIRST = 448  # points of a first look when the cap is far away: with the surplus one full block


@dataclass(frozen=True)
class Repeat:
    """One prime, one draw of weights, one set of points."""

    sample: FieldSample
    points: int
    elimination: Elimination
    evaluate_seconds: float
    eliminate_seconds: float

    @property
    def rank(self) -> int:
        return self.elimination.rank

    @property
    def surplus(self) -> int:
        return self.points - self.rank


Progress = Callable[[str, float], None]  # what is being done, and the share of it that was just finished


def exact_rank(
    subject: Subject,
    partition: str | Partition = "left-right",
    *,
    token: int | None = None,
    entry: int = 0,
    points: int | None = None,
    max_points: int | None = None,
    repeats: int = 3,
    prime: int | None = None,
    own_weights: bool = False,
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
    keep: Callable[[Repeat], None] | None = None,
) -> RankResult:
    """Measure; `keep` receives every repeat that beats those before it, while its matrix is still there."""
    started = time.perf_counter()
    device = resolve_device(device)
    subject.module.to(device)
    _check(subject, points, max_points, repeats)
    split = Partition.parse(partition, subject.sites)
    function = ScalarFunction.of(subject, token, entry)
    first = FieldSample.make(function, split, seed, 0, device, prime, own_weights)
    function.check(first.evaluate(), first.whole("trial", 6))
    predicted = predict(function, split)
    degree = predicted.degree if predicted and subject.registered else line_degree(first)
    if not subject.registered:
        check_own_net(first, first.pairs(first.points("a", PAIRS), first.points("b", PAIRS)))
        lower = own_weights and predicted is not None and degree < predicted.degree  # weights of its own may be special
        if predicted and predicted.degree != degree and not lower:
            raise BadInput(
                f"'{subject.name}' declares the degree {predicted.degree} and has {degree}: correct its 'predict'"
            )
    cap = predicted.cap if predicted else None
    limit = points or max_points or _affordable(device)
    found: list[Repeat] = []
    for number in range(repeats):
        sample = first if number == 0 else FieldSample.make(function, split, seed, number, device, prime, own_weights)
        guess = max((r.rank for r in found), default=None)
        repeat = _grow(sample, points, limit, cap, guess, progress)
        if keep is not None and (guess is None or repeat.rank > guess):
            keep(repeat)
        found.append(_light(repeat))
        del repeat
    return _result(function, split, found, predicted, degree, started, seed, device)


def _grow(
    sample: FieldSample, fixed: int | None, limit: int, cap: int | None, guess: int | None, progress: Progress | None
) -> Repeat:
    """Add points until enough of them are surplus; stop at `limit` with a lower bound only."""
    enough = limit if cap is None else min(limit, cap + SURPLUS)
    if fixed:
        count = fixed
    elif guess is not None:
        count = min(enough, guess + SURPLUS)
    else:
        count = enough if enough <= 2048 else _FIRST + SURPLUS
    while True:
        repeat = _measure(sample, count, progress)
        if fixed or repeat.surplus >= SURPLUS or count >= enough:
            return repeat
        short = repeat.surplus == 0
        del repeat
        count = min(enough, 2 * count if short else count + SURPLUS)


def _measure(sample: FieldSample, count: int, progress: Progress | None) -> Repeat:
    require_memory(8 * count * count, sample.device, f"a matrix of {count:,} × {count:,} points")
    label = f"repeat {sample.repeat + 1}: {count:,} × {count:,} points"
    tick = time.perf_counter()
    report = (lambda share: progress(f"{label}, evaluating", share)) if progress else None
    a, b = sample.points("a", count), sample.points("b", count)
    try:
        matrix = pair_matrix(sample.evaluate(), a, b, sample.partition, report)
        _synchronise(sample.device)
        tock = time.perf_counter()
        if progress:
            progress(f"{label}, eliminating", 0.0)
        elimination = eliminate(matrix, sample.modulus, overwrite=True)
        _synchronise(sample.device)
    except torch.OutOfMemoryError:
        raise NotEnoughMemory(
            f"{count:,} points need more than the matrix's {8 * count * count / 2**30:.1f} GiB on {sample.device}: "
            "use fewer points or a smaller net"
        ) from None
    return Repeat(sample, count, elimination, tock - tick, time.perf_counter() - tock)


def _light(repeat: Repeat) -> Repeat:
    """The same repeat without its matrix."""
    e = repeat.elimination
    small = replace(e, factors=e.factors.new_empty(0, 0), rows=e.pivot_rows, columns=e.pivot_columns)
    return replace(repeat, elimination=small)


def _result(
    function: ScalarFunction,
    partition: Partition,
    found: list[Repeat],
    predicted: Prediction | None,
    degree: int,
    started: float,
    seed: int,
    device: torch.device,
) -> RankResult:
    ranks = [r.rank for r in found]
    rank = max(ranks)
    theory = predicted_fields(predicted, rank, function.subject.registered)
    saturated = theory["saturated"]
    doubt, covers = (0.0, ("points", "weights", "primes")) if saturated else _doubt(found, rank, degree, predicted)
    missed = max(by_points(r.points, r.rank, degree, r.sample.modulus.p) for r in found)
    enough = all(r.surplus >= SURPLUS for r in found) and missed <= LARGEST_DOUBT
    enough = enough and min(r.sample.modulus.p for r in found) >= SMALLEST_PRIME
    agree = len(found) > 1 and len(set(ranks)) == 1 and enough
    return RankResult(
        **described(function, partition),
        **theory,
        mode="exact",
        rank=rank,
        exact=saturated or agree,
        lower_bound=rank,
        failure_probability=doubt,
        covers=covers,
        primes=tuple(r.sample.modulus.p for r in found),
        points=max(r.points for r in found),
        ranks=tuple(ranks),
        degree=degree,
        seconds=time.perf_counter() - started,
        evaluate_seconds=sum(r.evaluate_seconds for r in found),
        eliminate_seconds=sum(r.eliminate_seconds for r in found),
        provenance=Provenance.here(seed, device_name(device)),
    )


def _doubt(found: list[Repeat], rank: int, degree: int, predicted: Prediction | None) -> tuple[float, Covered]:
    """What `missed_rank` says of these repeats. Own weights are no draw, nor is a prime that was asked for."""
    first = found[0].sample
    registered = first.function.subject.registered
    size = predicted.weight_degree if predicted and registered else None
    if size is None and not first.own_weights:
        size = weight_degree(first)
    primes = {r.sample.modulus.p for r in found}
    drawn = registered and primes == {draw_prime(r.sample.stream("prime")) for r in found}
    terms = predicted.coefficients_log2 if predicted and drawn else None
    weights = None if first.own_weights else size
    return missed_rank(rank, degree, [Drawn(r.points, r.sample.modulus.p, weights, terms) for r in found])


def _affordable(device: torch.device) -> int:
    """The most points a measurement takes by itself: two thirds of the free memory, a few minutes."""
    by_memory = math.isqrt(int(free_bytes(device) * 2 / 3) // 8)
    return max(SURPLUS + 1, min(by_memory, 120_000 if device.type == "cuda" else 4_096))


def _check(subject: Subject, points: int | None, max_points: int | None, repeats: int) -> None:
    for name, value in (("points", points), ("max points", max_points), ("repeats", repeats)):
        if value is not None and value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}: an empty matrix has no rank to measure")
    if subject.vocab:
        raise BadInput(
            f"'{subject.name}' reads integer ids, so its inputs are no points of a field: use --mode grid or epsilon"
        )


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
