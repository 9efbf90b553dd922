"""The parts in the order in which the page shows them."""

from __future__ import annotations

from theodolite.serving.parts import advisor

PARTS = (advisor.PART,)
