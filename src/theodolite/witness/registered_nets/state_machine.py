"""Finite automata that answer after every symbol, for the tasks on strings and for well-nested brackets."""

from __future__ import annotations

import itertools
from typing import Any

from theodolite.tasks.boolean import Boolean
from theodolite.tasks.contract import Task
from theodolite.tasks.dyck import Dyck
from theodolite.tasks.parity import Parity
from theodolite.tasks.parity_check import ParityCheck
from theodolite.tasks.shared.groups import permutation_group
from theodolite.tasks.word_problem import WordProblem
from theodolite.witness.registered_nets.machine import MOST_ARROWS, StateMachine
from theodolite.witness.registered_nets.regular import regular_machine

_PARITY = "an automaton of two states, the parity so far"


def state_machine(task: Task) -> StateMachine | None:
    given: Any = task  # its fields are those of its own kind
    if isinstance(task, ParityCheck):
        arrows = {(odd, bit): odd ^ bit for odd in (0, 1) for bit in (0, 1)} | {(odd, 2): odd for odd in (0, 1)}
        return StateMachine(_PARITY, 3, 0, arrows, {0: 0, 1: 1})
    if isinstance(task, Parity) and given.relevant == given.bits:
        arrows = {(odd, bit): odd ^ bit for odd in (0, 1) for bit in (0, 1)}
        return StateMachine(_PARITY, 2, 0, arrows, {0: 1, 1: -1})
    if isinstance(task, Boolean) and given.function == "brackets":
        return _levels(given.bits // 2)
    if isinstance(task, Dyck):
        return _stacks(given.types, given.depth)
    if isinstance(task, WordProblem):
        return _products(given.group, given.generators)
    return regular_machine(task)


def _levels(highest: int) -> StateMachine:
    """How many brackets are open; none can close any more above `highest`. −1, a true bit, opens."""
    dead = highest + 1
    arrows = {(dead, bit): dead for bit in (0, 1)}
    for level in range(highest + 1):
        arrows[level, 1] = level + 1
        arrows[level, 0] = level - 1 if level else dead
    return StateMachine(
        "an automaton that counts the open brackets", 2, 0, arrows, {s: -1 if s == 0 else 1 for s in range(dead + 1)}
    )


def _stacks(types: int, depth: int) -> StateMachine | None:
    """A state for every stack of open brackets."""
    states = sum(types**height for height in range(depth + 1))
    if (types + 1) * states > MOST_ARROWS:
        return None
    stacks = [stack for height in range(depth + 1) for stack in itertools.product(range(types), repeat=height)]
    number = {stack: i for i, stack in enumerate(stacks)}
    arrows = {}
    for stack, state in number.items():
        if len(stack) < depth:
            arrows |= {(state, kind): number[(*stack, kind)] for kind in range(types)}
        if stack:
            arrows[state, types + stack[-1]] = number[stack[:-1]]
    says = {state: stack[-1] if stack else types for stack, state in number.items()}
    return StateMachine("an automaton with a state for every stack of open brackets", 2 * types, 0, arrows, says)


def _products(name: str, generators: str) -> StateMachine | None:
    """A state for every element of the group, the product so far."""
    group = permutation_group(name)
    letters = range(group.order) if generators == "all" else group.letters
    if group.order * len(letters) > MOST_ARROWS:
        return None
    arrows = {
        (product, symbol): int(group.table[product, letter])
        for product in range(group.order)
        for symbol, letter in enumerate(letters)
    }
    says = {product: product for product in range(group.order)}
    return StateMachine("an automaton with a state for every element of the group", len(letters), 0, arrows, says)
