"""aⁿbⁿ by counting, in an LSTM of four cells: one machine for every n.

A finite automaton needs a state for every count it has to tell apart; a cell that is kept and added to counts without
end. Weiss, Goldberg and Yahav 2018 found trained LSTMs to do this; here the weights are written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.witness.contract import Witness
from theodolite.witness.registered_nets.shape import blank

_OPEN = 100.0  # a gate's argument, per unit of what it looks at: gates are 0 or 1 to 16 digits

# The cells: a's less b's; b's so far; an a that came after a b; a b that came without an a left.
_COUNT, _SEEN, _LATE, _OVERDRAWN = range(4)
_KEEP, _ADMIT, _SHOW, _NEW = range(4)
_A, _B = range(2)


def anbn_lstm() -> Witness:
    """An LSTM that reads one-hot a and b and answers above 0 after exactly the strings aⁿbⁿ, n ≥ 1.

    Cells show tanh of themselves: 0, or at least tanh 1 = 0.76 away from it, however large the count.
    """
    module: Any = blank("lstm", {"features": 2, "outputs": 1, "depth": 1, "width": 4})
    (layer,) = module.layers
    into, across, bias = (
        layer.into.weight.data.view(4, 4, 2),  # (gate, cell, symbol)
        layer.across.weight.data.view(4, 4, 4),  # (gate, cell, shown cell)
        layer.into.bias.data.view(4, 4),
    )
    bias[_KEEP] = bias[_SHOW] = _OPEN
    bias[_NEW] = _OPEN  # tanh of it is 1: what is admitted adds one

    bias[_ADMIT, _COUNT] = _OPEN
    into[_NEW, _COUNT, _B] = -2 * _OPEN  # a b takes one away
    into[_ADMIT, _SEEN] = torch.tensor([-_OPEN, _OPEN])
    # a read (1) and b seen (0.76 or more) exceed 1.4 only together.
    into[_ADMIT, _LATE, _A] = across[_ADMIT, _LATE, _SEEN] = _OPEN
    bias[_ADMIT, _LATE] = -1.4 * _OPEN
    # b read (1) and a count that shows less than 0.4.
    into[_ADMIT, _OVERDRAWN, _B] = _OPEN
    across[_ADMIT, _OVERDRAWN, _COUNT] = -_OPEN
    bias[_ADMIT, _OVERDRAWN] = -0.6 * _OPEN

    # Accepted: nothing left to count, and neither fault. Once overdrawn the count is below 0, the fault outweighs it.
    module.read.weight.data[0] = torch.tensor([-1.0, 0.0, -4.0, -4.0])
    module.read.bias.data[0] = 0.4
    return Witness(
        name="aⁿbⁿ by counting",
        module=module,
        source="Weiss, Goldberg and Yahav 2018, On the practical computational power of finite precision RNNs",
        units=4,
        depth=1,
        shape={"features": 2, "outputs": 1, "depth": 1, "width": 4},
    )


def accepts(witness: Witness, strings: Sequence[str]) -> list[bool]:
    """What the witness says of strings of one length over a and b."""
    with torch.no_grad():
        return [bool(answer > 0) for answer in witness.module(one_hot(strings))[:, -1, 0]]


def one_hot(strings: Sequence[str]) -> Tensor:
    """(strings, length, 2) for strings of one length over a and b."""
    lengths = {len(string) for string in strings}
    if len(lengths) != 1 or 0 in lengths:
        raise BadInput(f"strings of lengths {sorted(lengths)} cannot be read together: pass some of one length above 0")
    for string in strings:
        if string.replace("a", "").replace("b", ""):
            raise BadInput(f"the string '{string[:40]}' holds other symbols than a and b: use these two")
    letters = np.frombuffer("".join(strings).encode(), dtype=np.uint8).reshape(len(strings), -1)
    return torch.as_tensor(np.stack((letters == ord("a"), letters == ord("b")), axis=-1), dtype=torch.float64)
