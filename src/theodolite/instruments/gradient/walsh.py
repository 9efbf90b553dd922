"""The fast Walsh–Hadamard transform, and the cube of ±1 bits whose functions it takes to their parities.

Input number n of the cube has x_i = −1 where bit i of n is 1, and parity number s is χ_S(x) = Π_{i ∈ S} x_i with i ∈ S
where bit i of s is 1, so that χ_S(x) = (−1)^popcount(n & s): the Hadamard matrix in its natural order.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from theodolite.errors import BadInput

_BLOCK_BITS = 5  # products with H₃₂: few passes over memory, and still matrix products that run near full speed
_CACHE = 1 << 20  # numbers transformed at a time on a CPU, so that all passes but the first find them in the cache


def walsh_hadamard(x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows inputs"]:
    """Σ_n (−1)^popcount(n & s) x[·, n] for every s, each row for itself; twice is 2^bits times the identity."""
    rows, inputs = x.shape
    bits = inputs.bit_length() - 1
    if inputs != 1 << bits:
        raise BadInput(f"a row of {inputs} numbers has no Walsh–Hadamard transform: give a power of two")
    if not x.is_floating_point():
        raise BadInput(f"numbers of {x.dtype} lose digits in a Walsh–Hadamard transform: give float32 or float64")
    if rows == 0 or bits == 0:
        return x.clone()
    step = max(1, _CACHE // inputs) if x.device.type == "cpu" else rows
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for start in range(0, rows, step):
        out[start : start + step] = _transform(x[start : start + step], bits)
    return out


def _transform(x: Tensor, bits: int) -> Tensor:
    """H_bits = H_a ⊗ H_b ⊗ …: a matrix product with every factor, each along its own axis."""
    rows, inputs = x.shape
    low = min(bits, _BLOCK_BITS)
    x = x.reshape(-1, 1 << low) @ hadamard(low, x.dtype, x.device)
    done = low
    while done < bits:
        take = min(_BLOCK_BITS, bits - done)
        x = torch.matmul(hadamard(take, x.dtype, x.device), x.reshape(-1, 1 << take, 1 << done))
        done += take
    return x.reshape(rows, inputs)


@lru_cache(maxsize=32)
def hadamard(bits: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Sylvester's matrix of 2^bits rows."""
    h = torch.ones(1, 1, dtype=dtype, device=device)
    for _ in range(bits):
        h = torch.cat((torch.cat((h, h), dim=1), torch.cat((h, -h), dim=1)))
    return h


def cube(bits: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "inputs bit"]:
    """All inputs in order."""
    numbers = torch.arange(1 << bits, device=device)
    inputs = torch.empty(len(numbers), bits, dtype=dtype, device=device)
    for i in range(bits):  # one column at a time: a large cube fits once, not twice
        inputs[:, i] = (numbers >> i) & 1
    return inputs.mul_(-2.0).add_(1.0)


def degrees(bits: int, device: torch.device) -> Int[Tensor, " parities"]:
    """|S| of every parity."""
    level = torch.zeros(1, dtype=torch.int64, device=device)
    for _ in range(bits):  # the numbers with a further, higher bit follow those without
        level = torch.cat((level, level + 1))
    return level


def number_of(subset: tuple[int, ...]) -> int:
    """The number of the parity of these bits."""
    return sum(1 << i for i in subset)
