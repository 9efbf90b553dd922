"""What lies below the folder of `--out`: stores and reports. Nothing else of it is read, and nothing outside it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from theodolite.errors import BadInput

logger = logging.getLogger(__name__)

_DEEPEST = 4  # folders below the one that is served
_MOST = 20_000  # entries looked at; a home folder is no place of ours
STORE, REPORT = "store.db", "report.html"


class NotThere(BadInput):
    """What was asked for is not below the folder."""


@dataclass(frozen=True)
class Place:
    """A folder with a store, a report or both; `changed` is when either was last written, in seconds since 1970."""

    path: str
    store: bool
    report: bool
    changed: float


class Folder:
    def __init__(self, out: str | Path) -> None:
        given = Path(out)
        try:
            self.root = given.resolve(strict=True)
            if not self.root.is_dir():
                raise BadInput(f"'{out}' is a file: give --out a folder that holds surveys and runs")
            next(self.root.iterdir(), None)
        except (OSError, ValueError, RuntimeError) as error:
            circle = "no folder has such a name" if isinstance(error, ValueError) else "its links go round in a circle"
            reason = getattr(error, "strerror", None) or circle
            raise BadInput(
                f"the folder '{str(out)[:200]}' cannot be read ({reason}): give --out one that can"
            ) from error

    def file(self, folder: str, name: str) -> Path:
        """A file of a folder below the root; a path or a link that leaves the root is refused, and logged."""
        try:
            inside = self.root / folder / name
            target = inside.resolve(strict=False)
            if "\0" in folder or not target.is_relative_to(self.root) or ".." in Path(folder).parts:
                logger.warning("refused: %r leaves the folder that is served", f"{folder}/{name}")
                raise NotThere(f"'{folder[:200]}' leaves the folder that is served: only what is below it is shown")
            if not target.is_file():
                raise NotThere(f"there is no {name} in '{folder[:200]}': it was removed, or never there")
        except (OSError, ValueError, RuntimeError) as error:
            raise NotThere(f"'{folder[:200]}' is no folder that can be read") from error
        return target

    def places(self) -> tuple[list[Place], bool]:
        """Where stores and reports are, the last written first, and whether there was more than is looked at."""
        found, seen = [], 0
        for path, names in self._folders(self.root, 0):
            seen += len(names) + 1
            if seen > _MOST:
                break
            place = self._place(path, names)
            if place is not None:
                found.append(place)
        return sorted(found, key=lambda place: -place.changed), seen > _MOST

    def _place(self, path: Path, names: list[str]) -> Place | None:
        below = path.relative_to(self.root).as_posix()
        times = {}
        for name in {STORE, REPORT} & set(names):
            try:
                times[name] = self._changed(self.file(below, name))
            except (NotThere, OSError):
                continue
        return Place(below, STORE in times, REPORT in times, max(times.values())) if times else None

    def _changed(self, file: Path) -> float:
        """A store's newest rows stand in the log beside it."""
        log = file.with_name(f"{file.name}-wal")
        return max(one.stat().st_mtime for one in (file, log) if one.exists())

    def _folders(self, path: Path, depth: int) -> Iterator[tuple[Path, list[str]]]:
        """With the names of their files; links to folders are not followed."""
        try:
            with os.scandir(path) as entries:
                here = sorted(entries, key=lambda entry: entry.name)
            inner = [entry.name for entry in here if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        yield path, [entry.name for entry in here]
        if depth < _DEEPEST:
            for name in inner:
                if not name.startswith(".") and name != "checkpoints":
                    yield from self._folders(path / name, depth + 1)
