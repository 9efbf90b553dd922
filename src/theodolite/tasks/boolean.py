"""Boolean functions by name, all on ±1 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.registry import unknown
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register


@dataclass(frozen=True)
class _Function:
    """`truth` maps bits (…, bit), true where a sign is −1, to booleans; `solve` does the same for one row of 0 and 1,
    another way. `share` is how many of all inputs are true; `reason` says which numbers of bits there are none for."""

    truth: Callable[[Tensor], Tensor]
    solve: Callable[[Sequence[int]], bool]
    share: Callable[[int], float]
    fits: Callable[[int], bool] = lambda bits: bits >= 1
    needs: str = "1 or more"


@register("boolean", "a named Boolean function of ±1 bits, such as the carry of an addition")
class Boolean(Named):
    """A named function of `bits` signs, −1 for true: first, and, or, carry, inner-product, equality, multiplexer,
    brackets.

    −1 +1 −1 −1   (function = equality, bits = 4: the halves 10 and 11 differ, so +1)
     └──┴──┴──┴─→ +1
    """

    function: str = "carry"
    bits: int = 10

    def __post_init__(self) -> None:
        check_at_least(self.name, 1, bits=self.bits)
        if self.function not in FUNCTIONS:
            raise BadInput(f"for the task '{self.name}': {unknown('function', self.function, FUNCTIONS)}")
        chosen = FUNCTIONS[self.function]
        if not chosen.fits(self.bits):
            raise BadInput(f"the function '{self.function}' is not defined on {self.bits} bits: use {chosen.needs}")

    @property
    def spec(self) -> TaskSpec:
        share = FUNCTIONS[self.function].share(self.bits)
        chance = max(share, 1 - share)
        return TaskSpec("vector", self.bits, 1, None, None, loss="hinge", chance=chance, solved=solved_share(chance))

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        check_length(self, length)
        shape = (members, batch, self.bits)
        bits = torch.randint(2, shape, generator=generator, device=generator.device)
        truth = FUNCTIONS[self.function].truth(bits.bool()).unsqueeze(-1)
        targets = 1.0 - 2.0 * truth.float()
        return Batch(1.0 - 2.0 * bits.float(), targets, torch.ones_like(truth))

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return [-1.0 if FUNCTIONS[self.function].solve([int(sign < 0) for sign in row]) else 1.0]


def solved_share(chance: float) -> float:
    """Solved: 99 % of the answers right, or 90 % of what chance leaves wrong where chance is near that."""
    return max(0.99, 1 - (1 - chance) / 10)


def _carry(bits: Tensor) -> Tensor:
    """Two numbers, highest bit first: whether their sum overflows. Equal bits decide, the highest of them first."""
    a, b = bits.chunk(2, dim=-1)
    carried = torch.zeros_like(a[..., 0])
    for i in reversed(range(a.shape[-1])):
        carried = torch.where(a[..., i] == b[..., i], a[..., i], carried)
    return carried


def _solve_carry(bits: Sequence[int]) -> bool:
    half = len(bits) // 2
    a, b = (int("".join(map(str, part)), 2) for part in (bits[:half], bits[half:]))
    return a + b >= 2**half


def _multiplexer(bits: Tensor) -> Tensor:
    """The first `address` bits say, highest first, which of the others is the answer."""
    address = _address(bits.shape[-1])
    weights = 2 ** torch.arange(address - 1, -1, -1, device=bits.device)
    chosen = (bits[..., :address] * weights).sum(dim=-1, keepdim=True)
    return bits[..., address:].gather(-1, chosen).squeeze(-1)


def _solve_multiplexer(bits: Sequence[int]) -> bool:
    address = _address(len(bits))
    return bool(bits[address + int("".join(map(str, bits[:address])), 2)])


def _address(bits: int) -> int:
    """The most address bits k with k + 2^k ≤ bits; what is left over is never read."""
    return max(k for k in range(1, 64) if k + 2**k <= bits)


def _brackets(bits: Tensor) -> Tensor:
    """True bits open and false ones close: whether the string is well nested."""
    level = (2 * bits.long() - 1).cumsum(dim=-1)
    return (level >= 0).all(dim=-1) & (level[..., -1] == 0)


def _solve_brackets(bits: Sequence[int]) -> bool:
    text = "".join("()"[1 - bit] for bit in bits)
    while "()" in text:
        text = text.replace("()", "")
    return not text


def _even(least: int = 2) -> tuple[Callable[[int], bool], str]:
    return (lambda bits: bits >= least and bits % 2 == 0), f"an even number from {least} on"


@lru_cache(maxsize=64)
def _catalan_share(bits: int) -> float:
    half = bits // 2
    words = 1
    for k in range(half):
        words = words * 2 * (2 * k + 1) // (k + 2)
    return words / 2**bits


FUNCTIONS: Mapping[str, _Function] = {
    "first": _Function(lambda b: b[..., 0], lambda b: bool(b[0]), lambda n: 0.5),
    "and": _Function(lambda b: b.all(dim=-1), lambda b: 0 not in b, lambda n: 2.0**-n),
    "or": _Function(lambda b: b.any(dim=-1), lambda b: 1 in b, lambda n: 1 - 2.0**-n),
    "carry": _Function(_carry, _solve_carry, lambda n: (1 - 2.0 ** -(n // 2)) / 2, *_even()),
    "inner-product": _Function(
        lambda b: (b.chunk(2, dim=-1)[0] & b.chunk(2, dim=-1)[1]).sum(dim=-1) % 2 == 1,
        lambda b: sum(x * y for x, y in zip(b[: len(b) // 2], b[len(b) // 2 :], strict=True)) % 2 == 1,
        lambda n: (1 - 2.0 ** -(n // 2)) / 2,
        *_even(),
    ),
    "equality": _Function(
        lambda b: (b.chunk(2, dim=-1)[0] == b.chunk(2, dim=-1)[1]).all(dim=-1),
        lambda b: list(b[: len(b) // 2]) == list(b[len(b) // 2 :]),
        lambda n: 2.0 ** -(n // 2),
        *_even(),
    ),
    "multiplexer": _Function(
        _multiplexer, _solve_multiplexer, lambda n: 0.5, lambda bits: bits >= 3, "3 or more (1 address bit, 2 choices)"
    ),
    "brackets": _Function(_brackets, _solve_brackets, _catalan_share, *_even()),
}
