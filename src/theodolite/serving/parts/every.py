"""The parts in the order in which the page shows them."""

from __future__ import annotations

from theodolite.serving.folder import Folder
from theodolite.serving.parts import advisor, iteration, partition, sawtooth, spectrum, valley
from theodolite.serving.parts.part import Part
from theodolite.serving.stores import Stores


def every(folder: Folder, stores: Stores) -> tuple[Part, ...]:
    return (
        advisor.PART,
        valley.part(folder, stores),
        partition.PART,
        spectrum.PART,
        sawtooth.PART,
        iteration.PART,
    )
