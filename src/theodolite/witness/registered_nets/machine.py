"""A finite automaton that answers in every state, as the recurrent constructions take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST_ARROWS = 2000  # a network has one unit for each


@dataclass(frozen=True)
class StateMachine:
    """`arrows` map (state, symbol) to the next state; a pair that no input of the task leads to may be missing.
    `says` is the answer in a state: the class, or ±1 on sign vectors, whose symbols are 0 for +1 and 1 for −1."""

    name: str
    symbols: int
    start: int
    arrows: Mapping[tuple[int, int], int]
    says: Mapping[int, int]
