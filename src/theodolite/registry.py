"""One registry class for nets, tasks, measures, sections and claims: unique names, near names on a miss."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from theodolite.errors import BadInput, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to items, in the order of registration."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        if name in self._items:
            raise BadInput(f"the {self.kind} '{name}' is registered already: choose another name")
        self._items[name] = item
        return item

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator form of `add`."""
        return lambda item: self.add(name, item)

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            raise UnknownName(unknown(self.kind, name, self._items)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> Iterable[tuple[str, T]]:
        return self._items.items()


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name nobody knows: the near ones first, then all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    return f"no {kind} is called '{name}': {hint}known: {', '.join(names) or 'none'}"
