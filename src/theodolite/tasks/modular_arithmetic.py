"""Sums and products of digits modulo a small number, without brackets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec

_PLUS, _MINUS, _TIMES = range(3)  # ids after those of the digits


@register("modular-arithmetic", "value of digits with + − × modulo a small number")
class ModularArithmetic(Named):
    """The value modulo `modulus` of `length` tokens of digits and + − ×, × before + and −, said at the marker.

    1 + 2 × 4 − 3 #   (modulus = 5, length = 7; digits are their own ids, then +, −, × and the marker #)
    · · · · · · · 1

    Digits and operators are uniform. Digits and operators take turns, so that a sum that starts with a digit has odd
    length; one of even length starts with a sign, + or −. The set-up of Delétang et al. 2022, "Neural Networks and
    the Chomsky Hierarchy", where it is regular and an even length means the odd one below.
    """

    modulus: int = 5
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, modulus=self.modulus)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        chance = _best_value(self.modulus, self.shortest, self.longest)
        return replace(string_spec(self.modulus + 3, self.shortest, self.longest), outputs=self.modulus, chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        shape = (members, batch, (length + 1) // 2)
        digits = torch.randint(self.modulus, shape, generator=generator, device=device)
        operators = torch.randint(3, shape, generator=generator, device=device)  # the one before each digit
        operators[..., 0].random_(_MINUS + 1 if length % 2 == 0 else _PLUS + 1, generator=generator)

        starts = operators != _TIMES
        signed = torch.where(operators == _MINUS, -digits, digits)
        products = _running_products(signed, starts, self.modulus)
        ends = F.pad(starts[..., 1:], (0, 1), value=True)
        answer = (products * ends).sum(dim=-1, keepdim=True).remainder(self.modulus)

        string = torch.stack((operators + self.modulus, digits), dim=-1).flatten(-2)[..., -length:]
        return read_then_answer(string, answer, marker=self.modulus + 3)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        value, term, operator = 0, 0, _PLUS
        for token in map(int, row[:-1]):
            if token >= self.modulus:
                operator = token - self.modulus
            elif operator == _TIMES:
                term *= token
            else:
                value += term
                term = token if operator == _PLUS else -token
        return [0.0] * (len(row) - 1) + [float((value + term) % self.modulus)]


def _running_products(factors: Tensor, starts: Tensor, modulus: int) -> Tensor:
    """Modulo `modulus`, at every place the product of its term so far; `starts` is true where a term begins.

    Each round doubles how far back the product reaches, so that their number is only the logarithm of the length.
    """
    reach, count = 1, factors.shape[-1]
    products = factors.remainder(modulus)
    while reach < count:
        before = F.pad(products, (reach, 0), value=1)[..., :count]
        products = torch.where(starts, products, products * before).remainder(modulus)
        starts = starts | F.pad(starts, (reach, 0), value=True)[..., :count]
        reach *= 2
    return products


@lru_cache(maxsize=256)
def _best_value(modulus: int, shortest: int, longest: int) -> float:
    """Share of the most likely value, averaged over the lengths: the exact law of (terms before, last term)."""
    digits = torch.arange(modulus)
    product = F.one_hot((digits[:, None] * digits).remainder(modulus), modulus).double().mean(dim=1)
    sums = (digits[:, None] + digits).remainder(modulus).flatten()

    def value(law: Tensor) -> Tensor:
        return law.new_zeros(modulus).index_add_(0, sums, law.flatten())

    law = torch.zeros(modulus, modulus, dtype=torch.float64)
    law[0] = 1 / modulus
    total = torch.zeros(modulus, dtype=torch.float64)
    for length in range(1, longest + 1):
        if length > 1 and length % 2 == 1:  # one more digit; a sign in front changes nothing
            law = (2 * value(law)[:, None] / modulus + law @ product) / 3
        if length >= shortest:
            total += value(law)
    return float(total.max()) / (longest - shortest + 1)
