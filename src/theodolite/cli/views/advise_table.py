"""Several configurations in one table, and the rules that each of them breaks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from theodolite.advice.result import Advice, said, short
from theodolite.advice.rules import RULES, Broken
from theodolite.cli.configurations import Refused
from theodolite.report.numbers import DASH
from theodolite.report.terminal.noted_rows import NotedRow, print_noted, widths

_HEADERS = ("", "params", "layers", "width", "heads/kv", "the fit", "train", "infer", "cache")
_VERDICTS = {"shallower": "deeper", "deeper": "shallower", "agrees": "agrees"}  # what it asks for


def print_table(console: Console, found: Sequence[Advice | Refused]) -> None:
    """A row for each; that of one that cannot be used has the sentence that says why."""
    rows = []
    for name, advice in zip(_names([one.name for one in found]), found, strict=True):
        if isinstance(advice, Refused):
            told = Text.assemble(("error: ", "bold red"), str(advice.error))
            rows.append(NotedRow((name, *[DASH] * (len(_HEADERS) - 1)), (told,)))
            continue
        shape, cost = advice.judged.shape, advice.judged.cost
        regime = advice.regime
        cells = (
            name,
            said(shape),
            shape.layers if shape.depth else DASH,
            f"{shape.width or DASH}",
            f"{shape.heads}/{shape.key_value_heads}" if shape.heads else DASH,
            DASH if regime is None else _VERDICTS[regime.against_fit],
            _flops(cost.training_flops),
            _flops(cost.inference_flops),
            _flops(cost.cache_bytes),
        )
        rows.append(NotedRow(cells))
    print_noted(console, _HEADERS, rows, widths(_HEADERS, rows))
    context = sorted({one.judged.cost.context for one in found if not isinstance(one, Refused)})
    if not context:
        return
    at = " or ".join(map(str, context))
    trained = any(not isinstance(one, Refused) and one.from_training for one in found)
    adviser = "The published fit, at small sizes our own trainings, ask" if trained else "The published fit asks"
    console.print(Text(f"{adviser} for that. FLOPs and bytes a token, at {at} tokens of context.", style="dim"))


def print_rules(console: Console, name: str, broken: Sequence[Broken], ignored: frozenset[str]) -> None:
    """A line for each, for a log of a CI."""
    for one in broken:
        console.print(Text.assemble(f"{name}: ", (one.rule, "bold yellow"), f": {one.why}"), soft_wrap=True)
    if not broken:
        left = f", {len(ignored)} ignored" if ignored else ""
        console.print(Text(f"{name}: none of {len(RULES) - len(ignored)} rules is broken{left}."), soft_wrap=True)


def print_refused(console: Console, refused: Refused) -> None:
    console.print(Text.assemble(f"{refused.name}: ", ("error", "bold red"), f": {refused.error}"), soft_wrap=True)


def _names(paths: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    parts = [Path(path).parts or (path,) for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        ends = ["/".join(one[-length:]) for one in parts]
        if len(set(ends)) == len(set(paths)):
            return ends
    return list(paths)


def _flops(count: float | None) -> str:
    return DASH if not count else short(count).replace("B", "G")
