"""The answers of a survey as a file beside its store, for comparing with a later one. Read as data, never as code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.files import OutputFolder, json_fault
from theodolite.measurement import finite
from theodolite.report import Answer
from theodolite.report.answer import MARKS

FILE = "survey.json"
SCHEMA = 1
_LARGEST = 32 * 2**20  # bytes; a survey of all networks has far fewer
_TEXTS = ("net", "question", "text", "predicted", "ability", "explains", "value", "published", "setting")


@dataclass(frozen=True)
class Saved:
    """What two surveys are compared by; `facts` by net: parameters, operations, time."""

    nets: tuple[str, ...]
    preset: str
    command: str
    answers: tuple[Answer, ...]
    facts: Mapping[str, Mapping[str, Any]]


def write(folder: str | Path, survey: Saved) -> None:
    document = {"schema": SCHEMA, **asdict(survey)}
    OutputFolder(folder).write(FILE, json.dumps(finite(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read(folder: str | Path) -> Saved:
    """The survey that was written into a folder; one sentence where there is none, or it is none."""
    file = Path(folder) / FILE
    if not file.is_file():
        raise BadInput(f"'{folder}' holds no survey ({FILE}): give the folder that an earlier survey had as --out")
    try:
        with file.open("rb") as handle:
            text = handle.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST // 2**20} MB")
        return _saved(json.loads(text, parse_constant=_refuse))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        named = f"{type(error).__name__}: " if isinstance(error, KeyError | TypeError | AttributeError) else ""
        reason = f"{named}{json_fault(error)}".splitlines()[0][:200]
        raise BadInput(f"'{file}' is no survey that can be read ({reason}): survey again into that folder") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _saved(document: Any) -> Saved:
    if document["schema"] != SCHEMA:
        raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA}")
    facts = {str(net): {str(k): _plain(v) for k, v in known.items()} for net, known in document["facts"].items()}
    answers = tuple(_answer(one) for one in document["answers"])
    return Saved(_texts(document["nets"]), str(document["preset"]), str(document["command"]), answers, facts)


def _answer(one: Mapping[str, Any]) -> Answer:
    known = {field.name for field in fields(Answer)}
    found = {name: value for name, value in one.items() if name in known}
    wrong = [name for name in _TEXTS if not isinstance(found.get(name, ""), str)]
    if wrong or found["standing"] not in MARKS or found.get("agrees") not in (None, True, False):
        raise ValueError(f"an answer has no such {(wrong or ['standing'])[0]}")
    if found.get("interval") is not None:
        low, high = map(_number, found["interval"])
        found["interval"] = (low, high)
    if found.get("number") is not None:
        found["number"] = _number(found["number"])
    return Answer(**found)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return float(value)


def _plain(value: Any) -> Any:
    if not isinstance(value, int | float | str | None):
        raise ValueError("a fact is neither a number nor a text")
    return value


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("its networks are no list of names")
    return tuple(values)
