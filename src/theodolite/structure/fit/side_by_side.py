"""Parts of a computation that know nothing of each other, on as many threads as torch may use, each of one thread.

Of many small matrices, two threads that take half of them each gain more than two threads that share every product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

from theodolite.device import cpu_threads

Part = TypeVar("Part")
Result = TypeVar("Result")
_given: ContextVar[int | None] = ContextVar("threads that torch had before it had one", default=None)
_taken: ContextVar[Callable[[], bool]] = ContextVar("whether others have the threads", default=lambda: False)


def threads() -> int:
    """How many parts go side by side now: as many as torch has threads, or had before `one_thread`; one where others
    have these."""
    if _taken.get()():
        return 1
    return _given.get() or torch.get_num_threads()


def side_by_side(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """What the work makes of every part, in their order; one after another where torch has one thread.

    Examples:
        >>> side_by_side(lambda n: n * n, range(4))
        [0, 1, 4, 9]
    """
    every = list(parts)
    count = min(threads(), len(every))
    if threads() < 2 or not every:
        return [work(part) for part in every]
    graph = torch.is_grad_enabled()

    def by_itself(part: Part) -> Result:
        with torch.set_grad_enabled(graph):
            return work(part)

    with one_thread(), ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(by_itself, every))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch, NumPy and scikit-learn have one thread in here, but for what goes side by side. Each has threads of its
    own and wakes them for every short operation, which costs more than it gains, and they wait for each other's cores.
    """
    if _given.get() is not None:
        yield
        return
    import sklearn.ensemble  # noqa: F401  whose threads are among those that are found

    token = _given.set(threads())
    try:
        with cpu_threads(1), ThreadpoolController().limit(limits=1):
            yield
    finally:
        _given.reset(token)


@contextmanager
def alone(taken: Callable[[], bool]) -> Iterator[None]:
    """Nothing goes side by side in here while others have the threads."""
    token = _taken.set(taken)
    try:
        yield
    finally:
        _taken.reset(token)


def shares(count: int, parts: int) -> list[slice]:
    """So many things in so many parts, or fewer, alike to one.

    Examples:
        >>> shares(7, 2)
        [slice(0, 3, None), slice(3, 7, None)]
    """
    parts = max(1, min(parts, count))
    edges = [count * part // parts for part in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]
