"""A bracketed expression with one digit unknown, and its value: which digit it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from theodolite.tasks.bracket_arithmetic import check_operations, draw_expressions, value_of
from theodolite.tasks.contract import Batch, Named, TaskSpec, check_at_least, check_length, register
from theodolite.tasks.shared.strings import check_training_lengths, read_then_answer, string_spec


@register("solve-equation", "the unknown digit of a bracketed expression whose value is known")
class SolveEquation(Named):
    """The digit x that solves an equation of `length` tokens modulo `modulus`, said at the marker.

    ( 2 − ( x + 4 ) ) = 1 #   (modulus = 5, length = 11; digits, + − × ( ), x, = and the marker # are the ids)
    · · · · · · · · · · · 2

    The expressions are those of `bracket-arithmetic`. x hides the first digit from a random token on, going round.
    It always has one solution: with × among the `operations`, a × around x is + wherever the other factor cannot be
    divided by. Below three tokens, the end of x = d is left. The set-up of Delétang et al. 2022, "Neural Networks and
    the Chomsky Hierarchy", whose code, like the default here, has no × in this task.
    """

    modulus: int = 5
    operations: int = 2
    shortest: int = 1
    longest: int = 40

    def __post_init__(self) -> None:
        check_at_least(self.name, 2, modulus=self.modulus)
        check_operations(self.name, self.operations)
        check_training_lengths(self.name, self.shortest, self.longest)

    @property
    def spec(self) -> TaskSpec:
        spec = string_spec(self.modulus + 7, self.shortest, self.longest)
        return replace(spec, outputs=self.modulus, chance=1 / self.modulus)

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        length, device = check_length(self, length), generator.device
        tokens = max(length - 2, 1)
        expressions = draw_expressions((members, batch), tokens, generator)
        place = torch.arange(tokens, device=device).unsqueeze(1)
        first = torch.randint(tokens, (members * batch,), generator=generator, device=device)
        hidden = torch.where(expressions.digits, (place - first) % tokens, tokens).argmin(dim=0)

        string, value = expressions.evaluate(self.modulus, self.operations, generator, hidden)
        hidden = hidden.view(members, batch, 1)
        answer = string.gather(-1, hidden)
        string = string.scatter(-1, hidden, self.modulus + 5)
        equation = torch.cat((string, torch.full_like(value, self.modulus + 6), value), dim=-1)
        return read_then_answer(equation[..., -length:], answer, marker=self.modulus + 7)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        tokens = [int(token) for token in row[:-1]]
        unknown = self.modulus + 5
        if len(tokens) < 3:
            solutions = tokens[-1:]
        else:
            with_ = lambda x: [x if token == unknown else token for token in tokens[:-2]]
            solutions = [x for x in range(self.modulus) if value_of(with_(x), self.modulus) == tokens[-1]]
        if len(solutions) != 1:
            raise ValueError(f"the equation {row} has {len(solutions)} solutions")
        return [0.0] * len(tokens) + [float(solutions[0])]
