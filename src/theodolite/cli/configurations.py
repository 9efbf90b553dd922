"""Several configurations in one command: one that cannot be read is told in its place and does not end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from typer import Exit

from theodolite.cli.options import error_fields
from theodolite.errors import TheodoliteError

Found = TypeVar("Found")


class Refused(NamedTuple):
    """A configuration that cannot be used, and the sentence that says why."""

    name: str
    error: TheodoliteError

    def to_json(self) -> dict[str, Any]:
        error = self.error
        return {"name": self.name, "error": error_fields(type(error).__name__, str(error), error.exit_code)}


def of_each(names: Sequence[str], find: Callable[[str], Found]) -> list[Found | Refused]:
    """What is found for each, or why nothing is; where all fail alike, as with a wrong option, that is raised."""
    found: list[Found | Refused] = []
    for name in names:
        try:
            found.append(find(name))
        except TheodoliteError as error:
            found.append(Refused(name, error))
    refused = refusals(found)
    if len(refused) == len(found) and len({str(one.error) for one in refused}) == 1:
        raise refused[0].error
    return found


def refusals(found: Sequence[Any]) -> list[Refused]:
    return [one for one in found if isinstance(one, Refused)]


def end(found: Sequence[Any], *, finding: bool = False) -> None:
    """With 2 where a configuration could not be used, with 1 where something was found in the others."""
    if refused := refusals(found):
        raise Exit(max(one.error.exit_code for one in refused))
    if finding:
        raise Exit(1)
