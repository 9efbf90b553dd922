"""Writing and reading files: whole or not at all, and never outside the folder that was asked for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from theodolite.errors import BadInput


class OutputFolder:
    """The folder of `--out`. What a command leaves there:

    report.html   the page.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"the folder '{path}' cannot be made ({error.strerror}): choose another --out") from error

    def file(self, name: str) -> Path:
        target = (self.path / name).resolve()
        if not target.is_relative_to(self.path.resolve()):
            raise BadInput(f"'{name}' would be written outside '{self.path}': use a plain file name")
        return target

    def write(self, name: str, text: str) -> Path:
        return write_text(self.file(name), text)


def refuse_foreign(path: str | Path) -> None:
    """Refuse a folder that holds anything and no store: it is not one of ours."""
    folder = Path(path)
    try:
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"'{path}' is a file: give a folder to --out")
        there = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise BadInput(f"the folder '{path}' cannot be used ({error.strerror}): choose another --out") from error
    if there and "store.db" not in there:
        named = ", ".join(f"'{name}'" for name in there[:3]) + (" and more" if len(there) > 3 else "")
        raise BadInput(f"the folder '{path}' holds something else ({named}): choose an empty or a new one for --out")


def refuse_endless(path: str | Path) -> None:
    """Refuse what is no file to read from: a pipe waits for somebody who writes, a device may never end."""
    source = Path(path)
    if source.exists() and not source.is_file() and not source.is_dir():
        raise BadInput(f"'{path}' is a device or a pipe: give a file")


def json_fault(error: Exception) -> str:
    """Why something could not be read as JSON, in words about the text and not about the program that reads it."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    told = str(error)
    return "it has a number of thousands of digits" if "integer string conversion" in told else told


def write_text(path: str | Path, text: str) -> Path:
    """Write beside the target and rename, so that a file is whole or was never there.

    What is no file (a device, a pipe) is written to: renaming would put a file in its place. A link stays a link.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8") as handle:
                handle.write(text)
            return target
        _rename_into(target.resolve() if target.is_symlink() else target, text)
    except OSError as error:
        raise BadInput(f"'{path}' cannot be written ({error.strerror}): choose another place") from error
    return target


def _rename_into(target: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as handle:
        handle.write(text)
    written = Path(handle.name)
    try:
        written.chmod(0o644)
        written.replace(target)
    except OSError:
        written.unlink()
        raise


def check_writable(path: str | Path) -> None:
    """Refuse a place that cannot be written before a long computation, not after it."""
    target = Path(path)
    if target.is_dir():
        raise BadInput(f"'{path}' is a folder: give the name of a file")
    if not target.parent.is_dir():
        raise BadInput(f"the folder '{target.parent}' is not there: make it first, or choose another place")
    if not os.access(target.parent, os.W_OK):
        raise BadInput(f"the folder '{target.parent}' cannot be written: choose another place")
