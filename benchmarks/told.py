"""How far a long benchmark is, for its log."""

from __future__ import annotations

import time


class Told:
    """A line every quarter of a minute."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, done: float, total: float, label: str) -> None:
        if (now := time.monotonic()) - self._last > 15:
            self._last = now
            print(f"{done / total:.1%} {label}", flush=True)
