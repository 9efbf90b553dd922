"""Automata of the regular tasks that are said at a marker: written as a step on any state, explored from the start."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from theodolite.tasks.contract import Task
from theodolite.tasks.cycle_navigation import CycleNavigation
from theodolite.tasks.even_pairs import EvenPairs
from theodolite.tasks.modular_arithmetic import ModularArithmetic
from theodolite.tasks.random_language import RandomLanguage
from theodolite.witness.registered_nets.machine import MOST_ARROWS, StateMachine

Step = Callable[[Any, int], Hashable | None]  # the next state, None where no input of the task leads on


def regular_machine(task: Task) -> StateMachine | None:
    given: Any = task  # its fields are those of its own kind
    symbols = (task.spec.vocab or 1) - 1  # the marker is the last id
    if isinstance(task, EvenPairs):
        ends = lambda state, symbol: (symbol if state is None else state[0], symbol)
        answer = lambda state: 0 if state is None else state[0] ^ state[1]
        return _explored("an automaton that keeps the first and the last symbol", symbols, None, ends, answer)
    if isinstance(task, CycleNavigation):
        move = lambda place, step: (place + step - 1) % given.places
        return _explored("an automaton with a state for every place", symbols, 0, move, lambda place: place)
    if isinstance(task, ModularArithmetic):
        return _arithmetic(given.modulus, symbols)
    if isinstance(task, RandomLanguage):
        automaton = given.automaton
        said = lambda state: int(automaton.accepting[state])
        walk = lambda state, symbol: automaton.moves[state][symbol]
        return _explored("the automaton of the language", symbols, 0, walk, said)
    return None


def _arithmetic(modulus: int, symbols: int) -> StateMachine | None:
    """A state is the sum of the terms before, the term so far, and the operator that waits for its digit."""
    plus, minus, times, none = range(4)

    start = (0, 0, plus)  # as if a sign stood before the first digit; there may be one

    def step(state: tuple[int, int, int], token: int) -> tuple[int, int, int] | None:
        value, term, waiting = state
        if token >= modulus:
            return (value, term, token - modulus) if waiting == none or state == start else None
        if waiting == none:
            return None
        if waiting == times:
            return value, term * token % modulus, none
        return (value + term) % modulus, (-token if waiting == minus else token) % modulus, none

    return _explored(
        "an automaton with a state for every sum, term and operator",
        symbols,
        start,
        step,
        lambda state: (state[0] + state[1]) % modulus,
    )


def _explored(name: str, symbols: int, start: Hashable, step: Step, says: Callable[[Any], int]) -> StateMachine | None:
    """All states that can be reached, numbered as they are found; the marker, one id more, changes none."""
    number: dict[Hashable, int] = {start: 0}
    waiting = [start]
    arrows: dict[tuple[int, int], int] = {}
    while waiting:
        state = waiting.pop()
        arrows[number[state], symbols] = number[state]
        for symbol in range(symbols):
            after = step(state, symbol)
            if after is None:
                continue
            if after not in number:
                number[after] = len(number)
                waiting.append(after)
            arrows[number[state], symbol] = number[after]
        if len(arrows) > MOST_ARROWS:
            return None
    return StateMachine(name, symbols + 1, 0, arrows, {place: says(state) for state, place in number.items()})
