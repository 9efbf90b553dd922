"""Claim P8: what softmax and activations are worth."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from theodolite.claims.comparing import members, scores, trained
from theodolite.claims.contract import claim
from theodolite.claims.degree.ablated import KINDS, NET
from theodolite.claims.degree.cases import SOURCE
from theodolite.claims.degree.p8_at_full_size import ABLATION, LEARNT, clear_costs
from theodolite.claims.one_setting import MARGIN
from theodolite.claims.rule import Statistics, Verdict
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import difference_interval

_LEVEL = 0.05
_SMALL: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2}
_RATE = 3e-3
_TASKS: dict[str, tuple[dict[str, Any], int]] = {  # arguments and steps
    "majority": ({"bits": 9}, 200),
    "dyck": ({"depth": 3, "longest": 8}, 400),
    "copy": ({"symbols": 3, "longest": 4}, 1200),
    "recall": ({"keys": 8, "values": 4, "shortest": 2, "longest": 3}, 1500),
    "even-pairs": ({"longest": 6}, 600),
}

_SEEDS = range(100, 124)  # none that was looked at while their number was chosen


def _p8_cells() -> list[Cell]:
    schedule: dict[str, Any] = {"batch": 16, "every": 100, "rows": 32, "to_the_end": True}
    return [
        cell
        for task, (args, steps) in _TASKS.items()
        for without in KINDS
        for cell in trained(NET, {**_SMALL, "without": without}, task, args, _SEEDS, _RATE, steps=steps, **schedule)
    ]


@claim(
    "P8",
    "A Transformer without softmax and activations, a polynomial, performs like the whole up to a small degradation.",
    SOURCE + "Section 1.1",
    "Five tasks, 24 seeds, equal parameters, equal steps, 200 to 1,500 of them; layer norms stay. The whole "
    f"Transformer's mean accuracy less that of the one with neither is small if below {MARGIN}, large if above (Welch, "
    f"one-sided, ten tests, Holm at {_LEVEL:.0%}). A task that the whole does not learn (mean accuracy below {LEARNT}) "
    "says nothing. Holds if the cost is small on most tasks and clearly large on none. Undecided else: so short a "
    "training shows what is learnt first, and cannot show that a network would not get there; the rule at full size "
    "gives both sides equal and sufficient training. Dropping one of the two alone is reported.",
    _p8_cells,
    quote="if we throw all the activations from the transformers we can remain with polynomial of degree 3^L … that "
    "is good approximation for the transformer in the sense that the induced networks achieves similar performance up "
    "to small degradation",
    kind="observation",
    statistics=Statistics(
        "24 seeds for each of four networks on five tasks",
        f"Holm over all ten tests, {_LEVEL:.0%}",
    ),
    heavy=True,
    nets=(NET,),
    full=ABLATION,
)
def _p8(rows: Sequence[Row]) -> Verdict:
    by_ablation = members(rows, lambda config: (config["task"], config["shape"]["without"]))
    found = {name: scores(trained, "accuracy") for name, trained in by_ablation.items()}
    means = {
        task: {without: statistics.fmean(found[task, without]) for without in KINDS}
        for task in dict.fromkeys(task for task, _ in found)
    }
    costs = {task: difference_interval(found[task, "nothing"], found[task, "both"]) for task in means}
    said = clear_costs(rows, _LEVEL)
    learnt = [task for task in means if means[task]["nothing"] >= LEARNT]
    small = [task for task in learnt if said[task] is True]
    large = [task for task in learnt if said[task] is False]
    accuracies = "; ".join(
        f"{task} " + ", ".join(f"{mean:.2f}" for mean in by.values()) + f" (cost {costs[task][0]:.2f} to "
        f"{costs[task][1]:.2f})"
        for task, by in means.items()
    )
    return Verdict(
        "holds" if not large and 2 * len(small) > len(costs) else "undecided",
        {"cost below": MARGIN},
        {"accuracy": means, "cost of dropping both": costs},
        f"Mean accuracy of the whole, without softmax, without activations, with neither: {accuracies}. Small on "
        f"{len(small)}, large so far on {len(large)} of {len(costs)} tasks, {len(costs) - len(learnt)} not learnt by "
        f"the whole.{' Short training: the full size decides.' if large else ''}",
    )
