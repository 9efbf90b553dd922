"""Claims G13, G14, G17, G18: inductive biases, the limits of soft attention, weight-tied networks, fixed points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.lab.cell import Cell, Row

# G13 — the table of inductive biases


def _symmetry(net: str, group: str, holds: bool, **shape: Any) -> tuple[Cell, bool]:
    return Cell("symmetry", {"net": net, "group": group, "shape": shape}), holds


_CENTRED = {"causal": False, "padding": "circular"}
_SET = {"causal": False, "positions": "none"}
_SYMMETRIES = [
    _symmetry("convolution", "translation", True, **_CENTRED),
    _symmetry("convolution", "translation", True, **_CENTRED, depth=2, kernel=3),
    _symmetry("convolution", "permutation", False, **_CENTRED),
    _symmetry("convolution", "translation", False, causal=False),
    _symmetry("rnn", "time-shift", True),
    _symmetry("lstm", "time-shift", True),
    _symmetry("rnn", "permutation", False),
    _symmetry("transformer", "time-shift", False),
    _symmetry("transformer", "permutation", True, **_SET),
    _symmetry("transformer", "translation", True, **_SET),
    _symmetry("transformer", "permutation", False, causal=False, positions="sinusoidal"),
    _symmetry("transformer", "permutation", False, causal=True, positions="none"),
]
_PATTERNS = ((4, 4), (5, 5), (8, 2), (6, 3), (10, 2))
_DEPTHS = (1, 4, 8)
_EXACT, _BROKEN = 1e-9, 1e-3


@claim(
    "G13",
    "Convolution is equivariant over translations, recurrence over time, attention and graph networks over "
    "permutations; distributed features tell exponentially many patterns apart; depth composes.",
    EXPRESSIVITY + "Table 1",
    "Equivariance error in float64 at most 1e-9 for every listed group, and for translations as a subgroup of "
    "attention's permutations; at least 1e-3 for every control (zero padding, positions, a mask, another group, nodes "
    "renumbered without their edges). All sign patterns of a drawn layer counted: Σ binom(n, i), against n of one-hot "
    "features. Pieces of a tent composed L times: 2^L, against 2L + 1 of one layer with as many units.",
    lambda: [
        *(cell for cell, _ in _SYMMETRIES),
        Cell("graph-symmetry", {}),
        *(Cell("patterns", {"units": units, "inputs": inputs}) for units, inputs in _PATTERNS),
        *(Cell("composed-pieces", {"depth": depth}) for depth in _DEPTHS),
    ],
    quote="Distributed representations: patterns of features; convolution: group equivariance (usually over space); "
    "deep architectures: complicated functions = composition of simpler ones; graph neural networks: equivariance "
    "over entities and relations; recurrent nets: equivariance over time; soft attention: equivariance over "
    "permutations",
    kind="theorem",
)
def _g13(rows: Sequence[Row]) -> Verdict:
    count = len(_SYMMETRIES)
    kept = {_name(r): r["value"] for r, (_, holds) in zip(rows[:count], _SYMMETRIES, strict=True) if holds}
    broken = {_name(r): r["value"] for r, (_, holds) in zip(rows[:count], _SYMMETRIES, strict=True) if not holds}
    graph = rows[count]
    kept["graph, nodes and edges"] = graph["nodes_and_edges"]
    broken["graph, nodes only"] = graph["nodes_only"]
    patterns, pieces = rows[count + 1 : count + 1 + len(_PATTERNS)], rows[count + 1 + len(_PATTERNS) :]
    counted = all(r["patterns"] == r["predicted"] > r["one_hot"] for r in patterns)
    composed = all(r["pieces"] == r["predicted"] for r in pieces)
    symmetric = max(kept.values()) <= _EXACT and min(broken.values()) >= _BROKEN
    return Verdict(
        outcome(symmetric and counted and composed),
        predicted={
            "error at most": _EXACT,
            "controls at least": _BROKEN,
            "patterns": [r["predicted"] for r in patterns],
            "pieces": [r["predicted"] for r in pieces],
        },
        measured={
            "symmetries": kept,
            "controls": broken,
            "patterns": [r["patterns"] for r in patterns],
            "pieces": [r["pieces"] for r in pieces],
        },
        detail=f"{len(kept)} symmetries with errors of at most {max(kept.values()):.1e}; {len(broken)} controls with "
        f"at least {min(broken.values()):.1g}; patterns {', '.join(str(r['patterns']) for r in patterns)} for "
        f"{', '.join(f'{u} units in {i} dimensions' for u, i in _PATTERNS)}; "
        f"{', '.join(str(r['pieces']) for r in pieces)} pieces at depth {', '.join(map(str, _DEPTHS))}.",
    )


def _name(row: Row) -> str:
    config = row.cell.config
    shape = " ".join(f"{k}={v}" for k, v in config["shape"].items())
    return f"{config['net']} {config['group']}" + (f" ({shape})" if shape else "")


# G14 — Hahn's limit


_LAYERS = (1, 2, 3)
_LENGTHS = (10, 100, 1000)
_NORMS = (None, 0.0, 1e-5)
_SLOPE = 0.1
_THREE = 2.394 / 1.960  # normal quantiles of 1 − 0.025/3 and 1 − 0.025
PUBLISHED = {  # Chiang & Cholak 2022: cross-entropy in bits at n = 10, 100, 1000
    ("parity", None): (0.9950, 0.99994, 0.9999994),
    ("parity", 0.0): (0.0598, 0.0598, 0.0597),
    ("parity", 1e-5): (0.073, 0.929, 0.999),
    ("first", None): (0.954, 0.9947, 0.9995),
    ("first", 0.0): (0.1195, 0.1195, 0.1195),
    ("first", 1e-5): (0.120, 0.136, 0.571),
}


def _g14_cells() -> list[Cell]:
    shape = {"positions": "none", "causal": False}
    causal = {"positions": "none", "causal": True, "heads": 1, "outputs": 32}
    law = {"longest": 2048, "draws": 12, "inputs": 1, "gain": 4.0}
    return [
        *(Cell("sensitivity", {"net": "transformer", "shape": {**shape, "depth": depth}}) for depth in _LAYERS),
        *(
            Cell("log-law", {"net": "transformer", **law, "powers": depth, "shape": {**causal, "depth": depth}})
            for depth in _LAYERS
        ),
        *(
            Cell("soft-attention", {"language": language, "epsilon": epsilon, "lengths": list(_LENGTHS)})
            for language in ("parity", "first")
            for epsilon in _NORMS
        ),
        *(Cell("dyck-attention", {"bounded": bounded, "inputs": 32}) for bounded in (True, False)),
    ]


@claim(
    "G14",
    "In soft attention one symbol moves the output by O(1/n), so that the cross-entropy on parity and Dyck-2 tends to "
    "chance as inputs grow.",
    EXPRESSIVITY + "Hahn 2020, Lemma 5; constructions of Chiang & Cholak 2022",
    "Networks of bounded logits and a bounded Lipschitz constant. (1) Unmasked softmax attention of depth 1, 2, 3: "
    "the 95 % interval of the slope of log change over log n, n = 8 … 256, lies in −1 ± 0.1. (2) Causal, depth L = 1, "
    "2, 3, n = 8 … 2048: of the laws (log n)^a/n, a = 0 … L, with a free shift of the logarithm, a = L − 1 leaves the "
    "least residual, in at least 80 % of resamples. (3) The exact constructions for PARITY and FIRST, and Dyck-2 with "
    "logits that do not grow (a type is changed, which enters through values alone): without layer norm the "
    "cross-entropy rises with n to at least 0.95 bits, PARITY and FIRST being right on every input tried. Layer norm "
    "with ε = 0 is not Lipschitz and Dyck-2 with logits that grow with n is outside the claim: there the "
    "cross-entropy must stay the same to 1e-3, which shows that these conditions matter. Fails if (3) does not come "
    "out, or if at some depth the change clearly falls more slowly than n^−0.9 (the interval widened for three "
    "comparisons lies above −0.9); undecided if (1) or (2) only does not come out.",
    _g14_cells,
    quote="If we exchange one input symbol x_i (i < n), then the change in the resulting activation at the decoder "
    "layer is bounded as O(1/n); any transformer, as inputs get longer, will not be able to model Parity or Dyck-2",
    kind="theorem",
    statistics=Statistics(
        "12 draws of weights for the laws, as many inputs as stated for the constructions",
        "none for holding, for which all slopes and powers must agree; for failing three intervals (Bonferroni)",
    ),
)
def _g14(rows: Sequence[Row]) -> Verdict:
    slopes, laws, curves, brackets = rows[:3], rows[3:6], rows[6:12], rows[12:]
    flat = all(r["interval"] and -1 - _SLOPE <= r["interval"][0] <= r["interval"][1] <= -1 + _SLOPE for r in slopes)
    slow = any(r["interval"] and _widened(r["interval"])[0] > -1 + _SLOPE for r in slopes)
    powers = [(r["diagnostics"]["chosen"], r["diagnostics"]["chosen_in"]) for r in laws]
    logarithmic = all(
        chosen == depth - 1 and share >= 0.8 for depth, (chosen, share) in zip(_LAYERS, powers, strict=True)
    )
    bits = {
        (r.cell.config["language"], r.cell.config["epsilon"]): [c["cross_entropy"] for c in r["curve"]] for r in curves
    }
    right = all(c["accuracy"] == 1 for r in curves for c in r["curve"])
    bounded, growing = ([c["cross_entropy"] for c in r["curve"]] for r in brackets)
    fading = all(_tends_to_chance(each) for each in (bits["parity", None], bits["first", None], bounded))
    constant = all(max(each) - min(each) <= 1e-3 for each in (bits["parity", 0.0], bits["first", 0.0], growing))
    shown = ", ".join(f"{r['value']:.3f}" for r in slopes)
    return Verdict(
        outcome(right and fading and constant and not slow, flat and logarithmic),
        predicted={
            "slope": -1,
            "log powers": [depth - 1 for depth in _LAYERS],
            "published bits": {_titled(*key): list(value) for key, value in PUBLISHED.items()},
        },
        measured={
            "slopes": [[r["value"], r["interval"]] for r in slopes],
            "logit ranges": [r["diagnostics"]["logit_range"] for r in slopes],
            "log powers": [chosen for chosen, _ in powers],
            "raw log slopes": [[r["value"], r["interval"]] for r in laws],
            "chosen in": [share for _, share in powers],
            "bits": {_titled(*key): value for key, value in bits.items()},
            "Dyck-2, bounded logits": bounded,
            "Dyck-2, growing logits": growing,
        },
        detail=f"Slopes {shown} at depth 1, 2, 3; powers of log n {', '.join(str(c) for c, _ in powers)} (chosen in "
        f"{min(share for _, share in powers):.0%} of resamples or more); PARITY {_listed(bits['parity', None])} and "
        f"FIRST {_listed(bits['first', None])} bits at n = 10, 100, 1000 with accuracy {'1' if right else 'below 1'}; "
        f"with layer norm and ε = 0, {bits['parity', 0.0][-1]:.4f} and {bits['first', 0.0][-1]:.4f} at every n; Dyck-2 "
        f"{_listed(bounded)} with bounded logits, {growing[-1]:.3f} with growing ones.",
    )


def _widened(interval: Sequence[float]) -> tuple[float, float]:
    """From 95 % to what three such intervals need to hold together with 95 % (Bonferroni, normal)."""
    middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
    return middle - _THREE * half, middle + _THREE * half


def _tends_to_chance(bits: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(bits)) and 0.95 <= bits[-1] < 1


def _titled(language: str, epsilon: float | None) -> str:
    return language.upper() + (", plain" if epsilon is None else f", layer norm ε = {epsilon:g}")


def _listed(bits: Sequence[float]) -> str:
    return ", ".join(f"{b:.4g}" if b < 0.999 else f"1 − {1 - b:.1g}" for b in bits)


# G17 — weight-tied networks


_CHAINS = (
    ([5, 20, 20, 20, 3], "tanh"),
    ([8, 64, 32, 16, 8, 1], "relu"),
    ([4, *[32] * 12, 2], "gelu"),
)
_NETS = ("mlp", "convolution", "transformer", "rnn", "lstm")
_ROUNDING = 1e-12


@claim(
    "G17",
    "Every L-layer network equals a weight-tied, input-injected one of depth L, whose hidden size is the sum of the "
    "widths.",
    EXPRESSIVITY + "Theorem 3 (Bai, Kolter & Koltun 2019)",
    "Perceptrons of 4, 5 and 13 layers: relative error of the output at most 1e-12 in float64, hidden size exactly the "
    "sum of the widths, W_z^L exactly 0. Five registered networks, by their computation graph: the same error, with "
    "as many steps as the graph is deep.",
    lambda: [
        *(Cell("weight-tied", {"widths": widths, "activation": activation}) for widths, activation in _CHAINS),
        *(Cell("weight-tied", {"net": net}) for net in _NETS),
    ],
    quote="the same network can be represented by a weight-tied, input-injected network of equivalent depth … with a "
    "hidden unit size that is just the sum of the individual hidden unit sizes in the original network",
    kind="theorem",
)
def _g17(rows: Sequence[Row]) -> Verdict:
    chains = rows[: len(_CHAINS)]
    worst = max(r["weight_tied"] for r in rows)
    exact = all(r["chain"] and r["nilpotent"] and r["size"] == r["predicted_size"] for r in chains)
    return Verdict(
        outcome(worst <= _ROUNDING and exact),
        predicted={"error at most": _ROUNDING, "sizes": [r["predicted_size"] for r in chains]},
        measured={
            "errors": [r["weight_tied"] for r in rows],
            "sizes": [r["size"] for r in rows],
            "depths": [r["depth"] for r in rows],
        },
        detail=f"{len(rows)} networks with relative errors of at most {worst:.1e}; perceptrons of hidden sizes "
        f"{', '.join(str(r['size']) for r in chains)}, the sums of their widths; {', '.join(_NETS)} as graphs of "
        f"{', '.join(str(r['depth']) for r in rows[len(_CHAINS) :])} steps.",
    )


# G18 — fixed points


def _iterated(name: str, expected: str, period: int | None = None, **arguments: float) -> tuple[Cell, str, int | None]:
    size = {"size": 128} if name == "tanh" else {"size": 3} if name == "linear" else {}
    return Cell("fixed-points", {"map": name, "arguments": arguments, **size, "steps": 1000}), expected, period


_ITERATED = [
    _iterated("logistic", "converges", 1, r=2.5),
    _iterated("logistic", "period", 2, r=3.2),
    _iterated("logistic", "period", 4, r=3.5),
    _iterated("logistic", "period", 3, r=3.83),
    _iterated("logistic", "chaos", r=4.0),
    _iterated("henon", "chaos"),
    _iterated("rotation", "quasi-periodic"),
    _iterated("tanh", "converges", 1, gain=0.45),
    _iterated("tanh", "chaos", gain=3.0),
    _iterated("linear", "diverges", factor=1.5),
]
_DRAWS = 3
_GRADIENT = 1e-8
_EXPONENT = 0.02


@claim(
    "G18",
    "Fixed-point iteration converges, oscillates periodically or chaotically, or diverges; any network is a one-layer "
    "equilibrium model; the implicit gradient is exact.",
    EXPRESSIVITY + "deep equilibrium models",
    "Ten maps of known behaviour (logistic, Hénon, a rotation, tanh networks, a linear map), 1,000 steps from 32 "
    "starts: outcome and period as known, the interval of the Lyapunov exponent within 0.02 of ln 2 for the logistic "
    "map at 4 and of 0.419 for Hénon's; spectral radius at a fixed point below 1. Equilibria of two networks: relative "
    "error at most 1e-12, reached exactly in as many steps as the graph is deep, from two starts. Implicit gradient of "
    "three drawn maps tanh(Wz + x), d = 64, ‖W‖ = 0.9, with three solvers: relative error against 600 unrolled steps "
    "at most 1e-8, and that of the one-step gradient above 0.1.",
    lambda: [
        *(cell for cell, _, _ in _ITERATED),
        Cell("weight-tied", {"widths": [5, 20, 20, 20, 3], "activation": "tanh"}),
        Cell("weight-tied", {"net": "transformer"}),
        *(Cell("implicit-gradient", {"draw": draw}) for draw in range(_DRAWS)),
    ],
    quote="Possibilities: 1. Divergence 2. Oscillation (periodically or chaotically) 3. Convergence (to a fixed "
    "point); Any deep network (of any depth, with any connectivity), can be represented as a single layer DEQ model",
    kind="theorem",
    statistics=Statistics(
        "32 starts of each of ten maps, 3 draws for the gradient",
        "none: every map, network and draw must agree",
    ),
)
def _g18(rows: Sequence[Row]) -> Verdict:
    count = len(_ITERATED)
    maps, equilibria, gradients = rows[:count], rows[count : count + 2], rows[count + 2 :]
    wrong = [
        r.cell.config["map"]
        for r, (_, expected, period) in zip(maps, _ITERATED, strict=True)
        if (r["outcome"], r["period"]) != (expected, period)
    ]
    known = {4: math.log(2), 5: 0.41922}
    exponents = all(_near(maps[k]["interval"], value) for k, value in known.items())
    drawn_in = all(r["spectral_radius"] < 1 for r in maps if r["outcome"] == "converges")
    equal = all(
        r["equilibrium"] <= _ROUNDING and r["ends_agree"] and r["steps"] <= r["predicted_steps"] for r in equilibria
    )
    worst = max(r["value"] for r in gradients)
    phantom = {k: [r["diagnostics"]["phantom"][k] for r in gradients] for k in ("1", "5")}
    exact = worst <= _GRADIENT and min(phantom["1"]) > 0.1
    steps = {name: [r["diagnostics"]["steps"][name] for r in gradients] for name in ("picard", "anderson", "broyden")}
    return Verdict(
        outcome(not wrong and exponents and drawn_in and equal and exact),
        predicted={
            "outcomes": [expected if period in (None, 1) else f"period {period}" for _, expected, period in _ITERATED],
            "exponents": [math.log(2), 0.41922],
            "gradient error at most": _GRADIENT,
        },
        measured={
            "outcomes": [r["outcome"] if r["period"] in (None, 1) else f"period {r['period']}" for r in maps],
            "exponents": [maps[k]["lyapunov"] for k in known],
            "gradient errors": [r["value"] for r in gradients],
            "one-step gradient": phantom["1"],
            "five-step gradient": phantom["5"],
            "steps to 1e-9": steps,
        },
        detail=f"{count - len(wrong)} of {count} maps as known; exponents {maps[4]['lyapunov']:.4f} (ln 2 = 0.6931) "
        f"and {maps[5]['lyapunov']:.4f} (0.4192); equilibria to {max(r['equilibrium'] for r in equilibria):.0e} in "
        f"{', '.join(str(r['steps']) for r in equilibria)} steps; implicit gradients to {worst:.0e}, one-step "
        f"{min(phantom['1']):.2f} to {max(phantom['1']):.2f}, five-step {min(phantom['5']):.0e} to "
        f"{max(phantom['5']):.0e}.",
    )


def _near(interval: Sequence[float] | None, value: float) -> bool:
    return interval is not None and value - _EXPONENT <= interval[0] <= interval[1] <= value + _EXPONENT
