"""Published tables of trained networks beside ours: in a terminal, and as a page of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from theodolite.cli.views.failures import number, published_figure
from theodolite.cli.views.table_pictures import MARKS, pictures
from theodolite.report import Column, Summary, Table
from theodolite.report.numbers import DASH

Result = Mapping[str, Any]
_LEGEND = {"ᵘ": "read once and not found in a second source", "²": "second-hand, from later papers"}
_LABEL, _NUMBER = 11, 6
_VERDICTS = {"holds": "green", "fails": "red", "open": "yellow"}


def print_table(console: Console, results: Sequence[Result], statements: Sequence[Mapping[str, str]]) -> None:
    """One block per row of the table, one line per net; then settings, what is shorter, and the paper's sentences."""
    sides = any(r["agrees"] is not None for r in results)
    for row in dict.fromkeys((r["experiment"], r["row"]) for r in results):
        own = [r for r in results if (r["experiment"], r["row"]) == row]
        console.print()
        console.print(_heading(own))
        for place in range(max(1, *(len(r["quantities"]) for r in own))):
            if len(own[0]["quantities"]) > 1:
                console.print(Text(own[0]["quantities"][place]["quantity"], style="italic"))
            console.print(_block(own, place, sides and place == 0))
        for r in own:
            if r["error"] is not None:
                console.print(Text(f"{r['net']}: {r['error']}", style="red"))
    console.print()
    for rule in dict.fromkeys(said["rule"] for said in statements):
        for said in (said for said in statements if said["rule"] == rule):
            verdict = (said["verdict"], _VERDICTS[said["verdict"]])
            console.print(Text.assemble(f"“{said['statement']}” ({said['source']}): ", verdict, f". {said['detail']}."))
        console.print(Text(f"rule: {rule}", style="dim"))
        console.print()
    for line in _settings(results):
        console.print(Text(line, style="dim"))
    for line in _shorter(results):
        console.print(Text(f"Shorter than published: {line}.", style="yellow"))
    console.print(Text(_legend(results), style="dim"))


def summary(table: str, results: Sequence[Result], statements: Sequence[Mapping[str, str]], command: str) -> Summary:
    """The table as a section of a page: pictures, then every entry."""
    said = [
        f"“{s['statement']}” ({s['source']}): {s['verdict']}. {s['detail']}. Rule: {s['rule']}." for s in statements
    ]
    measured = [r for r in results if r["quantities"]]
    reached = sum(bool(r["solved"]["count"]) for r in measured)
    bar = next((r["solved"]["bar"] for r in measured), None)
    counted = "" if bar is None else f"; in {reached} of them some member scores {bar:.0%} or more"
    headline = f"{len(measured)} of {len(results)} entries of the table {table} were measured{counted}."
    notes = [*said, *_settings(results), *(f"Shorter than published: {line}." for line in _shorter(results))]
    return Summary(
        headline, [_entries(results, command)], notes=[*notes, _legend(results)], charts=pictures(results, command)
    )


def _entries(results: Sequence[Result], command: str) -> Table:
    names = {"row": "task", "net": "network", "published": "published", "best": "best", "median": "median"}
    counts = {"reached": "at the bar", "learnt": "learnt", "steps": "steps to learn", "mean_steps": "steps a token"}
    columns = [Column(key, label, numeric=key not in ("row", "net")) for key, label in {**names, **counts}.items()]
    rows = []
    for r in results:
        figures = next(iter(r.get("published", {}).values()), ())
        q = r["quantities"][0] if r["quantities"] else {"published": figures, "best": None, "median": None}
        steps = r["learnt"]["steps"] if r.get("learnt") else None
        rows.append(
            {
                "row": r["row"],
                "net": r["net"],
                "published": q["published"][0]["value"] if q["published"] else None,
                "best": q["best"],
                "median": q["median"],
                "reached": r["solved"]["share"] if r["solved"] else None,
                "learnt": r["learnt"]["share"] if r.get("learnt") else None,
                "steps": None if steps is None else steps["median"],
                "mean_steps": r["mean_steps"]["mean"] if r.get("mean_steps") else None,
            }
        )
    return Table("Every entry", columns, rows, command=command)


