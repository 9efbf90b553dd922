"""The runs of a store as the page lists them, and two of them compared: what `runs` and `compare` do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.bench.columns import flat, settings
from theodolite.bench.compare import METRICS, Comparison, TaskComparison, compare_trained
from theodolite.bench.selection import choose
from theodolite.errors import BadInput
from theodolite.lab.store.trained import Condition, Trained
from theodolite.lab.tally import STATUSES
from theodolite.report.table import Column, Table
from theodolite.serving.requests import Choice, Whole, Words, some
from theodolite.serving.shown import Shown

LINES = 100  # on a page
PLACE = Words("place", "folder", longest=1000)
CONTROLS = (
    PLACE,
    Words("net", "network"),
    Words("task", "task"),
    Choice("status", "status", ("", *STATUSES)),
    Words("where", "where"),
    Choice("lines", "lines", ("groups", "members")),
    Whole("page", "page", 0, 0, 10**6),
)
COMPARED = (PLACE, Words("first", "first"), Words("second", "second"), Choice("metric", "metric", tuple(METRICS)))
_GROUPS = (
    Column("net", "network", numeric=False),
    Column("shape", "shape", numeric=False),
    Column("task", "task", numeric=False),
    Column("task_args", "of the task", numeric=False),
    Column("solved", "solved", "runs that reached the threshold on fresh data of trained lengths", numeric=False),
    Column("mean", "mean score", "over the runs that did not diverge"),
    Column("unseen", "on unseen lengths", "mean score at lengths never trained on"),
    Column("median", "steps to solve", "median, among those that did"),
    Column("steps", "at most", "steps of training"),
)
_MEMBERS = tuple(
    Column(key, label, numeric=numeric)
    for key, label, numeric in (
        ("net", "network", False),
        ("shape", "shape", False),
        ("task", "task", False),
        ("seed", "seed", True),
        ("lr", "rate", True),
        ("status", "status", False),
        ("accuracy", "score", True),
        ("unseen", "on unseen lengths", True),
        ("solved_at", "steps to solve", True),
        ("finished", "finished", False),
    )
)
_COMPARISON = (
    Column("task", "task", numeric=False),
    Column("first", "A"),
    Column("second", "B"),
    Column("difference", "B − A"),
    Column("interval", "95 % interval", "Student's, of the mean of paired differences", numeric=False),
    Column("wins", "won / tied / lost", "pairs in which B is better", numeric=False),
    Column("solved", "solved by A and B", numeric=False),
    Column("verdict", "at 95 %", numeric=False),
)
_WORDS = {
    "first": "A higher",
    "second": "B higher",
    "undecided": "no difference shown",
    "too few pairs": "too few pairs for an interval",
}


def listed(trained: Trained, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A page of lines, the newest last, with the ids that `compared` takes and the names that can be filtered by."""
    named = some({name: asked[name] for name in ("net", "task", "status")})
    names = {kind: sorted({one.config[kind] for one in trained.conditions}) for kind in ("net", "task")}
    chosen, begin = choose(trained, where=_pairs(asked["where"]), **named), asked["page"] * LINES
    if asked["lines"] == "members":
        lines = [flat(row) for row in chosen.read(begin, LINES)]
        table, ids, total = Table("Runs", _MEMBERS, lines), None, chosen.count
    else:
        found, total = chosen.page(begin, LINES)
        ids = [one.name for one, _ in found]
        table = Table("Networks and tasks", _GROUPS, [_line(entry) for _, entry in found])
    content = Shown(_nothing(trained, chosen.count), tables=[table]).to_json()
    return {**content, "ids": ids, "total": total, "members": chosen.count, **names}


def _nothing(trained: Trained, chosen: int) -> list[str]:
    if not trained.conditions:
        return ["This store holds no trained networks, or none yet: other measurements stand in the report."]
    return [] if chosen else ["None of these runs fits the filters: loosen them."]


def compared(trained: Trained, first: str, second: str, metric: str) -> Shown:
    """Two groups of `listed`, pair by pair."""
    known = {one.name: one for one in trained.conditions}
    if first not in known or second not in known:
        raise BadInput("choose two lines that are listed: these are not, or are no more")
    chosen = [known[name] for name in dict.fromkeys((first, second))]
    names = _selectors(known[first], known[second])
    return _comparison(compare_trained(trained, *names, metric=metric, among=chosen))


def _comparison(found: Comparison) -> Shown:
    notes = [
        f"{one.task}: {one.pairs} pairs of runs, {one.compared} with this score on both sides." for one in found.tasks
    ]
    if any(found.unpaired):
        notes.append(f"Runs without a partner: {found.unpaired[0]} of A, {found.unpaired[1]} of B.")
    return Shown(
        facts=[("A, the baseline", found.first), ("B", found.second), ("score", found.metric)],
        tables=[Table("Pair by pair", _COMPARISON, [_task(one) for one in found.tasks])],
        notes=notes,
        data=found.to_json(),
    )


def _task(one: TaskComparison) -> dict[str, Any]:
    first, second = one.means or (None, None)
    return {
        "task": one.task,
        "first": first,
        "second": second,
        "difference": one.difference,
        "interval": "–" if one.interval is None else "{:.3g} to {:.3g}".format(*one.interval),
        "wins": f"{one.wins} / {one.ties} / {one.losses}",
        "solved": f"{one.solved[0]} and {one.solved[1]} of {one.pairs}",
        "verdict": _WORDS[one.verdict],
    }


def _line(entry: Mapping[str, Any]) -> dict[str, Any]:
    text = lambda values: " ".join(f"{name}={value}" for name, value in values.items())
    return {
        "net": entry["net"],
        "shape": text(entry["shape"]),
        "task": entry["task"],
        "task_args": text(entry["task_args"]),
        "solved": f"{entry['solved']['count']} of {entry['solved']['of']}",
        "mean": entry["accuracy"] and entry["accuracy"]["mean"],
        "unseen": entry["unseen"] and entry["unseen"]["mean"],
        "median": entry["steps_to_solve"] and entry["steps_to_solve"]["median"],
        "steps": entry["steps"],
    }


def _selectors(first: Condition, second: Condition) -> tuple[str, str]:
    """How `compare` names the two: by their nets, and by the settings in which they differ."""
    one, other = settings(first.config), settings(second.config)
    if one["task"] != other["task"]:
        raise BadInput(f"'{one['task']}' and '{other['task']}' are different tasks: choose two lines of one task")
    apart = [
        name
        for name in dict.fromkeys((*one, *other))
        if one.get(name) != other.get(name) and name not in ("net", "task")
    ]
    texts = []
    for mine in (one, other):
        given = [f"{name}={mine[name]}" for name in apart if _speakable(mine.get(name))]
        texts.append(",".join([str(mine["net"]), *(given if one["net"] == other["net"] else [])]))
    return texts[0], texts[1]


def _speakable(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and not set(value) & set(",="))


def _pairs(text: str) -> dict[str, str]:
    """`lr=0.001, width=16`."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if part.strip() and (not equals or not name or name in found):
            raise BadInput(f"'{part.strip()}' is not NAME=VALUE, each name once: write for example lr=0.001, width=16")
        if part.strip():
            found[name] = value
    return found
