"""What the paper on failures of gradient-based deep learning reports, one table per experiment.

Shalev-Shwartz, Shamir and Shammah, "Failures of Gradient-Based Deep Learning", ICML 2017. Published figures, not
theorems. `origin` says how a number was read: `text` of the paper, `digitised` from a figure of it, or a `re-run` by
others with few seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SOURCE = "Shalev-Shwartz, Shamir and Shammah 2017"
Origin = Literal["text", "digitised", "re-run"]


@dataclass(frozen=True)
class Figure:
    """`quantity` of `setting`, both named as the experiments name them; from `value` to `upper` where a range is given.

    `about`: the number was given as approximate.
    """

    setting: str
    quantity: str
    value: float
    origin: Origin = "text"
    upper: float | None = None
    about: bool = False


_PREFIX = "prefix of random size"
_95, _100, _MEAN, _FINAL = "iterations to 95 %", "iterations to 100 %", "mean accuracy", "final accuracy"

PARITY = (
    Figure(f"d = 5, {_PREFIX}", _100, 2_110, "digitised"),
    Figure(f"d = 10, {_PREFIX}", _95, 9_500, "digitised"),
    Figure(f"d = 10, {_PREFIX}", _100, 19_500, "digitised"),
    Figure(f"d = 30, {_PREFIX}", _MEAN, 0.5001, "digitised"),
    # Others' runs with a fixed size, two seeds, to 99.9 %.
    Figure("d = 5, k = 2", _100, 200, "re-run", upper=400),
    Figure("d = 5, k = 3", _100, 2_000, "re-run", upper=3_100),
    Figure("d = 10, k = 4", _100, 3_450, "re-run", about=True),
    Figure("d = 10, k = 5", _100, 23_500, "re-run", about=True),
    Figure("d = 10, k = 6", _100, 6_900, "re-run", about=True),
    Figure("d = 30, k = 15", _FINAL, 0.513, "re-run"),  # after 10,000 iterations
)

SIGNAL = "signal-to-noise at the start"
FALL = "end to end, fall from k = 1 to 2"
TUPLES = (
    *(
        Figure(f"k = {k}, {how}", "accuracy", value, "digitised")
        for k, pair in {1: (0.945, 0.947), 2: (0.908, 0.909), 3: (0.862, 0.485), 4: (0.839, 0.495)}.items()
        for how, value in zip(("decomposed", "end to end"), pair, strict=True)
    ),
    Figure(SIGNAL, FALL, 545, "digitised", about=True),
)

STOCKS = tuple(
    Figure(f"k = {k}, {how}", f"loss at {step:,}", value)
    for (k, how), values in {
        (10, "decomposed"): (-0.998, -1.0, -1.0),
        (10, "end to end"): (-0.996, -1.0, -1.0),
        (1_000, "decomposed"): (-0.240, -0.491, -1.0),
        (1_000, "end to end"): (-0.248, -0.304, -0.286),
        (2_000, "decomposed"): (-0.217, -0.422, -0.999),
        (2_000, "end to end"): (-0.112, -0.137, -0.236),
    }.items()
    for step, value in zip((500, 1_000, 2_500), values, strict=True)
)

CONDITION, COVARIANCE = "condition of W", "condition of the neighbours' moments"
CURVES = (
    Figure("linear", "loss at 0", 14.58),
    *(
        Figure(variant, f"loss at {step:,}", value)
        for variant, values in {
            "linear": (13.25, 11.00, 8.47),
            "filter": (0.136, 3.5e-3, 9e-11),
            "conditioned": (2.4e-10,),
            "autoencoder": (3.77, 0.524, 0.358),
        }.items()
        for step, value in zip((500, 10_000, 50_000), values, strict=False)
    ),
    Figure("linear", CONDITION, 11_602),
    Figure("filter", COVARIANCE, 1.4e5, about=True),
    Figure("conditioned", COVARIANCE, 1.4e5, about=True),
)

ACTIVATIONS = tuple(
    Figure(variant, quantity, value, "digitised")
    for variant, pair in {
        "approximation": (0.025, 0.765),
        "end to end": (0.277, 0.0124),
        "multi-class": (0.988, 0.0019),
        "forward only": (0.995, 0.0010),
    }.items()
    for quantity, value in zip(("share near", "mean error"), pair, strict=True)
)

TABLES = {"parity": PARITY, "tuples": TUPLES, "stocks": STOCKS, "curves": CURVES, "activations": ACTIVATIONS}


def figure(experiment: str, setting: str, quantity: str) -> Figure | None:
    """What was published of a quantity, or None."""
    rows = TABLES.get(experiment, ())
    return next((row for row in rows if (row.setting, row.quantity) == (setting, quantity)), None)