def markdown(results: Sequence[Result]) -> str:
    """The table as Markdown: rows × nets with `published → best of ours (members at the bar)`; settings below."""
    if results and "rows" in results[0]:
        return _failures_markdown(results)
    lines: list[str] = []
    nets = list(dict.fromkeys(r["net"] for r in results))
    quantities = list(dict.fromkeys(q["quantity"] for r in results for q in r["quantities"]))
    for place, quantity in enumerate(quantities):
        bar = next((r["solved"]["bar"] for r in results if r["solved"]), None)
        counted = f" (members at {bar:.0%} or more)" if place == 0 and bar is not None else ""
        lines += [f"{quantity.capitalize()} in per cent, published → best of ours{counted}:", ""]
        lines += [f"| | {' | '.join(nets)} |", f"|---|{'---|' * len(nets)}"]
        for key in dict.fromkeys((r["experiment"], r["row"]) for r in results):
            own = {r["net"]: r for r in results if (r["experiment"], r["row"]) == key}
            cells = [_cell(own[net], place) if net in own else "" for net in nets]
            lines.append(f"| {key[1]} | {' | '.join(cells)} |")
        lines.append("")
    reasons = [f"- {r['row']}, {r['net']}: {r['error']}" for r in results if r["error"] is not None]
    lines += [*reasons, ""] if reasons else []
    lines += [*_settings(results), *(f"Shorter than published: {text}." for text in _shorter(results))]
    return "\n\n".join("\n".join(part) for part in _paragraphs([*lines, _legend(results)])) + "\n"


def _heading(results: Sequence[Result]) -> Text:
    first = results[0]
    chance = next((r["chance"] for r in results if r.get("chance") is not None), None)
    parts = [first["section"], *([] if chance is None else [f"chance {_percent(chance)}"])]
    return Text.assemble((first["row"], "bold"), f" ({', '.join(parts)})")


def _block(results: Sequence[Result], place: int, sides: bool) -> Grid:
    """One quantity of a row of the table; what is said of members, and of `sides`, stands beside the first."""
    bar = next((r["solved"]["bar"] for r in results if r["solved"]), None)
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column("net", no_wrap=True, min_width=_LABEL)
    for column in ("published", "best", "median"):
        grid.add_column(column, justify="right", min_width=_NUMBER)
    if place == 0:
        grid.add_column("solved" if bar is None else f"≥ {bar:.0%}", no_wrap=True)
        grid.add_column("learnt", no_wrap=True)
    if sides:
        grid.add_column("agrees")
    if place == 0:
        grid.add_column("s", justify="right", no_wrap=True)
    for r in results:
        if len(r["quantities"]) <= place:
            grid.add_row(r["net"], _unmeasured(r, place), DASH, DASH, *(["not measured"] if place == 0 else []))
            continue
        q = r["quantities"][place]
        cells = [r["net"], _published(q), _percent(q["best"]), _percent(q["median"])]
        if place == 0:
            cells += [_solved(r["solved"]), f"{r['learnt']['count']}/{r['learnt']['of']}"]
        if sides:
            cells.append({True: "yes", False: "no", None: "open"}[r["agrees"]] if q["published"] else "")
        if place == 0:
            cells.append(f"{r['seconds']:.0f}")
        grid.add_row(*cells)
    return grid


def _settings(results: Sequence[Result]) -> list[str]:
    """What all members have in common, and the shapes."""
    by_training: dict[str, dict[str, None]] = {}  # how the members were trained, by what the lengths were
    for r in results:
        s = r["settings"]
        rates = ", ".join(f"{rate:g}" for rate in s["rates"])
        decays = f", weight decay {', '.join(f'{d:g}' for d in s['weight_decays'])}" if any(s["weight_decays"]) else ""
        shortest, longest = r["task_args"].get("shortest", 1), r["task_args"]["longest"]
        trained = f"length {longest}" if shortest == longest else f"lengths {shortest}–{longest}"
        unseen = s["unseen"]
        beyond = f", scored on {_lengths(unseen)}" if unseen else ""
        how = (
            f"{s['steps']:,} steps of batch {s['batch']}, Adam at {rates}{decays}, gradients clipped to {s['clip']:g}; "
            f"{_members(s)}; trained on "
        )
        by_training.setdefault(how, {})[f"{trained}{beyond}"] = None
    shapes = {f"{r['net']} {_shape(r['settings']['shape'])}": None for r in results}
    devices = ", ".join(dict.fromkeys(r["device"] for r in results if r.get("device")))
    seconds = sum(r.get("seconds") or 0.0 for r in results)
    members = sum(r["solved"]["of"] for r in results if r["solved"])
    ran = f"{members} members in {seconds:,.0f} s of training" + (f" on {devices}" if devices else "")
    thought = _mean_steps(results)
    trainings = [f"{how}{'; '.join(lengths)}." for how, lengths in by_training.items()]
    return [*trainings, f"Shapes: {'; '.join(shapes)}.", *thought, f"{ran}."]


