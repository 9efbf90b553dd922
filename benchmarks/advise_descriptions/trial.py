"""A description on trial: configurations as `benchmarks/advise.py` draws them, from a seed of its own.

A description may say that it does not know a field. It may not count wrong without a word: then it is left out.
"""

from __future__ import annotations

from typing import Any

from benchmarks.advise_cases import cases

from theodolite.advice.described.count import count
from theodolite.advice.described.table import read_entry
from theodolite.errors import BadInput

SEED, DRAWS = 1, 20  # the benchmark's published seeds are others


def fault(model_type: str, entry: dict[str, Any]) -> str | None:
    """The first configuration that it miscounts, or None."""
    known = read_entry(model_type, entry)
    for _, which, config, true in cases([model_type], DRAWS, SEED):
        try:
            found = count(config, "it", known)
        except BadInput:
            continue
        if not found.unread and (counted := sum(found.parts.values())) != true:
            return f"it miscounts {'its default' if which == 'default' else 'a changed one'}: {counted:,} for {true:,}"
    return None
