"""Random expressions of digits, operators and brackets, and their values modulo a small number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec

PLUS, MINUS, TIMES, OPEN, CLOSE = range(5)  # ids after those of the digits


@register("bracket-arithmetic", "value of nested brackets with + − × modulo a small number")
class BracketArithmetic(Named):
    """The value modulo `modulus` of a bracketed expression of `length` tokens, said at the marker.

    ( 2 × ( 4 − 1 ) ) #   (modulus = 5, length = 9; digits are their own ids, then + − × ( ) and the marker #)
    · · · · · · · · · 1

    Up to four tokens: d, −d, (d) or (−d). From five on: (left operator right), every way to share the other tokens
    between the two sides equally likely, and each side such an expression again. Digits and the first `operations` of
    + − × are uniform. The set-up of Delétang et al. 2022, "Neural Networks and the Chomsky Hierarchy", where it is
    deterministic context-free.
    """

    modulus: int = 5
    operations: int = 3
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, modulus=self.modulus)
        check_operations(self.name, self.operations)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        chance = _best_value(self.modulus, self.operations, self.shortest, self.longest)
        return replace(string_spec(self.modulus + 5, self.shortest, self.longest), outputs=self.modulus, chance=chance)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        expressions = draw_expressions((members, batch), check_length(self, length), generator)
        string, value = expressions.evaluate(self.modulus, self.operations, generator)
        return read_then_answer(string, value, marker=self.modulus + 5)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return [0.0] * (len(row) - 1) + [float(value_of([int(token) for token in row[:-1]], self.modulus))]


def check_operations(name: str, operations: int) -> None:
    """Refuse a number of operators that + − × do not have."""
    if not 1 <= operations <= 3:
        raise BadInput(
            f"operations={operations} is not how many of + − × the task '{name}' can use: use 1 for +, 2 for + −, "
            "3 for + − ×"
        )


@dataclass(frozen=True)
class Expressions:
    """Shapes of bracketed expressions, all of one length; digits and operators are still to be drawn.

    `start`, `left`, `right` (pair, row): where a pair "(left operator right)" and its two sides begin, pairs before
    those inside them; `length` where a row has no such pair. `extent` (token, row): the length of the expression that
    begins at a token, 0 where none does.
    """

    rows: tuple[int, int]
    start: Tensor
    left: Tensor
    right: Tensor
    extent: Tensor

    @property
    def digits(self) -> Tensor:
        """(token, row): where a digit stands."""
        extent = self.extent
        second = ((extent == 2) | (extent == 3)).roll(1, 0)
        return (extent == 1) | second | (extent == 4).roll(2, 0)

    def evaluate(
        self, modulus: int, operations: int, generator: torch.Generator, hidden: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Tokens (member, row, token) with fresh digits and operators, and the value of each expression (…, 1).

        With `hidden` (row), the token of a digit: a × around it becomes + where the other factor cannot be divided by,
        so that the value tells the digit.
        """
        (length, rows), device = self.extent.shape, generator.device
        draw = lambda high, count: torch.randint(high, (count, rows), generator=generator, device=device)
        digits, operators = draw(modulus, length), draw(operations, len(self.start))

        # An expression without a pair has its digit first, second or, at four tokens, third; even lengths have a sign.
        value = torch.where(self.extent == 1, digits, digits.roll(-1, 0))
        value = torch.where(self.extent == 4, digits.roll(-2, 0), value)
        value = torch.where(self.extent % 2 == 0, modulus - value, value).remainder(modulus)
        value = torch.cat((value, value.new_zeros(1, rows)))  # one more token, where absent pairs are computed
        around = self._around(hidden, modulus) if hidden is not None and operations > TIMES else None
        for pair in reversed(range(len(self.start))):
            one, two = value.gather(0, self.left[pair : pair + 1]), value.gather(0, self.right[pair : pair + 1])
            operator = operators[pair]
            if around is not None:
                in_left, in_right, divides = around
                factor = torch.where(in_left[pair], two, torch.where(in_right[pair], one, 1))[0]
                operator = torch.where((operator == TIMES) & ~divides[factor], PLUS, operator)
                operators[pair] = operator
            sum_ = one + torch.where(operator == MINUS, -two, two)
            found = torch.where(operator == TIMES, one * two, sum_).remainder(modulus)
            value.scatter_(0, self.start[pair : pair + 1], found)
        return self._rows(self._tokens(digits, operators, modulus)), self._rows(value[:1])

    def _tokens(self, digits: Tensor, operators: Tensor, modulus: int) -> Tensor:
        """(token, row)."""
        extent, length = self.extent, len(self.extent)
        place = torch.arange(length, device=extent.device).unsqueeze(1)
        signs = (extent == 2) | (extent == 4).roll(1, 0)
        tokens = torch.where(signs, modulus + MINUS, torch.where(extent >= 3, modulus + OPEN, digits))
        tokens = torch.cat((tokens, tokens.new_zeros(1, tokens.shape[1])))
        closed = torch.where(extent >= 3, place + extent - 1, length)
        tokens.scatter_(0, closed, modulus + CLOSE)
        between = torch.where(self.right < length, self.right - 1, length)
        tokens.scatter_(0, between, modulus + operators)
        return tokens[:length]

    def _around(self, hidden: Tensor, modulus: int) -> tuple[Tensor, Tensor, Tensor]:
        """(pair, row) each: whether the hidden token is in the left side, and in the right; which numbers divide."""
        end = self.start + torch.cat((self.extent, torch.zeros_like(self.extent[:1]))).gather(0, self.start)
        in_left = (self.left <= hidden) & (hidden < self.right - 1)
        in_right = (self.right <= hidden) & (hidden < end - 1)
        number = torch.arange(modulus, device=hidden.device)
        return in_left, in_right, ((number * number.unsqueeze(1)) % modulus == 1).any(dim=1)

    def _rows(self, columns: Tensor) -> Tensor:
        return columns.t().unflatten(0, self.rows)


