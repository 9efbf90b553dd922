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
from theodolite.statistics.paired import holm

# S5 — the graph is unknown

_DATA = {"pairs": 4000, "patterns": 4000, "digits": 1200}
_METHODS = ("l1", "beta-lasso", "imp")


def _dense_cell(data: str, random: bool = False, shuffled: bool = False) -> Cell:
    return Cell(
        "mask-locality",
        {
            "data": data,
            "random": random,
            "shuffled": shuffled,
            "examples": _DATA[data],
            "seeds": 4,
            "widths": [64],
            "steps": 1200,
            "lr": 3e-3,
            "batch": 128,
            "l2": 1e-4,
            "l1": 3e-3,
            "beta-lasso": 1e-3,
            "imp": 6,
        },
    )


def _s5_cells() -> list[Cell]:
    return [
        *(_dense_cell(data) for data in _DATA),
        *(_dense_cell(data, random=True) for data in _DATA),
        _dense_cell("pairs", shuffled=True),
        *(
            Cell(
                "embedded-convolution",
                {"data": data, "examples": 1000, "seeds": 4, "channels": 6, "pooled": data == "patterns",
                 "steps": 600, "lr": 3e-3, "batch": 64, "l2": 1e-4, "early": 150},
            )
            for data in ("digits", "patterns")
        ),
    ]  # fmt: skip


@claim(
    "S5",
    "Where the graph is unknown, a dense network with ℓ₁ (β-lasso) or iterative magnitude pruning finds local masks, "
    "ℓ₂ does not, and only where the task can be learnt.",
    SOURCE + "Sections 5.1 and 7.2 (Neyshabur 2020; Pellegrini and Biroli 2021)",
    "One hidden layer of 64 units, 4 seeds, three sets of examples (products of neighbours in a row, translated "
    "patterns, digits). Locality: the share of neighbouring pairs among the inputs of a unit over that share in masks "
    "of the same margins; local if the 95 % interval of its mean over seeds lies above 1. (1) On each set β-lasso and "
    "pruning are local. (2) ℓ₂ is not, thinned to as many weights as β-lasso left, on any set. (3) With random labels "
    "neither β-lasso nor pruning is local on the first two sets, whose inputs are independent noise (on digits, where "
    "neighbouring pixels are alike, this is reported). (4) With shuffled inputs pruning is local in the original "
    "geometry and not in the one that was fed. Holds if all four do; fails if (1) or (2) fails; undecided if only a "
    "control does. Plain ℓ₁, distances, the convolution embedded in a dense network: reported.",
    _s5_cells,
    quote="dense networks cannot learn convolution under L₂ minimization but can under L₁ minimization … training "
    "using a modified L₁ regularization is a way to induce local masks … pruning of a dense network by using "
    "iterative magnitude pruning (IMP) … uncovers sub-networks characterized by local connectivity; only for the task "
    "that the network can efficiently learn, and not just memorize, local features emerge",
    kind="observation",
    statistics=Statistics(
        "4 seeds a setting",
        "none: one 95 % interval a setting",
    ),
    heavy=True,
)
def _s5(rows: Sequence[Row]) -> Verdict:
    masks = [r for r in rows if r.cell.measure == "mask-locality"]
    kinds = {(r.cell.config["data"], r.cell.config["random"], r.cell.config["shuffled"]): r["methods"] for r in masks}
    table: dict[str, Any] = {}
    local: dict[tuple[Any, ...], bool] = {}
    for (data, random, shuffled), methods in kinds.items():
        name = f"{data}{', random labels' if random else ', shuffled' if shuffled else ''}"
        table[name] = {"accuracy of l2": short(statistics.fmean(methods["l2"]["accuracy"]["test"]))}
        for method in _METHODS:
            found = methods[method]
            for place, source in (("", found), (" thinned l2", found["l2"])):
                for geometry in ("original", "fed") if shuffled else ("original",):
                    ratio = _mean_ratio(source[geometry])
                    local[data, random, shuffled, method + place, geometry] = ratio is not None and ratio[1] > 1
                    label = f"{method}{place}{', as fed' if geometry == 'fed' else ''}"
                    table[name][label] = ratio and [short(v) for v in ratio]
            table[name][f"{method}: density, accuracy"] = [
                short(statistics.fmean(found["density"])),
                short(statistics.fmean(found["accuracy"]["test"])),
            ]
    sparse = ("beta-lasso", "imp")
    finds = all(local[data, False, False, method, "original"] for data in _DATA for method in sparse)
    plain = [data for data in _DATA if local[data, False, False, "beta-lasso thinned l2", "original"]]
    controls = not any(
        local[data, True, False, method, "original"] for data in ("pairs", "patterns") for method in sparse
    )
    moved = local["pairs", False, True, "imp", "original"] and not local["pairs", False, True, "imp", "fed"]
    embedded = {r.cell.config["data"]: _embedding(r) for r in rows if r.cell.measure == "embedded-convolution"}
    return Verdict(
        outcome(finds and not plain, controls and moved),
        predicted={"local": "β-lasso, pruning", "not local": "ℓ₂, random labels, the fed geometry"},
        measured={
            "ratio to chance": table,
            "sparse methods local": finds,
            "thinned l2 local on": plain,
            "no locality with random labels": controls,
            "locality follows the shuffle": moved,
            "convolution embedded in a dense network": embedded,
        },
        detail=f"β-lasso and pruning {'are' if finds else 'are not'} local on all three sets; ℓ₂ thinned to the "
        f"density of β-lasso is local, too, on {', '.join(plain) if plain else 'none'}; random labels "
        f"{'leave no' if controls else 'leave some'} locality; "
        f"shuffled inputs {'move' if moved else 'do not move'} it.",
    )


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
