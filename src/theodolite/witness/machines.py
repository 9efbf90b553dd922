"""Turing machines by name: parity, aⁿbⁿ and binary increment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from theodolite.registry import Registry
from theodolite.witness.turing import TuringMachine

_BLANK = "_"


@dataclass(frozen=True)
class NamedMachine:
    """`letters` are those of inputs; `truth` says of a word whether it is accepted and what is left on the tape (None:
    that is not the point), by plain Python; `steps` are enough for any word of a length."""

    machine: TuringMachine
    letters: str
    truth: Callable[[str], tuple[bool, Mapping[int, str] | None]]
    steps: Callable[[int], int]


machines: Registry[NamedMachine] = Registry("machine")


def _machine(states: str, alphabet: Sequence[str], start: str, rules: Sequence[str]) -> TuringMachine:
    """Rules as `state symbol → state symbol move`, the move one of < = >."""
    moves = {"<": -1, "=": 0, ">": 1}
    table = {}
    for rule in rules:
        state, symbol, _, after, written, move = rule.split()
        table[state, symbol] = (after, written, moves[move])
    return TuringMachine((*states.split(), "yes", "no"), tuple(alphabet), _BLANK, table, start, "yes", "no")


# Reads to the first blank and accepts if the number of ones is odd.
machines.add(
    "parity",
    NamedMachine(
        _machine(
            "even odd",
            "01_",
            "even",
            [
                "even 0 → even 0 >",
                "even 1 → odd 1 >",
                "odd 0 → odd 0 >",
                "odd 1 → even 1 >",
                "odd _ → yes _ =",
                "even _ → no _ =",
            ],
        ),
        "01",
        lambda word: (word.count("1") % 2 == 1, None),
        lambda length: length + 1,
    ),
)

# Erases the first a and the last b in turn.
machines.add(
    "anbn",
    NamedMachine(
        _machine(
            "first right last left",
            "ab_",
            "first",
            [
                "first _ → yes _ =",
                "first a → right _ >",
                "right a → right a >",
                "right b → right b >",
                "right _ → last _ <",
                "last b → left _ <",
                "left a → left a <",
                "left b → left b <",
                "left _ → first _ >",
            ],
        ),
        "ab",
        lambda word: (word == "a" * (len(word) // 2) + "b" * (len(word) // 2), None),
        lambda length: (length + 1) * (length + 2) // 2,
    ),
)

# Goes to the last digit, then adds 1 with carries; the highest digit comes first.
machines.add(
    "increment",
    NamedMachine(
        _machine(
            "right carry",
            "01_",
            "right",
            [
                "right 0 → right 0 >",
                "right 1 → right 1 >",
                "right _ → carry _ <",
                "carry 1 → carry 0 <",
                "carry 0 → yes 1 =",
                "carry _ → yes 1 =",
            ],
        ),
        "01",
        lambda word: (True, _incremented(word)),
        lambda length: 2 * length + 2,
    ),
)


def _incremented(word: str) -> Mapping[int, str]:
    number = format(int(word or "0", 2) + 1, "b").zfill(len(word))
    first = len(word) - len(number)  # an overflow stands one cell before the word
    return {first + place: digit for place, digit in enumerate(number)}
