"""A survey of realistic size to draw: five nets, eight questions, five sections, forty rows and a failed instrument."""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.report import Answer, Band, Column, Figure, Line, Panel, Series, Standing, Summary, Table
from theodolite.report.page.page import RenderedSection, render_page

MINE = "my_experiments/very_long_layer_name.py:MyGatedThing"
NETS = ("mlp", "convolution", "lstm", "transformer", MINE)
TASKS = ("parity", "copy", "reverse", "majority", "associative-recall", "addition", "dyck-2", "modular-arithmetic")
COMMAND = f"theodolite survey {' '.join(NETS)} --preset quick --out survey"
SENTENCES = ("The lstm learns most of it.", "Yours (MyGatedThing) alone has it.", "Training takes 3 µs a token.")
REASON = "the net returned 32 outputs for one token, where 2 were asked for"
_HEADER: dict[str, Standing] = {"y": "yes", "n": "no", "p": "partly", "u": "unknown", "f": "failed"}


def wilson(k: int, n: int) -> tuple[float, float]:
    z, p = 1.96, k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def answers(
    question: str, code: str, texts: Sequence[str], theory: Sequence[str], agree: str, ability: str = ""
) -> list[Answer]:
    """One letter per net in `code` and `agree` (+ agrees, - differs, . silent); a blank net is not asked."""
    marks = {"+": True, "-": False, ".": None}
    return [
        Answer(net, question, _HEADER[c], text, says, marks[a], ability)
        for net, c, text, says, a in zip(NETS, code, texts, theory, agree, strict=True)
        if c != " "
    ]


def rank_section() -> RenderedSection:
    depths = [1, 2, 3, 4]
    panels = [
        Panel(
            f"{net.rpartition(':')[2]}, {partition}",
            [
                s
                for width in (2, 4, 8, 12, 16)
                for s in (
                    Series(
                        f"width {width}",
                        depths,
                        [min(4000, round((1 + i / 3) * width**d / 2) + 1) for d in depths],
                        group=f"w{width}",
                        hover=[f"exact, depth {d}" for d in depths],
                    ),
                    Series(
                        f"width {width}, predicted",
                        depths,
                        [min(4000, (1 + i / 3) * width**d / 1.8 + 1) for d in depths],
                        dashed=True,
                        group=f"w{width}",
                    ),
                )
            ],
        )
        for i, net in enumerate(NETS)
        for partition in ("left-right", "interleaved")
    ]
    figure = Figure(
        "Separation rank over depth",
        "Separation rank against depth, a panel per network and partition, a line per width.",
        "depth (layers)",
        "separation rank",
        panels,
        log_y=True,
        caption="Solid: measured. Dashed: predicted.",
        command="theodolite rank transformer --depth 4 --width 16",
        lines=[Line(4000, "most that 4,000 points can show")],
    )
    columns = [
        Column("net", "network", "Which architecture was measured.", numeric=False),
        Column("depth", "depth"),
        Column("rank", "separation rank", "How strongly the network ties two groups of inputs together."),
        Column("predicted", "predicted", "What theory says for this shape."),
        Column("agrees", "agreement", "Whether the measured rank is the predicted one.", kind="agreement"),
    ]
    rows = [
        {
            "net": net,
            "depth": depth,
            "rank": 3**depth + 2 * i,
            "predicted": None if i == 4 else 3**depth + (2 * i if (i, depth) != (2, 5) else 7),
            "agrees": None if i == 4 else (i, depth) != (2, 5),
        }
        for i, net in enumerate(NETS)
        for depth in range(1, 9)
    ]
    table = Table("Ranks beside their predictions", columns, rows, command="theodolite rank transformer --depth 8")
    question = answers(
        "Does its rank grow faster than its width with depth?",
        "nnyyu",
        ["rank 16 at depth 4", "rank 64 at depth 4", "rank 81 at depth 4", "rank ≥ 3,281 at depth 4", "rank 40 ± 12"],
        ["at most 16", "at most 64", "at least 3^L = 81", "3^L up to log₃ d", ""],
        "+++-.",
        "grow its rank with depth",
    )
    question += answers(
        "Can it tie interleaved tokens as strongly as halves?",
        "yyyyp",
        ["16 and 16", "64 and 4", "81 and 81", "3,281 and 3,281", "40 and 31, intervals overlap"],
        ["equal", "equal", "equal", "equal", ""],
        "+-++.",
        "tie interleaved tokens",
    )
    head = (
        "Attention reaches rank 3,281 at depth 4; the recurrent net follows 3^L, and the multilayer perceptron its cap."
    )
    return RenderedSection("separation-rank", "Separation rank", Summary(head, [table], [figure], (), question))


