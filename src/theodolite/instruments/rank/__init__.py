"""Separation rank: exact over GF(p), the grid tensor, ε-rank; points, certificates and their check."""