def _mean_steps(results: Sequence[Result]) -> list[str]:
    """Of nets that choose their number of steps."""
    told = [(r, r["mean_steps"]) for r in results if r.get("mean_steps")]
    parts = [f"{r['net']} on {r['row']} {m['mean']:.1f} ({m['min']:.1f}–{m['max']:.1f})" for r, m in told]
    return [f"Steps a token takes, mean over members (least and most of one): {'; '.join(parts)}."] if parts else []


def _members(settings: Mapping[str, Any]) -> str:
    counts = [(settings["seeds"], "seed"), (len(settings["rates"]), "rate"), (len(settings["weight_decays"]), "decay")]
    factors = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if name != "decay" or count > 1]
    return f"{' × '.join(factors)} = {settings['members']} members for each net"


def _lengths(lengths: Sequence[int]) -> str:
    return f"length {lengths[0]}" if len(lengths) == 1 else f"{len(lengths)} from {min(lengths)} to {max(lengths)}"


def _shape(shape: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in shape.items() if value is not None)


def _shorter(results: Sequence[Result]) -> list[str]:
    """Ours, the paper's in brackets: what is so of all entries first, then what is so of some nets or experiments."""
    about: dict[str, list[Result]] = {}
    for r in results:
        for item in (r["shorter"] or "").split(", "):
            about.setdefault(item, []).append(r)
    about.pop("", None)
    common = [item for item, own in about.items() if len(own) == len(results)]
    nets = {r["net"] for r in results}
    others = []
    for item, own in about.items():
        if len(own) < len(results):
            which = "experiment" if {r["net"] for r in own} == nets else "net"
            others.append(f"{item}: {', '.join(dict.fromkeys(r[which] for r in own))}")
    return [text for text in (", ".join(common), "; ".join(others)) if text]


def _legend(results: Sequence[Result]) -> str:
    figures = [p for r in results for q in r["quantities"] for p in q["published"]]
    marks = dict.fromkeys(MARKS[p["origin"]] for p in figures)
    called = dict.fromkeys(f"{p['called']} beside our {r['net']}" for r, p in _called(results))
    return "; ".join(
        [
            "scores in per cent; chance: the best constant answer on lengths of training; best: the best member, which "
            "is the papers' statistic; ≥: members at or above, with Wilson's 95 % interval of the share; learnt: "
            "members that solve it on lengths of training; s: seconds of training",
            *(f"{mark} {_LEGEND[mark]}" for mark in marks if mark),
            *called,
        ]
    )


def _called(results: Sequence[Result]) -> list[tuple[Result, Mapping[str, Any]]]:
    found = [(r, p) for r in results for q in r["quantities"] for p in q["published"]]
    return [(r, p) for r, p in found if p["called"] and p["called"].lower() != r["net"]]


def _cell(result: Result, place: int) -> str:
    if len(result["quantities"]) <= place:
        return f"{_unmeasured(result, place)} → not measured"
    quantity, solved = result["quantities"][place], result["solved"]
    count = f" ({solved['count']}/{solved['of']})" if place == 0 else ""
    return f"{_published(quantity) or DASH} → {_percent(quantity['best'])}{count}"


def _unmeasured(result: Result, place: int) -> str:
    """What is published of an entry that was not measured, where its result says so."""
    figures = list(result.get("published", {}).values())
    return (_published({"published": figures[place]}) if place < len(figures) else "") or DASH


def _published(quantity: Mapping[str, Any]) -> str:
    return " / ".join(f"{_percent(p['value'])}{MARKS[p['origin']]}" for p in quantity["published"])


def _solved(solved: Mapping[str, Any]) -> str:
    low, high = solved["interval"]
    return f"{solved['count']}/{solved['of']} ({low:.2f}–{high:.2f})"


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"


def _failures_markdown(results: Sequence[Result]) -> str:
    lines = ["| setting | quantity | published | measured | seeds | s |", "|---|---|---|---|---|---|"]
    for r in results:
        if r["error"] is not None:
            lines.append(f"| {r['title']} | not run: {r['error']} | | | | |")
            continue
        for row in r["rows"]:
            measured = "never" if row["measured"] is None else number(row["measured"])
            theirs = published_figure(row) or DASH
            lines.append(
                f"| {r['setting']} | {row['quantity']} | {theirs} | {measured} | {row['seeds']} | {r['seconds']:.0f} |"
            )
    return "\n".join(lines) + "\n"


def _paragraphs(lines: Sequence[str]) -> list[list[str]]:
    """Lines of a table stay together; everything else is a paragraph of its own."""
    found: list[list[str]] = []
    for line in lines:
        if not line:
            continue
        if found and line[:1] in "|-" and found[-1][-1][:1] == line[:1]:
            found[-1].append(line)
        else:
            found.append([line])
    return found
