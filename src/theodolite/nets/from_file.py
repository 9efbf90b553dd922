"""`file.py:Name`: what a user's file defines, with the file's folder importable while it runs.

The folder is first on the path, as it is where Python runs the file, for as long as the file is loaded or builds
something, and gone after. Two folders may have a neighbour of one name: each file gets its own. What is there is read
as text: bytecode may be of another text of the same second and size, and would be written into a user's folder.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from theodolite.errors import BadInput
from theodolite.nets import fingerprint
from theodolite.registry import unknown

_OWN = "theodolite_user_"  # before the hash of a file, the name of its module
_path_in_use = threading.RLock()  # `sys.path` is one for all threads


@dataclass(frozen=True)
class FromFile:
    """What `file.py:Name` stands for, and the name to show for it. `digest` is the file's alone, `code` also of all it
    imports. `neighbours` puts the file's folder on the path for a while."""

    found: Any
    name: str
    digest: str
    code: str
    neighbours: Callable[[], Any]


def is_file(text: str) -> bool:
    """Whether a net, task or map is named by a file."""
    return not text.startswith("hf:") and (":" in text or text.endswith(".py"))  # hf: is a model of Hugging Face


def named_in_file(text: str) -> FromFile:
    """Runs the file. Nets, tasks, maps and classes of functions are all named so."""
    path_text, _, name = text.rpartition(":")
    path = Path(path_text)
    if not name or not path_text:
        raise BadInput(f"'{text}' names no class or function: write file.py:Name")
    if not path.is_file():
        raise BadInput(f"there is no file '{path_text}': give the path of a Python file as file.py:Name")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    spec = importlib.util.spec_from_file_location(f"{_OWN}{digest[:16]}", path)
    if spec is None or spec.loader is None:
        raise BadInput(f"'{path_text}' is not a Python file: give file.py:Name")
    folder, package = _folder_and_package(path.resolve(), content)
    beside = partial(_on_path, folder)
    fingerprint.forget_changed()
    with beside():
        loaded = importlib.util.module_from_spec(spec)
        loaded.__package__ = package
        _run(loaded, content, path)
        if not hasattr(loaded, name):
            public = [n for n, v in vars(loaded).items() if not n.startswith("_") and callable(v)]
            raise BadInput(f"in '{path_text}': {unknown('class or function', name, public)}")
        code = fingerprint.of_file(loaded, content)
    return FromFile(getattr(loaded, name), f"{path.name}:{name}", digest, code, beside)


def _run(loaded: ModuleType, content: bytes, path: Path) -> None:
    before = {*sys.modules, loaded.__name__}
    sys.modules[loaded.__name__] = loaded
    try:
        exec(compile(content, path, "exec"), vars(loaded))  # the text whose hash it is, not a bytecode file of before
    except (Exception, SystemExit) as error:
        raise BadInput(f"'{path}' could not be imported: {type(error).__name__}: {_first_line(error)}") from error
    finally:
        fingerprint.remember(sys.modules.keys() - before)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _folder_and_package(path: Path, content: bytes) -> tuple[Path, str]:
    """What goes on the path: the file's folder, or for a file with relative imports what holds its package."""
    if not _relative(content):
        return path.parent, ""
    top, parts = path.parent, [path.parent.name]
    while (top / "__init__.py").is_file() and (top.parent / "__init__.py").is_file():
        top = top.parent
        parts.insert(0, top.name)
    return top.parent, ".".join(parts)


def _relative(content: bytes) -> bool:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    entry = str(folder)
    finder = partial(_finder, folder)
    with _path_in_use:
        fingerprint.forget_namesakes(folder)
        sys.path.insert(0, entry)
        sys.path_hooks.insert(0, finder)
        _forget_finders(folder)
        before = set(sys.modules)
        try:
            yield
        finally:
            if entry in sys.path:
                sys.path.remove(entry)
            sys.path_hooks.remove(finder)
            _forget_finders(folder)
            fingerprint.remember({n for n in sys.modules.keys() - before if not n.startswith(_OWN)})


class _FromText(SourceFileLoader):
    """Without times of a file, `importlib` neither reads nor writes its bytecode."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"the bytecode of {path} is not used")


def _finder(folder: Path, entry: str) -> FileFinder:
    """Of a folder on the path or of a package, a hook of `sys.path_hooks`."""
    if not _own(folder, entry):
        raise ImportError(f"{entry} is not of {folder}")
    return FileFinder(entry, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromText, SOURCE_SUFFIXES))


def _own(folder: Path, entry: str) -> bool:
    place = Path(entry)
    return place.is_relative_to(folder) and fingerprint.INSTALLED.isdisjoint(place.parts) and place.is_dir()


def _forget_finders(folder: Path) -> None:
    for entry in [entry for entry in sys.path_importer_cache if Path(entry).is_relative_to(folder)]:
        del sys.path_importer_cache[entry]
