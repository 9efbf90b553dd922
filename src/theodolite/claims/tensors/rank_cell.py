"""The cell that most claims of the tensor source ask for, and the source's name; a place in it follows."""

from __future__ import annotations

from typing import Any

from theodolite.lab.cell import Cell

TENSORS = "Tensors for deep learning theory, "


def rank_cell(net: str, shape: dict[str, Any], partition: str = "left-right", **options: Any) -> Cell:
    return Cell("separation-rank", {"net": net, "shape": shape, "partition": partition, **options})
