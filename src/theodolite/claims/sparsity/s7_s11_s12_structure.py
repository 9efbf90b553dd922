"""Claims S7, S11 and S12 of compositional sparsity: isometries, compiled graphs, bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.sparsity.s1_s10_approximation import SPARSITY
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import difference_interval, mean_interval
from theodolite.statistics.paired import against, holm
from theodolite.theory.isometry import RECOVERY

# S7 — Lemma 1: attention scores as a restricted isometry

_ORDERS = (2, 3, 4)
_EXACT = 1e-9


def _s7_cells() -> list[Cell]:
    shapes = [(12, 32, 16), (18, 32, 9), (30, 64, 15), (24, 16, 8), (24, 16, 16)]
    return [
        Cell(
            "attention-isometry",
            {"tokens": t, "inputs": d, "rank": k, "orders": list(_ORDERS), "draws": 3, "steps": 250, "starts": 16},
        )
        for t, d, k in shapes
    ]


@claim(
    "S7",
    "X W_Q W_Kᵀ Xᵀ can be a matrix with the restricted isometry property, for a suitable choice of W_Q and W_K.",
    SPARSITY + "Lemma 1",
    "Constants δ after best scaling; orders 2 and 3 exhaustive, 4 an interval. With T ≤ min(rank X, d_k), δ of the "
    f"weights written down is at most {_EXACT:g}. With T > d_k, three draws of X each, T = 18, 30 with independent "
    "tokens and T = 24 with 16 inputs: δ₂ and δ₃ of W_K found by descent lie below those of a Gaussian matrix of equal "
    f"rank with columns of equal length (Welch, 95 %), with independent tokens δ₃ lies below {RECOVERY:.3f}, and the "
    "columns written down (equiangular) have δ₂ equal to the least that any matrix of the rank can have. Holds if all "
    "is so; fails if the first is not, or descent is beaten by the Gaussian matrix everywhere; else undecided.",
    _s7_cells,
    quote="The matrix X W_Q W_Kᵀ Xᵀ can be a RIP matrix with appropriate choices of W_K, W_Q.",
    kind="theorem",
    statistics=Statistics(
        "3 draws of X for each of five shapes",
        "none: every comparison must agree",
    ),
)
def _s7(rows: Sequence[Row]) -> Verdict:
    measured: dict[str, Any] = {}
    exact, better, near, attained, below = [], [], [], [], []
    for row in rows:
        c = row.cell.config
        name = f"T = {c['tokens']}, inputs {c['inputs']}, d_k = {c['rank']}"
        draws = row["draws"]
        middle = {k: [statistics.fmean(d[k][i][0] for d in draws) for i in range(len(_ORDERS))] for k in draws[0]}
        measured[name] = {**middle, "least": list(row["least"])}
        below += [  # of these the rank is known to be at most that of `least`
            d[k][i][0] < low - _EXACT
            for d in draws
            for k in ("identity", "optimised", "built", "drawn")
            if k in d
            for i, low in enumerate(row["least"])
        ]
        if "identity" in draws[0]:
            exact += [pair[1] <= _EXACT for d in draws for pair in d["identity"]]
            continue
        for i in (0, 1):
            ours, theirs = ([d[k][i][0] for d in draws] for k in ("optimised", "normalised"))
            better.append(difference_interval(ours, theirs)[1] < 0)
        if c["inputs"] >= c["tokens"]:
            near += [d["optimised"][1][1] < RECOVERY for d in draws]
        attained += [abs(d["built"][0][0] - row["least"][0]) <= _EXACT for d in draws if "built" in d]
    good = all(exact) and any(better) and not any(below)
    return Verdict(
        outcome(good, all(better) and all(near) and all(attained)),
        {"T ≤ d_k": 0, "T > d_k": f"below a Gaussian matrix; δ₃ < {RECOVERY:.3f}"},
        measured,
        "; ".join(
            f"{name}: δ₂ {m['optimised'][0]:.2f} by descent"
            + (f", {m['built'][0]:.2f} written down" if "built" in m else "")
            + f", Gaussian {m['normalised'][0]:.2f}, least possible {m['least'][0]:.2f}; δ₃ {m['optimised'][1]:.2f} "
            "against "
            f"{m['normalised'][1]:.2f}"
            for name, m in measured.items()
            if "optimised" in m
        )
        + f". T ≤ d_k: δ {'= 0 to rounding' if all(exact) else 'is not 0'}.",
    )


# S11 — efficiently computable functions are compositionally sparse

_MACHINES = ("parity", "anbn", "increment")
_FAN_IN, _CUBIC = 2, 0.01


def _s11_cells() -> list[Cell]:
    config = {"steps": [8, 12, 16, 20, 24], "length": 5, "fan_in": _FAN_IN}
    compiled = [Cell("compiled-graph", {"machine": machine, **config}) for machine in _MACHINES]
    return [*compiled, Cell("random-function-graph", {"bits": [5, 6, 7, 8, 9, 10, 11], "draws": 3, "fan_in": _FAN_IN})]


@claim(
    "S11",
    "Efficiently computable functions are compositionally sparse.",
    SPARSITY + "Thesis 1",
    "Acceptance by three Turing machines after T = 8 … 24 steps, compiled and split: no node reads more than two "
    "numbers, the graph is right on all words of up to 5 letters, the compiled units but the last have a fan-in that "
    f"does not depend on T, and in a cubic fitted to the number of nodes the cubic term is below {_CUBIC:.0%} of it at "
    "the largest T: growth with exponent at most 2. Control: graphs of random truth tables have the same fan-in and no "
    "error, and their nodes grow by a factor of at least 1.5 a bit, on average over the last three.",
    _s11_cells,
    quote="All efficiently computable functions are compositionally sparse, that is their constituent functions have "
    "“small” d/a.",
    kind="conjecture",
    statistics=Statistics(
        "three machines and 3 draws of truth tables a size",
        "none: exact counts; the control is a mean",
    ),
)
def _s11(rows: Sequence[Row]) -> Verdict:
    compiled, random = rows[:-1], rows[-1]
    measured: dict[str, Any] = {}
    good = []
    for row in compiled:
        sizes = row["sizes"]
        steps, nodes = [s["steps"] for s in sizes], [s["nodes"] for s in sizes]
        cubic = float(np.polyfit(steps, nodes, 3)[0]) * steps[-1] ** 3 / nodes[-1]
        inner = sorted({s["inner_fan_in"] for s in sizes})
        measured[row.cell.config["machine"]] = {
            "nodes": dict(zip(map(str, steps), nodes, strict=True)),
            "fan-in": max(s["fan_in"] for s in sizes),
            "unit fan-in": inner,
            "wrong": sum(s["wrong"] for s in sizes),
            "cubic share": cubic,
            "last exponent": row["exponents"][-1],
        }
        fine = max(s["fan_in"] for s in sizes) <= _FAN_IN and not any(s["wrong"] for s in sizes)
        good.append(fine and len(inner) == 1 and cubic <= _CUBIC)
    growth = 2 ** statistics.fmean(random["doublings"][-3:])
    control = growth >= 1.5 and all(s["fan_in"] <= _FAN_IN and not s["wrong"] for s in random["sizes"])
    measured["random truth tables"] = {
        "nodes": {str(s["bits"]): s["nodes"] for s in random["sizes"]},
        "factor a bit": growth,
    }
    machines = {k: v for k, v in measured.items() if k in _MACHINES}
    summary = ", ".join(f"{k} {v['nodes'][max(v['nodes'], key=int)]} nodes at T = 24" for k, v in machines.items())
    return Verdict(
        outcome(all(good), control),
        {"fan-in": _FAN_IN, "nodes": "O(T²)", "random truth tables": "exponential in the bits"},
        measured,
        f"{summary}; fan-in {_FAN_IN} throughout, units as compiled read "
        f"{', '.join(str(v['unit fan-in'][-1]) for v in machines.values())}. A random truth table has a graph of "
        f"fan-in 2 as well, but {growth:.2f} times the nodes with every bit: bounded fan-in says nothing without "
        "bounded size.",
    )


# S12 — norm-based bounds

_NETS = {"graph": 24, "convolution": 24, "dense": 64}
_SPARSE = ("graph", "convolution")
_FIT = 0.01  # the training error that every compared fit attains
_LEAST = 15  # functions on which both do
_SEVERAL, _ONE = 2.0, 1.0  # log₁₀: several orders, and not even one


def _s12_cells() -> list[Cell]:
    training = {"seeds": 20, "steps": 1500, "batch": 128, "rate": 5e-3, "decays": [0.1, 1.0], "data": 20261116}
    return [
        Cell("generalisation-bounds", {"kind": kind, "tokens": 16, "width": width, "samples": 1000, **training})
        for kind, width in _NETS.items()
    ]


@claim(
    "S12",
    "Norm-based generalisation bounds are orders of magnitude better for sparse networks than for dense ones.",
    SPARSITY + "Section 4",
    "Trees of 16 inputs with a drawn constituent a level, 1,000 samples, two weight decays. Like for like: fits with a "
    "training error of at most 1 % alone are compared, at the margin that nine samples in ten have; a function counts "
    "where both networks have such a fit, and fewer than 15 of them leave the verdict undecided. For every network the "
    "least of four bounds on its test error (by its graph, as a dense network, by spectral norms, by paths), least "
    "over its fits. Mean over functions of log₁₀ of the dense network's bound over the graph's, and over the "
    "convolution's. Holds if both lie clearly above 2 (two orders), fails if one lies clearly below 1. Undecided else, "
    "and whatever the ratios where the sparse bounds are vacuous, 1 or more in the geometric mean: then no network is "
    "bounded. Reported: ratios, test errors, the same sparse network read as a dense one.",
    _s12_cells,
    quote="generalization bounds are several orders of magnitudes better for CNNs than for dense networks and close "
    "to be non-vacuous for CNNs and presumably for other sparse networks",
    kind="observation",
    statistics=Statistics(
        "20 functions drawn for this rule, the same for all networks, one start each",
        "Holm over the four two-sided t-tests over functions (two networks, two bounds), at 5 %",
    ),
    heavy=True,
)
def _s12(rows: Sequence[Row]) -> Verdict:
    members = {row.cell.config["kind"]: row["members"] for row in rows}
    best = {kind: _best(own) for kind, own in members.items()}
    measured: dict[str, Any] = {}
    for kind, own in members.items():
        shown = [m["bounds"] for m in _fits(own)]
        measured[kind] = {
            "functions fitted": sum(b is not None for b in best[kind]),
            "bound": _geometric([b for b in best[kind] if b]),
            "as dense / by graph": _geometric([b["dense"] / b["graph"] for b in shown]),
            "test error": statistics.fmean(m["test_error"] for m in _fits(own)) if shown else None,
        }
    ratios = {kind: [math.log10(d / s) for d, s in _pairs(best["dense"], best[kind])] for kind in _SPARSE}
    enough = min(map(len, ratios.values())) >= _LEAST
    asked = [(kind, bound) for kind in _SPARSE for bound in (_SEVERAL, _ONE)] if enough else []
    tests = [(bound, *against(ratios[kind], bound)) for kind, bound in asked]
    clear = holm([p for *_, p in tests])
    vacuous = [kind for kind in _SPARSE if (measured[kind]["bound"] or math.inf) >= 1]
    fails = any(c and bound == _ONE and mean < bound for c, (bound, mean, _) in zip(clear, tests, strict=True))
    holds = enough and all(
        c and mean > bound for c, (bound, mean, _) in zip(clear, tests, strict=True) if bound == _SEVERAL
    )
    decided = not vacuous and enough
    for kind, values in ratios.items():
        measured[f"log10 dense / {kind}"] = (
            [statistics.fmean(values), *(mean_interval(values) or ())] if values else None
        )
    shown = {kind: measured[f"log10 dense / {kind}"] for kind in _SPARSE}
    return Verdict(
        outcome(not (decided and fails), decided and (fails or holds)),
        {"log10 dense / sparse": f"above {_SEVERAL:g}", "sparse bounds": "near or below 1"},
        measured,
        "Bounds on the test error at a training error of at most 1 %: "
        + ", ".join(f"{kind} {measured[kind]['bound'] or math.nan:.3g}" for kind in _NETS)
        + (f" (vacuous: {', '.join(vacuous)})" if vacuous else "")
        + "; log₁₀ of the ratio dense / sparse "
        + ", ".join(
            f"{kind} {found[0]:.2f} ({found[1]:.2f} to {found[2]:.2f}, {len(ratios[kind])} functions)"
            if found and len(found) == 3
            else f"{kind} unknown"
            for kind, found in shown.items()
        )
        + "; test errors "
        + ", ".join(f"{kind} {measured[kind]['test error'] or math.nan:.2f}" for kind in _NETS)
        + ".",
    )


def _fits(members: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that attain the training error at which all are compared."""
    return [m for m in members if m["bounds"] and m["train_error"] <= _FIT]


def _best(members: Sequence[dict[str, Any]]) -> list[float | None]:
    """By function, the least bound over kinds of bounds and fits."""
    fits = _fits(members)
    each = [[min(m["bounds"].values()) for m in fits if m["seed"] == s] for s in sorted({m["seed"] for m in members})]
    return [min(bounds) if bounds else None for bounds in each]


def _pairs(dense: Sequence[float | None], sparse: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(d, s) for d, s in zip(dense, sparse, strict=True) if d and s]


def _geometric(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else None
