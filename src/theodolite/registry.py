"""One registry class for nets, tasks, measures, sections and claims: unique names, near names on a miss.

An entry is an item, or the place where one is found, `package.module:name`, imported when it is first asked for.
`homes` are modules that register items of their own, imported when the registry is first read.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from theodolite.errors import BadInput, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to items, in the order of registration.

    Examples:
        >>> colours = Registry("colour")
        >>> colours.add("red", "#d62728")
        '#d62728'
        >>> colours.add_lazy("pi", "math:pi")
        >>> list(colours), colours["pi"]
        (['red', 'pi'], 3.141592653589793)
    """

    def __init__(self, kind: str, places: Mapping[str, str] | None = None, homes: Sequence[str] = ()) -> None:
        """`kind` is the word for an item in messages; `places` are entries that are imported on first use."""
        self.kind = kind
        self._homes = list(homes)
        self._items: dict[str, T | _Place] = {}
        self._places: dict[str, str] = {}
        for name, place in (places or {}).items():
            self.add_lazy(name, place)

    def add(self, name: str, item: T) -> T:
        self._check_free(name)
        self._items[name] = item
        return item

    def add_lazy(self, name: str, place: str) -> None:
        """`place` is `package.module:name`; nothing is imported before the entry is asked for."""
        self._check_free(name)
        self._items[name], self._places[name] = _Place(place), place

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator form of `add`."""
        return lambda item: self.add(name, item)

    def place(self, name: str) -> str | None:
        """Where an entry that is imported on first use is found; None for one added as an item."""
        return self._places.get(name)

    def __getitem__(self, name: str) -> T:
        self._open()
        try:
            item = self._items[name]
        except KeyError:
            raise UnknownName(unknown(self.kind, name, self._items)) from None
        if not isinstance(item, _Place):
            return item
        found: T = item.load()
        self._items[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        self._open()
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        self._open()
        return iter(self._items)

    def __len__(self) -> int:
        self._open()
        return len(self._items)

    def items(self) -> Iterable[tuple[str, T]]:
        """Every name with its item; this imports all of them."""
        return [(name, self[name]) for name in self]

    def _open(self) -> None:
        while self._homes:
            importlib.import_module(self._homes.pop(0))

    def _check_free(self, name: str) -> None:
        if name in self._items:
            raise BadInput(f"the {self.kind} '{name}' is registered already: choose another name")


@dataclass(frozen=True)
class _Place:
    where: str

    def load(self) -> Any:
        module, _, name = self.where.partition(":")
        return getattr(importlib.import_module(module), name)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name nobody knows: the near ones first, then all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    return f"no {kind} is called '{name}': {hint}known: {', '.join(names) or 'none'}"
