"""Bytes of tensors that are alive while torch runs, counted as its operations return."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class AliveBytes(TorchDispatchMode):
    """Bytes of the results that are alive, each storage once, and the most there were.

    What was there before is not counted, and what a kernel keeps to itself is not seen.

    Examples:
        >>> import torch
        >>> with AliveBytes() as alive:
        ...     kept = torch.zeros(100)
        ...     total = (kept + 1).sum()
        >>> alive.now, alive.most
        (404, 804)
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                if storage._cdata not in given and storage._cdata not in self._sizes:
                    self._sizes[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._free, storage._cdata)
        self.most = max(self.most, self.now)
        return result

    def _free(self, key: int) -> None:
        self.now -= self._sizes.pop(key)
