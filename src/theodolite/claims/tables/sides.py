"""Whether members stand on the published side of the bar, for many entries of a table at one level.

The paper tells the best of `runs` networks. A success there is seen again if one of ours succeeds: that is the paper's
own statistic. A failure there, none of its runs at the bar, is
- contradicted if our share at the bar is above 0 of `runs` (Fisher's exact test, one-sided),
- seen again if none of ours reaches the bar though m of them learnt the lengths of training: if half of those that
  learn reached it, that would have a chance of 2^−m.
Both tests of all published failures make one family (Holm).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import stats

from theodolite.statistics.paired import holm

LEVEL = 0.025  # of a table that may be looked at twice, after a first and after a longer training: 5 % together


@dataclass(frozen=True)
class Tally:
    """Of the members of an entry: how many reach the bar, how many learnt the lengths of training."""

    published: bool  # whether the paper's best reaches the bar
    reached: int
    learnt: int
    of: int


def sides(tallies: Mapping[str, Tally], runs: int, level: float) -> dict[str, bool | None]:
    """True where the published side is seen again, False where it is contradicted, None where nothing follows."""
    failures = {name: tally for name, tally in tallies.items() if not tally.published}
    against = [_contradiction(tally, runs) for tally in failures.values()]
    again = [1.0 if tally.reached else 0.5**tally.learnt for tally in failures.values()]
    clear = holm([*against, *again], level)
    verdicts: dict[str, bool | None] = {n: True if t.reached else None for n, t in tallies.items() if t.published}
    for place, name in enumerate(failures):
        verdicts[name] = False if clear[place] else True if clear[len(failures) + place] else None
    return {name: verdicts[name] for name in tallies}


def _contradiction(tally: Tally, runs: int) -> float:
    counts = [[tally.reached, tally.of - tally.reached], [0, runs]]
    return float(stats.fisher_exact(counts, alternative="greater").pvalue)  # pyright: ignore[reportAttributeAccessIssue]
