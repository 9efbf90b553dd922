"""Which variables enter which constituent function: compositional graphs, and families of them. No network, no data."""

from theodolite.graphs.graph import CompositionalGraph, Node

__all__ = ["CompositionalGraph", "Node"]
