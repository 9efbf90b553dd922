"""Cases that one test runs through: of cheap ones that test one thing, a test for each costs more than it tells."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, in one test: the case that fails is named in a note under its error."""
    words = [names] if isinstance(names, str) else list(names)
    rows = [(case,) if isinstance(names, str) else tuple(case) for case in cases]

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for row in rows:
                given = dict(zip(words, row, strict=True))
                try:
                    test(**fixtures, **given)
                except BaseException as error:
                    error.add_note(f"the case was {given}")
                    raise

        left = inspect.signature(test)
        kept = [parameter for name, parameter in left.parameters.items() if name not in words]
        run.__signature__ = left.replace(parameters=kept)  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return decorated
