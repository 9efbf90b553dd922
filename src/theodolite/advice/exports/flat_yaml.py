"""The part of YAML that the exports need: scalars by name, and sections of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from theodolite.errors import BadInput

_INTEGER, _REAL = re.compile(r"-?\d+"), re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def write_yaml(content: Mapping[str, Any], indent: int = 0) -> str:
    lines = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            lines += [f"{' ' * indent}{name}:\n", write_yaml(value, indent + 2)]
        else:
            lines.append(f"{' ' * indent}{name}: {_scalar(value)}\n")
    return "".join(lines)


def read_yaml(text: str) -> dict[str, Any]:
    """What `write_yaml` wrote, comments left out."""
    top: dict[str, Any] = {}
    open_sections = [(-1, top)]
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = re.fullmatch(r"( *)([\w-]+):(?: (.*))?", line)
        if found is None:
            raise BadInput(f"the line {line!r} is not a name and a value: only such YAML is read")
        depth, name, value = len(found[1]), found[2], found[3]
        while open_sections[-1][0] >= depth:
            open_sections.pop()
        section = open_sections[-1][1]
        if value is None:
            section[name] = {}
            open_sections.append((depth, section[name]))
        else:
            section[name] = _value(value.strip())
    return top


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as text
    return str(value)


def _value(text: str) -> Any:
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text
