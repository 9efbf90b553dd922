"""Answers of a net to the questions of all sections, and the verdicts that the page and the terminal make of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
_SHORT = 24  # letters of a measurement that fit a small cell


@dataclass(frozen=True)
class Answer:
    """One cell of the picture and one line of a net's card: a question that all nets are asked in the same words, and
    what was measured of it.

    `text` is the measurement in a few words with its interval, `value` the number alone, such as `4/4` or `0.54`;
    `predicted` is what theory says; `published` another paper's experiment with its setting, which is no theory and is
    never counted with it; `agrees` is None without a prediction that could be wrong. `unlearnt` is not learnt in the
    steps of this training, which is no “cannot”; `failed` means that the instrument could not be used, and `text` says
    why. `number` and `interval` are for comparing two surveys, under the `setting` they were made with. `ability`
    names what is asked in the words of the field, `length generalisation on parity`, and `explains` says in one line
    what that is; without a name it is taken from a question that begins with “Can it”.
    """

    net: str
    question: str
    standing: Standing
    text: str
    predicted: str = ""
    agrees: bool | None = None
    ability: str = ""
    explains: str = ""
    value: str = ""
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
        return f"the one prediction of theory {'agrees' if marks[0] else 'differs'}"
    return f"{sum(marks)} of {len(marks)} predictions of theory agree"


def differences(answers: Iterable[Answer], names: Mapping[str, str]) -> list[str]:
    """Every disagreement in words."""
    return [
        f"{names.get(one.net, one.net)}, {one.question} Measured: {one.text}. Theory: {one.predicted or 'otherwise'}."
        for one in answers
        if one.agrees is False
    ]


def short_names(nets: Sequence[str]) -> dict[str, str]:
    """A user's net by its class alone, unless two nets would then share a name."""
    short = {net: net.rpartition(":")[2] or net for net in nets}
    shared = {name for name in short.values() if list(short.values()).count(name) > 1}
    return {net: net if name in shared else name for net, name in short.items()}


def own(net: str) -> bool:
    """Whether a net is the user's, `file.py:Name`, and not a built-in one."""
    return re.fullmatch(r".+:[^\W\d]\w*", net) is not None


def ability(answer: Answer) -> str:
    """What is asked, in a few words; the question itself where it has no shorter name."""
    if answer.ability:
        return answer.ability
    found = re.fullmatch(r"Can (?:it|the net|the network) (.+?)\s*\??", answer.question)
    return found[1] if found else answer.question


def short_value(answer: Answer) -> str:
    """The number for a small cell: `value`, or the measurement up to its interval; nothing where there is none."""
    if answer.value or answer.standing == "failed":
        return answer.value
    found = re.split(r" [(\[]|[,;:] ", answer.text)[0]
    return found if len(found) <= _SHORT and (found == answer.text or re.search(r"\d", found)) else ""
