"""What `discover` found, in a terminal and as one page that opens offline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from theodolite.cli.views.effects import effect_figures, importance_rows
from theodolite.graphs import CompositionalGraph
from theodolite.report.numbers import DASH, exact_value, format_value
from theodolite.report.page.template import environment, verbatim
from theodolite.report.svg.graph import draw_graph, sketch_graph
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths
from theodolite.structure.result import Discovery
from theodolite.version import __version__

WEAK = 0.9  # an edge below is shown among the doubtful ones in a terminal
_PAIRS = 20  # shown; the file discovery.json has all
_SMALLEST = 1e-16  # an error of exactly nothing has no place on a logarithmic axis
_TICKS = 5


@dataclass(frozen=True)
class ShownError:
    """One row of the chart of errors: places on the axis in per cent."""

    name: str
    what: str
    error: float
    interval: tuple[float, float] | None
    at: float
    span: tuple[float, float] | None

    @property
    def text(self) -> str:
        return short(self.error)

    @property
    def range_text(self) -> str:
        return f"{short(self.interval[0])} to {short(self.interval[1])}" if self.interval else DASH


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


def verdict(found: Discovery) -> tuple[str, str]:
    """The word of the decision and the sentence after it."""
    if found.abstained:
        return "abstained", _sentence(found.reason)
    return "graph found", f"{_sentence(describe(found.graph) + _gain(found))} {_sentence(found.reason)}"


def describe(graph: CompositionalGraph) -> str:
    """A graph in a few words."""
    count, most = len(graph.nodes), max(graph.fan_ins)
    inputs = f"{most} inputs" if most > 1 else "1 input"
    if count == 1:
        terms = f"{most} functions of one variable each" if most > 1 else "1 function of one variable"
        return f"one constituent function of {inputs}" if graph.is_dense else f"a {graph.output.kind} of {terms}"
    shared = "" if graph.is_tree else ", some shared"
    return f"{count} constituent functions of at most {inputs} each{shared}, in {graph.depth} levels"


def print_discovery(console: Console, found: Discovery) -> None:
    """The decision first, then the graph, what it is worth, and what is doubtful."""
    word, sentence = verdict(found)
    console.print(Text.assemble((f"{word}: ", "bold yellow" if found.abstained else "bold green"), sentence))
    console.print()
    console.print(Text(sketch_graph(found.graph)), soft_wrap=True)
    rows = [NotedRow((one.name, one.text, one.range_text), (), ("bold",)) for one in errors(found)]
    if rows:
        console.print()
        headers = ("error on test rows", "error", "95 % interval")
        print_noted(console, headers, rows, widths(headers, rows))
        console.print(Text("mean squared error over the variance of the target: 1 is what a constant reaches", "dim"))
    for label, edges in _doubtful(found):
        console.print(Text.assemble((f"{label}: ", "bold"), edges))
    for note in found.details.get("notes", ()):
        console.print(Text.assemble(("Note: ", "bold"), _sentence(note)))


def errors(found: Discovery) -> list[ShownError]:
    """The errors that are known, on one logarithmic axis."""
    other = found.model is not None and found.model.graph != found.graph
    dense = (other or found.abstained) and (found.model is None or found.model.graph.is_dense)
    model = "network of a graph that is not claimed" if found.abstained or other else "network of the graph"
    kind = found.returned.kind if found.returned is not None else "dense" if dense else "graph"
    named = {
        "returned": ("weighted mean", "of several models", found.test_error),
        "graph": (model, "has the shape that is drawn", _own_error(found)),
        "dense": ("dense network", "reads every variable at once", found.dense_test_error),
        "boosting": ("gradient boosting", "trees, scikit-learn's", found.boosting_test_error),
        "additive": ("additive model", "a function of each variable", found.details.get("additive_test_error")),
        "process": ("Gaussian process", "smooth in every variable", found.details.get("process_test_error")),
        "ebm": ("EBM", "another additive model, interpret's", found.details.get("ebm_test_error")),
    }
    if kind == "constant":
        named["returned"] = ("mean of the target", "nothing predicts better", found.test_error)
    elif kind != "mean":
        del named["returned"]
        named[kind] = (*named[kind][:2], found.test_error)
    if dense and kind != "graph":
        named.pop("graph")
    predicts = kind if kind in named else "returned"
    if predicts in named:
        name, what, value = named[predicts]
        named[predicts] = (name, f"{what}; this one predicts", value)
    known = {key: (name, what, value) for key, (name, what, value) in named.items() if value is not None}
    intervals = found.details.get("error_intervals", {})
    spans = {key: tuple(intervals[key]) for key in known if intervals.get(key)}
    values = [value for _, _, value in known.values()] + [end for span in spans.values() for end in span]
    place = _axis(values)
    return [
        ShownError(name, what, value, span, place(value), (place(span[0]), place(span[1])) if span else None)
        for key, (name, what, value) in known.items()
        for span in [spans.get(key)]
    ]


def ticks(found: Discovery) -> list[Tick]:
    """Powers of ten on the axis of the errors, a few of them."""
    shown = errors(found)
    values = [end for one in shown for end in (one.error, *(one.interval or ()))]
    if not values:
        return []
    place, (low, high) = _axis(values), _ends(values)
    step = max(1, math.ceil((high - low + 1) / _TICKS))
    powers = [power for power in range(math.ceil(low), math.floor(high) + 1) if power % step == 0]
    return [Tick(place(10.0**power), format_value(10.0**power)) for power in powers]


def discovery_page(found: Discovery, command: str = "", provenance: Mapping[str, Any] | None = None) -> str:
    """The page as one text: no script, and nothing is fetched."""
    word, sentence = verdict(found)
    templates = environment("theodolite.cli.views")
    page = templates.get_template("discovery.html.j2").render(
        title=f"What {found.target} is composed of",
        subtitle=_subtitle(found),
        word=word,
        sentence=sentence,
        found=found,
        effects=effect_figures(found),
        importance=importance_rows(found),
        stability=found.explanation.stability if found.explanation is not None else {},
        resamples=found.explanation.resamples if found.explanation is not None else 0,
        unused=[name for name in found.graph.variables if name not in found.graph.used],
        interval=found.details.get("prediction_interval"),
        drawing=Markup(draw_graph(found.graph, found.confidence or None)),
        errors=errors(found),
        ticks=ticks(found),
        edges=_edges(found),
        enough=lambda a, b: _enough(found, a, b),
        pairs=sorted(found.pairs.items(), key=lambda item: -item[1])[:_PAIRS],
        all_pairs=len(found.pairs),
        candidates=_candidates(found),
        notes=[_sentence(note) for note in found.details.get("notes", ())],
        settings=_settings(found.details, provenance or {}),
        command=command,
        version=__version__,
        style=verbatim(templates, "colours.css", "page.css", "verdicts.css", "discovery.css"),
        show=format_value,
        short=short,
    )
    return page.lstrip() + "\n"


def short(value: float | None) -> str:
    """Two significant digits: an error measured on a few hundred rows has no more."""
    return format_value(None if value is None else float(f"{value:.2g}"))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _gain(found: Discovery) -> str:
    own = _own_error(found)
    if not own or not found.dense_test_error or found.dense_test_error <= own:
        return ""
    times = found.dense_test_error / own
    if times < 1.05:
        return ", whose network has the error of a dense one on test rows"
    ratio = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    return f", whose network has an error {ratio} times lower than a dense one"


def _own_error(found: Discovery) -> float | None:
    """Of the network alone, whatever predicts."""
    return found.details.get("network_test_error", found.test_error)


def _subtitle(found: Discovery) -> str:
    count, used = len(found.graph.variables), len(found.graph.used)
    text = f"{found.mode} · {count} variables" + (f", {used} of them used" if used < count else "")
    rows = found.details.get("rows")
    return f"{text} · {rows['train']:,} rows to learn from, {rows['test']:,} to test on" if rows else text


def _doubtful(found: Discovery) -> Iterator[tuple[str, str]]:
    """Edges of little confidence, and what is doubted: that an input matters, or that it acts together with the others,
    whatever it does by itself."""
    weak = [] if found.abstained else [edge for edge in _edges(found) if edge[2] is not None and edge[2] < WEAK]
    together = {node.name for node in found.graph.nodes if node.kind == "general" and len(node.inputs) > 1}
    for label, own in (
        ("Doubtful that it matters", [edge for edge in weak if edge[1] not in together]),
        ("Doubtful that it acts together with the others", [edge for edge in weak if edge[1] in together]),
    ):
        if own:
            shown = ", ".join(f"{a} → {b} {c:.0%}{_enough(found, a, b)}" for a, b, c in own[:8])
            yield label, shown + ", …" * (len(own) > 8)


def _enough(found: Discovery, a: str, b: str) -> str:
    rows = found.rows_enough((a, b))
    return "" if rows is None else f" (sure with about {float(f'{rows:.2g}'):,.0f} rows)"


def _edges(found: Discovery) -> list[tuple[str, str, float | None]]:
    """The doubtful ones first."""
    listed = [(a, b, found.confidence.get((a, b))) for a, b in found.graph.edges]
    return sorted(listed, key=lambda edge: 2.0 if edge[2] is None else edge[2])


def _candidates(found: Discovery) -> list[dict[str, Any]]:
    """The dense network first; what was left out after a quick look says so."""
    details = found.details
    if "candidates" not in details:
        return []
    rows = [
        {
            "what": f"dense, {details['dense_kind']}",
            "parameters": details["dense_parameters"],
            "error": short(details["dense_held_out_error"]),
            "ratio": "1",
            "standing": "chosen" if found.abstained else "",
        }
    ]
    for one in details["candidates"]:
        graph = CompositionalGraph.from_json(one["graph"])
        low, high = one["interval"]
        chosen = not found.abstained and graph == found.graph
        standing = "chosen" if chosen else "preferred to dense" if one["preferred"] else "not preferred"
        rows.append(
            {
                "what": describe(graph),
                "parameters": one["parameters"],
                "error": short(one["held_out_error"]),
                "ratio": f"{short(one['ratio_to_dense'])} ({short(low)} to {short(high)})",
                "standing": "left out after a quick fit" if one["screened"] else standing,
            }
        )
    return rows


def _settings(details: Mapping[str, Any], provenance: Mapping[str, Any]) -> dict[str, str]:
    hidden = {
        "prediction_interval",
        "network_test_error",
        "additive_test_error",
        "process_test_error",
        "ebm_test_error",
        "held_out_errors",
        "notes",
        "candidates",
        "error_intervals",
        "dense_held_out_error",
        "dense_kind",
        "searched_graph",
    }
    shown = {**{key: value for key, value in details.items() if key not in hidden and value is not None}, **provenance}
    return {key.replace("_", " "): exact_value(value) for key, value in shown.items()}


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Logarithms to base 10 of the axis' ends, with a margin."""
    logs = [math.log10(max(value, _SMALLEST)) for value in values]
    margin = 0.08 * (max(logs) - min(logs)) + 0.15
    return min(logs) - margin, max(logs) + margin


def _axis(values: Sequence[float]) -> Any:
    if not values:
        return lambda value: 0.0
    low, high = _ends(values)
    return lambda value: round(100 * (math.log10(max(value, _SMALLEST)) - low) / (high - low), 2)
