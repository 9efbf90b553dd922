"""A description that stood its trial, or why there is none."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.advise_descriptions.describe import describe
from benchmarks.advise_descriptions.effort import TooMuch
from benchmarks.advise_descriptions.trial import fault


def answer(model_type: str) -> tuple[dict[str, Any] | None, str]:
    try:
        found = describe(model_type)
    except TooMuch as error:
        return None, str(error)
    except Exception as error:  # a library's own, in a type that needs what is not installed
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if isinstance(found, str):
        return None, found
    entry = json.loads(json.dumps(found))
    why = fault(model_type, entry)
    return (entry, "") if why is None else (None, why)
