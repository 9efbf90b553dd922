"""Architectures against explicit loops, and what every registered net must do."""
