"""Claims G3 and G5–G8: what gradient descent fails to learn, and the remedies.

Settings are the paper's, shorter where that is said; its own size is `theodolite reproduce failures --preset full`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.expressivity.failures.activations import Activations
from theodolite.claims.expressivity.failures.curves import Curves
from theodolite.claims.expressivity.failures.parity import Parity
from theodolite.claims.expressivity.failures.remedies import Elimination, Guessing
from theodolite.claims.expressivity.failures.tuple_signal import TupleSignal
from theodolite.claims.expressivity.failures.tuples import Tuples
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.tables.failures_published import CONDITION, COVARIANCE, FALL, SIGNAL, figure
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import mean_interval
from theodolite.statistics.paired import against, holm

_PAPER = "Shalev-Shwartz et al. 2017, "


def _cell(measure: str, settings: Any) -> Cell:
    """One start a target goes without saying: rows from before there could be more keep their keys."""
    return Cell(measure, {name: value for name, value in asdict(settings).items() if (name, value) != ("starts", 1)})


def _of(rows: Sequence[Row], setting: str) -> dict[str, list[Any]]:
    return next(row["quantities"] for row in rows if row["setting"] == setting)


# G3 — §2: parity by one hidden layer


_G3_STEPS = {5: 10_000, 10: 40_000, 30: 25_000}
_G3_SIZES = {5: (2, 3), 10: (4, 5), 30: (14, 15)}
_G3_CHANCE = 0.55


@claim(
    "G3",
    "A network of one hidden layer, 10·d wide, learns parity at d = 5 and 10 and not at d = 30.",
    EXPRESSIVITY + f"parity ({_PAPER}§2, Fig. 1)",
    "Parities of k bits near d/2, even and odd apart. At d = 5 (k = 2, 3; 10,000 iterations) and 10 (k = 4, 5; 40,000) "
    "each of 5 seeds must reach 95 % on 500 fresh examples. At d = 30 (k = 14, 15; 25,000) each of 3 seeds must end "
    "below 55 % on 20,000 fresh examples. Fails if in some setting no seed does; undecided if only some do, or if some "
    "seed at d = 10 needed more than d = 30 was given.",
    lambda: [
        _cell("failure-parity", Parity(bits, size, seeds=5 if bits < 30 else 3, steps=_G3_STEPS[bits]))
        for bits, sizes in _G3_SIZES.items()
        for size in sizes
    ],
    quote="Results on Parity Learning (figure); N.B. The following results are true independent of network "
    "architecture",
    kind="published table",
    statistics=Statistics(
        "5 seeds at d = 5 and 10, 3 at 30, two parities each",
        "none: for holding every seed must agree, for failing none of a setting",
    ),
    heavy=True,
)
def _g3(rows: Sequence[Row]) -> Verdict:
    small = {f"d = {d}, k = {k}": _of(rows, f"d = {d}, k = {k}") for d in (5, 10) for k in _G3_SIZES[d]}
    large = {f"d = 30, k = {k}": _of(rows, f"d = 30, k = {k}") for k in _G3_SIZES[30]}
    reached = {name: q["iterations to 95 %"] for name, q in small.items()}
    ends = {name: q["final accuracy"] for name, q in large.items()}
    good = _agreement(
        *([n is not None for n in times] for times in reached.values()),
        *([a < _G3_CHANCE for a in values] for values in ends.values()),
    )
    given = min(row["details"]["iterations"] for row in rows if row["setting"] in large)
    longest = max((n for times in reached.values() for n in times if n is not None), default=0)
    return Verdict(
        outcome(good is not False, decided=bool(good) and longest <= given),
        predicted={"d = 5, 10": "every seed to 95 %", "d = 30": f"no seed above {_G3_CHANCE:.0%}"},
        measured={"iterations to 95 %": reached, "accuracy at the end": ends},
        detail="Iterations to 95 %: "
        + "; ".join(f"{name}: {_span(times)}" for name, times in reached.items())
        + f". After {given:,} iterations at d = 30: "
        + "; ".join(f"{name.split(', ')[1]}: {_span(values)}" for name, values in ends.items())
        + ".",
    )


# G5 — §3.1: decompose and supervise


_G5_STEPS, _G5_BATCH = 500, 50


@claim(
    "G5",
    "Supervising the parts learns what end to end is not learnt, because its gradient carries more signal.",
    EXPRESSIVITY + f"decomposition against end to end ({_PAPER}§3.1, Fig. 2 and 3)",
    "Tuples of 3 images, 500 iterations of 50 tuples (published: 2,500 and 20,000 of 200), 2 seeds: decomposed at "
    "least 75 % and end to end at most 60 % in each. One image, the same, end to end at least 75 % in each. "
    "Signal-to-noise at the start over 10,000 examples, mean of 3 networks: end to end it falls at least 3-fold from "
    "one image to two (the sampling allows about 10), decomposed by less than 2. Holds if all is so; fails if in some "
    "setting no seed does what is asked; undecided else.",
    lambda: [
        _cell("failure-tuples", Tuples(3, True, seeds=2, steps=_G5_STEPS, batch=_G5_BATCH)),
        _cell("failure-tuples", Tuples(3, False, seeds=2, steps=_G5_STEPS, batch=_G5_BATCH)),
        _cell("failure-tuples", Tuples(1, False, seeds=2, steps=_G5_STEPS, batch=_G5_BATCH)),
        _cell("failure-tuples-signal", TupleSignal(2, seeds=3, examples=10_000)),
    ],
    quote="2. Decompose the problem and add supervision",
    kind="published table",
    statistics=Statistics(
        "2 seeds a setting, 3 networks for the signal",
        "none: every seed must agree",
    ),
    heavy=True,
)
def _g5(rows: Sequence[Row]) -> Verdict:
    decomposed, whole, single, signal = (row["quantities"] for row in rows)

    def fall(how: str) -> float:
        return _mean(signal[f"{how}, k = 1"]) / _mean(signal[f"{how}, k = 2"])

    good = _agreement(
        [a >= 0.75 for a in decomposed["accuracy"]],
        [a <= 0.6 for a in whole["accuracy"]],
        [a >= 0.75 for a in single["accuracy"]],
        [fall("end to end") >= 3],
        [fall("decomposed") < 2],
    )
    published = figure("tuples", SIGNAL, FALL)
    assert published is not None
    return Verdict(
        outcome(good is not False, bool(good)),
        predicted={"k = 3, decomposed": 0.862, "k = 3, end to end": 0.485, "k = 1, end to end": 0.947},
        measured={
            "k = 3, decomposed": decomposed["accuracy"],
            "k = 3, end to end": whole["accuracy"],
            "k = 1, end to end": single["accuracy"],
            "fall of the signal-to-noise ratio": {how: fall(how) for how in ("end to end", "decomposed")},
        },
        detail=f"Three images: {_span(decomposed['accuracy'])} decomposed, {_span(whole['accuracy'])} end to end; one "
        f"image {_span(single['accuracy'])}. From one image to two the ratio falls {fall('end to end'):.1f}-fold end "
        f"to end and {fall('decomposed'):.1f}-fold decomposed (published about {published.value:.0f} end to end, with "
        "500,000 examples: both are what so many examples can resolve).",
    )


# G6 — reformulate, guess, another objective


_G6_BITS, _G6_STEPS = 30, 3_000


@claim(
    "G6",
    "Reformulating, guessing in a small class, or another objective solve what end-to-end gradient descent does not.",
    EXPRESSIVITY + f"remedies ({_PAPER}§2, §5)",
    "Parity of 30 bits, k = 15, 3 seeds, 3,000 iterations of 128 examples: SGD ends below 55 % in each. Elimination "
    "over GF(2) at d = 30, 100 and 1,000 is right on all of 10,000 fresh examples in each of 5 seeds, from at most "
    "d + 20 examples. Guessing among the 31 prefixes of 30 bits takes at most 31 guesses. A flat activation, 3 seeds: "
    "less than 60 % within 0.5 % of the range end to end in the median (10,000 iterations), at least 90 % with the "
    "forward-only update in each (5,000). Holds if all is so; fails if in some setting no seed does what is asked; "
    "undecided else.",
    lambda: [
        _cell("failure-parity", Parity(_G6_BITS, 15, seeds=3, steps=_G6_STEPS)),
        *(_cell("failure-elimination", Elimination(bits)) for bits in (30, 100, 1_000)),
        _cell("failure-guessing", Guessing(_G6_BITS)),
        _cell("failure-activations", Activations("end to end", seeds=3)),
        _cell("failure-activations", Activations("forward only", seeds=3)),
    ],
    quote="1. Reformulate the problem (ask a different question) … 3. Optimize an alternative objective (or sometimes "
    "random guessing!)",
    kind="published table",
    statistics=Statistics(
        "3 seeds of SGD and of the activations, 5 of the other remedies",
        "none: every seed must agree, or the median where the rule says so",
    ),
    heavy=True,
)
def _g6(rows: Sequence[Row]) -> Verdict:
    trained, *eliminated, guessed, whole, forward = rows
    accuracy = trained["quantities"]["final accuracy"]
    solved = all(
        min(row["quantities"]["final accuracy"]) == 1.0
        and max(row["quantities"]["examples"]) <= row.cell.config["bits"] + 20
        for row in eliminated
    )
    shares = {row["setting"]: row["quantities"]["share near"] for row in (whole, forward)}
    good = _agreement(
        [a < _G3_CHANCE for a in accuracy],
        [solved],
        [max(guessed["quantities"]["guesses"]) <= _G6_BITS + 1],
        [statistics.median(shares["end to end"]) < 0.6],
        [share >= 0.9 for share in shares["forward only"]],
    )
    seen = trained["details"]["iterations"] * trained["details"]["batch"]
    needed = {f"d = {row.cell.config['bits']}": row["quantities"]["examples"] for row in eliminated}
    work = {f"d = {row.cell.config['bits']}": row["quantities"]["bit operations"] for row in eliminated}
    return Verdict(
        outcome(good is not False, bool(good)),
        predicted={"SGD": "chance", "elimination": "solved", "guessing": "solved", "forward only": "solved"},
        measured={
            "SGD, accuracy": accuracy,
            "elimination, examples": needed,
            "elimination, bit operations": work,
            "guesses": guessed["quantities"]["guesses"],
            "share near": shares,
        },
        detail=f"SGD has {_span(accuracy)} after {seen:,} examples of 30 bits. Elimination "
        f"{'solves' if solved else 'misses'} it from {_span(needed['d = 30'])} examples and {_span(work['d = 30'])} "
        f"bit operations, 1,000 bits from {_span(needed['d = 1000'])}; guessing among prefixes takes "
        f"{_span(guessed['quantities']['guesses'])} guesses. Near the label: {_span(shares['end to end'])} end to "
        f"end, {_span(shares['forward only'])} with the forward-only update.",
    )


# G7 — §4: geometry


@claim(
    "G7",
    "Changing the geometry makes piecewise-linear curves learnable: a filter, and a conditioned filter.",
    EXPRESSIVITY + f"geometry and conditioning ({_PAPER}§4.1.1–4.1.3)",
    "The linear map still has more than half of its first loss after 10,000 iterations in each of 3 seeds; the filter "
    "less than a tenth in the median of 5; the conditioned filter less than a millionth after 500 and within 0.01 of "
    "(1, −2, 1) in each of 5. W has condition 11,602 (to a whole number), the neighbours' moments one of 1.2e5 to "
    "1.6e5. Holds if all is so; fails if in some setting no seed does what is asked; undecided else.",
    lambda: [
        _cell("failure-curves", Curves("linear", seeds=3, steps=10_000)),
        _cell("failure-curves", Curves("filter", seeds=5, steps=10_000)),
        _cell("failure-curves", Curves("conditioned", seeds=5, steps=500)),
    ],
    quote="4. Change the geometry through inductive bias; Learning Piecewise Linear Functions (Failures of "
    "Gradient-Based Deep Learning, Section 4)",
    kind="published table",
    statistics=Statistics(
        "3 seeds of the linear map, 5 of the filters",
        "none: every seed must agree, the filter in the median",
    ),
)
def _g7(rows: Sequence[Row]) -> Verdict:
    linear, plain, conditioned = (row["quantities"] for row in rows)

    def left(quantities: dict[str, list[float]], step: str) -> list[float]:
        return [b / a for a, b in zip(quantities["loss at 0"], quantities[f"loss at {step}"], strict=True)]

    shares = {
        "linear": left(linear, "10,000"),
        "filter": left(plain, "10,000"),
        "conditioned": left(conditioned, "500"),
    }
    distance = conditioned["distance of the filter from (1, −2, 1)"]
    good = _agreement(
        [share > 0.5 for share in shares["linear"]],
        [statistics.median(shares["filter"]) < 0.1],
        [share < 1e-6 for share in shares["conditioned"]],
        [off < 0.01 for off in distance],
        [round(linear[CONDITION][0]) == 11_602],
        [1.2e5 < c < 1.6e5 for c in conditioned[COVARIANCE]],
    )
    return Verdict(
        outcome(good is not False, bool(good)),
        predicted={
            "linear": 11.00 / 14.58,
            "filter": 3.5e-3 / 0.1458,
            "conditioned": 2.4e-10 / 0.1458,
            "filter found": [1, -2, 1],
            "condition of W": 11_602,
        },
        measured={
            **shares,
            "filters found": rows[2]["details"]["filters"],
            "condition of W": linear[CONDITION][0],
            "condition of the moments": conditioned[COVARIANCE],
        },
        detail=f"Share of the first loss that is left: linear {_span(shares['linear'])} and filter "
        f"{_span(shares['filter'])} after 10,000 iterations, conditioned filter {_span(shares['conditioned'])} after "
        f"500, {_span(distance)} from (1, −2, 1); condition of W {linear[CONDITION][0]:,.1f}.",
    )


# G8 — §5: flat activations

_G8_SHARES: dict[str, tuple[str, float]] = {
    "approximation": ("below", 0.1),
    "end to end": ("below", 0.6),
    "multi-class": ("above", 0.9),
    "forward only": ("above", 0.9),
}
_G8_CELLS = {
    "approximation": Activations("approximation", seeds=20, starts=10),
    "end to end": Activations("end to end", seeds=10),
    "multi-class": Activations("multi-class", seeds=10, steps=1_500),
    "forward only": Activations("forward only", seeds=20, starts=10),
}


@claim(
    "G8",
    "A flat activation is not learnt through a differentiable approximation, is half learnt end to end, and is learnt "
    "as classes or with a forward-only update.",
    EXPRESSIVITY + f"flat activations ({_PAPER}§5, Fig. 6)",
    "Share of inputs within 0.5 % of the range of labels. Iterations as published, as classes 1,500 of 10,000. A draw "
    "counts with the mean over its starts. The mean share over the draws lies below 10 % with the approximation, "
    "below 60 % end to end, above 90 % as classes and forward-only. Fails if one lies clearly on the other side, "
    "holds if all four lie clearly on theirs, undecided else. Depends on the draw: some draws lie on one side with "
    "all their starts and some on the other; that is said, whatever the verdict.",
    lambda: [_cell("failure-activations", settings) for settings in _G8_CELLS.values()],
    quote="3. Optimize an alternative objective (or sometimes random guessing!)",
    kind="published table",
    statistics=Statistics(
        "linear units (approximation, forward-only): 20 draws of the target and its data with 10 starts each; networks "
        "(end to end, classes), a hundred times as dear: 10 draws with a start each",
        "Holm over the four two-sided t-tests over draws, at 5 %",
    ),
    heavy=True,
)
def _g8(rows: Sequence[Row]) -> Verdict:
    starts = {row["setting"]: row.cell.config.get("starts", 1) for row in rows}
    shares = {row["setting"]: _grouped(row["quantities"]["share near"], starts[row["setting"]]) for row in rows}
    by_draw = {name: [statistics.fmean(own) for own in groups] for name, groups in shares.items()}
    tests = {name: against(values, _G8_SHARES[name][1]) for name, values in by_draw.items()}
    clear = dict(zip(tests, holm([p for _, p in tests.values()]), strict=True))
    sides = {name: "below" if mean < _G8_SHARES[name][1] else "above" for name, (mean, _) in tests.items()}
    right = {name: sides[name] == _G8_SHARES[name][0] for name in tests}
    torn = {name: found for name, groups in shares.items() if all(found := _sides(groups, _G8_SHARES[name][1]))}
    published = {name: figure("activations", name, "share near") for name in shares}
    return Verdict(
        outcome(
            not any(clear[name] and not right[name] for name in tests),
            all(clear[name] and right[name] for name in tests) or any(clear[n] and not right[n] for n in tests),
        ),
        predicted={name: found.value if found else None for name, found in published.items()},
        measured={
            name: {"mean": mean, "interval": mean_interval(by_draw[name]), "p": p, "clear after Holm": clear[name],
                   "by draw": by_draw[name], "largest spread over starts": max(max(g) - min(g) for g in shares[name])}
            for name, (mean, p) in tests.items()
        },
        detail="; ".join(
            f"{name} {mean:.2f} on average over {len(by_draw[name])} draws, {_span(by_draw[name])} (published "
            f"{found.value if (found := published[name]) else '–'}){'' if clear[name] else ', not clear'}"
            for name, (mean, _) in tests.items()
        )
        + "."
        + "".join(
            f" {name.capitalize()} depends on the draw: {low} lie below {_G8_SHARES[name][1]:.0%} with all their "
            f"starts, {high} above."
            for name, (low, high) in torn.items()
        )
        + _offsets(rows[0], by_draw["approximation"]),
    )  # fmt: skip


def _grouped(values: Sequence[float], starts: int) -> list[Sequence[float]]:
    return [values[i : i + starts] for i in range(0, len(values), starts)]


def _sides(groups: Sequence[Sequence[float]], bound: float) -> tuple[int, int]:
    """How many draws lie below the bound and how many above, with all their starts."""
    return sum(max(own) < bound for own in groups), sum(min(own) > bound for own in groups)


def _offsets(row: Row, shares: Sequence[float]) -> str:
    learnt, rest = [], []
    for offset, share in zip(row["details"]["offsets"], shares, strict=True):
        (learnt if share >= _G8_SHARES["approximation"][1] else rest).append(abs(offset))
    if not learnt or not rest:
        return ""
    return (
        f" The approximation is learnt in part at offsets |b| of {_span(learnt)}, and not at {_span(rest)}: the steps "
        "are fine near b, and training starts near 0."
    )


def _agreement(*settings: Sequence[bool]) -> bool | None:
    """True if every seed of every setting does what is asked, False if in some setting none does, None else."""
    if not all(map(any, settings)):
        return False
    return True if all(map(all, settings)) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _span(values: Sequence[float | None]) -> str:
    """Lowest to highest over the seeds."""
    known = [v for v in values if v is not None]
    if not known:
        return "never"
    ends = [f"{v:,}" if isinstance(v, int) else f"{v:.3g}" for v in (min(known), max(known))]
    some = "" if len(known) == len(values) else f" ({len(known)} of {len(values)} seeds)"
    return "–".join(dict.fromkeys(ends)) + some
