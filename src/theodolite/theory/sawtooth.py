"""How many units and linear pieces a sawtooth takes: the k-fold tent map has 2^k pieces on [0, 1].

Pieces. A layer of w ReLUs cuts an interval on which its inputs are affine at most w times, so layers of widths
w₁, …, w_L make at most ∏ (wᵢ + 1) pieces.

Shallow. One hidden layer needs a unit for each of the 2^k − 1 bends. With no more than these, unit j bends at j/2^k and
its slope changes by a_j = ∓2·2^k there; the slope left of all bends is minus the sum of the a_j of the units that are
active there, a multiple of 2·2^k, and never 2^k. So 2^k units are needed, and relu(x) beside the bends is enough.

Deep. Telgarsky 2015 writes the tent map as relu(2 relu(x) − 4 relu(x − ½)): 3 units in 2 layers a fold, 3n/2 units in n
layers. The outer ReLU does nothing on [0, 1]; without it 2 units in 1 layer a fold are enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.theory.domain import whole


def sawtooth_pieces(folds: int) -> int:
    """Linear pieces of the tent map applied `folds` times."""
    return 2 ** whole("folds", folds)


def most_pieces(widths: Sequence[int]) -> int:
    """Most linear pieces, along a line, of a ReLU network with hidden layers of these widths."""
    return math.prod(whole("width", width) + 1 for width in widths)


def shallow_units(folds: int) -> int:
    """Fewest ReLUs in one hidden layer that give the sawtooth exactly."""
    return 2 ** whole("folds", folds)


def least_width(folds: int, depth: int) -> int:
    """No network of `depth` hidden layers narrower than this has enough pieces: (w + 1)^depth ≥ 2^folds."""
    whole("depth", depth)
    width, pieces = 1, sawtooth_pieces(folds)
    while (width + 1) ** depth < pieces:
        width += 1
    return width


def deep_units(folds: int) -> int:
    """Units of the deep witness: two in one layer for each fold."""
    return 2 * whole("folds", folds)


def shallow_parameters(folds: int) -> int:
    """Weights and biases of one hidden layer of 2^folds units: 3·2^folds + 1."""
    return 3 * shallow_units(folds) + 1


def deep_parameters(folds: int) -> int:
    """Weights and biases of the deep witness: 4 into the first layer, 6 for each further fold, 3 to the output."""
    return 6 * whole("folds", folds) + 1


RECURRENT_PARAMETERS = 7  # two units, each with a weight in, a bias and a weight out, and the bias of the output
