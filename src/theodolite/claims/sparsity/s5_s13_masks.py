"""Claims S5 and S13: whether training that seeks sparsity finds an unknown graph, and how much can be pruned."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.sparsity.s2_s3_s4_known_graph import SOURCE, geometric, short
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import chance_of_no_excess, mean_interval
from theodolite.statistics.paired import against, holm

# S5 — the graph is unknown

_FUNCTIONS = 16  # of each family
_LEAST = 24  # of the 32 that every compared network must learn
_LEARNT = 0.7  # of the test examples are right
_WAYS = {"beta-lasso": "β-lasso", "imp": "pruning"}
_SHARE = 0.5  # of the locality that sparsity brings: ℓ₂ that has more of it is not unable
_CONVOLUTION = {
    "examples": 1000,
    "seeds": 4,
    "channels": 6,
    "steps": 600,
    "lr": 3e-3,
    "batch": 64,
    "l2": 1e-4,
    "early": 150,
}


def _s5_cells() -> list[Cell]:
    training = {"examples": 3000, "widths": [64], "steps": 1200, "lr": 3e-3, "batch": 128, "imp": 6, "kept": 0.1}
    strengths = {"l2": [1e-3, 1e-2], "l1": [1e-3, 3e-3], "beta-lasso": [3e-4, 1e-3]}
    drawn = {"seeds": _FUNCTIONS, "targets": 20261118}  # a number that no trial used
    return [
        *(Cell("mask-locality", {"data": data, **drawn, **training, **strengths}) for data in ("row", "grid")),
        *(
            Cell("embedded-convolution", {"data": data, "pooled": data == "patterns", **_CONVOLUTION})
            for data in ("digits", "patterns")
        ),
    ]


@claim(
    "S5",
    "Where the graph is unknown, a dense network with a modified ℓ₁ penalty (β-lasso) or iterative magnitude pruning "
    "finds local masks, ℓ₂ does not, and only where the task can be learnt.",
    SOURCE + "Sections 5.1 and 7.2 (Neyshabur 2020; Pellegrini and Biroli 2021)",
    "32 drawn local functions: is the sum of what a window says, sliding with a drawn stride, kernel and nonlinearity, "
    "above its median? 16 on a row of 16 independent inputs, 16 on a grid of 5×5 whose neighbours are alike; 3000 "
    "examples, inputs fed in a drawn order. One hidden layer of 64 units, 1200 steps; ℓ₂, ℓ₁ and β-lasso with the "
    "better of two strengths by validation; six rounds of pruning by 30 %, under that ℓ₂. Excess locality of a "
    "first-layer mask: the share of neighbouring pairs among the inputs of a unit, over that share in masks of the "
    "same margins, less 1. As trained, the mask is of all weights but those below a thousandth of the largest. A "
    "function counts where ℓ₂, β-lasso and pruning are right on 70 % of the test examples; with fewer than 24 the "
    "verdict is undecided. For β-lasso and for pruning: (1) the excess as trained is above 0; (2) ℓ₂ as trained has "
    "less than half of it; (3) random labels leave less; (4) the order that was fed shows less. (5) With both thinned "
    "to the same number of weights, a tenth at most, ℓ₂ has less than half the excess of β-lasso. Holds if all nine "
    "are clearly so, fails if one is clearly the other way, undecided else. Thinned ℓ₂ is one round of pruning: beside "
    "six rounds it is reported, as are plain ℓ₁ and the convolution embedded in a dense network.",
    _s5_cells,
    quote="Empirically it seems that dense networks cannot learn convolution under L₂ minimization but can under L₁ "
    "minimization … training using a modified L₁ regularization is a way to induce local masks for visual tasks … "
    "pruning of a dense network by using iterative magnitude pruning (IMP) … uncovers … sub-networks characterized by "
    "local connectivity … only for the task that the network can efficiently learn, and not just memorize, local "
    "features emerge",
    kind="observation",
    statistics=Statistics(
        "32 functions drawn for this rule, the same for all methods, one start each",
        "Holm over the nine two-sided t-tests over functions, at 5 %",
    ),
    heavy=True,
)
def _s5(rows: Sequence[Row]) -> Verdict:
    masks = [r for r in rows if r.cell.measure == "mask-locality"]
    kept = [(r, i) for r in masks for i in range(_FUNCTIONS) if _learnt(r, i)]

    def excess(method: str, mask: str = "trained", place: str = "original", labels: str = "true") -> list[float]:
        """By function; a mask in which no unit reads a pair has none."""
        found = (r["labels"][labels][method][mask][place][i] for r, i in kept)
        return [0.0 if ratio is None else ratio - 1 for ratio in found]

    def beyond(first: Sequence[float], second: Sequence[float], share: float = 1.0) -> list[float]:
        return [a - share * b for a, b in zip(first, second, strict=True)]

    asked: dict[str, tuple[list[float], bool]] = {}  # by name the values, and whether they should be above 0
    for method, name in _WAYS.items():
        own = excess(method)
        asked[f"{name} is local"] = own, True
        asked[f"ℓ₂ has less than half of {name}"] = beyond(excess("l2"), own, _SHARE), False
        asked[f"{name}: true labels leave more than random ones"] = beyond(own, excess(method, labels="random")), True
        asked[f"{name}: the function's geometry shows more"] = beyond(own, excess(method, place="fed")), True
    thinned = beyond(excess("l2", "thinned"), excess("beta-lasso", "thinned"), _SHARE)
    asked["thinned, ℓ₂ has less than half of β-lasso"] = thinned, False
    enough = len(kept) >= _LEAST
    tests = [(against(values, 0.0), above) for values, above in asked.values()] if enough else []
    clear = holm([p for (_, p), _ in tests])
    said = [
        ("yes" if (mean > 0) == above else "no") if c else "?"
        for c, ((mean, _), above) in zip(clear, tests, strict=True)
    ]
    said += ["?"] * (len(asked) - len(said))
    ratios = {
        method: {mask: _ratio(excess(method, mask)) for mask in ("trained", "thinned")}
        for method in ("l2", "l1", *_WAYS)
    }
    networks = {
        method: {
            "density": _mean([r["labels"]["true"][method]["trained"]["density"][i] for r, i in kept]),
            "test accuracy": _mean([r["labels"]["true"][method]["test"][i] for r, i in kept]),
        }
        for method in ratios
    }
    controls = {
        method: {
            "random labels": _ratio(excess(method, labels="random")),
            "as fed": _ratio(excess(method, place="fed")),
        }
        for method in _WAYS
    }
    shown = {"l2": "ℓ₂", "l1": "ℓ₁", **_WAYS}
    return Verdict(
        outcome("no" not in said, "no" in said or "?" not in said),
        predicted={"local": "β-lasso, pruning", "not local": "ℓ₂, random labels, the order that was fed"},
        measured={
            "functions": len(kept),
            "locality over chance": ratios,
            "controls": controls,
            "networks": networks,
            "clear after Holm": dict(zip(asked, said, strict=True)),
            "density thinned": _mean([r["labels"]["true"]["l2"]["thinned"]["density"][i] for r, i in kept]),
            "convolution embedded in a dense network": {
                r.cell.config["data"]: _embedding(r) for r in rows if r.cell.measure == "embedded-convolution"
            },
        },
        detail=f"{len(kept)} of {2 * _FUNCTIONS} functions count. Locality over chance as trained, and thinned to the "
        "same number of weights: "
        + "; ".join(
            f"{shown[method]} {_told(found['trained'])}, {_told(found['thinned'])}" for method, found in ratios.items()
        )
        + ". As trained with random labels, and in the order that was fed: "
        + "; ".join(
            f"{_WAYS[method]} {_told(found['random labels'])}, {_told(found['as fed'])}"
            for method, found in controls.items()
        )
        + ". Not so: "
        + (", ".join(name for name, s in zip(asked, said, strict=True) if s == "no") or "none")
        + "; not clear: "
        + (", ".join(name for name, s in zip(asked, said, strict=True) if s == "?") or "none")
        + ".",
    )


def _learnt(row: Row, member: int) -> bool:
    return all(row["labels"]["true"][method]["test"][member] >= _LEARNT for method in ("l2", *_WAYS))


def _ratio(excesses: Sequence[float]) -> list[float] | None:
    """The mean over functions with its 95 % interval."""
    interval = mean_interval(excesses)
    return None if interval is None else [short(1 + v) for v in (statistics.fmean(excesses), *interval)]


def _mean(values: Sequence[float]) -> float | None:
    return short(statistics.fmean(values)) if values else None


def _told(ratio: Sequence[float] | None) -> str:
    return "unknown" if ratio is None else f"{ratio[0]} ({ratio[1]} to {ratio[2]})"


def _mean_ratio(comparisons: Sequence[Mapping[str, Any]]) -> tuple[float, float, float] | None:
    """The mean over seeds with its 95 % interval; None where a seed has no pairs to judge."""
    ratios = [c["ratio"] for c in comparisons]
    if any(r is None for r in ratios):
        return None
    low, high = mean_interval(ratios) or (-math.inf, math.inf)
    return statistics.fmean(ratios), low, high


def _embedding(row: Row) -> dict[str, float]:
    kinds = ("convolution", "embedded", "scratch", "weight outside the windows")
    return {kind: short(statistics.fmean(row[kind])) for kind in kinds}


# S13 — pruning is survived

_LOSS = 0.01  # of accuracy
_HARSH = 0.1  # of the weights


def _s13_cells() -> list[Cell]:
    pruning = {"lr": 3e-3, "l2": 1e-4, "rounds": 11, "share": 0.3, "seeds": 4}
    digits = {"data": "digits", "examples": 1200, "widths": [300, 100], "steps": 400, "batch": 128, "seeds": 10}
    tree = {"truth": "binary-tree", "variables": 8, "targets": 1, "points": 4000, "widths": [64, 64], "steps": 1200}
    return [
        *(Cell("accuracy-by-density", {**pruning, **digits, "random": random}) for random in (False, True)),
        Cell("tree-pruning", {**pruning, **tree, "batch": 128}),
    ]


@claim(
    "S13",
    "Trained networks survive harsh pruning.",
    SOURCE + "Section 4 and Section 7.2",
    "Iterative magnitude pruning over all layers together, 30 % of the living weights a round, survivors rewound to 5 "
    "% of the steps. Digits, hidden layers of 300 and 100 units, 10 seeds: holds if at some density of at most 10 % "
    "the mean loss of test accuracy against the dense network is clearly below 1 point (one-sided t-tests, Holm over "
    "these densities at 2.5 %), fails if at every such density its 95 % interval lies above. Reported: the least "
    "density with a mean loss of at most 1 point; the same of the training accuracy, with true and with random "
    "labels; for dense networks on a tree of 8 variables, the least density with at most 1.1 times the dense error, "
    "and how pure the first layer is there.",
    _s13_cells,
    quote="The performance of trained neural networks is robust to harsh levels of pruning.",
    kind="observation",
    statistics=Statistics(
        "10 seeds",
        "Holm over the densities of at most 10 %, 2.5 % one-sided; none for failing, for which all must agree",
    ),
    heavy=True,
)
def _s13(rows: Sequence[Row]) -> Verdict:
    true, random, tree = rows
    losses = [
        [a - b for a, b in zip(true["rounds"][0]["test"], r["test"], strict=True)]
        for r in true["rounds"]
        if r["density"] <= _HARSH
    ]
    survives = any(holm([chance_of_no_excess([-loss for loss in each], -_LOSS) for each in losses], 0.025))
    falls = all((mean_interval(each) or (-math.inf, math.inf))[0] > _LOSS for each in losses)
    least = {
        "digits, test": _least(true, "test"),
        "digits, training": _least(true, "train"),
        "random labels, training": _least(random, "train"),
    }
    first = geometric(tree["rounds"][0]["test"])
    kept = [r for r in tree["rounds"] if geometric(r["test"]) <= 1.1 * first]
    last = min(kept, key=lambda r: r["density"])
    purity = _mean_ratio(last["purity"])
    return Verdict(
        outcome(not falls, survives or falls),
        predicted={"loss at 10 % density": "below 1 point"},
        measured={
            "accuracy by density": {
                name: [
                    [short(r["density"]), *(short(statistics.fmean(r[part])) for part in ("train", "test"))]
                    for r in row["rounds"]
                ]
                for name, row in (("digits", true), ("random labels", random))
            },
            "least density within 1 point": least,
            "tree, error by density": [[short(r["density"]), short(geometric(r["test"]))] for r in tree["rounds"]],
            "tree, least density within 1.1 times": short(last["density"]),
            "tree, purity there over chance": purity and [short(v) for v in purity],
        },
        detail=f"Digits keep their test accuracy within 1 point down to {least['digits, test']:.1%} of the weights and "
        f"their training accuracy down to {least['digits, training']:.1%}; "
        f"random labels {least['random labels, training']:.1%}. On the tree "
        f"{last['density']:.1%} of the weights do as well as all"
        + (f", and units read pairs of one constituent {purity[0]:.2f} times as often as chance." if purity else "."),
    )


def _least(row: Row, part: str) -> float:
    """The least density down to which the mean over seeds loses at most a point."""
    first, least = statistics.fmean(row["rounds"][0][part]), 1.0
    for found in row["rounds"]:
        if statistics.fmean(found[part]) < first - _LOSS:
            break
        least = found["density"]
    return least
