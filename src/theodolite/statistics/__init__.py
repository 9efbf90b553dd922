"""Intervals, paired comparisons, corrections for many of them, and fitted power laws; numbers in, numbers out."""
