"""Every measure that a cell can name: importing this module registers those that have files of their own."""

from theodolite.instruments import cost, sensitivity, symmetry
from theodolite.instruments.measures import measures

__all__ = ["cost", "measures", "sensitivity", "symmetry"]
