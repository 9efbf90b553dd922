"""What papers report of training: whether a net that learnt a task on short inputs still solves it on longer ones.

Published figures, not theorems: the best of many seeds and learning rates after very long training. A shorter run that
fails shows little; `agreement` says what may be concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

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


_CHOMSKY = "Delétang et al. 2022"
_CHOMSKY_SETTING = "lengths 41–500 after 1–40, best of 30 runs of 1,000,000 steps"
_UNIVERSAL = "Dehghani et al. 2019"
_UNIVERSAL_SETTING = "length 400 after 1–40, accuracy per symbol"
_FAILURES = "Shalev-Shwartz et al. 2017"

_ROWS = (
    Published("parity-check", "rnn", 1.0, _CHOMSKY, _CHOMSKY_SETTING),
    Published("parity-check", "lstm", 1.0, _CHOMSKY, _CHOMSKY_SETTING),
    Published("parity-check", "transformer", 0.520, _CHOMSKY, _CHOMSKY_SETTING),
    Published("reverse", "rnn", 0.620, _CHOMSKY, _CHOMSKY_SETTING),
    Published("reverse", "lstm", 0.609, _CHOMSKY, _CHOMSKY_SETTING),
    Published("reverse", "transformer", 0.623, _CHOMSKY, _CHOMSKY_SETTING),
    Published("copy", "lstm", 0.45, _UNIVERSAL, _UNIVERSAL_SETTING),
    Published("copy", "transformer", 0.53, _UNIVERSAL, _UNIVERSAL_SETTING),
)
_PARITY = {5: 1.0, 10: 1.0, 30: 0.5001}  # bits: accuracy of one hidden layer of 10·bits units within 50,000 steps


def published(task: str, net: str, bits: int | None = None) -> Published | None:
    """The figure for a built-in net on a task, or None where no source reports one."""
    if (task, net) == ("parity", "mlp"):
        score = _PARITY.get(bits or 0)
        setting = "one hidden layer of 10 units a bit, 50,000 steps"
        return None if score is None else Published(task, net, score, _FAILURES, setting)
    return next((row for row in _ROWS if (row.task, row.net) == (task, net)), None)


def agreement(predicted: Published, best: float, learnt: bool) -> bool | None:
    """Whether the best measured score stands on the same side of the bar, where anything follows from it.

    A success is evidence whatever was published. A failure after shorter training is none against a published success,
    and none for a published failure unless the task was learnt on the lengths of training and lost beyond them.
    """
    if best >= SOLVED:
        return predicted.solved
    return True if learnt and not predicted.solved else None