def learning_section() -> RenderedSection:
    lengths = [5, 10, 20, 40, 60, 80, 120, 200]
    solved = {net: [(3 * i + 5 * j) % 9 for j in range(len(TASKS))] for i, net in enumerate(NETS)}
    dots = Figure(
        "Share of seeds that solve each task",
        "Share of eight seeds that solve each of eight tasks, with Wilson's interval, for five networks.",
        "task",
        "share of seeds that solve it",
        [
            Panel(
                "",
                [
                    Series(
                        net,
                        TASKS,
                        [k / 8 for k in solved[net]],
                        low=[wilson(k, 8)[0] for k in solved[net]],
                        high=[wilson(k, 8)[1] for k in solved[net]],
                    )
                    for net in NETS
                ],
            )
        ],
        caption="Bars: Wilson's 95 % interval for eight seeds.",
        kind="dots",
    )
    curves = Figure(
        "Accuracy over length",
        "Accuracy against length for four tasks; the trained lengths are shaded.",
        "length (tokens)",
        "accuracy",
        [
            Panel(
                task,
                [
                    Series(
                        net,
                        lengths,
                        (mid := [0.5 + 0.5 / (1 + (n / (30 + 25 * i + 10 * j)) ** 3) for n in lengths]),
                        low=[m - 0.02 for m in mid],
                        high=[min(1, m + 0.02) for m in mid],
                    )
                    for i, net in enumerate(NETS)
                ],
                lines=[Line(0.5 + 0.02 * j, "chance")],
            )
            for j, task in enumerate(TASKS[:4])
        ],
        log_x=True,
        bands=[Band(1, 40, "trained lengths")],
        command="theodolite learn --net transformer --task parity --length 40",
    )
    texts = [["8 of 8 seeds", "6 of 8 seeds [41, 93 %]", "8 of 8 seeds", "0 of 8 seeds [0, 32 %]", "3 of 8 seeds"]]
    found = answers("Can it learn parity?", "nnynp", texts[0], ["no", "no", "yes", "no", ""], "+++-.")
    found += answers("Can it learn copying?", "npyyy", texts[0], ["no", "", "", "yes", ""], "+..+.")
    found += answers(
        "Can it learn associative recall?", " nyyy", texts[0], ["", "no: its window is 5", "", "yes", ""], ".+.+."
    )
    found += answers(
        "Does it keep parity at five times the length?",
        " nynu",
        texts[0],
        ["", "", "yes", "no", ""],
        "..++.",
        "keep parity at length 200",
    )
    head = "The LSTM solves all eight tasks; the Transformer solves seven and not parity."
    return RenderedSection("learnability", "Learnability", Summary(head, (), [dots, curves], (), found))


def small_sections() -> list[RenderedSection]:
    symmetry = answers(
        "Is it unmoved by a permutation of its tokens?",
        "nnnyf",
        ["error 0.93", "error 0.71 ± 0.02", "error 0.88", "error 2e-7", REASON],
        ["no", "no", "no", "yes, without positions", ""],
        "++++.",
        "ignore the order of tokens",
    )
    sensitivity = answers(
        "Can it feel one symbol at length 500?",
        "yypn ",
        ["flat", "flat to 40", "falls as 1/n", "falls as 1/n", ""],
        ["", "", "", "falls as 1/n", ""],
        "...+.",
        "feel one symbol of 500",
    )
    sizes = Table(
        "Parameters, state and cost",
        [
            Column("net", "network", numeric=False),
            Column("parameters", "parameters"),
            Column("state", "state (numbers)", "What the net carries from token to token."),
            Column("flops", "operations per token"),
        ],
        [
            {"net": net, "parameters": 12000 + 31 * i, "state": None if i < 2 else 64 * i, "flops": 24000.0 * (i + 1)}
            for i, net in enumerate(NETS)
        ],
    )
    return [
        RenderedSection(
            "symmetry", "Symmetries", Summary("Only attention is permutation-equivariant.", answers=symmetry)
        ),
        RenderedSection(
            "sensitivity", "Sensitivity", Summary("One symbol is felt less as texts grow.", answers=sensitivity)
        ),
        RenderedSection("cost", "Parameters, state and cost", Summary("All nets have 12,000 parameters.", [sizes])),
    ]


def survey_sections(nets: Sequence[str] = NETS) -> list[RenderedSection]:
    sections = [rank_section(), learning_section(), *small_sections()]
    return [
        RenderedSection(
            s.id,
            s.title,
            Summary(
                s.summary.headline,
                s.summary.tables,
                s.summary.figures,
                s.summary.notes,
                [answer for answer in s.summary.answers if answer.net in nets],
            ),
        )
        for s in sections
    ]


def survey_page(nets: Sequence[str] = NETS) -> str:
    return render_page(
        "Theodolite survey",
        f"{', '.join(nets)} · preset quick",
        survey_sections(nets),
        {"theodolite": "0.1.0", "torch": "2.11", "device": "cpu", "date": "2026-01-01T00:00:00+00:00"},
        ["Separation rank: 'lstm' is not polynomial, so its rank is measured with a tolerance"],
        nets=nets,
        command=COMMAND,
        sentences=SENTENCES[: len(nets)],
    )
