"""Which code a user's net is: its own text, every module of theirs that it imports, the versions of libraries.

A result is kept under this name and handed out again only for the same code. Imports are read from the text, all of
them, also inside functions, and followed through every module outside the standard library and site-packages; what
stands in the file's own namespace once it has run adds imports whose names were computed. Not seen: a name that is
computed inside a function or inside an imported module, and files that are read as data.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import symtable
import sys
import sysconfig
import textwrap
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from theodolite.measurement import canonical
from theodolite.version import __version__

_PROCESS = uuid.uuid4().hex
_STANDARD = "standard library"
_PYTHON = {way(Path(sysconfig.get_path(kind))) for kind in ("stdlib", "platstdlib") for way in (Path, Path.resolve)}
INSTALLED = {"site-packages", "dist-packages"}

_read: dict[str, tuple[ModuleSpec, bytes]] = {}  # by module: its text when it was first seen after its import
_by_users: set[str] = set()  # modules that a user's file has imported
_unnamed: dict[int, Any] = {}  # objects known by their place in memory are kept, so that no other takes it


def of_file(module: ModuleType, content: bytes) -> str:
    """Of a user's file that has just been run as `module`."""
    return _hash({"file": _sha(content), **_imported({*_imports(content, module.__package__ or ""), *_held(module)})})


def of_object(net: Any) -> str:
    """Of a class or function: its module's file. What `__main__` defines is known by its own text and what that names,
    so that a script may change around it. One whose text cannot be had is the same only while this process lives."""
    module = sys.modules.get(getattr(net, "__module__", None) or "")
    try:
        held = [_plain(value) for value in _captured(net)]
        if module is None:
            raise TypeError("its module is gone")
        if module.__name__ == "__main__":
            texts, names = _texts(net, vars(module))
            return _hash({"texts": texts, "captured": held, **_imported(names)})
        inspect.getsource(net)  # one that was put together at run time has none, whatever its module says
        return _hash({"name": net.__qualname__, "captured": held, **_imported({module.__name__, *_held(module)})})
    except (AttributeError, OSError, RecursionError, SyntaxError, TypeError, ValueError):
        _unnamed[id(net)] = net
        return _hash([_PROCESS, id(net)])


def forget_changed() -> None:
    """Once a module that users' files imported was changed, all of these are imported anew, as the files are."""
    loaded = {name: spec for name in _by_users if (spec := getattr(sys.modules.get(name), "__spec__", None))}
    if all(_content(name, spec) == _on_disk(spec) for name, spec in loaded.items()):
        return
    _forget(loaded)


def forget_namesakes(folder: Path) -> None:
    """Modules that a file of another folder imported, and that have a namesake in this one, are imported anew."""
    tops = {name.partition(".")[0] for name in _by_users}
    here = {top for top in tops if (folder / f"{top}.py").is_file() or (folder / top).is_dir()}
    foreign = {top for top in here if not _lies_in(sys.modules.get(top), folder)}
    _forget({name for name in _by_users if name.partition(".")[0] in foreign})


def neighbours(folder: Path) -> dict[str, bytes]:
    """Of the modules that users' files imported, those in this folder: their texts by their paths in it."""
    found = {}
    for name in sorted(_by_users):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and spec.origin and Path(spec.origin).resolve().is_relative_to(folder):
            found[Path(spec.origin).resolve().relative_to(folder).as_posix()] = _content(name, spec)
    return found


def _lies_in(module: ModuleType | None, folder: Path) -> bool:
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(Path(place).resolve().is_relative_to(folder) for place in places if place)


def _forget(names: Iterable[str]) -> None:
    for name in list(names):
        _by_users.discard(name)
        if sys.modules.pop(name, None) is None:
            continue
        parent, _, leaf = name.rpartition(".")
        if parent in sys.modules:
            vars(sys.modules[parent]).pop(leaf, None)
    importlib.invalidate_caches()


def remember(names: Iterable[str]) -> None:
    """These modules were imported by a user's file."""
    for name in names:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and spec.origin is not None and not _library(name):
            _content(name, spec)
            _by_users.add(name)


def _imported(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The modules behind these names by the hash of their texts, and the libraries by their versions."""
    modules: dict[str, str] = {}
    libraries = {"torch": _version("torch")}
    waiting, seen = list(names), {""}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        top = name.partition(".")[0]
        if library := _library(top) or _library(name):  # what lies deeper in a library is not looked for
            libraries |= {top: library} if library != _STANDARD else {}
            continue
        waiting.append(name.rpartition(".")[0])  # a module's packages run before it
        spec = _spec(name)
        if spec is not None and spec.origin is not None:
            content = _content(name, spec)
            modules[name] = _sha(content)
            waiting += _imports(content, spec.parent or "")
    return {"modules": modules, "libraries": libraries}


@lru_cache(maxsize=1024)
def _imports(content: bytes, package: str) -> frozenset[str]:
    """Every name a text imports; some are of functions and classes, not of modules."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return frozenset()  # compiled, or never to be imported
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), package)
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)} if base else set()
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.add(_absolute(node.args[0].value, package))
    return frozenset(found)


