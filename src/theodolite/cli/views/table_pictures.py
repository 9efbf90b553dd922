"""Pictures of a published table beside ours: scores as a heat map, curves over lengths, members that learn and when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from theodolite.report import Board, Chart, Curve, Multiples, Plot, Square
from theodolite.report.numbers import DASH

Result = Mapping[str, Any]
MARKS = {"checked": "", "unchecked": "ᵘ", "second-hand": "²"}
_MEANING = {"unchecked": "ᵘ read once", "second-hand": "² second-hand"}
_NOTHING = Square(None, "")
_SHORT = {  # names that would not fit above a column
    "universal-transformer": "universal",
    "tied-transformer": "tied",
    "linear-transformer": "linear",
}


class _Grid(NamedTuple):
    """The rows and columns of a table; `gaps` where another section of the paper begins."""

    rows: list[str]
    nets: list[str]
    gaps: list[int]
    found: Mapping[tuple[str, str], Result]

    @property
    def columns(self) -> list[str]:
        return [_SHORT.get(net, net) for net in self.nets]


def pictures(results: Sequence[Result], command: str = "") -> list[Chart | Multiples]:
    """All that the results have values for."""
    if not any(r["quantities"] for r in results):
        return []
    curves = [lengths(results, command)] if _told(results) else []
    return [scores(results, command), learning(results, command), *curves]


def scores(results: Sequence[Result], command: str = "") -> Chart:
    """Published | ours, on one scale from chance to all right; the edge says what decides nothing or contradicts."""
    grid, sides = _grid(results), any(r["agrees"] is not None for r in results)
    quantity = next(r["quantities"][0]["quantity"] for r in results if r["quantities"])
    published = [[_published(grid.found.get((row, net))) for net in grid.nets] for row in grid.rows]
    ours = [[_best(grid.found.get((row, net)), sides) for net in grid.nets] for row in grid.rows]
    edges = " A dashed edge: decides nothing yet; a thick one: on the other side of the bar." if sides else ""
    return Chart(
        f"{quantity.capitalize()}, published and ours",
        f"Heat map of {quantity} by task and network, published on the left, the best of our members on the right",
        grid.rows,
        grid.columns,
        [
            Board("Published", "; ".join(["per cent", *_marks(results)]), published),
            Board("Ours", f"per cent, the best of {_members(results)}", ours),
        ],
        caption=f"White is chance, the fullest blue all right.{edges}",
        command=command,
        one_scale=True,
        gaps=grid.gaps,
    )


def learning(results: Sequence[Result], command: str = "") -> Chart:
    """Who is right beyond training, who learnt the lengths of training, and after how many steps."""
    grid = _grid(results)
    bar = next(r["solved"]["bar"] for r in results if r["solved"])
    beyond = any(r["settings"]["unseen"] for r in results)
    reached = [[_reached(grid.found.get((row, net))) for net in grid.nets] for row in grid.rows]
    learnt = [[_learnt(grid.found.get((row, net))) for net in grid.nets] for row in grid.rows]
    where = "on unseen lengths" if beyond else "on fresh inputs"
    return Chart(
        "Who learns it, and when",
        f"By task and network: members that score {bar:.0%} {where}, and median steps until a member learnt",
        grid.rows,
        grid.columns,
        [
            Board(f"At {bar:.0%} or more", f"members, {where}", reached),
            Board("Steps to learn", "median over those that learnt", learnt),
        ],
        caption="On the right the colour is the share of members that learnt the lengths of training, the number the "
        "step at which half of those had.",
        command=command,
        gaps=grid.gaps,
    )


def lengths(results: Sequence[Result], command: str = "") -> Multiples:
    """One plot per entry: the best member and the median, the lengths of training shaded, chance dashed."""
    grid, told = _grid(results), _told(results)
    shown = [row for row in grid.rows if any((row, net) in told for net in grid.nets)]
    longest = max(max(r["lengths"]["length"]) for r in told.values())
    return Multiples(
        "Scores by length",
        "Small plots by task and network of the score over the length of the input",
        shown,
        grid.columns,
        [[_curves(told.get((row, net))) for net in grid.nets] for row in shown],
        x=(1, longest),
        y=(0, 1),
        x_label="length (log)",
        y_label="score",
        log_x=True,
        caption="Thick: the best member, by its score on unseen lengths; thin: the median over members. Shaded: "
        "lengths of training; dashed: chance.",
        command=command,
    )


def _grid(results: Sequence[Result]) -> _Grid:
    rows = list(dict.fromkeys(r["row"] for r in results))
    section = {r["row"]: r["section"] for r in reversed(results)}
    gaps = [i for i in range(1, len(rows)) if section[rows[i]] != section[rows[i - 1]]]
    return _Grid(rows, list(dict.fromkeys(r["net"] for r in results)), gaps, {(r["row"], r["net"]): r for r in results})


def _told(results: Sequence[Result]) -> dict[tuple[str, str], Result]:
    """Entries with scores at several lengths."""
    told = {(r["row"], r["net"]): r for r in results if r.get("lengths")}
    return {place: r for place, r in told.items() if len(r["lengths"]["length"]) > 1}


def _published(result: Result | None) -> Square:
    figures = result["quantities"][0]["published"] if result and result["quantities"] else []
    if result is None or not figures:
        return _NOTHING
    said = " / ".join(f"{100 * f['value']:.1f} ({f['called'] or result['net']}, {f['source']})" for f in figures)
    first = figures[0]
    text = f"{100 * first['value']:.0f}{MARKS[first['origin']]}"
    return Square(_fullness(first["value"], result), text, f"{result['net']} on {result['row']}: {said}")


def _best(result: Result | None, sides: bool) -> Square:
    if result is None:
        return _NOTHING
    if not result["quantities"]:
        return Square(None, DASH, result["error"] or "")
    quantity = result["quantities"][0]
    if quantity["best"] is None:
        return Square(None, DASH, "every member diverged")
    judged = sides and bool(quantity["published"])
    edge = "plain" if not judged or result["agrees"] else "open" if result["agrees"] is None else "against"
    hover = (
        f"{result['net']} on {result['row']}: best {100 * quantity['best']:.1f}, median "
        f"{100 * (quantity['median'] or 0):.1f} of {result['solved']['of']}; {result['learnt']['count']} learnt the "
        "lengths of training"
    )
    return Square(_fullness(quantity["best"], result), f"{100 * quantity['best']:.0f}", hover, edge)


def _reached(result: Result | None) -> Square:
    if result is None or not result["solved"]:
        return _NOTHING
    solved = result["solved"]
    low, high = solved["interval"]
    text = f"{solved['count']}/{solved['of']}"
    return Square(solved["share"], text, f"{result['net']} on {result['row']}: {text} ({low:.2f}–{high:.2f})")


def _learnt(result: Result | None) -> Square:
    if result is None or not result.get("learnt"):
        return _NOTHING
    learnt, steps = result["learnt"], result["learnt"]["steps"]
    what = f"{result['net']} on {result['row']}: {learnt['count']} of {learnt['of']} learnt"
    if steps is None:
        return Square(0.0, DASH, f"{what} in {result['settings']['steps']:,} steps")
    low, high = steps["quartiles"]
    return Square(learnt["share"], _short(steps["median"]), f"{what}, the middle half at steps {low:,.0f}–{high:,.0f}")


def _curves(result: Result | None) -> Plot | None:
    if result is None:
        return None
    told = result["lengths"]
    best, median = Curve(told["length"], told["best"]), Curve(told["length"], told["median"], faint=True)
    hover = f"{result['net']} on {result['row']}: best {100 * (result['quantities'][0]['best'] or 0):.1f}"
    return Plot([best, median], (told["trained"][0], told["trained"][1]), result["chance"], "", hover)


def _fullness(score: float, result: Result) -> float:
    """From chance, 0, to all right, 1."""
    chance = result.get("chance") or 0.0
    return min(1.0, max(0.0, (score - chance) / (1 - chance))) if chance < 1 else math.nan


def _marks(results: Sequence[Result]) -> list[str]:
    """What the marks mean that are there."""
    figures = [figures[0]["origin"] for r in results for q in r["quantities"][:1] if (figures := q["published"])]
    return [meaning for origin, meaning in _MEANING.items() if origin in figures]


def _members(results: Sequence[Result]) -> str:
    counts = sorted({r["solved"]["of"] for r in results if r["solved"]})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _short(steps: float) -> str:
    return f"{steps / 1000:.1f}k" if steps >= 1000 else f"{steps:.0f}"
