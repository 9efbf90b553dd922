"""Claims S2, S3, S4: what it is worth in training to know the graph of the target, exactly or within a larger one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import mean_interval

SOURCE = "It is Compositional Sparsity (Poggio 2022), "
_TRAINING = {
    "truth": "binary-tree",
    "variables": 8,
    "draw": 1,
    "width": 16,
    "depth": 1,
    "points": 300,
    "seeds": 4,
    "targets": 1,
    "restarts": 2,
    "steps": 800,
    "lr": 0.01,
    "loss": "square",
    "penalty": "l2",
    "strengths": [3e-4, 3e-3],
}
_DENSE = {"graph": "dense", "depth": 2}


def _graph(**changes: Any) -> Cell:
    return Cell("graph-training", {**_TRAINING, **changes})


def _log_ratio(first: Sequence[float], second: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The geometric mean of first/second over paired targets, and its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    low, high = mean_interval(logs) or (-math.inf, math.inf)
    return math.exp(statistics.fmean(logs)), (math.exp(low), math.exp(high))


def geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values))


def short(value: float) -> float:
    return float(f"{value:.3g}")


# S2 — the graph is known

_NETS: dict[str, dict[str, Any]] = {
    "true tree": {"graph": "true"},
    "wrong tree": {"graph": "wrong"},
    "dense of equal size": _DENSE,
    "dense of 26 times the size": {**_DENSE, "width": 105},
}
_S2_PUBLISHED = {
    "true tree": [0.0074, 0.0081],
    "wrong tree": [0.52, 0.28],
    "dense of equal size": [0.34, 0.070],
    "dense of 26 times the size": [0.26, 0.066],
}
_SIZES = (300, 1000)


def _s2_cells() -> list[Cell]:
    common = {"seeds": 10}
    square = [_graph(points=points, **common, **net) for points in _SIZES for net in _NETS.values()]
    signs = {"loss": "exponential", "penalty": "none", "strengths": [0.0], "steps": 600}
    return square + [_graph(points=_SIZES[0], **common, **signs, **net) for net in _NETS.values()]


@claim(
    "S2",
    "A network of the target's graph generalises where a dense one does not, with the regularised square loss and with "
    "an exponential loss.",
    SOURCE + "Section 4",
    "Binary tree of 8 variables, 10 drawn functions, 300 and 1000 points, the same for all nets; 800 steps of Adam; ℓ₂ "
    "of 3e-4 or 3e-3 and 2 restarts, chosen per function on 200 validation points. At both sizes and against each of "
    "three rivals (wrong tree; dense of equal size; dense of 26 times the size) the 95 % interval of the geometric "
    "mean of error(true)/error(rival) must lie below 1/2. Exponential loss on signs, 300 points, no penalty, 600 "
    "steps: the 95 % interval of the paired difference in the share of wrong signs must lie below 0. Fails if an "
    "interval lies wholly on the other side (above 1/2; above 0).",
    _s2_cells,
    quote="Empirical evidence suggests that for dense networks that do not reflect the sparse graph the same problem "
    "cannot be solved using ℓ₂ minimization. Sparsity must be explicit in the architecture of the network for ℓ₂ "
    "minimization to work.",
    kind="observation",
    statistics=Statistics(
        "10 functions, the same for all nets",
        "none: one 95 % interval a comparison",
    ),
    heavy=True,
)
def _s2(rows: Sequence[Row]) -> Verdict:
    square, signs = _by_net(rows, "square", _SIZES), _by_net(rows, "exponential", _SIZES[:1])[_SIZES[0]]
    good, bad, ratios = True, False, {}
    for rival in list(_NETS)[1:]:
        for points in _SIZES:
            ratio, (low, high) = _log_ratio(square[points]["true tree"], square[points][rival])
            ratios[f"{rival}, {points} points"] = [short(ratio), short(low), short(high)]
            good, bad = good and high < 0.5, bad or low > 0.5
        down, up = mean_interval([a - b for a, b in zip(signs["true tree"], signs[rival], strict=True)]) or (-1.0, 1.0)
        good, bad = good and up < 0, bad or down > 0
    means = {name: [short(geometric(square[points][name])) for points in _SIZES] for name in _NETS}
    wrong = {name: short(statistics.fmean(signs[name])) for name in _NETS}
    return Verdict(
        outcome(not bad, good or bad),
        predicted={"test error over variance at 300 and 1000 points, an earlier run": _S2_PUBLISHED},
        measured={
            "test error over variance": means,
            "ratio to the true tree": ratios,
            "wrong signs": wrong,
            "parameters": {name: _row(rows, 300, net)["parameters"] for name, net in _NETS.items()},
        },
        detail="Test error at 300 and 1000 points: "
        + "; ".join(f"{name} {a} and {b}" for name, (a, b) in means.items())
        + ". Wrong signs with the exponential loss at 300: "
        + "; ".join(f"{name} {share:.1%}" for name, share in wrong.items())
        + ".",
    )


def _by_net(rows: Sequence[Row], loss: str, sizes: Sequence[int]) -> dict[int, dict[str, list[float]]]:
    return {points: {name: _row(rows, points, net, loss)["test"] for name, net in _NETS.items()} for points in sizes}


def _row(rows: Sequence[Row], points: int, net: Mapping[str, Any], loss: str = "square") -> Row:
    wanted = {**net, "points": points, "loss": loss, "width": net.get("width", _TRAINING["width"])}
    return next(r for r in rows if all(r.cell.config[name] == value for name, value in wanted.items()))


# S3 — the graph is contained

_MARGIN = 2.0
_MOST = 10  # further edges; with a few more, every node sees every variable
_EXTRA = {300: (0, 1, 2, 4, 8, _MOST), 1000: (0, 2, 4, 8, _MOST)}
_DRAWS = {300: (1, 2), 1000: (1,)}


def _s3_cells() -> list[Cell]:
    common = {"strengths": [1e-3], "restarts": 3}
    found = [
        _graph(graph=extra, points=points, draw=draw, **common)
        for points, counts in _EXTRA.items()
        for extra in counts
        for draw in (_DRAWS[points] if extra else (1,))
    ]
    return found + [_graph(points=points, **common, **_DENSE) for points in _EXTRA]


@claim(
    "S3",
    "It is enough that the network contains the graph of the target.",
    SOURCE + "Section 4 and Section 7.2",
    "As S2 with ℓ₂ of 1e-3 and 3 restarts: nets of the true tree (14 edges) with 0, 1, 2, 4, 8, 10 random further "
    "edges at 300 points (two draws of them) and 0, 2, 4, 8, 10 at 1000. The margin is a factor of 2. Holds if the "
    "95 % interval of the geometric mean of error(supergraph)/error(true tree) lies below 2 for every number of "
    "edges at both sizes; fails if one lies above 2; else undecided. Reported: the most further edges up to which all "
    "intervals lie below 2.",
    _s3_cells,
    quote="Empirically it seems that the graph of the target function needs to be known approximately: it is "
    "sufficient that the sparse network contains as a subgraph the target function graph. A proof would be "
    "interesting.",
    kind="observation",
    statistics=Statistics(
        "4 functions, the same for all nets",
        "none: one 95 % interval a number of edges",
    ),
    heavy=True,
)
def _s3(rows: Sequence[Row]) -> Verdict:
    good, bad, measured, harmless = True, False, {}, {}
    for points, counts in _EXTRA.items():
        own = [r for r in rows if r.cell.config["points"] == points]
        by_extra = {extra: [r["test"] for r in own if r.cell.config["graph"] == extra] for extra in counts}
        true, most = by_extra[0][0], 0
        unbroken = True
        line: dict[int, dict[str, Any]] = {0: {"error": short(geometric(true))}}
        for extra in counts[1:]:
            # Draws of the edges are averaged within a target: targets are what varies independently.
            mean = [geometric(errors) for errors in zip(*by_extra[extra], strict=True)]
            ratio, (low, high) = _log_ratio(mean, true)
            line[extra] = {"error": short(geometric(mean)), "ratio": [short(ratio), short(low), short(high)]}
            unbroken = unbroken and high < _MARGIN
            most = extra if unbroken else most
            good, bad = good and high < _MARGIN, bad or low > _MARGIN
        dense = next(r["test"] for r in own if r.cell.config["graph"] == "dense")
        measured[points], harmless[points] = {"further edges": line, "dense": short(geometric(dense))}, most
    return Verdict(
        outcome(not bad, good or bad),
        predicted={"ratio of errors": f"below {_MARGIN:g} for every supergraph"},
        measured={"errors": measured, "harmless up to": harmless},
        detail="; ".join(
            f"at {points} points the true tree errs {found['further edges'][0]['error']}, with {_MOST} further edges "
            f"{found['further edges'][_MOST]['error']}, dense {found['dense']}: shown harmless up to {harmless[points]}"
            for points, found in measured.items()
        )
        + ".",
    )


# S4 — Conjecture 1

_ZEROS = 0.05


def _s4_cells() -> list[Cell]:
    common = {"strengths": [1e-5, 1e-4, 1e-3], "steps": 2000, "seeds": 20}
    return [_graph(penalty=penalty, **common, **net) for net in ({"graph": "true"}, _DENSE) for penalty in ("l2", "l1")]


@claim(
    "S4",
    "With the graph known and zero loss attained, ℓ₁ and ℓ₂ both generalise, and ℓ₁ also prunes.",
    SOURCE + "Conjecture 1",
    "As S2 at 300 points with 20 functions, 2000 steps and strengths 1e-5, 1e-4, 1e-3. Zero loss: the geometric mean "
    "of the training error of both is at most 0.02 of the variance. Alike: the 95 % interval of the geometric mean of "
    "error(ℓ₁)/error(ℓ₂) lies within 1/2 … 2. Both generalise: each interval of error(true tree)/error(dense net with "
    "that penalty) lies below 1/3. ℓ₁ prunes: the 95 % interval of the share of its weights that are exactly 0 lies "
    "above 5 %, and none of ℓ₂'s are. Fails if an interval lies wholly on the wrong side or a weight under ℓ₂ is 0; "
    "undecided if zero loss is not attained or an interval straddles a bound.",
    _s4_cells,
    quote="If the sparse graph of the target function is reflected in the network and zero loss is attained then both "
    "ℓ₁ and ℓ₂ minimization lead to solutions with good expected error. ℓ₁ minimization however leads to pruned "
    "networks wrt ℓ₂ optimized networks.",
    kind="conjecture",
    statistics=Statistics(
        "20 functions, the same for all nets",
        "none: one 95 % interval a comparison",
    ),
    heavy=True,
)
def _s4(rows: Sequence[Row]) -> Verdict:
    true_l2, true_l1, dense_l2, dense_l1 = rows
    attained = all(geometric(r["train"]) <= 0.02 for r in (true_l2, true_l1))
    ratio, (low, high) = _log_ratio(true_l1["test"], true_l2["test"])
    alike, apart = low > 0.5 and high < 2, low > 2 or high < 0.5
    gains = {"l2": _log_ratio(true_l2["test"], dense_l2["test"]), "l1": _log_ratio(true_l1["test"], dense_l1["test"])}
    better = all(interval[1] < 1 / 3 for _, interval in gains.values())
    worse = any(interval[0] > 1 / 3 for _, interval in gains.values())
    zeros = {name: statistics.fmean(r["zero"]) for name, r in (("l1", true_l1), ("l2", true_l2))}
    fewest, most = mean_interval(true_l1["zero"]) or (0.0, 1.0)
    bad = apart or worse or most < _ZEROS or zeros["l2"] > 0
    good = alike and better and fewest > _ZEROS
    return Verdict(
        outcome(not (attained and bad), attained and (bad or good)),
        predicted={"l1/l2": "between 1/2 and 2", "true tree/dense": "below 1/3", "zeros under l1": "above 5 %"},
        measured={
            "test error": {
                name: short(geometric(r["test"]))
                for name, r in zip(("tree, l2", "tree, l1", "dense, l2", "dense, l1"), rows, strict=True)
            },
            "training error": {"l2": short(geometric(true_l2["train"])), "l1": short(geometric(true_l1["train"]))},
            "l1/l2": [short(ratio), short(low), short(high)],
            "true tree/dense": {name: [short(r), short(a), short(b)] for name, (r, (a, b)) in gains.items()},
            "weights exactly 0": {"l1": [short(v) for v in (zeros["l1"], fewest, most)], "l2": zeros["l2"]},
            "weights below a thousandth of the largest": {
                "l1": short(statistics.fmean(true_l1["negligible"])),
                "l2": short(statistics.fmean(true_l2["negligible"])),
            },
        },
        detail=f"Test error with the tree: ℓ₁ {geometric(true_l1['test']):.3g}, ℓ₂ {geometric(true_l2['test']):.3g} "
        f"(ratio {ratio:.2f}, {low:.2f} to {high:.2f}); dense: ℓ₁ {geometric(dense_l1['test']):.3g}, ℓ₂ "
        f"{geometric(dense_l2['test']):.3g}. ℓ₁ sets {zeros['l1']:.0%} of the weights to 0, ℓ₂ {zeros['l2']:.0%}; "
        f"zero loss {'was' if attained else 'was not'} attained.",
    )
