"""Of several learning rates the one counts that most seeds solve at."""

from __future__ import annotations

from theodolite.lab.cell import Cell, Row
from theodolite.surveys.learnability import at_best_rate


def member(net: str, lr: float, seed: int, status: str, accuracy: float | None) -> Row:
    config = {"net": net, "task": "copy", "lr": lr, "seed": seed}
    return Row(Cell("training", config), {"status": status, "accuracy": accuracy})


def test_most_seeds_that_solve_then_scores_and_diverged_ones_lose():
    rows = [
        member("one", 3e-3, 0, "solved", 1.0),
        member("one", 3e-3, 1, "unsolved", 0.2),
        member("one", 1e-3, 0, "solved", 0.99),
        member("one", 1e-3, 1, "solved", 0.99),
        member("other", 3e-3, 0, "diverged", None),
        member("other", 1e-3, 0, "unsolved", 0.1),
    ]
    kept = [(row.cell.config["net"], row.cell.config["lr"]) for row in at_best_rate(rows)]
    assert kept == [("one", 1e-3), ("one", 1e-3), ("other", 1e-3)]
    assert at_best_rate(rows[:2]) == rows[:2]