def _absolute(name: str, package: str) -> str:
    try:
        return importlib.util.resolve_name(name, package or None)
    except ImportError:
        return ""


def _held(module: ModuleType) -> set[str]:
    """The modules of what stands in a module's namespace."""
    values = list(vars(module).values())
    names = {value.__name__ if isinstance(value, ModuleType) else _home(value) for value in values}
    return {name for name in names if name != module.__name__}


def _home(value: Any) -> str:
    owner = value if isinstance(value, type | FunctionType) else type(value)
    return str(owner.__module__)


def _spec(name: str) -> ModuleSpec | None:
    """How a module is found, without importing anything."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    parent, _, leaf = name.rpartition(".")
    above = _spec(parent) if parent else None
    if parent and (above is None or above.submodule_search_locations is None):
        return None
    path = None if above is None else list(above.submodule_search_locations or ())
    for finder in sys.meta_path:
        try:
            found = finder.find_spec(name, path)
        except Exception:  # a namespace inside one that is not imported; or another program's finder
            found = PathFinder.find_spec(leaf, path)
        if found is not None:
            return found
    return None


def _library(name: str) -> str:
    """The version of the library that a module belongs to, or that it is Python's own; empty for a user's module."""
    spec, top = _spec(name), name.partition(".")[0]
    if top == "theodolite":
        return __version__
    if spec is None or spec.origin is None:  # not there, or a namespace that several may share
        return ""
    path = Path(spec.origin)
    if INSTALLED & set(path.parts):
        return _version(top)
    own = spec.origin in ("built-in", "frozen") or any(path.is_relative_to(folder) for folder in _PYTHON)
    return _STANDARD if own else ""


@cache
def _version(top: str) -> str:
    """Of the library behind an import name, without the build: 2.13.0 for 2.13.0+cpu. Empty if nobody knows."""
    try:
        return metadata.version(top).partition("+")[0]
    except metadata.PackageNotFoundError:
        found = sorted(set(_distributions().get(top, ())))
        return " ".join(f"{name} {metadata.version(name).partition('+')[0]}" for name in found)


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _content(name: str, spec: ModuleSpec) -> bytes:
    """A module's text: the one it runs, so of a loaded one as it was when it was first seen after that."""
    if name not in sys.modules:
        return _on_disk(spec)
    if _read.get(name, (None,))[0] is not spec:  # a reload brings a spec of its own
        _read[name] = (spec, _on_disk(spec))
    return _read[name][1]


def _on_disk(spec: ModuleSpec) -> bytes:
    try:
        return spec.loader.get_data(spec.origin)  # type: ignore[union-attr]  # also out of a zip file
    except (AttributeError, OSError):
        return b""


def _texts(net: Any, known: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """The text of an object of `__main__` and of what it names there; and the modules that these come from."""
    texts: list[str] = []
    names: set[str] = set()
    waiting, seen = [net], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ModuleType):
            names.add(one.__name__)
        elif not isinstance(one, type | FunctionType):
            texts.append(_plain(one))
        elif one.__module__ != "__main__":
            names.add(one.__module__)
        else:
            text = textwrap.dedent(inspect.getsource(one))
            texts.append(text)
            names |= _imports(text.encode(), "")
            waiting += [known[name] for name in _globals(symtable.symtable(text, "", "exec")) if name in known]
    return sorted(texts), names


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """The names a text takes from outside of it."""
    yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced())
    for child in table.get_children():
        yield from _globals(child)


def _captured(net: Any) -> list[Any]:
    """What an object that was made inside a function holds of that place, by closure or as a default."""
    if "<" not in net.__qualname__:
        return []
    parts = list(vars(net).values()) if isinstance(net, type) else [net]
    found = [base for base in getattr(net, "__bases__", ()) if "<" in base.__qualname__]
    for one in (getattr(part, "__func__", part) for part in parts):
        if isinstance(one, FunctionType):
            found += [cell.cell_contents for cell in one.__closure__ or ()]
            found += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
    return [value for value in found if value is not net]  # `super()` holds the class


def _plain(value: Any) -> str:
    """A value as text; TypeError where only this process knows it."""
    if isinstance(value, type | FunctionType):
        return of_object(value)
    return value.__name__ if isinstance(value, ModuleType | BuiltinFunctionType) else canonical(value)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash(document: Any) -> str:
    return _sha(canonical(document).encode())
