"""What papers report of training: whether a net that learnt a task on short inputs still solves it on longer ones.

Published figures, not theorems: the best of many seeds and learning rates after very long training. A shorter run that
fails shows little; `agreement` says what may be concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.claims.tables import chomsky_published as chomsky
from theodolite.claims.tables import universal_transformer_published as universal_transformer
from theodolite.claims.tables.published_score import find

SOLVED = 0.9  # the bar at which Delétang et al. call a task solved


@dataclass(frozen=True)
class Published:
    """`score` on lengths beyond training (for vectors: on fresh inputs), a share between 0 and 1."""

    task: str
    net: str
    score: float
    source: str
    setting: str

    @property
    def solved(self) -> bool:
        return self.score >= SOLVED


_FAILURES = "Shalev-Shwartz et al. 2017"
_TABLES = (  # scores, of which source and quantity, how they were got; the first table that has a pair tells it
    (
        chomsky.SCORES,
        chomsky.SOURCE,
        chomsky.SCORE,
        f"lengths {chomsky.LONGEST + 1}–{chomsky.FARTHEST} after 1–{chomsky.LONGEST}, best of "
        f"{chomsky.SEEDS * chomsky.RATES} runs of {chomsky.STEPS:,} steps",
    ),
    (
        universal_transformer.SCORES,
        universal_transformer.SOURCE,
        universal_transformer.SYMBOLS,
        f"length {universal_transformer.FARTHEST} after 1–{universal_transformer.LONGEST}, accuracy per symbol",
    ),
)
_PARITY = {5: 1.0, 10: 1.0, 30: 0.5001}  # bits: accuracy of one hidden layer of 10·bits units within 50,000 steps


def published(task: str, net: str, bits: int | None = None) -> Published | None:
    """The figure for a built-in net on a task, or None where no source reports one."""
    if (task, net) == ("parity", "mlp"):
        score = _PARITY.get(bits or 0)
        setting = "one hidden layer of 10 units a bit, 50,000 steps"
        return None if score is None else Published(task, net, score, _FAILURES, setting)
    for scores, source, quantity, setting in _TABLES:
        for score in find(scores, task, net, quantity):
            if score.source == source:  # the table's own paper; later ones ran relatives of our nets
                return Published(task, net, score.value, source, setting)
    return None


def agreement(predicted: Published, best: float, learnt: bool) -> bool | None:
    """Whether the best measured score stands on the same side of the bar, where anything follows from it.

    A success is evidence whatever was published. A failure after shorter training is none against a published success,
    and none for a published failure unless the task was learnt on the lengths of training and lost beyond them.
    """
    if best >= SOLVED:
        return predicted.solved
    return True if learnt and not predicted.solved else None
