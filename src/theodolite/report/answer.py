"""Answers of a net to the questions of all sections, and the verdicts that the page and the terminal make of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from theodolite.report.numbers import DASH

Standing = Literal["yes", "no", "partly", "unlearnt", "unknown", "failed"]
# A mark and a word for each, so that neither colour nor a font with every sign is needed.
MARKS: Mapping[Standing, tuple[str, str]] = {
    "yes": ("✓", "yes"),
    "no": ("✗", "no"),
    "partly": ("◐", "partly"),
    "unlearnt": ("○", "not in these steps"),
    "unknown": ("?", "not known"),
    "failed": ("!", "failed"),
}
_MOST_NAMED = 8  # items of one list in a sentence
_VERBS: Mapping[str, str] = {"yes": "can", "no": "cannot", "partly": "can only partly"}


@dataclass(frozen=True)
class Answer:
    """One line of a net's card: a question that all nets are asked in the same words, and what was measured of it.

    `text` is the measurement in a few words with its interval; `predicted` what theory says, empty where it is silent;
    `agrees` is None without a prediction that could be wrong. `failed` means that the instrument could not be used,
    and `text` says why. `ability` is the question as it follows “can” or “cannot”, in a few words: `learn parity`;
    left empty, it is taken from a question that begins with “Can it”. `unlearnt` is not learnt in the steps of this
    training, which is no “cannot”.

    `published` is another paper's experiment with its setting, which is no theory and is never counted with it.
    `number` and `interval` are the measurement for comparing two surveys, under the `setting` it was made with.
    """

    net: str
    question: str
    standing: Standing
    text: str
    predicted: str = ""
    agrees: bool | None = None
    ability: str = ""
    published: str = ""
    number: float | None = None
    interval: tuple[float, float] | None = None
    setting: str = ""


@dataclass(frozen=True)
class Question:
    """One question with the answer of every net that was asked it; `section` is the id of the section that asks."""

    text: str
    section: str
    answers: Mapping[str, Answer]


def gather(asked: Iterable[tuple[str, Answer]]) -> list[Question]:
    """(section, answer) as questions in the order of asking; of two answers of one net the later stands."""
    found: dict[tuple[str, str], dict[str, Answer]] = {}
    for section, answer in asked:
        found.setdefault((section, answer.question), {})[answer.net] = answer
    return [Question(text, section, answers) for (section, text), answers in found.items()]


def agreement(agrees: bool | None) -> str:
    """Whether a measurement agrees with its prediction, as a mark and a word."""
    return DASH if agrees is None else "✓ agrees" if agrees else "✗ differs"


def tally(answers: Iterable[Answer]) -> str:
    """How many predictions agree, as a clause; empty where theory was silent."""
    marks = [answer.agrees for answer in answers if answer.agrees is not None]
    if not marks:
        return ""
    if len(marks) == 1:
        return f"the one prediction {'agrees' if marks[0] else 'differs'}"
    return f"{sum(marks)} of {len(marks)} predictions agree"


def differences(answers: Iterable[Answer], names: Mapping[str, str]) -> list[str]:
    """Every disagreement in words."""
    return [
        f"{names.get(one.net, one.net)}, {one.question} Measured: {one.text}. Theory: {one.predicted or 'otherwise'}."
        for one in answers
        if one.agrees is False
    ]


def sentence(answers: Sequence[Answer]) -> str:
    """What follows a net's name: `can learn copying and recall; cannot learn parity; 9 of 10 predictions agree.`"""
    clauses = [clause for standing in ("yes", "no", "partly") for clause in _clauses(answers, standing)]
    for standing, words in (
        ("unlearnt", "not learnt in these steps"),
        ("unknown", "not known"),
        ("failed", "not measured, since an instrument failed"),
    ):
        if count := sum(answer.standing == standing for answer in answers):
            clauses.append(f"{_number(count)} {words}")
    clauses += [words] if (words := tally(answers)) else []
    if answers and all(answer.standing == "failed" for answer in answers):
        return "could not be measured by any instrument."
    return "; ".join(clauses) + "." if clauses else "was asked nothing."


def short_names(nets: Sequence[str]) -> dict[str, str]:
    """A user's net by its class alone, unless two nets would then share a name."""
    short = {net: net.rpartition(":")[2] or net for net in nets}
    shared = {name for name in short.values() if list(short.values()).count(name) > 1}
    return {net: net if name in shared else name for net, name in short.items()}


def ability(answer: Answer) -> str:
    """What a net can or cannot do, in a few words; the question itself where it is not one of ability."""
    if answer.ability:
        return answer.ability
    found = re.fullmatch(r"Can (?:it|the net|the network) (.+?)\s*\??", answer.question)
    return found[1] if found else answer.question


def _clauses(answers: Iterable[Answer], standing: Standing) -> Iterator[str]:
    """“cannot learn parity”, and “no to …” for questions that do not ask what a net can do."""
    abilities, quoted = [], []
    for answer in answers:
        if answer.standing == standing:
            named = ability(answer)
            if named == answer.question:
                quoted.append(f"“{named}”")
            else:
                abilities.append(named)
    joint = "or" if standing == "no" else "and"
    if said := _factored(abilities, joint):
        yield f"{_VERBS[standing]} {_listed(said, joint)}"
    if quoted:
        yield f"{MARKS[standing][1]} to {_listed(quoted)}"


def _factored(phrases: Sequence[str], joint: str) -> list[str]:
    """`learn copying` and `learn parity` share their verb: `learn copying and parity`."""
    groups: dict[str, list[str]] = {}
    for phrase in phrases:
        verb, _, rest = phrase.partition(" ")
        groups.setdefault(verb, []).append(rest)
    return [f"{verb} {_listed(rests, joint)}".rstrip() if all(rests) else verb for verb, rests in groups.items()]


def _listed(items: Sequence[str], joint: str = "and") -> str:
    """With a comma before the last item where an item is a list itself."""
    words = [*items[:_MOST_NAMED], *([f"{len(items) - _MOST_NAMED} more"] if len(items) > _MOST_NAMED else [])]
    if len(words) < 2:
        return "".join(words)
    nested = any(f" {joint} " in word for word in words)
    return ", ".join(words[:-1]) + (f", {joint} " if nested else f" {joint} ") + words[-1]


def _number(count: int) -> str:
    return (
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")[count - 1]
        if count < 10
        else f"{count}"
    )
