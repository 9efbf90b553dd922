"""Claims P7, P9 and P10 of the degree source: ε-separation rank, the choice of a loss, and nonlinearity."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import wilson
from theodolite.theory.operator_spectra import known_spectra, smoothness_exponent, white_noise_rank

_SOURCE = "Attention is Optimal Building Block (Navon 2021), "

# P7 — ε-separation rank and Conclusion 4.3

_P7_EPSILONS = (0.3, 0.1, 0.03)
_EXPANSIONS = ("exponential", "pole", "wave")


def _p7_cells() -> list[Cell]:
    known = [
        Cell("known-epsilon-rank", {"function": f, "epsilons": list(_P7_EPSILONS), "points": 160, "resamples": 4})
        for f in known_spectra
    ]
    bias = [Cell("tail-bias", {"function": f, "epsilon": 0.3, "points": 32, "samples": 100}) for f in known_spectra]
    templates = [Cell("template-bound", {"function": f, "templates": 12, "terms": 4, "draws": 3}) for f in _EXPANSIONS]
    return known + bias + templates


@claim(
    "P7",
    "The least rank of the matricisation over all functions within ε is a lower bound on the ε-separation rank.",
    _SOURCE + "Section 4.1, Conclusion 4.3",
    "Conclusion 4.3 in the maximum norm, three functions with explicit uniform approximations by 1 to 4 products, 4 "
    "choices of 12 templates: holds if the certified least rank within ε never exceeds the number of products and "
    "equals it at least once for 2, 3 and 4 products, and the instrument is sound; fails if it exceeds it once; "
    "undecided else. Sound: eight functions with closed-form spectra, ε = 0.3, 0.1, 0.03, 160 points, 4 resamples. "
    "d₂: every interval contains the closed form's ε-rank, and at least three quarters are bounded above. d₁: every "
    "interval contains the ε-rank where that is known, and none lies wholly above the rank of the truncation on a "
    "128-point quadrature. Bias (32 points, 100 samples): for every function the mean squared error in the sample "
    "lies at most 2 standard errors above the closed form's and for at least half of them more than 2 below, that "
    "held out always above the one in the sample.",
    _p7_cells,
    quote="min_(ỹ ∈ F_ε) rank M^ỹ_(A,B) ≤ min_(ỹ ∈ F_ε) sep_(A,B)(ỹ)",
    kind="theorem",
    statistics=Statistics(
        "24 cases of eight functions, 4 resamples each; 100 samples for the bias; 48 cases of templates",
        "none: certified ranks decide; in the check of the instrument every case must agree",
    ),
)
def _p7(rows: Sequence[Row]) -> Verdict:
    count = len(known_spectra)
    known, bias, templates = rows[:count], rows[count : 2 * count], rows[2 * count :]
    cases = [(row.cell.config["function"], case) for row in known for case in row["cases"]]
    missed = [f"{f} at ε = {c['epsilon']:g}" for f, c in cases if not _inside(c["truth"], c["interval"])]
    bounded = sum(c["interval"][1] is not None for _, c in cases)
    d1_known = [(f, c) for f, c in cases if c["d1_truth"] is not None]
    d1_missed = [f"{f} at ε = {c['epsilon']:g}" for f, c in d1_known if not _inside(c["d1_truth"], c["d1_interval"])]
    d1_missed += [f"{f} at ε = {c['epsilon']:g}" for f, c in cases if c["d1_interval"][0] > c["d1_grid"][1]]
    ratios = {row.cell.config["function"]: [statistics.mean(row[w]) for w in ("in_sample", "held_out")] for row in bias}
    errors = {row.cell.config["function"]: _standard_error(row["in_sample"]) for row in bias}
    not_low = [f for f, (inside, outside) in ratios.items() if inside > 1 + 2 * errors[f] or inside >= outside]
    clearly = [f for f, (inside, _) in ratios.items() if inside < 1 - 2 * errors[f]]
    bounds = [(row.cell.config["function"], case) for row in templates for case in row["cases"]]
    broken = [f"{f}, {c['terms']} products" for f, c in bounds if c["least_rank"][0] > c["terms"]]
    tight = sorted({c["terms"] for _, c in bounds if c["least_rank"][0] == c["terms"]})
    sound = not (missed or d1_missed or not_low) and 2 * len(clearly) >= count and 4 * bounded >= 3 * len(cases)
    inside = statistics.mean(i for i, _ in ratios.values())
    outside = statistics.mean(o for _, o in ratios.values())
    hole = max(max(row["relative_d2_of_rank_0_at_the_templates"].values()) for row in templates)
    least = max(row["relative_d2_of_rank_0_at_the_templates"]["1e-06"] for row in templates)
    return Verdict(
        outcome(not broken, sound and {2, 3, 4} <= set(tight)),
        predicted={f"{f}, ε = {c['epsilon']:g}": c["truth"] for f, c in cases},
        measured={
            "d₂ intervals": {f"{f}, ε = {c['epsilon']:g}": c["interval"] for f, c in cases},
            "d₁ intervals": {f"{f}, ε = {c['epsilon']:g}": c["d1_interval"] for f, c in cases},
            "squared error over the closed form's, in the sample and held out": {
                f: [round(i, 3), round(o, 3)] for f, (i, o) in ratios.items()
            },
            "certified least rank by products (Chebyshev templates)": {
                f"{f}, {c['terms']}": c["least_rank"] for f, c in bounds if c["templates"] == "chebyshev"
            },
        },
        detail=f"{len(cases) - len(missed)} of {len(cases)} d₂ intervals contain the closed form, {bounded} of them "
        f"bounded above{_named(missed)}; d₁: {len(d1_known)} known ranks{_named(d1_missed) or ', all inside'}. Squared "
        f"tails in the sample are on average {inside:.2f} of the true ones, held out {outside:.2f}; "
        f"clearly biased low for {len(clearly)} of {count}{_named(not_low)}. "
        f"Conclusion 4.3 in the maximum norm: {len(bounds)} cases, {len(broken)} above the known rank, equal to it for "
        f"{', '.join(map(str, tight))} products. Under d₁ and d₂ it is true and empty: templates weigh nothing, and a "
        f"function of rank 0 at them lies within {hole:.2f} of y at radius 0.01 and {least:.0e} at 1e-6.",
    )


def _inside(truth: int, interval: Sequence[int | None]) -> bool:
    low, high = interval
    return (low or 0) <= truth and (high is None or truth <= high)


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def _named(names: Sequence[str]) -> str:
    return f" (not so: {', '.join(names)})" if names else ""


# P9 — "all losses are equivalent"

_P9_BLOCKS = (16, 64, 256, 1024, 2048)
_P9_EPSILON = 0.2


def _p9_cells() -> list[Cell]:
    ranks = [Cell("loss-ranks", {"blocks": n, "epsilon": _P9_EPSILON}) for n in _P9_BLOCKS]
    wider = [Cell("loss-ranks", {"blocks": n, "epsilon": 0.4}) for n in _P9_BLOCKS]
    return [*ranks, *wider, Cell("loss-minimiser", {"energy": 4.0, "members": 5})]


@claim(
    "P9",
    "All losses that grow with the error are equivalent up to constants, so d₁ or d₂ may be chosen at will.",
    _SOURCE + "Section 4.5",
    "Step functions 1 + √n·[same block] on n × n blocks, n = 16 … 2048. Fails if at ε = 0.2 the relative ε-rank under "
    "d₁ is proven bounded (1 for every n) while that under d₂ grows by at least 3 for every 4-fold n, and the same is "
    "so when d₂ is allowed twice the ε: then no constant saves the equivalence. Holds if the ratio of the two ranks "
    "stays below 3 for all n; undecided else. The maximum norm, absolute errors and what gradient descent finds under "
    "both losses are reported beside.",
    _p9_cells,
    quote="as long as all the losses are monotone increasing … then since all the norms on ℝⁿ are equivalent then "
    "handling one loss function is equivalent for handling all the rest, up to multiplicative constants factors",
    kind="theorem",
)
def _p9(rows: Sequence[Row]) -> Verdict:
    count = len(_P9_BLOCKS)
    ranks, wider, fit = rows[:count], rows[count : 2 * count], rows[-1]
    mean = [row["relative"]["d1"] for row in ranks]
    square = [row["relative"]["d2"] for row in ranks]
    twice = [row["relative"]["d2"] for row in wider]
    apart = all(high == 1 for _, high in mean) and _grows(square) and _grows(twice)
    together = max(s / m[1] for s, m in zip(square, mean, strict=True)) < 3
    absolute, least = fit["absolute"], fit["square"]
    return Verdict(
        outcome(not apart, decided=together),
        predicted="equal ranks up to a constant",
        measured={
            "blocks": list(_P9_BLOCKS),
            "rank under d₁": [m[1] for m in mean],
            "rank under d₂": square,
            "rank under d₂ at twice the ε": twice,
            "rank under the maximum norm, at least and at most": [row["relative"]["sup"] for row in ranks],
            "absolute errors, spikes alone": [{k: row["absolute"][k] for k in ("d1", "d2", "sup")} for row in ranks],
            "largest ratio of root mean square to mean at n points": [row["spike_norm_ratio"] for row in ranks],
            "one product trained on |error|, on error²": {"absolute": absolute, "square": least},
        },
        detail=f"At ε = {_P9_EPSILON:g} and n = {', '.join(map(str, _P9_BLOCKS))} blocks the ε-rank under d₁ is "
        f"{', '.join(str(m[1]) for m in mean)}, under d₂ {', '.join(map(str, square))} (at twice the ε "
        f"{', '.join(map(str, twice))}). Only d₁ ≤ d₂ ≤ d∞ is true on function spaces; on n points the constant is √n. "
        f"One product trained on |error| finds the smooth part (cosine {absolute['likeness_to_smooth'][0]:.3f}), on "
        f"error² the spike (cosine {least['likeness_to_spike'][0]:.3f}); d₁ errors {absolute['d1'][0]:.2f} and "
        f"{least['d1'][0]:.2f}, d₂ errors {absolute['d2'][0]:.2f} and {least['d2'][0]:.2f}.",
    )


def _grows(ranks: Sequence[int]) -> bool:
    """By at least 3 for every 4-fold n."""
    steps = itertools.pairwise(zip(ranks, _P9_BLOCKS, strict=True))
    return all(math.log(b / a) >= math.log(3) * math.log(m / n, 4) for (a, n), (b, m) in steps)


# P10 — "very nonlinear functions have full separation rank"

_P10_STREAM = "P10, 2026-11-16"  # the deciding draws; trials used others
_DRAWN, _PER_CELL, _TEMPLATES = 240, 40, 128
_P10_EPSILONS = (0.1, 0.01)
_VERY, _TURNS, _LEAST = 0.8, 10, 50
_FULL, _EVERY = 0.8, 0.95
_FIELDS = ((1, 2.5), (1, 1.5), (1, 0.5), (2, 2.5), (2, 1.5))  # (variables, smoothness) whose law is tested
_MADE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tent-of-sum", {"depth": 10}),
    ("tent-product", {"depth": 10}),
    ("wave", {"frequency": 1000.0}),
    ("coupled-maps", {"depth": 12}),
)
_LAW = 0.15


def _p10_cells() -> list[Cell]:
    drawn = [
        Cell(
            "drawn-function-ranks",
            {"stream": _P10_STREAM, "first": first, "count": _PER_CELL, "points": _TEMPLATES,
             "epsilons": list(_P10_EPSILONS)},
        )
        for first in range(0, _DRAWN, _PER_CELL)
    ]  # fmt: skip
    others = [("field", n, {"smoothness": s}) for n, s in _FIELDS]
    others += [*((family, 1, options) for family, options in _MADE), ("noise", 1, {})]
    beside = [
        Cell(
            "random-function-rank",
            {"family": family, "variables": n, "options": options, "points": [_TEMPLATES],
             "epsilons": list(_P10_EPSILONS), "members": 3},
        )
        for family, n, options in others
    ]  # fmt: skip
    return [*drawn, *beside, Cell("certified-full-rank", {"points": 24, "epsilons": list(_P10_EPSILONS)})]


@claim(
    "P10",
    "Of random complex functions every very nonlinear one has full separation rank.",
    _SOURCE + "Section 5.3 (“every very nonlinear function we should expect it to be from full separation rank, since "
    "the matricization isn't fully ranked iff there is linear dependence”)",
    f"{_DRAWN} functions drawn at random with their settings (Gaussian processes of four smoothnesses, random Fourier "
    "series, tanh and ReLU networks; 1, 2 or 4 variables a side; roughness log-uniform), by a stream of draws that no "
    f"trial used. Very nonlinear: an affine function leaves at least {_VERY:.0%} of the variance and the function "
    f"turns at least {_TURNS} times along a line. Full: the 1 %-rank of the matricisation at {_TEMPLATES} drawn "
    f"templates a side is at least {_FULL:.0%} of them (white noise has 95 %). One share, of full ones among the very "
    f"nonlinear, with its 95 % Wilson interval; one comparison, so no correction. “Every” is read as {_EVERY:.0%}: "
    "holds if the interval lies above, fails if it lies below, undecided else or with fewer than "
    f"{_LEAST} very nonlinear functions. All {_DRAWN} are measured once; none are added. Reported beside: the share by "
    "variables a side and at 10 %; functions made to have low rank; the law ε^(−variables/smoothness) of fields.",
    _p10_cells,
    quote="Experiment on collection of random complex functions …, and every very nonlinear function we should expect "
    "it to be from full separation rank, since the matricization isn't fully ranked iff there is linear dependence",
    kind="conjecture",
    statistics=Statistics(
        "240 functions drawn at random, measured once; none are added",
        "none needed: one share and one interval",
    ),
)
def _p10(rows: Sequence[Row]) -> Verdict:
    drawn = [f for row in rows if row.cell.measure == "drawn-function-ranks" for f in row["functions"]]
    beside = [row for row in rows if row.cell.measure == "random-function-rank"]
    exact = rows[-1]
    very = [f for f in drawn if f["nonlinear_share"] >= _VERY and f["turns"] >= _TURNS]
    full = [f for f in very if _is_full(f, -1)]
    low, high = wilson(len(full), len(very)) or (0.0, 1.0)
    enough = len(very) >= _LEAST
    by_variables = {n: [f for f in very if f["variables"] == n] for n in sorted({f["variables"] for f in very})}
    shares = {str(n): [sum(_is_full(f, -1) for f in own), len(own)] for n, own in by_variables.items()}
    mild = [f for f in drawn if _is_full(f, -1) and f not in very]
    laws = {}
    for row, (variables, smoothness) in zip(beside, _FIELDS, strict=False):
        found = statistics.mean(member["exponent"] for member in row["members"])
        laws[f"{variables}|{variables}, s = {smoothness:g}"] = [smoothness_exponent(smoothness, variables), found]
    follow = all(abs(found / law - 1) <= _LAW for law, found in laws.values())
    made = {
        row.cell.config["family"]: max(m["ranks"][str(_TEMPLATES)][-1][0] for m in row["members"])
        for row in beside[len(_FIELDS) : -1]
    }
    noise = statistics.mean(m["ranks"][str(_TEMPLATES)][-1][0] for m in beside[-1]["members"]) / _TEMPLATES
    decided = enough and (low > _EVERY or high < _EVERY)
    return Verdict(
        "undecided" if not decided else "holds" if low > _EVERY else "fails",
        predicted={"share of full ones": f"above {_EVERY:.0%}",
                   "ε-rank ~ ε^−x of fields, x": {name: law for name, (law, _) in laws.items()},
                   "rank of white noise by templates": white_noise_rank(_P10_EPSILONS[-1])},
        measured={"drawn": len(drawn), "very nonlinear": len(very), "full": len(full), "share, 95 %": [low, high],
                  "full of very nonlinear by variables a side": shares,
                  "full at 10 %": sum(_is_full(f, 0) for f in very),
                  "full without being very nonlinear": len(mild),
                  "x": {name: found for name, (_, found) in laws.items()},
                  "made functions, 1 %-rank": made, "rank of white noise by templates": noise,
                  "e^(ab)": {k: exact[k] for k in ("points", "full", "determinant", "float_rank", "epsilon_ranks")}},
        detail=f"{len(very)} of {len(drawn)} drawn functions are very nonlinear, {len(full)} of them full within 1 % "
        f"({len(full) / max(1, len(very)):.0%}, {low:.0%} to {high:.0%}): "
        + ", ".join(f"{a} of {b} with {n} variable{'s' * (n != '1')} a side" for n, (a, b) in shares.items())
        + f". {len(mild)} are full without being very nonlinear. Exactly, a Gaussian process has full rank with "
        f"probability 1, and so has e^(ab) (rank {exact['points'] if exact['full'] else 'unproven'} at "
        f"{exact['points']} points, 1 %-rank {exact['epsilon_ranks'][-1]}): exact rank does not tell functions apart. "
        f"Exponents of fields {'follow' if follow else 'do not follow'} variables/smoothness within {_LAW:.0%} "
        f"({', '.join(f'{f:.2f} for {p:.2f}' for p, f in laws.values())}). Made, not drawn: 1 %-ranks "
        f"{', '.join(f'{name} {rank}' for name, rank in made.items())} of {_TEMPLATES}.",
    )  # fmt: skip


def _is_full(function: dict[str, Any], epsilon: int) -> bool:
    return function["ranks"][epsilon][0] >= _FULL * _TEMPLATES
