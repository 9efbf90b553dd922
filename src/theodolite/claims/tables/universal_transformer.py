"""Universal Transformers on algorithmic tasks: decimal strings of up to 40 symbols in training, of 400 in the test.

Both Transformers count positions from a random offset, as in the paper. Steps, batch and widths of the paper's
algorithmic tasks were not found; ours stand in every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.tables.contract import tables
from theodolite.claims.tables.trained import Entry, TrainedTable, Training, falls_short, statement
from theodolite.instruments.failures.contract import Preset
from theodolite.theory import universal_transformer as paper
from theodolite.theory.scores import Score, find

TRAINING: dict[Preset, Training] = {
    "quick": Training(steps=1_000, batch=32, seeds=2, rates=(3e-3, 1e-3), rows=64),
    "full": Training(steps=10_000, batch=64, seeds=5, rates=(1e-3, 3e-4), rows=128),
}
LONGEST: dict[Preset, int] = {"quick": 5, "full": paper.LONGEST}
FARTHEST: dict[Preset, int] = {"quick": 20, "full": paper.FARTHEST}
SHAPES: dict[Preset, dict[str, dict[str, Any]]] = {
    "quick": {
        "lstm": {"width": 32},
        "transformer": {"depth": 2, "width": 32, "heads": 4, "positions": "random-offset"},
        "universal-transformer": {"depth": 4, "width": 32, "heads": 4, "positions": "random-offset"},
    },
    "full": {
        "lstm": {"width": 256},
        "transformer": {"depth": 4, "width": 128, "heads": 8, "positions": "random-offset"},
        "universal-transformer": {"depth": 8, "width": 128, "heads": 8, "positions": "random-offset"},
    },
}
TASK_ARGS: dict[str, dict[str, Any]] = {"copy": {"symbols": 10}, "reverse": {"symbols": 10}, "decimal-addition": {}}
MARGIN = 0.05


def entries(preset: Preset) -> list[Entry]:
    return [
        Entry(
            experiment=task,
            section="algorithms",
            row=task,
            net=net,
            task=task,
            task_args={"longest": LONGEST[preset], **TASK_ARGS[task]},
            shape=SHAPES[preset][net],
            unseen=(FARTHEST[preset],),
        )
        for task in paper.TASKS
        for net in paper.NETS
    ]


def published(entry: Entry, quantity: str) -> tuple[Score, ...]:
    return find(paper.SCORES, entry.task, entry.net, quantity)


def shorter(entry: Entry, training: Training, members: int) -> str | None:
    """Of what is known of the paper's: its steps, batch and widths are not."""
    return falls_short(
        [
            ("longest trained", entry.task_args["longest"], paper.LONGEST),
            ("length tested", max(entry.unseen), paper.FARTHEST),
        ]
    )


def statements(results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The order of the published table, task by task."""
    rule = (
        f"best member's {paper.SYMBOLS}: holds if the Universal Transformer's is above each other's by more than "
        f"{MARGIN}, fails if it is below one by more than that, open otherwise"
    )
    told = []
    for task in dict.fromkeys(r["task"] for r in results):
        best = {r["net"]: r["quantities"][0]["best"] for r in results if r["task"] == task and r["quantities"]}
        own = best.pop("universal-transformer", None)
        others = {net: value for net, value in best.items() if value is not None}
        if own is None or len(others) < len(paper.NETS) - 1:
            continue
        ahead = own - max(others.values())
        verdict = True if ahead > MARGIN else False if ahead < -MARGIN else None
        detail = f"{own:.2f} against {', '.join(f'{value:.2f} ({net})' for net, value in others.items())}"
        text = f"on {task} the Universal Transformer gets more symbols right than the LSTM and the Transformer"
        told.append(statement(text, paper.SOURCE, rule, verdict, detail))
    return told


TABLE = TrainedTable(
    title="Universal Transformers on algorithmic tasks",
    source=paper.SOURCE,
    quantities={paper.SYMBOLS: "unseen", paper.STRINGS: "unseen_exact"},
    bar=0.9,
    training=TRAINING,
    entries=entries,
    published=published,
    shorter=shorter,
)

tables.add("universal-transformer", TABLE.as_published(paper.TASKS, paper.NETS, statements))
