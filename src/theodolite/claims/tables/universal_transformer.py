"""Universal Transformers on algorithmic tasks: decimal strings of up to 40 symbols in training, of 400 in the test.

Both Transformers count positions from a random offset, as in the paper. Steps, batch and widths of the paper's
algorithmic tasks were not found; ours stand in every result. A column of our own shows the Universal Transformer
without halting, where every token takes all steps: what halting costs or buys is the difference of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.tables import universal_transformer_published as paper
from theodolite.claims.tables.contract import tables
from theodolite.claims.tables.experiment import Preset
from theodolite.claims.tables.published_score import Score, find
from theodolite.claims.tables.trained import Entry, TrainedTable, Training, falls_short, statement

TIED = "tied-transformer"  # the Universal Transformer without halting

TRAINING: dict[Preset, Training] = {
    "quick": Training(steps=1_200, batch=64, seeds=2, rates=(5e-3, 2e-3), rows=64),
    "full": Training(steps=5_000, batch=32, seeds=5, rates=(1e-3, 3e-4), rows=128, grows=True, precision="tf32"),
}
LONGEST: dict[Preset, int] = {"quick": 3, "full": paper.LONGEST}
FARTHEST: dict[Preset, int] = {"quick": 12, "full": paper.FARTHEST}


def _shapes(recurrent: int, depth: int, steps: int, width: int, heads: int, offsets: int) -> dict[str, dict[str, Any]]:
    """Positions start at one of `offsets` places: enough of them to cover the lengths of the test."""
    attending = {"width": width, "heads": heads, "positions": "random-offset", "offset_range": offsets}
    return {
        "lstm": {"width": recurrent},
        "transformer": {"depth": depth, **attending},
        "universal-transformer": {"depth": steps, **attending},
        TIED: {"depth": steps, **attending, "halting": False},
    }


SHAPES: dict[Preset, dict[str, dict[str, Any]]] = {
    "quick": _shapes(64, 2, 3, 32, 4, offsets=32),
    "full": _shapes(256, 4, 8, 128, 8, offsets=1000),
}
MARGIN = 0.05


def entries(preset: Preset) -> list[Entry]:
    return [
        Entry(
            experiment=task,
            section="algorithms",
            row=task,
            net="universal-transformer" if column == TIED else column,
            task=task,
            task_args={"longest": LONGEST[preset], **paper.TASK_ARGS[task]},
            shape=SHAPES[preset][column],
            unseen=(FARTHEST[preset],),
            column=column,
        )
        for task in paper.TASKS
        for column in (*paper.NETS, TIED)
    ]


def published(entry: Entry, quantity: str) -> tuple[Score, ...]:
    return find(paper.SCORES, entry.task, entry.name, quantity)


def shorter(entry: Entry, _training: Training, _members: int) -> str | None:
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
        f"{100 * MARGIN:.0f} points; fails if it is below one by more than that, though some member learnt the lengths "
        "of training; open otherwise"
    )
    statements = []
    for task in dict.fromkeys(r["task"] for r in results):
        found = {r["net"]: r for r in results if r["task"] == task and r["quantities"]}
        best = {net: r["quantities"][0]["best"] for net, r in found.items() if net in paper.NETS}
        own = best.pop("universal-transformer", None)
        others = {net: value for net, value in best.items() if value is not None}
        if own is None or len(others) < len(paper.NETS) - 1:
            continue
        ahead, learnt = own - max(others.values()), found["universal-transformer"]["learnt"]["count"]
        verdict = True if ahead > MARGIN else False if ahead < -MARGIN and learnt else None
        detail = (
            f"{own:.1%} against {', '.join(f'{value:.1%} ({net})' for net, value in others.items())}; "
            f"{learnt} of its members learnt the lengths of training"
        )
        text = f"on {task} the Universal Transformer gets more symbols right than the LSTM and the Transformer"
        statements.append(statement(text, paper.SOURCE, rule, verdict, detail))
    return statements


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

tables.add(
    "universal-transformer",
    TABLE.as_published(paper.TASKS, [*paper.NETS, TIED], statements, quick=("copy", "reverse")),
)
