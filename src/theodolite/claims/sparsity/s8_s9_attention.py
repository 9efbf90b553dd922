"""Claims S8 and S9: serial and parallel blocks; attention as a memory."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.comparing import members, scores, trained
from theodolite.claims.contract import claim
from theodolite.claims.rule import Statistics, Verdict, outcome
from theodolite.claims.sparsity.s8_at_full_size import BLOCKS, likeness
from theodolite.lab.cell import Cell, Row
from theodolite.statistics.intervals import difference_interval
from theodolite.theory.associative_memory import growth_rate, linear_capacity, sharp_capacity

_SPARSITY = "It is Compositional Sparsity (Poggio 2022), "
_MARGIN, _LEVEL = 0.05, 0.05
_SMALL: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2}
_RATE = 3e-3


# S8 — serial and parallel blocks


_BLOCKS = ("serial", "parallel")
_TASKS: dict[str, tuple[dict[str, Any], int]] = {  # arguments and steps
    "dyck": ({"depth": 3, "longest": 8}, 300),
    "copy": ({"symbols": 3, "longest": 4}, 1200),
    "recall": ({"keys": 8, "values": 4, "shortest": 2, "longest": 3}, 1200),
    "even-pairs": ({"longest": 6}, 1200),
}


def _s8_cells() -> list[Cell]:
    schedule: dict[str, Any] = {"batch": 16, "every": 100, "rows": 32, "to_the_end": True}
    return [
        cell
        for task, (args, steps) in _TASKS.items()
        for block in _BLOCKS
        for cell in trained("transformer", {**_SMALL, "block": block}, task, args, 12, _RATE, steps=steps, **schedule)
    ]


@claim(
    "S8",
    "Blocks with attention and perceptron side by side perform like blocks with one after the other.",
    _SPARSITY + "Section 7.3.1",
    "Four tasks, twelve seeds, equal shapes (a parallel block has one layer norm less), accuracy after 300 (Dyck) or "
    "1,200 steps. Two "
    f"one-sided tests (Welch), each at {_LEVEL:.0%}, put the difference of means within ±{_MARGIN}: alike. Apart if it "
    "lies outside (both sides, Holm over the tasks at 5 %). Holds if alike on every task, fails if apart on one, else "
    "undecided.",
    _s8_cells,
    quote="There is however a formulation with similar empirical performance (see PALM paper) which can be written as "
    "y = x + MLP(LayerNorm(x)) + Attention(LayerNorm(x))",
    kind="observation",
    statistics=Statistics(
        "12 seeds for each of two blocks on four tasks",
        "none for holding, for which all tasks must be alike; for failing Holm over the tasks, 5 %",
    ),
    heavy=True,
    full=BLOCKS,
)
def _s8(rows: Sequence[Row]) -> Verdict:
    by_block = members(rows, lambda config: (config["task"], config["shape"]["block"]))
    found = {name: scores(trained, "accuracy") for name, trained in by_block.items()}
    tasks = list(dict.fromkeys(task for task, _ in found))
    words = {True: "alike", False: "apart", None: "undecided"}
    verdicts = {task: words[side] for task, side in likeness(rows, _LEVEL).items()}
    intervals = {t: difference_interval(found[t, "serial"], found[t, "parallel"], 0.9) for t in tasks}
    means = {t: [statistics.fmean(found[t, block]) for block in _BLOCKS] for t in tasks}
    accuracies = "; ".join(
        f"{t} {means[t][0]:.3f} and {means[t][1]:.3f} ({intervals[t][0]:+.3f} to {intervals[t][1]:+.3f}: {verdicts[t]})"
        for t in tasks
    )
    return Verdict(
        outcome("apart" not in verdicts.values(), set(verdicts.values()) == {"alike"}),
        {"difference within": _MARGIN},
        {"means": means, "intervals": intervals, "verdicts": verdicts},
        f"Serial and parallel, mean accuracy (90 % interval of the difference): {accuracies}.",
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
    schedule: dict[str, Any] = {"steps": 800, "batch": 32, "every": 100, "rows": 32}
    return [
        *(_memory(kind, width) for kind, widths in _WIDTHS.items() for width in widths),
        *(
            cell
            for n in _PAIRS
            for net in _RECALLERS
            for cell in trained(
                net, _SMALL, "recall", {"keys": 8, "values": 4, "shortest": n, "longest": n}, 4, _RATE, **schedule
            )
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
    quote="8.1 Transformers as associative memories: … a sequence of associations from an input x′ to an output x″ "
    "which is then used for another association",
    kind="conjecture",
    statistics=Statistics(
        "16 draws of 250 questions a point; 4 seeds in training, which decides nothing",
        "none: every point must agree",
    ),
    heavy=True,
)
def _s9(rows: Sequence[Row]) -> Verdict:
    exact = [r for r in rows if r.cell.measure == "associative-memory"]
    learnt = members([r for r in rows if r.cell.measure != "associative-memory"], _recaller)
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
    recalled = {name: statistics.fmean(scores(trained, "accuracy")) for name, trained in learnt.items()}
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


def _recaller(config: Mapping[str, Any]) -> str:
    return f"{config['net']}, {config['task_args']['longest']} pairs"
