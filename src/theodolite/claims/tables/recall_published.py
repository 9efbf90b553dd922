"""What is published of recall: scores of the MAD tasks, and how width must grow with what is to be recalled.

Scores: Poli et al. 2024, "Mechanistic design and scaling of hybrid architectures", quoted in Yang et al. 2024
("Parallelizing linear Transformers with the delta rule", whose table adds DeltaNet); linear attention as in a later
paper on zero-sum attention, which quotes the same rows. A MAD score is a mean over difficulties (length, vocabulary,
number of training examples, noise) of the best run over 3 learning rates × 2 weight decays, in networks of width 128.
Recall over widths and numbers of pairs: Arora et al. 2023, "Zoology", whose figure is given in words here, since we
have not read numbers off it. Published figures and statements, not theorems.
"""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.claims.tables.published_score import Score

MAD = "Poli et al. 2024"
DELTA = "Yang et al. 2024"
ZERO_SUM = "paper on zero-sum attention, 2025"
ZOOLOGY = "Arora et al. 2023"
ACCURACY = "accuracy"
WIDTH, RATES, DECAYS = 128, (1e-3, 5e-4, 1e-4), (0.0, 0.1)  # of a MAD score
GRID_STEPS, GRID_SYMBOLS = 12_500, 8_192  # of figure 2 of "Zoology": 64 epochs of 100,000 inputs in batches of 512

TASKS = ("compression", "fuzzy-recall", "recall", "noisy-recall", "selective-copy")

# Per cent, in the order of TASKS; the table's sixth column, memorising a fixed map, is not a task of recall.
_ROWS = {
    ("transformer", None, MAD): (51.6, 29.8, 94.1, 86.8, 99.6),
    ("state-space", "Mamba", MAD): (52.7, 6.7, 90.4, 90.1, 86.3),
    ("delta-net", "DeltaNet", DELTA): (42.2, 35.7, 100, 100, 100),
    ("linear-transformer", "linear attention", ZERO_SUM): (31.1, 8.15, 91.0, 75.6, 93.1),
}

SCORES: tuple[Score, ...] = tuple(
    Score(task, net, ACCURACY, value / 100, "second-hand", source, called)
    for (net, called, source), values in _ROWS.items()
    for task, value in zip(TASKS, values, strict=True)
)


@dataclass(frozen=True)
class Statement:
    """What a paper says of recall over widths and numbers of pairs, where it gives no table of numbers."""

    nets: tuple[str, ...]
    growing: bool  # whether the width must grow with the number of pairs
    pairs: int  # the most that it speaks of
    text: str
    source: str


STATEMENTS = (
    Statement(
        ("transformer",),
        False,
        64,
        "attention recalls at every width and length tried; its width need not grow",
        ZOOLOGY,
    ),
    Statement(
        ("linear-transformer", "state-space", "lstm"),
        True,
        64,
        "what carries a state of fixed size (there: gated convolutions, H3, RWKV) needs more width to recall more",
        ZOOLOGY,
    ),
    Statement(
        ("delta-net",),
        False,
        64,
        "the delta rule recalls perfectly in the hardest setting, 64 pairs in 512 tokens",
        DELTA,
    ),
)
