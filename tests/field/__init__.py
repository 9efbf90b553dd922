"""Arithmetic over GF(p) against Python's integers, fractions and python-flint."""
