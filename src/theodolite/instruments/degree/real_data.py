"""Two real sets that ship with scikit-learn, split anew by every seed: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.instruments.degree.descent import Examples
from theodolite.registry import unknown

REAL_SETS = {
    "digits": "8×8 images of 1,797 handwritten digits, ten classes",
    "diabetes": "ten measurements of 442 patients, the progress of their disease a year later",
}
_SHARES = (0.6, 0.2)  # training and validation; the rest tests


def real_examples(name: str, seeds: Sequence[int], device: torch.device) -> Examples:
    """One source a seed. Inputs, and targets that are numbers, have mean 0 and variance 1 over the training rows; a
    column that is constant there is 0."""
    inputs, targets = _load(name)
    sources = [_split(inputs, targets, name == "digits", seed) for seed in seeds]
    train, validation, test = (
        (torch.stack([s[part][0] for s in sources]).to(device), torch.stack([s[part][1] for s in sources]).to(device))
        for part in range(3)
    )
    if name == "digits":
        counts = np.bincount(targets)
        shares = counts / len(targets)
        chance = {"constant": float(-(shares * np.log(shares)).sum()), "constant_error": 1 - float(shares.max())}
        return Examples(train, validation, test, "cross-entropy", len(counts), fresh=False, **chance)
    return Examples(train, validation, test, "square", 1, fresh=False, constant=1.0, constant_error=1.0)


def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name not in REAL_SETS:
        raise BadInput(unknown("real set", name, REAL_SETS))
    from sklearn import datasets

    found = datasets.load_digits if name == "digits" else datasets.load_diabetes
    inputs, targets = found(return_X_y=True)
    return np.asarray(inputs, dtype=np.float64), np.asarray(targets)


def _split(
    inputs: np.ndarray, targets: np.ndarray, classes: bool, seed: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    order = np.random.default_rng(seed).permutation(len(inputs))
    ends = [round(share * len(order)) for share in np.cumsum(_SHARES)]
    parts = np.split(order, ends)
    inputs = _standard(inputs, parts[0])
    if classes:
        given = torch.tensor(targets, dtype=torch.int64)
    else:
        given = torch.tensor(_standard(targets[:, None], parts[0]), dtype=torch.float32)
    rows = torch.tensor(inputs, dtype=torch.float32)
    return [(rows[part], given[part]) for part in parts]


def _standard(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    spread = values[rows].std(axis=0)
    return (values - values[rows].mean(axis=0)) / np.where(spread > 0, spread, 1.0) * (spread > 0)
