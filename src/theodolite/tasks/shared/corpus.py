"""Real text: the documents of a file or a folder, and which of them are held out.

A document is a file of a folder, or one of 64 parts of a single file, cut at the ends of lines. The same words twice
count once, so that nothing is both trained on and held out. What is held out follows from the documents' own hashes:
whoever reads the same text holds out the same part of it, wherever it lies.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from theodolite.errors import BadInput

PYTHON = "python"  # the library of the Python that runs, its tests apart
_HELD_OUT = 0.1  # of the bytes, at least
_PARTS = 64
_LARGEST = 1 << 31  # bytes in all
_APART = {"site-packages", "dist-packages", "test", "tests", "__pycache__", "idlelib", "lib2to3"}


@dataclass(frozen=True)
class Corpus:
    """Documents by their hashes; `digest` tells one text from another."""

    trained: tuple[bytes, ...]
    held_out: tuple[bytes, ...]
    digest: str


def read_corpus(where: str) -> Corpus:
    """The text of a file, of all text files under a folder, or of the Python library (`python`)."""
    paths = files_of(where)
    state = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    if not any(size for _, size, _ in state):
        raise BadInput(f"there is no text in '{where}': give a file or a folder that holds some, or '{PYTHON}'")
    if (size := sum(size for _, size, _ in state)) > _LARGEST:
        raise BadInput(f"'{where}' holds {size:,} bytes, more than {_LARGEST:,}: give a part of it")
    return _read(where, state)


def files_of(where: str) -> list[Path]:
    if where == PYTHON:
        return sorted(_library(Path(sysconfig.get_path("stdlib"))))
    root = Path(where)
    try:
        if root.is_dir():
            found = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
            return [path for path in found if not any(p.startswith(".") for p in path.relative_to(root).parts)]
        if root.is_file():
            return [root]
    except OSError as error:
        raise BadInput(f"the text '{where}' cannot be read ({error.strerror}): give a file or a folder") from error
    raise BadInput(f"there is no file or folder '{where}': give the text's place, or '{PYTHON}' for Python's library")


def _library(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _APART]  # nor entered: what is installed there is large
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


@lru_cache(maxsize=4)
def _read(where: str, state: tuple[tuple[str, int, int], ...]) -> Corpus:
    texts = []
    for name, size, _ in state:
        if not size:
            continue
        try:
            text = Path(name).read_bytes()
        except OSError as error:
            raise BadInput(f"'{name}' cannot be read ({error.strerror}): leave it out of '{where}'") from error
        if b"\0" not in text:  # else it is no text, and symbol 0 ends documents
            texts.append(text)
    if not texts:
        raise BadInput(f"'{where}' is binary: give text")
    documents = texts if len(state) > 1 else list(_parts(texts[0]))
    by_hash = {hashlib.sha256(document).hexdigest(): document for document in documents}
    ordered = sorted(by_hash)
    wanted = _HELD_OUT * sum(len(document) for document in by_hash.values())
    held: list[str] = []
    while sum(len(by_hash[name]) for name in held) < wanted:
        held.append(ordered[len(held)])
    if len(held) == len(ordered):
        raise BadInput(f"'{where}' is too short to hold out a tenth of it: give more text")
    digest = hashlib.sha256("".join(ordered).encode()).hexdigest()[:16]
    return Corpus(tuple(by_hash[name] for name in ordered[len(held) :]), tuple(by_hash[name] for name in held), digest)


def _parts(text: bytes) -> Iterator[bytes]:
    """About equally long, whole lines each."""
    lines = text.splitlines(keepends=True)
    size, part = max(1, len(text) // _PARTS), bytearray()
    for line in lines:
        part += line
        if len(part) >= size:
            yield bytes(part)
            part.clear()
    if part:
        yield bytes(part)
