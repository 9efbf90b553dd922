"""A realistic survey to draw."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from theodolite.report import Column, Figure, Panel, Series, Summary, Table
from theodolite.report.page.page import RenderedSection, render_page

from .survey_example import survey_page

NETS = ["self_attention", "rnn", "lstm", "mamba", "convolution", "mlp", "deq", "gated_attention", "linear_attention"]
NETS += ["recurrent_gemma", "my_net.py:MyNet", "universal_transformer"]


@pytest.fixture(scope="session")
def rank_table() -> Table:
    columns = [
        Column("net", "network", "Which architecture was measured.", numeric=False),
        Column("depth", "depth", "How many layers the network has."),
        Column("width", "width", "How many features each token carries."),
        Column("heads", "heads", "How many attention heads each layer has; a dash where it has none."),
        Column("params", "parameters", "How many numbers are trained."),
        Column("rank", "separation rank", "How strongly the network ties two groups of inputs together."),
        Column("bound", "predicted bound", "The most that theory allows for this shape."),
        Column("ratio", "measured / bound", "One means that the bound is reached."),
        Column("exact", "exact", "Whether the rank is proven rather than estimated.", numeric=False),
        Column("seconds", "seconds"),
    ]
    rows = [
        {
            "net": net,
            "depth": 2 + i % 4,
            "width": 8 * (1 + i % 3),
            "heads": None if i % 3 == 1 else 1 + i % 4,
            "params": 1234 * 7 ** (i % 5),
            "rank": (37 * i * i) % 997 + 2,
            "bound": 10 ** (3 + 4 * i),
            "ratio": ((37 * i * i) % 997 + 2) / 10 ** (3 + 4 * i) if i else 1.0,
            "exact": i % 2 == 0,
            "seconds": 0.034567 * 3**i,
        }
        for i, net in enumerate(NETS)
    ]
    return Table(
        "Separation rank beside its bound",
        columns,
        rows,
        caption="Balanced partition of 8 tokens, prime near 2^23, 64 surplus points.",
        command="theodolite rank --net self_attention,rnn,lstm --depth 2,3,4,5 --width 8,16,24 --seed 0 --out results",
    )


@pytest.fixture(scope="session")
def learning_table() -> Table:
    columns = [
        Column("task", "task", "What the network was asked to learn.", numeric=False),
        *(Column(f"seed{k}", f"accuracy, seed {k}", f"Share of right answers in run {k}.") for k in range(6)),
        Column("median", "median accuracy", "The middle of the runs."),
        Column("chance", "chance", "What guessing would reach."),
        Column("steps", "steps to solve", "Updates until the task counts as solved; a dash where it never was."),
    ]
    tasks = ["parity", "copy", "reverse", "majority", "associative_recall", "addition", "dyck", "sorting", "modular"]
    rows = [
        {
            "task": task,
            **{f"seed{k}": 0.5 + 0.5 * ((i * 7 + k * 3) % 11) / 11 for k in range(6)},
            "median": 0.75,
            "chance": 1 / (2 + i),
            "steps": None if i % 4 == 3 else 250 * (i + 1) ** 2,
        }
        for i, task in enumerate([*tasks, "mux", "permutation", "counting"])
    ]
    return Table("Accuracy after training", columns, rows, command="theodolite learn --net self_attention --seeds 6")


@pytest.fixture(scope="session")
def rank_figure() -> Figure:
    depths = [1, 2, 3, 4, 5, 6]

    def measured(scale: float) -> list[int]:
        return [min(1000, max(2, round(2 * scale**d))) for d in depths]

    panels = [
        Panel(
            f"width {width}",
            [
                Series(
                    "self-attention, measured",
                    depths,
                    (mid := measured(1.5 + width / 32)),
                    low=[0.8 * m for m in mid],
                    high=[1.2 * m for m in mid],
                    group="attention",
                ),
                Series(
                    "self-attention, predicted",
                    depths,
                    [1.1 * 2 * (1.5 + width / 32) ** d for d in depths],
                    dashed=True,
                    group="attention",
                ),
                Series("recurrent, measured", depths, measured(1.25 + width / 64), group="recurrent"),
                Series(
                    "recurrent, predicted",
                    depths,
                    [1.08 * 2 * (1.25 + width / 64) ** d for d in depths],
                    dashed=True,
                    group="recurrent",
                    hover=[f"row {d} of the table" for d in depths],
                ),
            ],
        )
        for width in (8, 16, 32)
    ]
    return Figure(
        "Separation rank grows with depth",
        "Separation rank against depth for three widths; attention grows faster than the recurrent network, "
        "and both follow their predictions.",
        "depth (layers)",
        "separation rank",
        panels,
        log_y=True,
        caption="Bars span five independent draws. The dashed lines are the values theory predicts.",
        command="theodolite rank --net self_attention,rnn --depth 1:6 --width 8,16,32",
    )


@pytest.fixture(scope="session")
def sections(rank_table: Table, learning_table: Table, rank_figure: Figure) -> list[RenderedSection]:
    return [
        RenderedSection(
            "rank",
            "What it can express",
            Summary(
                "At depth 4 the network reaches rank 625 of at most 1,000; the deeper it is, the closer to the bound.",
                [rank_table],
                [rank_figure],
                ["Ranks are lower bounds that hold for almost all weights.", "Two repeats with fresh primes agreed."],
            ),
        ),
        RenderedSection(
            "learning",
            "What it learns",
            Summary("Nine of twelve tasks were solved within 10,000 steps; parity was not.", [learning_table]),
        ),
    ]


@pytest.fixture(scope="session")
def example_page(sections: list[RenderedSection]) -> str:
    return render_page(
        "Survey of my_net.py:MyNet",
        "A two-layer network with gated recurrence, measured at preset quick.",
        sections,
        {"version": "0.1.0", "seed": 6917529027641081855, "device": "cpu", "date": "2026-01-01T00:00:00+00:00"},
        ["Fixed points: the network has no implicit layer.", "Symmetry: the network takes sequences."],
    )


@pytest.fixture(scope="session")
def survey() -> str:
    return survey_page()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures to look at: in the folder that THEODOLITE_SCREENSHOTS names, else where pytest keeps its last runs."""
    named = os.environ.get("THEODOLITE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
