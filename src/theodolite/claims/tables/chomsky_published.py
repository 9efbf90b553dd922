"""What "Neural Networks and the Chomsky Hierarchy" reports: scores on lengths far beyond training.

Delétang et al. 2022 (ICLR 2023): trained on lengths 1–40, tested on 41–500, best of 10 seeds × 3 learning rates after
1,000,000 steps of batch 128. A network solves a task there if that score is 0.9 or more. Later papers ran four of the
tasks again with linear recurrences. Published figures, not theorems.
"""

from __future__ import annotations

from typing import Any

from theodolite.claims.tables.published_score import Origin, Score

SOURCE = "Delétang et al. 2022"
LATER = "papers on linear recurrences, 2024–25"
SCORE = "score on unseen lengths"

STEPS, BATCH, SEEDS, RATES = 1_000_000, 128, 10, 3
LONGEST, FARTHEST = 40, 500  # lengths of training, and of the test
TASK_ARGS: dict[str, dict[str, Any]] = {"reverse": {"symbols": 2}}  # where ours are not the paper's unless told

LEVELS = {
    "regular": ("even-pairs", "modular-arithmetic", "parity-check", "cycle-navigation"),
    "context-free": ("stack-manipulation", "reverse", "bracket-arithmetic", "solve-equation"),
    "context-sensitive": (
        "duplicate",
        "missing-duplicate",
        "odds-first",
        "binary-addition",
        "binary-multiplication",
        "square-root",
        "bucket-sort",
    ),
}

NETS = ("rnn", "stack-rnn", "tape-rnn", "transformer", "lstm")

# Per cent, in the order of NETS; None where we have no figure.
_CHECKED = {
    "modular-arithmetic": (100, 100, 100, 24.2, 100),
    "parity-check": (100, 100, 100, 52.0, 100),
    "cycle-navigation": (None, None, None, 61.9, None),
    "stack-manipulation": (56.0, 100, 100, 57.5, 59.1),
    "reverse": (62.0, 100, 100, 62.3, 60.9),
    "duplicate": (50.3, 52.8, 100, 52.8, 57.6),
    "odds-first": (51.0, 51.9, 100, 52.8, 55.6),
}
_UNCHECKED = {
    "even-pairs": (None, None, None, 96.4, None),
    "bracket-arithmetic": (41.3, 96.1, 95.4, 32.5, 59.2),
    "solve-equation": (51.0, 56.2, 64.4, 25.7, 67.8),
    "missing-duplicate": (52.3, 55.2, 100, 56.4, 54.3),
    "binary-addition": (50.3, 52.7, 100, 54.3, 55.5),
    "binary-multiplication": (50.0, 52.7, 58.5, 52.2, 53.1),
    "square-root": (54.3, 56.5, 57.8, 52.4, 57.5),
    "bucket-sort": (27.9, 78.1, 70.7, 91.9, 99.3),
}
_LATER_TASKS = ("cycle-navigation", "even-pairs", "modular-arithmetic", "parity-check")
_LATER = {
    ("transformer", "Transformer"): (24.4, 90.4, 23.6, 52.2),
    ("state-space", "Mamba"): (48.4, 100, 33.1, 54.2),
    ("delta-net", "gated DeltaProduct"): (46.3, 100, 78.4, 98.0),
}


def _rows(table: dict[str, tuple[float | None, ...]], origin: Origin) -> list[Score]:
    return [
        Score(task, net, SCORE, value / 100, origin, SOURCE)
        for task, values in table.items()
        for net, value in zip(NETS, values, strict=True)
        if value is not None
    ]


SCORES: tuple[Score, ...] = (
    *_rows(_CHECKED, "checked"),
    *_rows(_UNCHECKED, "unchecked"),
    *(
        Score(task, net, SCORE, value / 100, "second-hand", LATER, called)
        for (net, called), values in _LATER.items()
        for task, value in zip(_LATER_TASKS, values, strict=True)
    ),
)
