"""Two surveys side by side: which answers changed between an earlier one and this, by how much, and at what cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from theodolite.errors import BadInput
from theodolite.report import Answer, Column, Summary, Table
from theodolite.report.answer import MARKS
from theodolite.report.numbers import format_value
from theodolite.surveys.saved import Saved

# An answer or a number that surely changed; one as before; intervals that overlap, which settle nothing.
Verdict = Literal["changed", "as before", "not told apart"]
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("ability", "ability", numeric=False),
    Column("before", "before", "answer and number, with its 95 % interval where there is one", False),
    Column("after", "after", "", False),
    Column("verdict", "change", "changed: another answer, or intervals that do not meet", False),
)
_MOST = 6  # changes named in a headline
_COSTS = (
    Column("net", "network", numeric=False),
    Column("quantity", "quantity", numeric=False),
    Column("before", "before"),
    Column("after", "after"),
)
_MEANING = (
    "An answer changed if its mark did, from something known to something else, or if the 95 % intervals of its number "
    "do not meet; numbers without an interval (a state's size, an exact rank, a count of tasks) if they differ. Where "
    "intervals meet, nothing is concluded. "
    "Answers are compared where both surveys measured with the same setting: task, steps, seeds, lengths, draws."
)


@dataclass(frozen=True)
class Change:
    """One ability of one network, before and now; `was` is the network's name in the earlier survey."""

    net: str
    was: str
    before: Answer
    after: Answer

    @property
    def verdict(self) -> Verdict:
        before, after = self.before, self.after
        if before.standing != after.standing and "unknown" not in (before.standing, after.standing):
            return "changed"
        if before.number is None or after.number is None:
            return "as before" if (before.standing, before.text) == (after.standing, after.text) else "not told apart"
        if before.interval is None or after.interval is None:
            return "as before" if math.isclose(before.number, after.number, rel_tol=1e-9) else "changed"
        if before.interval[1] < after.interval[0] or after.interval[1] < before.interval[0]:
            return "changed"
        same = (before.number, *before.interval) == (after.number, *after.interval)
        return "as before" if same else "not told apart"


@dataclass(frozen=True)
class Against:
    """`other_settings` answers were measured with different settings, `one_sided` asked in one of the surveys only:
    both are left out. `unpaired`: networks of either that were compared with none."""

    old: str
    changes: tuple[Change, ...]
    costs: tuple[tuple[str, str, Any, Any], ...]  # net, quantity, before, after
    other_settings: int
    one_sided: int
    unpaired: tuple[str, ...]

    def of(self, verdict: Verdict) -> list[Change]:
        return [change for change in self.changes if change.verdict == verdict]

    @property
    def counted(self) -> str:
        if not self.changes:
            return f"Nothing can be compared with '{self.old}'{self._left_out()}."
        counts = Counter(change.verdict for change in self.changes)
        told = f"{counts['changed']} of {len(self.changes)} answers changed, {counts['as before']} are as before"
        overlap = counts["not told apart"]
        return told + (f", {overlap} cannot be told apart" if overlap else "") + self._left_out() + "."

    @property
    def headline(self) -> str:
        changed = self.of("changed")
        named = "; ".join(f"{change.net}, {change.after.ability}: {said(change)}" for change in changed[:_MOST])
        more = f"; {len(changed) - _MOST} more" if len(changed) > _MOST else ""
        return f"{self.counted} {named}{more}." if named else self.counted

    def _left_out(self) -> str:
        reasons = []
        if self.other_settings:
            reasons.append(f"{self.other_settings} measured with another setting")
        if self.one_sided:
            reasons.append(f"{self.one_sided} asked in one survey only")
        if self.unpaired:
            reasons.append(f"networks of one survey only: {', '.join(self.unpaired)}")
        return f"; left out: {'; '.join(reasons)}" if reasons else ""

    def summary(self) -> Summary:
        """As the first section of a report."""
        line = lambda change: {
            "net": _named(change),
            "ability": change.after.ability,
            "before": told(change.before),
            "after": told(change.after),
            "verdict": change.verdict,
        }
        changed = [line(change) for change in self.of("changed")]
        others = [line(change) for change in (*self.of("not told apart"), *self.of("as before"))]
        costs = [{"net": net, "quantity": name, "before": was, "after": now} for net, name, was, now in self.costs]
        tables = [Table("What changed", _COLUMNS[:-1], changed)] if changed else []
        tables += [Table("Costs before and now", _COSTS, costs)] if costs else []
        tables += [Table("What did not change, or cannot be told apart", _COLUMNS, others)] if others else []
        return Summary(self.counted, tables, notes=(_MEANING,))


def against(old: str, before: Saved, after: Saved) -> Against:
    """Networks of the same name are compared; where one is left on either side, these two are, unless most of what they
    were asked is not the same, as of one that reads vectors and one that reads sequences."""
    pairs: dict[str, str] = {}
    changes, costs, other, single = [], [], 0, 0
    for net, was in paired(before.nets, after.nets).items():
        first = {one.ability: one for one in before.answers if one.net == was}
        second = {one.ability: one for one in after.answers if one.net == net}
        if net != was and len(first.keys() & second.keys()) < len(first.keys() ^ second.keys()):
            continue
        pairs[net] = was
        single += len(first.keys() ^ second.keys())
        for ability in (name for name in second if name in first):
            if first[ability].setting == second[ability].setting:
                changes.append(Change(net, was, first[ability], second[ability]))
            else:
                other += 1
        known, now = before.facts.get(was, {}), after.facts.get(net, {})
        costs += [(net, name, known[name], value) for name, value in now.items() if name in known]
    alone = [net for net in after.nets if net not in pairs] + [net for net in before.nets if net not in pairs.values()]
    return Against(old, tuple(changes), tuple(costs), other, single, tuple(dict.fromkeys(alone)))


def paired(before: Sequence[str], after: Sequence[str]) -> Mapping[str, str]:
    """The earlier name by the one of now."""
    pairs = {net: net for net in after if net in before}
    left, right = [net for net in before if net not in pairs], [net for net in after if net not in pairs]
    if len(left) == len(right) == 1:
        pairs[right[0]] = left[0]
    return pairs


def refuse_unpaired(old: str, before: Sequence[str], after: Sequence[str]) -> None:
    """Before anything is measured."""
    if not paired(before, after):
        raise BadInput(
            f"the survey in '{old}' is of {', '.join(before)}, none of which is surveyed now: name one of them too"
        )


def told(answer: Answer) -> str:
    """A mark and the number, with its interval where there is one."""
    mark = " ".join(MARKS[answer.standing])
    if answer.number is not None and answer.interval is not None:
        low, high = answer.interval
        return f"{mark}: {answer.number:.3g} ({low:.3g}–{high:.3g})"
    return f"{mark}: {answer.value or answer.text}"


def said(change: Change) -> str:
    """`○ 0.62 (0.5–0.7) → ✓ 0.99 (0.97–1)`"""
    return f"{_short(change.before)} → {_short(change.after)}"


def _short(answer: Answer) -> str:
    mark, words = MARKS[answer.standing]
    return told(answer).replace(f"{mark} {words}:", mark, 1)


def _named(change: Change) -> str:
    return change.net if change.net == change.was else f"{change.was} → {change.net}"


def cost_line(cost: tuple[str, str, Any, Any]) -> str:
    net, quantity, before, after = cost
    return f"{net}, {quantity}: {format_value(before)} → {format_value(after)}"