def draw_expressions(rows: tuple[int, int], length: int, generator: torch.Generator) -> Expressions:
    """Pairs are split one after the other, all rows at once, and the sides of five tokens and more wait in a line.

    A pair adds three tokens to its sides, so that (length − 1) / 4 of them is the most there can be.
    """
    device, count, most = generator.device, rows[0] * rows[1], (length - 1) // 4
    share = 1 - torch.rand((most, count), generator=generator, device=device)  # on (0, 1]
    start = torch.zeros((most + 1, count), dtype=torch.int64, device=device)
    size, last = torch.zeros_like(start), torch.ones_like(start[:1])
    left_size = torch.zeros_like(start[:most])
    size[0] = length
    for pair in range(most):
        begin, room = start[pair] + 1, size[pair] - 4
        left = (share[pair] * room.clamp(min=0)).ceil().long()  # 1 … room, or 0 where there is nothing to split
        left_size[pair] = left
        sides = (begin, left), (begin + left + 1, room + 1 - left)
        for at, tokens in sides:
            start.scatter_(0, last, at.unsqueeze(0))
            size.scatter_(0, last, tokens.unsqueeze(0))  # overwritten by the next one where it is too short to wait
            last = last + (tokens > 4)

    start, size = start[:most], size[:most]
    there = size > 4
    left, right = start + 1, start + left_size + 2
    extent = torch.zeros((length + 1, count), dtype=torch.int64, device=device)
    extent[0] = length
    start, left, right = (torch.where(there, at, length) for at in (start, left, right))
    extent.scatter_(0, left, left_size)
    extent.scatter_(0, right, size - 3 - left_size)
    return Expressions(rows, start, left, right, extent[:length])


def value_of(tokens: Sequence[int], modulus: int) -> int:
    """The value of a bracketed expression, reduced bracket by bracket on a stack."""
    stack: list[int] = []
    for token in [modulus + OPEN, *tokens, modulus + CLOSE]:
        if token != modulus + CLOSE:
            stack.append(token)
            continue
        opened = len(stack) - 1 - stack[::-1].index(modulus + OPEN)
        parts = stack[opened + 1 :]
        stack[opened:] = [_reduced(parts, modulus)]
    (value,) = stack
    return value


def _reduced(parts: Sequence[int], modulus: int) -> int:
    """The value of what is left between two brackets: a number, or two with an operator, each with a sign or not."""
    rest = iter(parts)

    def number() -> int:
        token = next(rest)
        return -next(rest) if token == modulus + MINUS else token

    value = number()
    for operator in rest:
        other = number()
        if operator == modulus + TIMES:
            value *= other
        else:
            value += other if operator == modulus + PLUS else -other
    return value % modulus


@lru_cache(maxsize=256)
def _best_value(modulus: int, operations: int, shortest: int, longest: int) -> float:
    """Share of the most likely value, averaged over the lengths: the law at a length from those at all shorter ones."""
    number = torch.arange(modulus)
    one, two = number.unsqueeze(1), number.unsqueeze(0)
    results = [(found % modulus).flatten() for found in (one + two, one - two, one * two)][:operations]
    law = torch.full((longest + 1, modulus), 1 / modulus, dtype=torch.float64)
    for length in range(5, longest + 1):
        sides = law[1 : length - 3]
        pairs = (sides.t() @ sides.flip(0)).flatten() / len(sides)
        law[length] = sum(torch.zeros_like(law[0]).index_add_(0, found, pairs) for found in results) / operations
    return float(law[shortest:].mean(dim=0).max())
