"""Parts of a computation that know nothing of each other, on as many threads as torch may use, each of one thread.

Of many small matrices, two threads that take half of them each are nearly twice as fast as one; two threads that share
every product gain a tenth or two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """What the work makes of every part, in their order; one after another where torch has one thread. NumPy's products
    have one thread meanwhile.

    Examples:
        >>> side_by_side(lambda n: n * n, range(4))
        [0, 1, 4, 9]
    """
    every = list(parts)
    given = torch.get_num_threads()
    if given < 2 or not every:
        return [work(part) for part in every]
    graph = torch.is_grad_enabled()

    def alone(part: Part) -> Result:
        with torch.set_grad_enabled(graph):
            return work(part)

    with numpy_alone():
        try:
            count = min(given, len(every))
            with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                return list(pool.map(alone, every))
        finally:
            torch.set_num_threads(given)  # of threads that begin later, too


def shares(count: int, parts: int) -> list[slice]:
    """So many things in so many parts, or fewer, alike to one.

    Examples:
        >>> shares(7, 2)
        [slice(0, 3, None), slice(3, 7, None)]
    """
    parts = max(1, min(parts, count))
    edges = [count * part // parts for part in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


@contextmanager
def numpy_alone() -> Iterator[None]:
    """NumPy's products have one thread in here: its threads and torch's would wait for each other's cores."""
    with _products().limit(limits=1, user_api="blas"):
        yield


@cache
def _products() -> ThreadpoolController:
    return ThreadpoolController()
