"""What `theodolite degree` prints: a table of networks at one budget, and sentences that its numbers make."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from theodolite.instruments.degree.which_degree import TRAINED, DegreeRow
from theodolite.report.numbers import DASH, format_value
from theodolite.statistics.paired import error_ratio, signs

_UNSATURATED = {
    "fully-connected": " For ranks below their caps try few wide blocks with as many inputs on each side as the width: "
    "--width 8 --inputs 8 --budget 6.",
    "attention": " More tokens may change the order of the degrees: try --tokens 4 with more --max-points.",
    "mixer": " For a rank below its cap try more tokens in one block: --width 3 --tokens 3 --budget 6.",
}
_SPELT = 10**6  # from here on numbers are written as 1.23e6
_ENTERS = 0.05  # of the parameters: a trained net that is further off its budget is not compared
_NAMED = 4
_CLAIMS = {
    "proven": "the rank equals its cap",
    "exact": "fresh primes, weights and points agree, with points to spare",
    "at least": "points or repeats ran out, so this bound alone is proven",
}


def print_degrees(console: Console, rows: Sequence[DegreeRow], notes: Sequence[str] = ()) -> None:
    """The table, what was left out of it, and the verdict."""
    ranked = [row for row in rows if row.net != TRAINED]
    if ranked:
        console.print(_table(ranked))
        said = {_claim(row) for row in ranked}
        meanings = [f"{word}: {meaning}" for word, meaning in _CLAIMS.items() if word in said]
        if meanings:
            console.print("; ".join(meanings), style="dim")
    trained = [row for row in rows if row.training is not None]
    if trained:
        training = trained[0].training or {}
        console.print(
            f"\nTrained on {training['task']}, {training['seeds']} seeds of {training['steps']} steps; the error is "
            "the median over seeds of the share of the variance (or of the classes) that test answers miss. Parameters "
            "include embedding, biases and head.",
            markup=False,
        )
        console.print(_trained_table(trained))
    for line in notes:
        console.print(f"Note: {line}.", markup=False)
    for line in verdict(rows):
        console.print(line, markup=False)


def verdict(rows: Sequence[DegreeRow]) -> list[str]:
    """Which degree wins under each count and budget, and what that is worth."""
    lines: list[str] = []
    for group in _groups(rows):
        measured = [row for row in group if row.rank is not None]
        if measured:
            lines.append(_by_rank(measured))
        elif len(group) > 1:
            lines.append(f"{_where(group[0])}: no rank is measured; {_by_degree(group)}.")
        if any(row.error is not None for row in group):
            lines.append(_by_error(group))
    measured = [row for row in rows if row.rank is not None]
    if len(measured) > 1 and all(row.saturated for row in measured):
        lines.append(
            "Every rank equals its cap, so this compares spaces of polynomials, which is arithmetic: no network of "
            f"such blocks can do better, whatever its weights.{_UNSATURATED.get(measured[0].family, '')}"
        )
    elif len(measured) > 1 and any(row.saturated for row in measured):
        lines.append("Where the table says saturated the rank is the cap: arithmetic of spaces of polynomials.")
    if any(row.rank is None and row.net != TRAINED for row in rows):
        lines.append("A dash for a rank: the total degree is beyond what a prime field tells apart (2^20).")
    return lines


def _table(rows: Sequence[DegreeRow]) -> Table:
    heads = _heads(rows)
    table = _grid([*heads.values(), "degree", "depth", "para-\nmeters", "total\ndegree", "rank", "", "cap"])
    table.add_column("satu-\nrated")
    for row in rows:
        cells = [_large(row.total_degree, row.log10_total_degree), _rank(row), _claim(row)]
        cells.append(DASH if row.log10_cap is None else _large(row.cap, row.log10_cap))
        cells.append(format_value(row.saturated))
        table.add_row(*_shape(row, heads, row.depth, row.parameters), *cells)
    return table


def _trained_table(rows: Sequence[DegreeRow]) -> Table:
    heads = _heads(rows)
    kind = "range" if any(row.interval_kind == "range" for row in rows) else "95 % interval"
    columns = [*heads.values(), "degree", "depth", "para-\nmeters", "rate", "error", kind, "diverged"]
    table = _grid(columns)
    for row in rows:
        training = row.training or {}
        low, high = row.interval or (None, None)
        cells = [format_value(training.get("rate")), format_value(row.error)]
        cells += [f"{format_value(low)} to {format_value(high)}", f"{training.get('diverged', 0.0):.0%}"]
        table.add_row(*_shape(row, heads, training["depth"], training["parameters"]), *cells)
    return table


def _grid(columns: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", collapse_padding=True)
    for name in columns:
        table.add_column(name, justify="left" if name == "" else "right", no_wrap=name == "")
    return table


def _heads(rows: Sequence[DegreeRow]) -> dict[str, str]:
    """What tells the rows apart besides their degrees."""
    named = {"budget": "matrices", "count": "per\nblock"}
    return {name: head for name, head in named.items() if len({getattr(row, name) for row in rows}) > 1}


def _shape(row: DegreeRow, heads: Mapping[str, str], depth: int, parameters: int) -> list[str]:
    degree = row.name
    if row.degree is not None and row.degrees and not math.isclose(row.degrees[0], row.degree):
        degree += f" ({row.degrees[0]:.3g})"  # whole units make another of it
    return [*(format_value(getattr(row, name)) for name in heads), degree, str(depth), _large(parameters)]


def _rank(row: DegreeRow) -> str:
    if row.rank is None:
        return DASH
    return format_value(row.rank) if row.exact else f"≥ {format_value(row.rank)}"


def _claim(row: DegreeRow) -> str:
    if row.rank is None:
        return ""
    return "proven" if row.saturated else "exact" if row.exact else "at least"


def _large(value: int | None, log10: float | None = None) -> str:
    """Every large number in one notation, also one of which only the logarithm is known."""
    if value is not None and abs(value) < _SPELT:
        return format_value(value)
    if log10 is None:
        log10 = math.log10(value or 1)
    mantissa, exponent = f"{10 ** (log10 % 1):.2e}".split("e")
    return f"{mantissa}e{math.floor(log10) + int(exponent)}"


def _error(row: DegreeRow) -> str:
    if row.error is None:
        return DASH
    if row.interval is None:
        return format_value(row.error)
    low, high = map(format_value, row.interval)
    return f"{format_value(row.error)} ({row.interval_kind}: {low} – {high})"


def _groups(rows: Sequence[DegreeRow]) -> list[list[DegreeRow]]:
    groups: dict[tuple[int, str], list[DegreeRow]] = {}
    for row in rows:
        groups.setdefault((row.budget, row.count), []).append(row)
    return list(groups.values())


def _where(row: DegreeRow) -> str:
    per = "" if row.count == "own" else f", {row.count} per block of degree d"
    return f"{row.budget} matrices{per}"


def _highest(row: DegreeRow) -> float:
    """The most the rank can be."""
    if row.exact:
        return row.lower_bound or 0
    return math.inf if row.cap is None else row.cap


def _by_rank(rows: Sequence[DegreeRow]) -> str:
    where = _where(rows[0])
    if len(rows) == 1:
        return f"{where}: degree {rows[0].name} stands alone, with nothing to compare."
    top = max(row.lower_bound or 0 for row in rows)
    rivals = [row for row in rows if _highest(row) >= top]
    if len(rivals) == 1 or all(row.exact and row.rank == top for row in rivals):
        others = sorted((row for row in rows if row not in rivals), key=lambda row: -(row.rank or 0))
        against = f" (next: {_rank(others[0])} of degree {others[0].name})" if others else ""
        text = f"{where}: {_winners(rivals)} the largest rank, {_least(rivals[0])}{against}."
        leading = _leaders(rows)
        if {row.degrees for row in leading}.isdisjoint(row.degrees for row in rivals):
            text += f" Yet {_by_degree(rows)}."
        return text
    points = max(row.points for row in rivals)
    text = (
        f"{where}: {format_value(points)} {'point does' if points == 1 else 'points do'} not tell the ranks of degrees "
    )
    text += f"{_listed(rivals)} apart; {_by_degree(rows)}"
    if all(row.log10_cap is not None for row in rows):
        best = max(rows, key=lambda row: row.log10_cap or 0.0)
        text += f", and degree {best.name} the largest cap, {_large(best.cap, best.log10_cap or 0.0)}"
    return f"{text}. More --max-points, a smaller width or a smaller budget may decide the ranks."


def _least(row: DegreeRow) -> str:
    return format_value(row.rank) if row.exact else f"at least {format_value(row.rank)}"


def _leaders(rows: Sequence[DegreeRow]) -> list[DegreeRow]:
    top = max(row.log10_total_degree for row in rows)
    return [row for row in rows if row.log10_total_degree == top]


def _by_degree(rows: Sequence[DegreeRow]) -> str:
    best = _leaders(rows)
    return f"{_winners(best)} the largest total degree, {_large(best[0].total_degree, best[0].log10_total_degree)}"


def _winners(rows: Sequence[DegreeRow]) -> str:
    return f"degree {rows[0].name} has" if len(rows) == 1 else f"degrees {_listed(rows)} have"


def _listed(rows: Sequence[DegreeRow]) -> str:
    """Mixed degrees hold commas themselves; of many only the first are named."""
    names = [f"({row.name})" if row.degree is None else row.name for row in rows]
    if len(names) > _NAMED + 1:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _by_error(rows: Sequence[DegreeRow]) -> str:
    """Seeds pair: the same functions for every degree. The smallest geometric mean is held against each other one."""
    trained = [row for row in rows if row.training is not None]
    fair = [row for row in trained if abs((row.training or {})["off_budget"]) <= _ENTERS]
    where = f"Trained at {_where(rows[0])}"
    apart = [row for row in trained if row not in fair]
    left = f" More than 5 % off the budget's parameters and not compared: {_listed(apart)}." if apart else ""
    if not fair:
        return f"{where}:{left}"
    best = min(fair, key=lambda row: statistics.fmean(_logs(row)))
    if len(fair) == 1:
        return f"{where}: degree {best.name} stands alone, with a median error of {_error(best)}.{left}"
    rivals = [row for row in fair if row is not best]
    standing = signs([error_ratio(_logs(best), _logs(row)) for row in rivals])
    clear, near = (
        [row for row, sign in zip(rivals, standing, strict=True) if bool(sign) is sure] for sure in (True, False)
    )
    parts = [f"clearly smaller than with degree {_listed(clear)}"] if clear else []
    parts += [f"not clearly different from that with degree {_listed(near)}"] if near else []
    mean = math.exp(statistics.fmean(_logs(best)))
    return (
        f"{where}: degree {best.name} has the smallest error, {format_value(mean)} (geometric mean over seeds), "
        f"{' and '.join(parts)}; paired t-tests of the log errors, for all degrees learn the same functions, Holm's "
        f"correction at 5 %.{left}"
    )


def _logs(row: DegreeRow) -> list[float]:
    return (row.training or {})["log_errors"]
