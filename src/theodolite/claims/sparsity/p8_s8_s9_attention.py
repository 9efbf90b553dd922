"""Claims P8, S8 and S9: what softmax, activations and the order of a block are worth; attention as a memory."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from theodolite.claims.comparing import scores, trained, training
from theodolite.claims.contract import Verdict, claim, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import difference_interval, equivalence
from theodolite.theory.associative_memory import growth_rate, linear_capacity, sharp_capacity

_SPARSITY = "Compositional sparsity, "
_MARGIN = 0.05
_LEARNT = 0.9
_SMALL: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2}
_RATE = 3e-3


# P8 — what softmax and activations are worth


_WITHOUT = ("nothing", "softmax", "activations", "both")
_TASKS: dict[str, tuple[dict[str, Any], int]] = {  # arguments and steps
    "majority": ({"bits": 9}, 200),
    "dyck": ({"depth": 3, "longest": 8}, 400),
    "copy": ({"symbols": 3, "longest": 4}, 1200),
    "recall": ({"keys": 8, "values": 4, "shortest": 2, "longest": 3}, 1500),
    "even-pairs": ({"longest": 6}, 600),
}


def _p8_cells() -> list[Cell]:
    return [
        Cell(
            "ablated-members",
            {
                "without": without,
                **training(_SMALL, task, args, 6, _RATE, steps=steps, batch=16, every=100, rows=32, to_the_end=True),
            },
        )
        for task, (args, steps) in _TASKS.items()
        for without in _WITHOUT
    ]


@claim(
    "P8",
    "A Transformer without softmax and activations, a polynomial, performs like the whole up to a small degradation.",
    "Degree of the building block, introduction",
    "Five tasks, six seeds, equal parameters, equal steps; layer norms stay. The 95 % interval (Welch) of the whole "
    f"Transformer's mean accuracy less that of the one with neither: the cost is small if it lies below {_MARGIN}, "
    f"large if above. A task that the whole does not learn (mean accuracy below {_LEARNT}) says nothing. Holds if the "
    "cost is small on most tasks and large on none; fails if it is large on one; else undecided. Dropping one of the "
    "two alone is reported.",
    _p8_cells,
    changed="A first run held with recall left out of it, which the whole had not learnt in 600 steps; it has 1,500 "
    "since, and the verdict changed.",
    heavy=True,
)
def _p8(rows: Sequence[Row]) -> Verdict:
    found = {(r.cell.config["task"], r.cell.config["without"]): scores(r, "accuracy") for r in rows}
    means = {
        task: {without: statistics.fmean(found[task, without]) for without in _WITHOUT}
        for task in dict.fromkeys(task for task, _ in found)
    }
    costs = {task: difference_interval(found[task, "nothing"], found[task, "both"]) for task in means}
    said = {task: cost for task, cost in costs.items() if means[task]["nothing"] >= _LEARNT}
    small = [task for task, (_, high) in said.items() if high < _MARGIN]
    large = [task for task, (low, _) in said.items() if low > _MARGIN]
    told = "; ".join(
        f"{task} " + ", ".join(f"{mean:.2f}" for mean in by.values()) + f" (cost {costs[task][0]:.2f} to "
        f"{costs[task][1]:.2f})"
        for task, by in means.items()
    )
    return Verdict(
        outcome(not large, 2 * len(small) > len(costs)),
        {"cost below": _MARGIN},
        {"accuracy": means, "cost of dropping both": costs},
        f"Mean accuracy of the whole, without softmax, without activations, with neither: {told}. Small on "
        f"{len(small)}, large on {len(large)} of {len(costs)} tasks, {len(costs) - len(said)} not learnt by the whole.",
    )


# S8 — serial and parallel blocks


_BLOCKS = ("serial", "parallel")
_BLOCK_TASKS = {"dyck": 300, "copy": 1200, "recall": 1200, "even-pairs": 1200}  # steps


def _s8_cells() -> list[Cell]:
    return [
        trained(
            "transformer",
            {**_SMALL, "block": block},
            task,
            _TASKS[task][0],
            12,
            _RATE,
            steps=steps,
            batch=16,
            every=100,
            rows=32,
            to_the_end=True,
        )
        for task, steps in _BLOCK_TASKS.items()
        for block in _BLOCKS
    ]


@claim(
    "S8",
    "Blocks with attention and perceptron side by side perform like blocks with one after the other.",
    _SPARSITY + "Section 7.3.1",
    "Four tasks, twelve seeds, equal shapes (a parallel block has one layer norm less), accuracy after 300 (Dyck) or "
    "1,200 steps. Two "
    f"one-sided tests at 5 %: alike if the 90 % interval (Welch) of the difference of means lies within ±{_MARGIN}, "
    "apart if wholly outside. Holds if alike on every task, fails if apart on one, else undecided.",
    _s8_cells,
    changed="The first run, at a learning rate of 0.01 and 400 steps, was undecided: recall and even pairs were not "
    "learnt. So was the second, at 0.003 and 600 steps, where some seeds had learnt recall and some had not yet. The "
    "steps are 1,200 since; margin and tests are as they were.",
    heavy=True,
)
def _s8(rows: Sequence[Row]) -> Verdict:
    found = {(r.cell.config["task"], r.cell.config["shape"]["block"]): scores(r, "accuracy") for r in rows}
    tasks = list(dict.fromkeys(task for task, _ in found))
    verdicts = {t: equivalence(found[t, "serial"], found[t, "parallel"], _MARGIN) for t in tasks}
    intervals = {t: difference_interval(found[t, "serial"], found[t, "parallel"], 0.9) for t in tasks}
    means = {t: [statistics.fmean(found[t, block]) for block in _BLOCKS] for t in tasks}
    told = "; ".join(
        f"{t} {means[t][0]:.3f} and {means[t][1]:.3f} ({intervals[t][0]:+.3f} to {intervals[t][1]:+.3f}: {verdicts[t]})"
        for t in tasks
    )
    return Verdict(
        outcome("apart" not in verdicts.values(), set(verdicts.values()) == {"alike"}),
        {"difference within": _MARGIN},
        {"means": means, "intervals": intervals, "verdicts": verdicts},
        f"Serial and parallel, mean accuracy (90 % interval of the difference): {told}.",
    )


# S9 — attention as a memory


_LIKENESS = 0.7
_WIDTHS = {"softmax": (22, 26, 30), "sparsemax": (26,), "linear": (64, 96, 128)}
_OFF = 0.05  # of recall, at every number of pairs
_PAIRS, _RECALLERS = (2, 4), ("transformer", "linear-transformer", "state-space")


def _around(capacity: float) -> list[int]:
    """Numbers of pairs from a quarter of the capacity to four times it."""
    return sorted({max(2, round(capacity * 2 ** (half / 2))) for half in range(-4, 5)})


def _memory(kind: str, width: int) -> Cell:
    capacity = linear_capacity if kind == "linear" else sharp_capacity
    pairs = _around(capacity(width, _LIKENESS))
    options = {"questions": 250, "draws": 16, "recall": 0.99}
    return Cell("associative-memory", {"kind": kind, "width": width, "likeness": _LIKENESS, "pairs": pairs, **options})


def _s9_cells() -> list[Cell]:
    schedule = {"steps": 800, "batch": 32, "every": 100, "rows": 32}
    return [
        *(_memory(kind, width) for kind, widths in _WIDTHS.items() for width in widths),
        *(
            trained(net, _SMALL, "recall", {"keys": 8, "values": 4, "shortest": n, "longest": n}, 4, _RATE, **schedule)
            for n in _PAIRS
            for net in _RECALLERS
        ),
    ]


@claim(
    "S9",
    "A Transformer layer is an associative memory.",
    _SPARSITY + "Section 8.1",
    "One head with explicit weights, keys and values random directions, questions at a cosine of "
    f"{_LIKENESS} to the key they mean. For softmax, sparsemax and linear attention, at numbers of pairs from a "
    f"quarter to four times the predicted capacity, recall must be within {_OFF} of the prediction: (1 − tail)^(P−1) "
    "for the sharp kinds, crosstalk for the linear one. The capacity at 99 % recall (95 % interval over resampled "
    "draws within a factor of 2 of the prediction) must grow exponentially with the width for softmax and like a "
    "power of it for linear attention, so that from the smallest to the largest width the one grows by more, though "
    "its widths grow by less. Training on 2 and 4 pairs is reported and decides nothing.",
    _s9_cells,
    changed="A first prediction for linear attention took crosstalk as normal and of one size; it was off by 0.08 at "
    "width 32, whose capacity is 8 pairs. Directions on a sphere and a spread of sizes took its place, and widths "
    "begin at 64.",
    heavy=True,
)
def _s9(rows: Sequence[Row]) -> Verdict:
    exact = [r for r in rows if r.cell.measure == "associative-memory"]
    learnt = [r for r in rows if r.cell.measure != "associative-memory"]
    off = {_memory_name(r): max(abs(a - b) for a, b in zip(r["recall"], r["predicted"], strict=True)) for r in exact}
    capacities = {_memory_name(r): r["capacity"] for r in exact}
    near = [
        r["interval"] is not None
        and r["predicted_capacity"] / 2 <= r["interval"][0] <= r["interval"][1] <= 2 * r["predicted_capacity"]
        for r in exact
    ]
    grown = {
        kind: (capacities[f"{kind}, width {_WIDTHS[kind][-1]}"] or 0.0)
        / (capacities[f"{kind}, width {_WIDTHS[kind][0]}"] or float("inf"))
        for kind in ("softmax", "linear")
    }
    recalled = {_recaller(r): statistics.fmean(scores(r, "accuracy")) for r in learnt}
    good = max(off.values()) <= _OFF and grown["softmax"] > grown["linear"]
    shown = ", ".join(
        f"{_memory_name(r)} {r['capacity'] or float('nan'):.0f} ({r['predicted_capacity']:.0f})" for r in exact
    )
    return Verdict(
        outcome(good, all(near)),
        {
            "capacities": {_memory_name(r): r["predicted_capacity"] for r in exact},
            "off at most": _OFF,
            "growth of ln capacity with the width, softmax": growth_rate(_LIKENESS),
        },
        {
            "capacities": {_memory_name(r): [r["capacity"], r["interval"]] for r in exact},
            "off": off,
            "grown": grown,
            "trained": recalled,
        },
        f"Pairs at 99 % recall (predicted): {shown}; recall off by at most {max(off.values()):.3f}. Trained on recall: "
        f"{', '.join(f'{name} {mean:.2f}' for name, mean in recalled.items())}.",
    )


def _memory_name(row: Row) -> str:
    return f"{row.cell.config['kind']}, width {row.cell.config['width']}"


def _recaller(row: Row) -> str:
    return f"{row.cell.config['net']}, {row.cell.config['task_args']['longest']} pairs"
