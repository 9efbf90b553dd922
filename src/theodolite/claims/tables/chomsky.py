"""Neural networks and the Chomsky hierarchy: 15 tasks, trained on short inputs and scored on far longer ones.

Followed here: Adam with gradients clipped to norm 1, one length a step, uniform over those of training, fresh data,
widths of the paper, mean accuracy per token over unseen lengths (those and batch 128 stand in the authors' code). The
three learning rates are ours: the code has 1e-3, and the other two were not found. The paper takes the best of
several ways to tell positions for its Transformer; ours has one, rotary. Its plain RNN
has ReLU units, and so has ours here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.claims.tables import chomsky_published as paper
from theodolite.claims.tables.contract import tables
from theodolite.claims.tables.experiment import Preset
from theodolite.claims.tables.length_generalisation_published import SOLVED
from theodolite.claims.tables.published_score import Score, find
from theodolite.claims.tables.sides import LEVEL, Tally, sides
from theodolite.claims.tables.trained import Entry, TrainedTable, Training, falls_short, spread_lengths, statement

EXTRA = ("delta-net", "state-space")  # not in the paper; later papers ran relatives of them on the regular tasks
RATES = (3e-3, 1e-3, 3e-4)

TRAINING: dict[Preset, Training] = {
    "quick": Training(steps=1_000, batch=32, seeds=2, rates=(3e-3, 1e-3), rows=16),
    "full": Training(steps=5_000, batch=32, seeds=paper.SEEDS, rates=RATES, rows=32, grows=True, precision="tf32"),
}
LONGEST: dict[Preset, int] = {"quick": 10, "full": paper.LONGEST}
UNSEEN: dict[Preset, tuple[int, ...]] = {
    "quick": spread_lengths(11, 40, 8),
    "full": spread_lengths(paper.LONGEST + 1, paper.FARTHEST, 16),
}


def _shapes(recurrent: int, depth: int, attending: int, heads: int) -> dict[str, dict[str, Any]]:
    return {
        "rnn": {"width": recurrent, "activation": "relu"},
        "stack-rnn": {"width": recurrent, "cell": 8},
        "tape-rnn": {"width": recurrent, "cell": 8, "write_layers": 2},
        "transformer": {"depth": depth, "width": attending, "heads": heads, "causal": False},
        "lstm": {"width": recurrent},
        **{net: {"width": attending} for net in EXTRA},
    }


SHAPES: dict[Preset, dict[str, dict[str, Any]]] = {"quick": _shapes(32, 2, 32, 4), "full": _shapes(256, 5, 64, 8)}
_LEVEL = {task: level for level, names in paper.LEVELS.items() for task in names}


def entries(preset: Preset) -> list[Entry]:
    """Every task × net of the paper, and the regular tasks also with what later papers ran."""
    return [
        Entry(
            experiment=task,
            section=level,
            row=task,
            net=net,
            task=task,
            task_args={"longest": LONGEST[preset], **paper.TASK_ARGS.get(task, {})},
            shape=SHAPES[preset][net],
            unseen=UNSEEN[preset],
        )
        for task, level in _LEVEL.items()
        for net in (*paper.NETS, *(EXTRA if level == "regular" else ()))
    ]


def published(entry: Entry, quantity: str) -> tuple[Score, ...]:
    return find(paper.SCORES, entry.task, entry.net, quantity)


def shorter(entry: Entry, training: Training, members: int) -> str | None:
    full = SHAPES["full"][entry.net]
    return falls_short(
        [
            ("steps", training.steps, paper.STEPS),
            ("batch", training.batch, paper.BATCH),
            ("members", members, paper.SEEDS * paper.RATES),
            ("longest trained", entry.task_args["longest"], paper.LONGEST),
            ("longest tested", max(entry.unseen), paper.FARTHEST),
            ("width", entry.shape["width"], full["width"]),
        ]
    )


def statements(results: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """How many entries stand on the published side of the bar."""
    tallies: dict[str, Tally] = {}
    for r in results:
        figures = [p for q in r["quantities"][:1] for p in q["published"] if p["source"] == paper.SOURCE]
        if figures and r["solved"]:
            name = f"{r['net']} on {r['task']}"
            tallies[name] = Tally(
                figures[0]["value"] >= SOLVED, r["solved"]["count"], r["learnt"]["count"], r["solved"]["of"]
            )
    if not tallies:
        return []
    found = sides(tallies, paper.SEEDS * paper.RATES, LEVEL)
    same, other = (sum(side is verdict for side in found.values()) for verdict in (True, False))
    wrong = [name for name, side in found.items() if side is False]
    both = len({tally.published for tally in tallies.values()}) > 1
    return [
        statement(
            "a network's place in the hierarchy tells on which tasks it is right beyond the lengths of training",
            paper.SOURCE,
            f"a published success is seen again if a member scores {SOLVED:.0%}; a published failure is contradicted "
            f"if our share that does is above 0 of {paper.SEEDS * paper.RATES} (Fisher, one-sided), seen again if none "
            f"does and so many learnt the lengths of training that half of them doing so is excluded; "
            f"{100 * LEVEL:g} % over all of these tests (Holm); open otherwise; holds if none is contradicted and none "
            "open, successes and failures being among them, fails if one is contradicted",
            False if other else True if both and same == len(found) else None,
            f"{same} of {len(found)} seen again, {other} contradicted{': ' if wrong else ''}{', '.join(wrong)}, "
            f"{len(found) - same - other} open",
        )
    ]


TABLE = TrainedTable(
    title="Neural networks and the Chomsky hierarchy",
    source=paper.SOURCE,
    quantities={paper.SCORE: "unseen"},
    bar=SOLVED,
    training=TRAINING,
    entries=entries,
    published=published,
    shorter=shorter,
    sides=True,
)

tables.add(
    "chomsky",
    TABLE.as_published(
        list(_LEVEL),
        [*paper.NETS, *EXTRA],
        statements,
        quick=("parity-check", "reverse", "duplicate"),  # one of each level
    ),
)
