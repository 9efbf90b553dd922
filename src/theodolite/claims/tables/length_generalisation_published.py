"""What papers report of training: whether a net that learnt a task on short inputs still solves it on longer ones.

Published figures, not theorems: the best of many seeds and learning rates after very long training. A shorter run that
fails shows little; `agreement` says what may be concluded, and only where task, alphabet and lengths are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from theodolite.claims.tables import chomsky_published as chomsky
from theodolite.claims.tables import universal_transformer_published as universal_transformer
from theodolite.claims.tables.published_score import find
from theodolite.tasks.contract import make_task

SOLVED = 0.9  # the bar at which Delétang et al. call a task solved


@dataclass(frozen=True)
class Published:
    """`score` on lengths beyond training (for vectors: on fresh inputs), a share between 0 and 1. `setting` says how it
    was got; of it, `task_args` are the task's fields where they are not ours, `trained` the lengths of training and
    `farthest` the longest of the test."""

    task: str
    net: str
    score: float
    source: str
    setting: str
    task_args: Mapping[str, Any] = field(default_factory=dict)
    trained: tuple[int, int] | None = None
    farthest: int | None = None

    @property
    def solved(self) -> bool:
        return self.score >= SOLVED

    @property
    def brief(self) -> str:
        """Alphabet and lengths: `2 symbols, 1–40 → 500`."""
        return setting_in_short(self.task_args, self.trained, self.farthest)

    def same_setting(self, task_args: Mapping[str, Any], trained: Sequence[int] | None, farthest: int | None) -> bool:
        """Whether task, alphabet and lengths are those of the paper, so that two scores may be compared."""
        theirs = vars(make_task(self.task, dict(self.task_args)))
        other = [name for name in theirs if name not in _LENGTHS and theirs[name] != task_args.get(name)]
        lengths = None if trained is None else tuple(trained)
        return not other and (lengths, farthest) == (self.trained, self.farthest)


_FAILURES = "Shalev-Shwartz et al. 2017"
_LENGTHS = ("shortest", "longest")  # fields of a task that say lengths, which are compared as such
_TABLES = (  # the paper's module, of which quantity, how scores were got; the first table that has a pair tells it
    (
        chomsky,
        chomsky.SCORE,
        f"lengths {chomsky.LONGEST + 1}–{chomsky.FARTHEST} after 1–{chomsky.LONGEST}, best of "
        f"{chomsky.SEEDS * chomsky.RATES} runs of {chomsky.STEPS:,} steps",
    ),
    (
        universal_transformer,
        universal_transformer.SYMBOLS,
        f"length {universal_transformer.FARTHEST} after 1–{universal_transformer.LONGEST}, accuracy per symbol",
    ),
)
_PARITY = {5: 1.0, 10: 1.0, 30: 0.5001}  # bits: accuracy of one hidden layer of 10·bits units within 50,000 steps


def setting_in_short(task_args: Mapping[str, Any], trained: Sequence[int] | None, farthest: int | None) -> str:
    """What must be the same for two scores to be compared, as far as it varies: `2 symbols, 1–40 → 500`."""
    found = [f"{task_args[name]} {name}" for name in ("symbols", "bits") if name in task_args]
    found += [] if trained is None else [f"{trained[0]}–{trained[1]}" + ("" if farthest is None else f" → {farthest}")]
    return ", ".join(found)


def published(task: str, net: str, bits: int | None = None) -> Published | None:
    """The figure for a built-in net on a task, or None where no source reports one."""
    if (task, net) == ("parity", "mlp"):
        score = _PARITY.get(bits or 0)
        setting = f"{bits} bits, one hidden layer of 10 units a bit, 50,000 steps"
        return None if score is None else Published(task, net, score, _FAILURES, setting, {"bits": bits})
    for paper, quantity, setting in _TABLES:
        for score in find(paper.SCORES, task, net, quantity):
            if score.source == paper.SOURCE:  # the table's own paper; later ones ran relatives of our nets
                args = paper.TASK_ARGS.get(task, {})
                symbols = f"{args['symbols']} symbols, " if "symbols" in args else ""
                lengths = (1, paper.LONGEST), paper.FARTHEST
                return Published(task, net, score.value, paper.SOURCE, f"{symbols}{setting}", args, *lengths)
    return None


def agreement(predicted: Published, best: float, learnt: bool) -> bool | None:
    """Whether the best measured score stands on the same side of the bar, where anything follows from it.

    A success is evidence whatever was published. A failure after shorter training is none against a published success,
    and none for a published failure unless the task was learnt on the lengths of training and lost beyond them.
    """
    if best >= SOLVED:
        return predicted.solved
    return True if learnt and not predicted.solved else None
