"""What "Universal Transformers" reports of algorithmic tasks: trained on 1–40 decimal symbols, tested on 400.

Dehghani et al. 2019, accuracy per symbol and per whole string; positions of the two Transformers start at a random
offset. Published figures, not theorems.
"""

from __future__ import annotations

from typing import Any

from theodolite.claims.tables.published_score import Score

SOURCE = "Dehghani et al. 2019"
SYMBOLS, STRINGS = "symbols right", "strings right"
LONGEST, FARTHEST = 40, 400  # lengths of training, and of the test
TASK_ARGS: dict[str, dict[str, Any]] = {"copy": {"symbols": 10}, "reverse": {"symbols": 10}, "decimal-addition": {}}

TASKS = ("copy", "reverse", "decimal-addition")
NETS = ("lstm", "transformer", "universal-transformer")

_TABLE = {
    "lstm": ((0.45, 0.09), (0.66, 0.11), (0.08, 0.0)),
    "transformer": ((0.53, 0.03), (0.13, 0.06), (0.07, 0.0)),
    "universal-transformer": ((0.91, 0.35), (0.96, 0.46), (0.34, 0.02)),
}

SCORES: tuple[Score, ...] = tuple(
    Score(task, net, quantity, value, "unchecked", SOURCE)
    for net, pairs in _TABLE.items()
    for task, pair in zip(TASKS, pairs, strict=True)
    for quantity, value in zip((SYMBOLS, STRINGS), pair, strict=True)
)
