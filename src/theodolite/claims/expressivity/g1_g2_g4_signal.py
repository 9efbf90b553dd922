"""Claims G1, G2, G4: what the gradient at given weights can say about which target is to be learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.expressivity.linear_periodic import Slope
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row

# G1 — Theorem 1

_ROUNDING = 1e-4  # float32, relative
_NETS: tuple[tuple[str, dict[str, int], int], ...] = (
    ("mlp", {"depth": 1, "width": 100}, 10),
    ("mlp", {"depth": 2, "width": 32}, 10),
    ("polynomial-mlp", {}, 8),
    ("rnn", {"width": 8}, 8),
    ("transformer", {"depth": 1, "width": 8, "heads": 2}, 8),
)
_SUBCLASSES = ("all", "degree=1", "degree=2", "degree=3", "degree=5", "prefixes")


def _g1_cells() -> list[Cell]:
    spectra = [
        Cell("gradient-signal", {"net": net, "shape": shape, "bits": bits, "loss": loss, "subclass": subclass})
        for net, shape, bits in _NETS
        for loss in ("square", "hinge")
        for subclass in _SUBCLASSES
    ]
    others = [
        Cell("gradient-signal", {"net": net, "shape": shape, "bits": 8, "family": family, "members": 200})
        for net, shape, _ in _NETS
        for family in ("scrambled", "random")
    ]
    slow = [
        Cell("enumerated-signal", {"net": net, "shape": shape, "bits": 6, "loss": loss, "subclass": subclass})
        for net, shape, _ in _NETS
        for loss in ("square", "hinge", "logistic")
        for subclass in ("all", "degree=3")
    ]
    training = [
        Cell(
            "signal-along",
            {
                "net": "mlp",
                "shape": {"depth": 1, "width": 100},
                "bits": 10,
                "relevant": relevant,
                "steps": 600,
                "subclass": subclass,
                "loss": loss,
                "learning_rate": rate,
            },
        )
        for relevant in (2, 3)
        for subclass in ("all", f"degree={relevant}")
        for loss, rate in (("hinge", 0.1), ("square", 0.02))
    ]
    return spectra + others + slow + training


@claim(
    "G1",
    "The variance of the gradient over a class of orthogonal targets is at most G(w)²/|H|, for any network, for the "
    "square loss and for margin losses.",
    EXPRESSIVITY + "Theorem 1 (Shalev-Shwartz et al. 2017, §2)",
    "In every cell variance/bound ≤ 1 + 1e-4 (whole class, degrees 1, 2, 3, 5, prefixes, orthogonal functions that are "
    "no parities, random functions with the bound times the largest eigenvalue of their Gram matrix, and every "
    "checkpoint of training). Self-checks: Parseval's identity to 1e-4 everywhere; for the whole class and square loss "
    "ratio = 1 − ‖mean‖²·|H|/G² to 1e-4; at 6 bits the transform equals enumeration of all targets to 1e-6.",
    _g1_cells,
    quote="Var(H, F, w) ≤ G(w)²/|H|",
    kind="theorem",
    statistics=Statistics(
        "172 ratios, each an expectation over all inputs and targets of its class",
        "none: exact up to rounding",
    ),
)
def _g1(rows: Sequence[Row]) -> Verdict:
    ratios: dict[str, list[float]] = {}
    identity, whole, slow = 0.0, 0.0, 0.0
    for row in rows:
        config = row.cell.config
        if row.cell.measure == "signal-along":
            ratios.setdefault("along training", []).extend(c["ratio"] for c in row["checkpoints"])
            identity = max(identity, *(c["identity_error"] for c in row["checkpoints"]))
        elif row.cell.measure == "enumerated-signal":
            # A variance that is 0, as that of parities beyond a polynomial's degree, has no relative error.
            slow = max(slow, abs(row["variance"] - row["enumerated"]) / max(row["enumerated"], 1e-12 * row["bound"]))
            ratios.setdefault("6 bits", []).append(row["variance"] / row["bound"])
        else:
            kind = config.get("family") or config["subclass"]
            ratios.setdefault(str(kind), []).append(row["ratio"])
            identity = max(identity, row["identity_error"] or 0.0)
            if config.get("subclass") == "all" and config["loss"] == "square":
                predicted = 1 - row["mean_norm"] ** 2 * row["members"] / row["gradient_power"]
                whole = max(whole, abs(row["ratio"] - predicted))
    largest = {kind: max(values) for kind, values in ratios.items()}
    good = max(largest.values()) <= 1 + _ROUNDING and identity <= _ROUNDING and whole <= _ROUNDING and slow <= 1e-6
    return Verdict(
        outcome(good),
        predicted={"largest ratio": 1.0, "identity error": 0.0, "difference from enumeration": 0.0},
        measured={
            "largest ratio": largest,
            "identity error": identity,
            "whole class": whole,
            "difference from enumeration": slow,
        },
        detail=f"{sum(map(len, ratios.values()))} ratios of variance to bound, the largest "
        f"{max(largest.values()):.6f} ({max(largest, key=lambda kind: largest[kind])}); Parseval's identity to "
        f"{identity:.0e}; transform and enumeration differ by {slow:.0e}.",
    )


# G2 — parities are orthonormal


@claim(
    "G2",
    "Parities are orthonormal: E[χ_v χ_v′] = Π (1 + (−1)^(v_i + v′_i))/2, which is 0 unless v = v′.",
    EXPRESSIVITY + "orthogonality of parities, whose factor is printed as ((−1)^(v_i+v′_i) + (−1)^(−(v_i+v′_i)))/2 "
    "(Shalev-Shwartz et al. 2017, §2)",
    "The Gram matrix of all 2^d parities is the identity for d = 1 … 10, in whole numbers. For d = 1 … 5 and all pairs "
    "the corrected product equals the Gram matrix; the printed one must be right only where v = v′.",
    lambda: [Cell("parity-gram", {"bits": bits, "factors": bits <= 5}) for bits in range(1, 11)],
    quote="E_x[(−1)^⟨x, v⟩·(−1)^⟨x, v′⟩] = …, which is non-zero if and only if v = v′",
    kind="theorem",
)
def _g2(rows: Sequence[Row]) -> Verdict:
    identity = [r["identity"] for r in rows]
    checked = [r for r in rows if r["pairs"]]
    corrected = sum(r["corrected"] for r in checked)
    printed = sum(r["printed"] for r in checked)
    pairs = sum(r["pairs"] for r in checked)
    equal = sum(2 ** r["bits"] for r in checked)
    return Verdict(
        outcome(all(identity) and corrected == pairs),
        predicted={"identity": True, "corrected factor right": pairs},
        measured={"identity": identity, "corrected factor right": corrected, "printed factor right": printed},
        detail=f"Gram matrices of up to {2 ** max(r['bits'] for r in rows):,} parities are "
        f"{'the identity' if all(identity) else 'not all the identity'}; of {pairs:,} pairs the corrected product is "
        f"right in {corrected:,}, the printed one in {printed:,} (the {equal:,} equal pairs among them).",
    )


# G4 — linear-periodic targets

_POINTS = ((2, 1.0, 1.0), (5, 2.0, 2.0), (8, 0.5, 0.3), (20, 3.0, 2.0), (100, 2.0, 1.0), (400, 4.0, 4.0))
_DIMENSIONS, _LARGE_RADIUS = (2, 4, 6, 8, 10, 12, 16, 20, 24), 8.0
_RADII, _MANY_DIMENSIONS = (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0), 512


def _g4_cells() -> list[Cell]:
    kind = "linear-periodic-signal"
    points = [
        Cell(kind, {"kind": "point", "dimensions": d, "radius": r, "norm": w, "directions": 20_000})
        for d, r, w in _POINTS
    ]
    in_d: dict[str, Any] = {"kind": "largest", "dimensions": list(_DIMENSIONS), "radii": [_LARGE_RADIUS]}
    in_r: dict[str, Any] = {"kind": "largest", "dimensions": [_MANY_DIMENSIONS], "radii": list(_RADII)}
    picture = Cell("cosine-landscape", {"target": [2.0, 2.0], "reach": 12.0, "points": 241})
    return [*points, Cell(kind, in_d), Cell(kind, in_r), picture]


@claim(
    "G4",
    "For targets cos⟨v, x⟩, ‖v‖ = r, and normal inputs the variance of the gradient is at most exp(−Ω(d)) + "
    "exp(−Ω(r)); the landscape of cos⟨w, x⟩ is flat away from ±v.",
    EXPRESSIVITY + "Theorem 2 and the two-dimensional figure (Shamir 2016; Shalev-Shwartz et al. 2017, §2)",
    "In closed form for the predictor cos⟨w, x⟩. The closed form equals a quadrature to 1e-8 and lies within four "
    "standard errors of the mean over 20,000 drawn v. The largest variance over all w falls exponentially: in d at "
    "r = 8 (slope of its logarithm ≤ −0.5 a dimension, R² ≥ 0.95), and in r² at d = 512, r = 2 to 5 (slope ≤ −0.5, "
    "R² ≥ 0.95). Landscape for v = (2, 2): the only minima on the grid are ±v, and on [−12, 12]² the gradient is below "
    "1 % of its largest norm on at least four fifths of the area.",
    _g4_cells,
    quote="Var(H, F, w) ≤ O(exp(−Ω(d)) + exp(−Ω(r)))",
    kind="theorem",
    statistics=Statistics(
        "closed forms; 20,000 drawn directions at six points",
        "none: four standard errors at each of six points",
    ),
)
def _g4(rows: Sequence[Row]) -> Verdict:
    points, in_d, in_r, picture = rows[:-3], rows[-3]["rows"], rows[-2]["rows"], rows[-1]
    error = max(abs(r["closed"] - r["quadrature"]) / r["quadrature"] for r in points)
    inside = sum(r["interval"][0] <= r["closed"] <= r["interval"][1] for r in points)
    by_d = Slope.of([r["dimensions"] for r in in_d], [r["variance"] for r in in_d])
    by_r = Slope.of([r["radius"] ** 2 for r in in_r], [r["variance"] for r in in_r])
    places = sorted((round(x, 6), round(y, 6)) for x, y, _ in picture["minima"])
    good = (
        error <= 1e-8
        and inside == len(points)
        and all(line.slope <= -0.5 and line.fit >= 0.95 for line in (by_d, by_r))
        and places == [(-2.0, -2.0), (2.0, 2.0)]
        and picture["flat"] >= 0.8
    )
    return Verdict(
        outcome(good),
        predicted={"slope in d": "below 0", "slope in r²": "below 0", "minima": [[-2.0, -2.0], [2.0, 2.0]]},
        measured={
            "slope in d": by_d.slope,
            "slope in r²": by_r.slope,
            "closed form against quadrature": error,
            "within four standard errors": inside,
            "minima": [list(place) for place in places],
            "flat share": picture["flat"],
        },
        detail=f"The largest variance falls by a factor of {2.718281828**-by_d.slope:.2f} a dimension at r = 8 and as "
        f"exp({by_r.slope:.2f} r²) at d = 512; {picture['flat']:.0%} of the landscape is flat, with minima at "
        f"{' and '.join(str(place) for place in places)}.",
    )
